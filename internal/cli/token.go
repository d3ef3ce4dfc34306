package cli

import (
	"github.com/spf13/cobra"

	"modelgate/internal/store/access"
)

// token groups the commands on browser tokens.
func (a *app) token() *cobra.Command {
	return a.group("token", "Browser tokens", a.tokenRevoke())
}

func (a *app) tokenRevoke() *cobra.Command {
	var client, endUser string
	cmd := a.operator("revoke", "Revoke all browser tokens of an end user", func(op *operation) error {
		id, err := op.client(client)
		if err != nil {
			return err
		}
		record := audit("token revoke", "token.revoke", "client", string(id), map[string]bool{"of_end_user": true})
		n, err := op.db.RevokeTokensOf(op.ctx, id, access.TokenScope{}, endUser, record)
		if err != nil {
			return err
		}
		return op.out.table(map[string]int64{"revoked": n}, "REVOKED", func(row func(...any)) { row(n) })
	})
	a.clientFlag(cmd, &client, whichClient)
	cmd.Flags().StringVar(&endUser, "end-user", "", "whose tokens: the `NAME` that they were minted with")
	required(cmd, "client", "end-user")
	return cmd
}
