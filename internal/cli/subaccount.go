package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/terminal"
)

// subAccount groups the commands on sub-accounts.
func (a *app) subAccount() *cobra.Command {
	return a.group("subaccount", "Sub-accounts: the customers of organizations", a.subAccountList(), a.subAccountSet())
}

func (op *operation) printSubAccounts(value any, accounts ...modelgate.SubAccount) error {
	return op.out.table(value, "ID\tCLIENT\tSLUG\tNAME\tSTATUS\tMARKUP PCT\tMAX KEYS\tCREATED", func(row func(...any)) {
		for i := range accounts {
			s := &accounts[i]
			row(s.ID, s.ClientID, s.Slug, s.Name, terminal.State(s.Status), percent(s.Markup), orDash(s.MaxKeys, func(n int) string { return fmt.Sprint(n) }), stamp(s.CreatedAt))
		}
	})
}

func (a *app) subAccountList() *cobra.Command {
	var client string
	cmd := a.list("list", "List sub-accounts", func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		all := []modelgate.SubAccount{}
		for _, c := range clients {
			accounts, err := op.db.SubAccounts(op.ctx, c.ID)
			if err != nil {
				return err
			}
			all = append(all, accounts...)
		}
		return op.printSubAccounts(all, all...)
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	return cmd
}

func (a *app) subAccountSet() *cobra.Command {
	var client, status string
	cmd := a.operator("set SUBACCOUNT", "Suspend or reactivate a sub-account", func(op *operation) error {
		owner, err := op.client(client)
		if err != nil {
			return err
		}
		id, to := modelgate.SubAccountID(op.args[0]), modelgate.SubAccountStatus(status)
		record := audit("subaccount set", "sub_account.update", "sub_account", string(id), map[string]any{"status": to})
		if err := op.db.PatchSubAccount(op.ctx, owner, id, modelgate.SubAccountPatch{Status: &to}, record); err != nil {
			return err
		}
		changed, err := op.db.SubAccount(op.ctx, owner, id)
		if err != nil {
			return err
		}
		return op.printSubAccounts(changed, changed)
	})
	cmd.ValidArgsFunction = a.complete(subAccountWords)
	a.clientFlag(cmd, &client, whichClient)
	choiceFlag(cmd, &status, "status", "a suspended sub-account's keys are refused", string(modelgate.SubAccountActive), string(modelgate.SubAccountSuspended))
	required(cmd, "client", "status")
	return cmd
}

// percent is a markup as decimal digits.
func percent(m modelgate.Markup) string {
	text, _ := m.MarshalJSON() // never fails
	return string(text)
}
