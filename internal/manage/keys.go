package manage

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/web"
)

// keyView is a key in a list (spec: Key).
type keyView struct {
	modelgate.Key
	SubAccountID *modelgate.SubAccountID `json:"sub_account_id"`
	LastUsedAt   *time.Time              `json:"last_used_at"`
	ExpiresAt    *time.Time              `json:"expires_at"`
}

func viewKey(k modelgate.Key) keyView {
	return keyView{Key: k, SubAccountID: orNull(k.SubAccountID), LastUsedAt: orNull(k.LastUsedAt), ExpiresAt: orNull(k.ExpiresAt)}
}

// orNull is nil for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// keyQuery is the query of GET /gw/keys. Without a limit all keys are listed.
type keyQuery struct {
	limit  int
	cursor string
	paged  bool
}

func (q *keyQuery) read(x *exchange) error {
	p, err := web.ParseParams(x.r)
	if err != nil {
		return err
	}
	if q.limit, err = p.Int("limit", web.Bounds{Min: 1, Max: 1000}, 0); err != nil {
		return err
	}
	q.cursor, q.paged, err = p.Text("cursor")
	return err
}

func (a *API) listKeys(ctx context.Context, b by, q keyQuery) (page[keyView], error) {
	list := store.KeyList{SubAccountID: b.SubAccountID, Limit: q.limit}
	var err error
	if list.After, err = a.after(q.cursor, q.paged, filter("keys", b)); err != nil {
		return page[keyView]{}, err
	}
	keys, more, err := a.Store.Keys(ctx, b.ClientID, list)
	if err != nil {
		return page[keyView]{}, err
	}
	out := page[keyView]{rows: make([]keyView, 0, len(keys))}
	for _, k := range keys {
		out.rows = append(out.rows, viewKey(k))
	}
	if more {
		last := keys[len(keys)-1]
		out.next = a.Cursors.Sign(web.Position{At: last.CreatedAt, ID: string(last.ID)}, filter("keys", b))
	}
	return out, nil
}

// after is where a list goes on, nil at its beginning.
func (a *API) after(cursor string, given bool, filter string) (*store.Cursor, error) {
	if !given {
		return nil, nil
	}
	at, err := a.Cursors.Read(cursor, filter)
	return &store.Cursor{At: at.At, ID: at.ID}, err
}

// newKey is the body of POST /gw/keys.
type newKey struct {
	Scopes           *[]modelgate.Scope      `json:"scopes"`
	Entitlements     *modelgate.Entitlements `json:"entitlements"`
	SubAccountID     *string                 `json:"sub_account_id"`
	ExpiresInSeconds *int64                  `json:"expires_in_seconds"`
}

func (k *newKey) read(x *exchange) error {
	if err := x.body(k); err != nil {
		return err
	}
	if k.Scopes == nil {
		return modelgate.Errorf(modelgate.BadRequest, "scopes is required; [] grants none")
	}
	return k.wish("").Validate()
}

func (k *newKey) wish(subAccount modelgate.SubAccountID) modelgate.KeyWish {
	return modelgate.KeyWish{
		Scopes: *k.Scopes, Entitlements: k.Entitlements, SubAccountID: subAccount, ExpiresInSeconds: k.ExpiresInSeconds,
	}
}

func (a *API) issueKey(ctx context.Context, b by, in newKey) (modelgate.IssuedKey, error) {
	subAccount, err := b.bind(in.SubAccountID)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	wish, id := in.wish(subAccount), a.IDs.New()
	most, err := a.selfIssue(ctx, b, &wish)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	record, err := a.audit(b, "key.issue", "key", id.String(), wish)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	catalog := a.Catalog()
	var secret modelgate.Secret
	key, err := a.Store.IssueKey(ctx, b.ClientID, store.IssueRequest{
		SubAccountID: subAccount,
		MaxKeys:      most,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			ceiling := c.Ceiling // as it is now, not as the caller's look-up saw it
			if b.SubAccountID != "" {
				ceiling = b.Bounds()
			}
			key, drawn, err := wish.Issue(b.ClientID, ceiling, catalog, id)
			if err != nil {
				return modelgate.Key{}, modelgate.Digest{}, err
			}
			secret = drawn
			return key, drawn.Digest(), nil
		},
	}, record)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	return modelgate.Issued(key, secret), nil
}

// bind is the sub-account a new key belongs to. A key that is bound issues
// for its own alone. Whether the sub-account is there and active the
// issuance itself checks.
func (b by) bind(asked *string) (modelgate.SubAccountID, error) {
	if asked == nil {
		return b.SubAccountID, nil
	}
	id, ok := modelgate.ParseUUID(*asked)
	subAccount := modelgate.SubAccountID(id.String())
	if !ok || b.SubAccountID != "" && subAccount != b.SubAccountID {
		return "", modelgate.Errorf(modelgate.Forbidden, "sub-account not found or not active")
	}
	return subAccount, nil
}

// selfIssue holds an issuance from a portal to the terms of one and returns
// how many keys its customer may have, 0 where that is not bounded.
func (a *API) selfIssue(ctx context.Context, b by, wish *modelgate.KeyWish) (int, error) {
	if !b.portal {
		return 0, nil
	}
	if err := a.portalIssues(ctx, b); err != nil {
		return 0, err
	}
	return modelgate.MaxSelfIssued, wish.SelfIssue()
}

// portalIssues refuses what the reseller has not switched on. The branding is
// read each time, so that switching it off holds at once.
func (a *API) portalIssues(ctx context.Context, b by) error {
	if !b.portal {
		return nil
	}
	branding, err := a.Store.Branding(ctx, b.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return err
	}
	if !branding.AllowSelfIssue {
		return modelgate.Errorf(modelgate.Forbidden, "keys are not issued or revoked in this portal")
	}
	return nil
}

// keyPath is the path of DELETE /gw/keys/{id}.
type keyPath modelgate.KeyID

func (p *keyPath) read(x *exchange) error {
	id, err := x.pathID("key")
	*p = keyPath(id)
	return err
}

func (a *API) revokeKey(ctx context.Context, b by, id keyPath) (none, error) {
	if err := a.portalIssues(ctx, b); err != nil {
		return none{}, err
	}
	record, err := a.audit(b, "key.revoke", "key", string(id), nil)
	if err != nil {
		return none{}, err
	}
	digest, err := a.Store.RevokeKey(ctx, b.ClientID, store.KeyScope{SubAccountID: b.SubAccountID}, modelgate.KeyID(id), record)
	if err != nil {
		return none{}, err
	}
	a.Keys.Forget(digest) // before the answer: here it holds at once
	return none{}, nil
}
