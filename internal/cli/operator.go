package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// operatorTokens groups the commands on who may use the operator's API.
func (a *app) operatorTokens() *cobra.Command {
	return a.group("operator", "The operator's API and console", a.operatorLink(), a.group("token", "Tokens of the operator's API", a.operatorTokenCreate(), a.operatorTokenList(), a.operatorTokenRevoke()))
}

// linkLife is how long a link can be used.
const linkLife = 5 * time.Minute

func (a *app) operatorLink() *cobra.Command {
	short := "Print a link that opens an admin session of the console for one hour; it is good once, within 5 minutes"
	return a.operator("link", short, func(op *operation) error {
		if op.cfg.Operator.Listen == "" {
			return errors.New("there is no console: set operator.listen")
		}
		link, err := newOperatorLink(op.ctx, op.db, op.cfg)
		if err != nil {
			return err
		}
		return op.out.table(link, "EXPIRES\tLINK (good once)", func(row func(...any)) { row(stamp(link.ExpiresAt), link.URL) })
	})
}

// consoleLink opens a session of the console.
type consoleLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

func newOperatorLink(ctx context.Context, db *store.DB, cfg *config.Config) (consoleLink, error) {
	id := modelgate.NewIDs(time.Now).New().String()
	link, secret, err := access.NewOperatorToken(id, "link", access.Admin, linkLife, time.Now())
	if err != nil {
		return consoleLink{}, err
	}
	link.Kind = access.OperatorLink
	err = db.AddOperatorToken(ctx, link, secret.Digest(), audit("operator link", "operator.link", "operator_link", id, link))
	return consoleLink{cfg.Operator.Address() + "/operator/link#" + secret.Reveal(), link.ExpiresAt}, err
}

func (a *app) operatorTokenCreate() *cobra.Command {
	var name, role string
	var expires int64
	cmd := a.operator("create", "Make a token of the operator's API; its secret is printed once", func(op *operation) error {
		id := modelgate.NewIDs(time.Now).New().String()
		token, secret, err := access.NewOperatorToken(id, name, access.Role(role), time.Duration(expires)*time.Second, time.Now())
		if err != nil {
			return err
		}
		if err := op.db.AddOperatorToken(op.ctx, token, secret.Digest(), audit("operator token create", "operator.token", "operator_token", id, token)); err != nil {
			return err
		}
		value := struct {
			access.OperatorToken
			Token string `json:"token"`
		}{token, secret.Reveal()}
		return op.out.table(value, "ID\tROLE\tEXPIRES\tTOKEN (shown once)", func(row func(...any)) {
			row(token.ID, token.Role, stamp(token.ExpiresAt), secret.Reveal())
		})
	})
	cmd.Flags().StringVar(&name, "name", "", "whose token it is, or what for")
	choiceFlag(cmd, &role, "role", "what it may change", string(access.Admin), string(access.Finance), string(access.Support), string(access.Auditor))
	const days = 90
	cmd.Flags().Int64Var(&expires, "expires-in-seconds", days*24*60*60, "60 to 31536000")
	required(cmd, "name", "role")
	return cmd
}

func (a *app) operatorTokenList() *cobra.Command {
	return a.list("list", "List the tokens that have not expired", func(op *operation) error {
		tokens, err := op.db.OperatorTokens(op.ctx, access.OperatorAPIToken)
		if err != nil {
			return err
		}
		return op.out.table(tokens, "ID\tNAME\tROLE\tCREATED\tEXPIRES", func(row func(...any)) {
			for _, t := range tokens {
				row(t.ID, t.Name, t.Role, stamp(t.CreatedAt), stamp(t.ExpiresAt))
			}
		})
	})
}

func (a *app) operatorTokenRevoke() *cobra.Command {
	return a.operator("revoke TOKEN_ID", "Revoke a token, at once on every instance", func(op *operation) error {
		id := op.args[0]
		if err := op.db.RevokeOperatorToken(op.ctx, id, access.OperatorAPIToken, audit("operator token revoke", "operator.token_revoke", "operator_token", id, nil)); err != nil {
			return err
		}
		return op.out.table(map[string]string{"revoked": id}, "REVOKED", func(row func(...any)) { row(id) })
	})
}
