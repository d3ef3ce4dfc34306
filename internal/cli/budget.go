package cli

import (
	"fmt"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/store"
)

// budgetCommand groups the commands on budgets.
type budgetCommand struct {
	List   budgetList   `cmd:"" help:"List budgets with what is spent of them."`
	Set    budgetSet    `cmd:"" help:"Set a budget of the operator's own, beside those of the organization and its customers."`
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
	Owner    modelgate.Owner    `json:"owner"`
	Limit    modelgate.Nano     `json:"limit_usd"`
	Spend    modelgate.Nano     `json:"spend_usd"`
	Held     modelgate.Nano     `json:"held_usd"`
}

// Run is `modelgate budget list`.
func (c *budgetList) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		found, err := db.Budgets(env.Context, modelgate.ClientID(c.Client), store.BudgetList{})
		if err != nil {
			return err
		}
		rows := make([]budgetRow, 0, len(found))
		for _, b := range found {
			rows = append(rows, budgetRow{b.ClientID, b.Level, b.ID, b.Period, b.Owner, b.Limit, b.Spend, b.Held})
		}
		return c.output(env).table(rows, "CLIENT\tSCOPE\tID\tPERIOD\tOWNER\tLIMIT USD\tSPENT\tRESERVED", func(row func(...any)) {
			for _, b := range rows {
				row(b.ClientID, b.Scope, b.ID, b.Period, b.Owner, b.Limit, b.Spend, b.Held)
			}
		})
	})
}

// budgetFlags name a budget.
type budgetFlags struct {
	Client string `name:"client" required:"" placeholder:"ID" help:"The organization's id."`
	Scope  string `name:"scope" required:"" enum:"client,sub_account,key" help:"client, sub_account or key."`
	ID     string `name:"id" placeholder:"ID" help:"The sub-account's or key's id; left out for scope client."`
	Period string `name:"period" required:"" enum:"day,month" help:"day or month."`
}

func (f *budgetFlags) budget(owner modelgate.Owner) (modelgate.Budget, error) {
	b := modelgate.Budget{Level: modelgate.Level(f.Scope), ID: f.ID, Period: modelgate.Period(f.Period), Owner: owner}
	if b.Level == modelgate.LevelClient {
		if f.ID != "" && f.ID != f.Client {
			return b, fmt.Errorf("--id must be left out for scope client")
		}
		b.ID = f.Client
	}
	return b, nil
}

// show prints a budget that was changed.
func (f *budgetFlags) print(out output, b *modelgate.Budget) error {
	changed := budgetRow{ClientID: modelgate.ClientID(f.Client), Scope: b.Level, ID: b.ID, Period: b.Period, Owner: b.Owner, Limit: b.Limit}
	return out.table(changed, "CLIENT\tSCOPE\tID\tPERIOD\tOWNER", func(row func(...any)) {
		row(changed.ClientID, changed.Scope, changed.ID, changed.Period, changed.Owner)
	})
}

type budgetSet struct {
	operatorFlags
	budgetFlags
	USD string `name:"usd" required:"" placeholder:"AMOUNT" help:"How much may be spent in the period, such as 25 or 0.5."`
}

// Run is `modelgate budget set`.
func (c *budgetSet) Run(env *Environment) error {
	b, err := c.budget(modelgate.OwnerOperator)
	if err != nil {
		return err
	}
	if b.Limit, err = modelgate.ParseUSD(c.USD); err != nil {
		return fmt.Errorf("--usd: %w", err)
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		record := audit("budget set", "budget.put", c.Scope, b.ID, map[string]any{"period": c.Period, "limit_usd": b.Limit})
		if err := db.PutBudget(env.Context, modelgate.ClientID(c.Client), store.KeyScope{}, b, record); err != nil {
			return err
		}
		return c.print(c.output(env), &b)
	})
}

type budgetRemove struct {
	operatorFlags
	budgetFlags
	Owner string `name:"owner" default:"operator" enum:"operator,organization,sub_account" help:"Whose: operator, organization or sub_account."`
}

// Run is `modelgate budget remove`.
func (c *budgetRemove) Run(env *Environment) error {
	b, err := c.budget(modelgate.Owner(c.Owner))
	if err != nil {
		return err
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		record := audit("budget remove", "budget.delete", c.Scope, b.ID, map[string]any{"period": c.Period, "owner": c.Owner})
		if err := db.DeleteBudget(env.Context, modelgate.ClientID(c.Client), store.KeyScope{}, b, record); err != nil {
			return err
		}
		return c.print(c.output(env), &b)
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
func (c *balanceCredit) Run(env *Environment) error {
	amount, err := modelgate.ParseUSD(c.USD)
	if err != nil {
		return fmt.Errorf("--usd: %w", err)
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		client := modelgate.ClientID(c.Client)
		entry := store.BalanceEntry{ID: modelgate.NewIDs(time.Now).New().String(), At: time.Now().UTC(), Amount: amount, Note: c.Note}
		if err := db.Credit(env.Context, client, entry, audit("balance credit", "balance.credit", "client", c.Client, entry)); err != nil {
			return err
		}
		return c.showBalance(env, db, client)
	})
}

type balanceShow struct {
	operatorFlags
	Client string `name:"client" required:"" placeholder:"ID" help:"The organization's id."`
}

// Run is `modelgate balance show`.
func (c *balanceShow) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		return c.showBalance(env, db, modelgate.ClientID(c.Client))
	})
}

// balanceEntries is how many entries are shown.
const balanceEntries = 20

// showBalance prints a balance.
func (f *operatorFlags) showBalance(env *Environment, db *store.DB, client modelgate.ClientID) error {
	b, entries, err := db.Balance(env.Context, client, balanceEntries)
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
