package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
	"modelgate/internal/terminal"
)

// key groups the commands on keys.
func (a *app) key() *cobra.Command {
	return a.group("key", "Keys", a.keyIssue(), a.keyList(), a.keyFind(), a.keyRevoke(), a.keyLimits())
}

func (a *app) keyIssue() *cobra.Command {
	var client, name, scopes, entitlements, subAccount string
	var expires int64
	var cmd *cobra.Command
	cmd = a.operator("issue", "Issue a key; its plaintext is printed once", func(op *operation) error {
		catalog, err := op.cfg.NewCatalog()
		if err != nil {
			return err
		}
		wish := modelgate.KeyRequest{
			SubAccountID: modelgate.SubAccountID(subAccount), Name: optional(cmd.Flags(), "name", &name),
			ExpiresInSeconds: optional(cmd.Flags(), "expires-in-seconds", &expires),
		}
		if cmd.Flags().Changed("scopes") {
			wish.Scopes = scopeList(scopes)
		}
		if cmd.Flags().Changed("entitlements") {
			wish.Entitlements = &modelgate.Entitlements{}
			if err := strictJSON([]byte(entitlements), wish.Entitlements); err != nil {
				return fmt.Errorf("--entitlements: %w", err)
			}
		}
		id, err := op.client(client)
		if err != nil {
			return err
		}
		issued, err := issueKey(op.ctx, op.db, id, wish, catalog)
		if err != nil {
			return err
		}
		return op.out.table(issued, "API KEY ID\tKEY (shown once)", func(row func(...any)) { row(issued.APIKeyID, issued.Key) })
	})
	a.clientFlag(cmd, &client, whichClient)
	required(cmd, "client")
	cmd.Flags().StringVar(&name, "name", "", "what lists and usage call the key, 1 to 100 characters; fixed once it is issued")
	cmd.Flags().StringVar(&scopes, "scopes", "", "comma-separated; all of the ceiling when left out")
	cmd.Flags().StringVar(&entitlements, "entitlements", "", "`JSON` array of tuples; the ceiling's when left out, [] denies all")
	cmd.Flags().StringVar(&subAccount, "sub-account", "", "bind the key to the sub-account with this `ID`")
	cmd.Flags().Int64Var(&expires, "expires-in-seconds", 0, "1 to 315360000; never when left out")
	a.completeFlag(cmd, "sub-account", subAccountWords)
	return cmd
}

// scopeList are the scopes of a text that commas separate.
func scopeList(text string) []modelgate.Scope {
	list := []modelgate.Scope{}
	for s := range strings.SplitSeq(text, ",") {
		if s = strings.TrimSpace(s); s != "" {
			list = append(list, modelgate.Scope(s))
		}
	}
	return list
}

// issueKey issues a key as POST /gw/keys does, in the operator's name and
// under the organization's ceiling. No scopes means all of the ceiling's.
func issueKey(ctx context.Context, db *store.DB, client modelgate.ClientID, wish modelgate.KeyRequest, catalog *modelgate.Catalog) (modelgate.IssuedKey, error) {
	id := modelgate.NewIDs(time.Now).New()
	var secret modelgate.Secret
	request := access.IssueRequest{
		SubAccountID: wish.SubAccountID,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			w := wish
			if w.Scopes == nil {
				w.Scopes = c.Ceiling.MaxScopes
			}
			key, drawn, err := w.Issue(client, c.Bounds(), catalog, id)
			if err != nil {
				return modelgate.Key{}, modelgate.Digest{}, err
			}
			secret = drawn
			return key, drawn.Digest(), nil
		},
	}
	record := audit("key issue", "key.issue", "key", id.String(), nil)
	key, err := db.IssueKey(ctx, client, request, record)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	return modelgate.Issued(key, secret), nil
}

func (a *app) keyRevoke() *cobra.Command {
	keepChildren := false
	cmd := a.operator("revoke KEY", "Revoke the key with an id", func(op *operation) error {
		key, err := op.db.FindKey(op.ctx, modelgate.KeyID(op.args[0]))
		if err != nil {
			return err
		}
		revoke, set := op.db.RevokeKey, any(nil)
		if keepChildren {
			revoke, set = op.db.RevokeKeyAlone, map[string]string{"children": "keep"}
		}
		record := audit("key revoke", "key.revoke", "key", string(key.ID), set)
		if _, err := revoke(op.ctx, key.ClientID, access.KeyScope{}, key.ID, record); err != nil {
			return err
		}
		key.Status = modelgate.KeyRevoked
		return op.showKey(key)
	})
	cmd.ValidArgsFunction = a.complete(keyWords)
	cmd.Flags().BoolVar(&keepChildren, "keep-children", false, "keep the keys that were issued below it; they are revoked with it otherwise")
	return cmd
}

func (a *app) keyLimits() *cobra.Command {
	var limits limitFlags
	var cmd *cobra.Command
	cmd = a.operator("limits KEY", "Set a key's own rate and concurrency limits", func(op *operation) error {
		wanted := limits.limits(cmd)
		if wanted == (modelgate.Limits{}) {
			return fmt.Errorf("name at least one of --rps, --burst and --concurrency")
		}
		key, err := op.db.FindKey(op.ctx, modelgate.KeyID(op.args[0]))
		if err != nil {
			return err
		}
		key.Limits = wanted.Or(key.Limits)
		if err := key.Limits.Validate(); err != nil {
			return err
		}
		record := audit("key limits", "key.limits", "key", string(key.ID), key.Limits)
		if err := op.db.SetKeyLimits(op.ctx, key.ClientID, key.ID, key.Limits, record); err != nil {
			return err
		}
		return op.showKey(key)
	})
	cmd.ValidArgsFunction = a.complete(keyWords)
	limits.add(cmd)
	return cmd
}

// showKey prints a key that was changed.
func (op *operation) showKey(key modelgate.Key) error {
	value := struct {
		modelgate.Key
		ClientID modelgate.ClientID `json:"client_id"`
		Limits   modelgate.Limits   `json:"limits"`
	}{key, key.ClientID, key.Limits}
	return op.out.table(value, "ID\tPREFIX\tSTATUS\tCLIENT", func(row func(...any)) {
		row(key.ID, key.Prefix, terminal.State(key.Status), key.ClientID)
	})
}
