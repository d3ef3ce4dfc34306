package main

import (
	"fmt"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

// budgetCommand groups the commands on budgets.
type budgetCommand struct {
	List   budgetList   `cmd:"" help:"List budgets with what is spent of them."`
	Remove budgetRemove `cmd:"" help:"Remove a budget; spending goes on being counted."`
}

type budgetList struct {
	operatorFlags
	Client string `name:"client" placeholder:"ID" help:"One organization only."`
}

// budgetRow is a budget as the operator sees it.
type budgetRow struct {
	ClientID modelgate.ClientID `json:"client_id"`
	Scope    modelgate.Level    `json:"scope"`
	ID       string             `json:"id"`
	Period   modelgate.Period   `json:"period"`
	Limit    modelgate.Nano     `json:"limit_usd"`
	Spend    modelgate.Nano     `json:"spend_usd"`
	Held     modelgate.Nano     `json:"held_usd"`
}

// Run is `modelgate budget list`.
func (c *budgetList) Run(env *environment) error {
	_, db, err := c.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	found, err := db.Budgets(env.ctx, modelgate.ClientID(c.Client), store.BudgetList{})
	if err != nil {
		return err
	}
	rows := make([]budgetRow, 0, len(found))
	for _, b := range found {
		rows = append(rows, budgetRow{b.ClientID, b.Level, b.ID, b.Period, b.Limit, b.Spend, b.Held})
	}
	return c.output(env).table(rows, "CLIENT\tSCOPE\tID\tPERIOD\tLIMIT USD\tSPENT\tRESERVED", func(row func(...any)) {
		for _, b := range rows {
			row(b.ClientID, b.Scope, b.ID, b.Period, b.Limit, b.Spend, b.Held)
		}
	})
}

type budgetRemove struct {
	operatorFlags
	Client string `name:"client" required:"" placeholder:"ID" help:"The organization's id."`
	Scope  string `name:"scope" required:"" enum:"client,sub_account,key" help:"client, sub_account or key."`
	ID     string `name:"id" placeholder:"ID" help:"The sub-account's or key's id; left out for scope client."`
	Period string `name:"period" required:"" enum:"day,month" help:"day or month."`
}

// Run is `modelgate budget remove`.
func (c *budgetRemove) Run(env *environment) error {
	b := modelgate.Budget{Level: modelgate.Level(c.Scope), ID: c.ID, Period: modelgate.Period(c.Period)}
	if b.Level == modelgate.LevelClient {
		if c.ID != "" && c.ID != c.Client {
			return fmt.Errorf("--id must be left out for scope client")
		}
		b.ID = c.Client
	}
	_, db, err := c.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	record := audit("budget remove", "budget.delete", c.Scope, b.ID, map[string]any{"period": c.Period})
	if err := db.DeleteBudget(env.ctx, modelgate.ClientID(c.Client), store.KeyScope{}, b, record); err != nil {
		return err
	}
	removed := budgetRow{ClientID: modelgate.ClientID(c.Client), Scope: b.Level, ID: b.ID, Period: b.Period}
	return c.output(env).table(removed, "CLIENT\tSCOPE\tID\tPERIOD", func(row func(...any)) {
		row(removed.ClientID, removed.Scope, removed.ID, removed.Period)
	})
}

// balanceCommand groups the commands on prepaid balances.
type balanceCommand struct {
	Credit balanceCredit `cmd:"" help:"Add to the balance of an organization with manual billing."`
	Show   balanceShow   `cmd:"" help:"Show a balance and its newest entries."`
}

type balanceCredit struct {
	operatorFlags
	Client string `name:"client" required:"" placeholder:"ID" help:"The organization's id."`
	USD    string `name:"usd" required:"" placeholder:"AMOUNT" help:"How much, such as 25 or 0.5; --usd=-5 takes back a credit made in error."`
	Note   string `name:"note" help:"What for."`
}

// Run is `modelgate balance credit`.
func (c *balanceCredit) Run(env *environment) error {
	amount, err := modelgate.ParseUSD(c.USD)
	if err != nil {
		return fmt.Errorf("--usd: %w", err)
	}
	_, db, err := c.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	client := modelgate.ClientID(c.Client)
	entry := store.BalanceEntry{ID: modelgate.NewIDs(time.Now).New().String(), At: time.Now().UTC(), Amount: amount, Note: c.Note}
	if err := db.Credit(env.ctx, client, entry, audit("balance credit", "balance.credit", "client", c.Client, entry)); err != nil {
		return err
	}
	return c.showBalance(env, db, client)
}

type balanceShow struct {
	operatorFlags
	Client string `name:"client" required:"" placeholder:"ID" help:"The organization's id."`
}

// Run is `modelgate balance show`.
func (c *balanceShow) Run(env *environment) error {
	_, db, err := c.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	return c.showBalance(env, db, modelgate.ClientID(c.Client))
}

// balanceEntries is how many entries are shown.
const balanceEntries = 20

// showBalance prints a balance.
func (f *operatorFlags) showBalance(env *environment, db *store.DB, client modelgate.ClientID) error {
	b, entries, err := db.Balance(env.ctx, client, balanceEntries)
	if err != nil {
		return err
	}
	value := struct {
		ClientID modelgate.ClientID   `json:"client_id"`
		Balance  modelgate.Nano       `json:"balance_usd"`
		Credited modelgate.Nano       `json:"credited_usd"`
		Spent    modelgate.Nano       `json:"spent_usd"`
		Held     modelgate.Nano       `json:"held_usd"`
		Entries  []store.BalanceEntry `json:"entries"`
	}{client, b.Left(), b.Credited, b.Spent, b.Held, entries}
	return f.output(env).table(value, "BALANCE USD\tCREDITED\tSPENT\tRESERVED", func(row func(...any)) {
		row(b.Left(), b.Credited, b.Spent, b.Held)
		row("", "", "", "")
		for _, e := range entries {
			row(e.At.Format(time.RFC3339), e.Amount, e.Note, e.ID)
		}
	})
}
