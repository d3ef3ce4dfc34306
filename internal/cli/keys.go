package cli

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

// issueKey issues a key as POST /gw/keys does, in the operator's name and
// under the organization's ceiling. No scopes means all of the ceiling's.
func issueKey(ctx context.Context, db *store.DB, client modelgate.ClientID, wish modelgate.KeyRequest, catalog *modelgate.Catalog) (modelgate.IssuedKey, error) {
	id := modelgate.NewIDs(time.Now).New()
	var secret modelgate.Secret
	request := store.IssueRequest{
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
