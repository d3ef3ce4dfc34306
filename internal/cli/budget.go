package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/store/spend"
)

// budget groups the commands on budgets.
func (a *app) budget() *cobra.Command {
	return a.group("budget", "Budgets", a.budgetList(), a.budgetSet(), a.budgetRemove())
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

func (a *app) budgetList() *cobra.Command {
	var client string
	cmd := a.list("list", "List budgets with what is spent of them", func(op *operation) error {
		var id modelgate.ClientID
		if client != "" {
			var err error
			if id, err = op.client(client); err != nil {
				return err
			}
		}
		found, err := op.db.Budgets(op.ctx, id, spend.BudgetList{})
		if err != nil {
			return err
		}
		rows := make([]budgetRow, 0, len(found))
		for _, b := range found {
			rows = append(rows, budgetRow{b.ClientID, b.Level, b.ID, b.Period, b.Owner, b.Limit, b.Spend, b.Held})
		}
		return op.out.table(rows, "CLIENT\tSCOPE\tID\tPERIOD\tOWNER\tLIMIT USD\tSPENT\tRESERVED", func(row func(...any)) {
			for _, b := range rows {
				row(b.ClientID, b.Scope, b.ID, b.Period, b.Owner, b.Limit, b.Spend, b.Held)
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	return cmd
}

// budgetFlags name a budget.
type budgetFlags struct{ client, scope, id, period string }

func (f *budgetFlags) add(a *app, cmd *cobra.Command) {
	a.clientFlag(cmd, &f.client, whichClient)
	choiceFlag(cmd, &f.scope, "scope", "what the budget is of",
		string(modelgate.LevelClient), string(modelgate.LevelSubAccount), string(modelgate.LevelKey))
	cmd.Flags().StringVar(&f.id, "id", "", "the sub-account's or key's `ID`; left out for scope client")
	choiceFlag(cmd, &f.period, "period", "from midnight or the first of the month, UTC", string(modelgate.Day), string(modelgate.Month))
	a.completeFlag(cmd, "id", budgetWords)
	required(cmd, "client", "scope", "period")
}

// budget is the budget that is named, and its organization.
func (f *budgetFlags) budget(op *operation, owner modelgate.Owner) (modelgate.ClientID, modelgate.Budget, error) {
	b := modelgate.Budget{Level: modelgate.Level(f.scope), ID: f.id, Period: modelgate.Period(f.period), Owner: owner}
	client, err := op.client(f.client)
	if b.Level == modelgate.LevelClient && err == nil {
		if f.id != "" && f.id != string(client) {
			return client, b, fmt.Errorf("--id must be left out for scope client")
		}
		b.ID = string(client)
	}
	return client, b, err
}

// printBudget prints a budget that was changed.
func (op *operation) printBudget(client modelgate.ClientID, b *modelgate.Budget) error {
	changed := budgetRow{ClientID: client, Scope: b.Level, ID: b.ID, Period: b.Period, Owner: b.Owner, Limit: b.Limit}
	return op.out.table(changed, "CLIENT\tSCOPE\tID\tPERIOD\tOWNER", func(row func(...any)) {
		row(changed.ClientID, changed.Scope, changed.ID, changed.Period, changed.Owner)
	})
}

func (a *app) budgetSet() *cobra.Command {
	var f budgetFlags
	var usd string
	short := "Set a budget of the operator's own, beside those of the organization and its customers"
	cmd := a.operator("set", short, func(op *operation) error {
		limit, err := modelgate.ParseUSD(usd)
		if err != nil {
			return fmt.Errorf("--usd: %w", err)
		}
		client, b, err := f.budget(op, modelgate.OwnerOperator)
		if err != nil {
			return err
		}
		b.Limit = limit
		record := audit("budget set", "budget.put", f.scope, b.ID, map[string]any{"period": f.period, "limit_usd": b.Limit})
		if err := op.db.PutBudget(op.ctx, client, "", b, record); err != nil {
			return err
		}
		return op.printBudget(client, &b)
	})
	f.add(a, cmd)
	cmd.Flags().StringVar(&usd, "usd", "", "how much may be spent in the period, such as 25 or 0.5: `AMOUNT`")
	required(cmd, "usd")
	return cmd
}

func (a *app) budgetRemove() *cobra.Command {
	var f budgetFlags
	owner := string(modelgate.OwnerOperator)
	cmd := a.operator("remove", "Remove a budget; spending goes on being counted", func(op *operation) error {
		client, b, err := f.budget(op, modelgate.Owner(owner))
		if err != nil {
			return err
		}
		record := audit("budget remove", "budget.delete", f.scope, b.ID, map[string]any{"period": f.period, "owner": owner})
		if err := op.db.DeleteBudget(op.ctx, client, "", b, record); err != nil {
			return err
		}
		return op.printBudget(client, &b)
	})
	f.add(a, cmd)
	choiceFlag(cmd, &owner, "owner", "whose budget", "operator", "organization", "sub_account")
	return cmd
}
