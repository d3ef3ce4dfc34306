package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/quota"
)

// limit groups the commands on rate limits.
func (a *app) limit() *cobra.Command {
	return a.group("limit", "Rate limits", a.limitList(), a.limitSet(), a.limitRemove())
}

// limitRow is a rate limit as the operator sees it.
type limitRow struct {
	ClientID modelgate.ClientID  `json:"client_id"`
	Scope    modelgate.Level     `json:"scope"`
	ID       string              `json:"id"`
	Match    string              `json:"match,omitempty"`
	Unit     modelgate.LimitUnit `json:"unit"`
	Window   string              `json:"window,omitempty"`
	Owner    modelgate.Owner     `json:"owner"`
	Limit    modelgate.Nano      `json:"limit"`
	Burst    modelgate.Nano      `json:"burst"`
}

func limitRowOf(client modelgate.ClientID, l *modelgate.RateLimit) limitRow {
	return limitRow{client, l.Level, l.ID, l.Match.String(), l.Unit, l.Window, l.Owner, l.InUnits(l.Limit), l.InUnits(l.Size())}
}

func (a *app) limitList() *cobra.Command {
	var client string
	cmd := a.list("list", "List rate limits, but for those of the configuration file", func(op *operation) error {
		var id modelgate.ClientID
		if client != "" {
			var err error
			if id, err = op.client(client); err != nil {
				return err
			}
		}
		found, err := op.db.RateLimits(op.ctx, id, "")
		if err != nil {
			return err
		}
		rows := make([]limitRow, 0, len(found))
		for i := range found {
			rows = append(rows, limitRowOf(found[i].ClientID, &found[i].RateLimit))
		}
		return op.out.table(rows, "CLIENT\tSCOPE\tID\tMATCH\tUNIT\tWINDOW\tOWNER\tLIMIT\tBURST", func(row func(...any)) {
			for _, l := range rows {
				row(l.ClientID, l.Scope, l.ID, l.Match, l.Unit, l.Window, l.Owner, l.Limit, l.Burst)
			}
		})
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	return cmd
}

// rateFlags name a rate limit.
type rateFlags struct{ client, scope, id, match, unit, window string }

func (f *rateFlags) add(a *app, cmd *cobra.Command) {
	a.clientFlag(cmd, &f.client, whichClient)
	choiceFlag(cmd, &f.scope, "scope", "what the limit is of",
		string(modelgate.LevelClient), string(modelgate.LevelSubAccount), string(modelgate.LevelKey))
	cmd.Flags().StringVar(&f.id, "id", "", "the sub-account's or key's `ID`; left out for scope client")
	cmd.Flags().StringVar(&f.match, "match", "", "the calls that count: `model:GLOB or tag:KEY=VALUE`; left out: all")
	choiceFlag(cmd, &f.unit, "unit", "what is limited", string(modelgate.UnitRequests), string(modelgate.UnitInputTokens),
		string(modelgate.UnitOutputTokens), string(modelgate.UnitTokens), string(modelgate.UnitUSD), string(modelgate.UnitConcurrency))
	choiceFlag(cmd, &f.window, "window", "a second is for requests only; left out for concurrency", "second", "minute", "hour", "day")
	a.completeFlag(cmd, "id", budgetWords)
	required(cmd, "client", "scope", "unit")
}

// limit is the rate limit that is named, and its organization.
func (f *rateFlags) limit(op *operation, owner modelgate.Owner) (modelgate.ClientID, modelgate.RateLimit, error) {
	l, err := quota.Rule(modelgate.Level(f.scope), modelgate.LimitUnit(f.unit), f.window, f.match, f.match != "")
	if err != nil {
		return "", l, err
	}
	l.ID, l.Owner = f.id, owner
	client, err := op.client(f.client)
	if l.Level == modelgate.LevelClient && err == nil {
		if f.id != "" && f.id != string(client) {
			return client, l, fmt.Errorf("--id must be left out for scope client")
		}
		l.ID = string(client)
	}
	return client, l, err
}

// limitAmount reads an amount of the limit's.
func limitAmount(l *modelgate.RateLimit, flag, text string) (int64, error) {
	n, err := modelgate.ParseUSD(text)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", flag, err)
	}
	return quota.Amount(l, "--"+flag, n)
}

// printLimit prints a rate limit that was changed.
func (op *operation) printLimit(client modelgate.ClientID, l *modelgate.RateLimit) error {
	changed := limitRowOf(client, l)
	return op.out.table(changed, "CLIENT\tSCOPE\tID\tMATCH\tUNIT\tWINDOW\tOWNER", func(row func(...any)) {
		row(changed.ClientID, changed.Scope, changed.ID, changed.Match, changed.Unit, changed.Window, changed.Owner)
	})
}

func (a *app) limitSet() *cobra.Command {
	var f rateFlags
	var limit, burst string
	short := "Set a rate limit of the operator's own, beside those of the organization and its customers"
	cmd := a.operator("set", short, func(op *operation) error {
		client, l, err := f.limit(op, modelgate.OwnerOperator)
		if err != nil {
			return err
		}
		if l.Limit, err = limitAmount(&l, "limit", limit); err != nil {
			return err
		}
		if burst != "" {
			if l.Burst, err = limitAmount(&l, "burst", burst); err != nil {
				return err
			}
		}
		record := audit("limit set", "limit.put", f.scope, l.ID, quota.Set(&l))
		if err := op.db.PutRateLimit(op.ctx, client, "", l, record); err != nil {
			return err
		}
		return op.printLimit(client, &l)
	})
	f.add(a, cmd)
	cmd.Flags().StringVar(&limit, "limit", "", "how much may be used in a window: `AMOUNT`")
	cmd.Flags().StringVar(&burst, "burst", "", "how much may be used at once after a pause: `AMOUNT`; left out: as much as --limit; not with an hour or a day")
	required(cmd, "limit")
	return cmd
}

func (a *app) limitRemove() *cobra.Command {
	var f rateFlags
	owner := string(modelgate.OwnerOperator)
	cmd := a.operator("remove", "Remove a rate limit", func(op *operation) error {
		client, l, err := f.limit(op, modelgate.Owner(owner))
		if err != nil {
			return err
		}
		change := quota.Removed(&l)
		change.Owner = l.Owner
		record := audit("limit remove", "limit.delete", f.scope, l.ID, change)
		if err := op.db.DeleteRateLimit(op.ctx, client, "", l, record); err != nil {
			return err
		}
		return op.printLimit(client, &l)
	})
	f.add(a, cmd)
	choiceFlag(cmd, &owner, "owner", "whose limit", "operator", "organization", "sub_account")
	return cmd
}
