package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/budgetview"
	"modelgate/internal/store/spend"
)

// budget groups the commands on budgets.
func (a *app) budget() *cobra.Command {
	return a.group("budget", "Budgets", a.budgetList(), a.budgetSet(), a.budgetRemove())
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
		rows := make([]budgetview.Row, 0, len(found))
		for _, b := range found {
			rows = append(rows, budgetview.RowOf(b.ClientID, &b.Budget, b.Spend, b.Held))
		}
		return op.out.table(rows, "CLIENT\tSCOPE\tID\tPERIOD\tMATCH\tMODE\tOWNER\tLIMIT USD\tSPENT\tRESERVED", func(row func(...any)) {
			for _, b := range rows {
				row(b.ClientID, b.Scope, b.ID, b.Period, b.Match, cmp.Or(b.Mode, modelgate.Hard), b.Owner, b.Limit, b.Spend, b.Held)
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	return cmd
}

// budgetFlags name a budget.
type budgetFlags struct{ client, scope, id, period, window, match string }

func (f *budgetFlags) add(a *app, cmd *cobra.Command) {
	a.clientFlag(cmd, &f.client, whichClient)
	choiceFlag(cmd, &f.scope, "scope", "what the budget is of",
		string(modelgate.LevelClient), string(modelgate.LevelSubAccount), string(modelgate.LevelKey))
	cmd.Flags().StringVar(&f.id, "id", "", "the sub-account's or key's `ID`; left out for scope client")
	choiceFlag(cmd, &f.period, "period", "from midnight or the first of the month, UTC", string(modelgate.Day), string(modelgate.Month))
	choiceFlag(cmd, &f.window, "window", "in place of --period: from Monday, UTC, or for ever", "week", "total")
	cmd.Flags().StringVar(&f.match, "match", "", "only calls of these models or with this attribution count, with * for each value by itself: `model:GLOB or tag:KEY=VALUE`")
	a.completeFlag(cmd, "id", budgetWords)
	required(cmd, "client", "scope")
	cmd.MarkFlagsMutuallyExclusive("period", "window")
	cmd.MarkFlagsOneRequired("period", "window")
}

// budget is the budget that is named, and its organization.
func (f *budgetFlags) budget(op *operation, owner modelgate.Owner) (modelgate.ClientID, modelgate.Budget, error) {
	b := modelgate.Budget{Level: modelgate.Level(f.scope), ID: f.id, Owner: owner}
	var window *string
	if f.window != "" {
		window = &f.window
	}
	var err error
	if b.Period, err = modelgate.ParsePeriod(f.period, window); err != nil {
		return "", b, err
	}
	if f.match != "" {
		if b.Match, err = modelgate.ParseMatch(f.match); err != nil {
			return "", b, err
		}
	}
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
	changed := budgetview.RowOf(client, b, 0, 0)
	return op.out.table(changed, "CLIENT\tSCOPE\tID\tPERIOD\tMATCH\tOWNER", func(row func(...any)) {
		row(changed.ClientID, changed.Scope, changed.ID, changed.Period, changed.Match, changed.Owner)
	})
}

func (a *app) budgetSet() *cobra.Command {
	var f budgetFlags
	var usd string
	mode := string(modelgate.Hard)
	var alerts []int
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
		b.Limit, b.Mode, b.Alerts = limit, modelgate.Mode(mode), alerts
		b = b.Usual()
		record := audit("budget set", "budget.put", f.scope, b.ID, budgetview.Set(&b))
		if err := op.db.PutBudget(op.ctx, client, "", b, record); err != nil {
			return err
		}
		return op.printBudget(client, &b)
	})
	f.add(a, cmd)
	cmd.Flags().StringVar(&usd, "usd", "", "how much may be spent in the period, such as 25 or 0.5: `AMOUNT`")
	choiceFlag(cmd, &mode, "mode", "whether it refuses calls once it is used up, or only counts and alerts", string(modelgate.Hard), string(modelgate.Soft))
	cmd.Flags().IntSliceVar(&alerts, "alerts", nil, "the percentages to alert at (50,80,100 by default): `PERCENT`")
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
		record := audit("budget remove", "budget.delete", f.scope, b.ID, budgetview.Removed(&b, b.Owner))
		if err := op.db.DeleteBudget(op.ctx, client, "", b, record); err != nil {
			return err
		}
		return op.printBudget(client, &b)
	})
	f.add(a, cmd)
	choiceFlag(cmd, &owner, "owner", "whose budget", "operator", "organization", "sub_account")
	return cmd
}
