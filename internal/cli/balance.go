package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/store/spend"
)

// balance groups the commands on prepaid balances.
func (a *app) balance() *cobra.Command {
	return a.group("balance", "Prepaid balances", a.balanceCredit(), a.balanceShow())
}

func (a *app) balanceCredit() *cobra.Command {
	var client, usd, note string
	cmd := a.operator("credit", "Add to the balance of an organization with manual billing", func(op *operation) error {
		amount, err := modelgate.ParseUSD(usd)
		if err != nil {
			return fmt.Errorf("--usd: %w", err)
		}
		id, err := op.client(client)
		if err != nil {
			return err
		}
		entry := spend.BalanceEntry{ID: modelgate.NewIDs(time.Now).New().String(), At: time.Now().UTC(), Amount: amount, Note: note}
		if err := op.db.Credit(op.ctx, id, entry, audit("balance credit", "balance.credit", "client", string(id), entry)); err != nil {
			return err
		}
		return op.showBalance(id)
	})
	a.clientFlag(cmd, &client, whichClient)
	cmd.Flags().StringVar(&usd, "usd", "", "how much, such as 25 or 0.5: `AMOUNT`; -5 takes back a credit made in error")
	cmd.Flags().StringVar(&note, "note", "", "what for")
	required(cmd, "client", "usd")
	return cmd
}

func (a *app) balanceShow() *cobra.Command {
	var client string
	cmd := a.operator("show", "Show a balance and its newest entries", func(op *operation) error {
		id, err := op.client(client)
		if err != nil {
			return err
		}
		return op.showBalance(id)
	})
	a.clientFlag(cmd, &client, whichClient)
	required(cmd, "client")
	return cmd
}

// balanceEntries is how many entries are shown.
const balanceEntries = 20

// showBalance prints a balance.
func (op *operation) showBalance(client modelgate.ClientID) error {
	b, entries, err := op.db.Balance(op.ctx, client, balanceEntries)
	if err != nil {
		return err
	}
	value := struct {
		ClientID modelgate.ClientID   `json:"client_id"`
		Balance  modelgate.Nano       `json:"balance_usd"`
		Credited modelgate.Nano       `json:"credited_usd"`
		Spent    modelgate.Nano       `json:"spent_usd"`
		Held     modelgate.Nano       `json:"held_usd"`
		Entries  []spend.BalanceEntry `json:"entries"`
	}{client, b.Left(), b.Credited, b.Spent, b.Held, entries}
	return op.out.table(value, "BALANCE USD\tCREDITED\tSPENT\tRESERVED", func(row func(...any)) {
		row(b.Left(), b.Credited, b.Spent, b.Held)
		row()
		for _, e := range entries {
			row(e.At.Format(time.RFC3339), e.Amount, e.Note, e.ID)
		}
	})
}
