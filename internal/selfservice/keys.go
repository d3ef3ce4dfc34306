package selfservice

import (
	"context"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
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
	p := x.query
	var err error
	if q.limit, err = p.Int("limit", httpx.Bounds{Min: 1, Max: 1000}, 0); err != nil {
		return err
	}
	q.cursor, q.paged, err = p.Text("cursor")
	return err
}

func (a *API) listKeys(ctx context.Context, b by, q keyQuery) (page[keyView], error) {
	list := store.KeyList{SubAccountID: b.SubAccountID, Limit: q.limit}
	var err error
	if list.SelfIssued, err = a.ownKeysOnly(ctx, b); err != nil {
		return page[keyView]{}, err
	}
	filter := filter("keys", b, strconv.FormatBool(list.SelfIssued))
	if list.After, err = a.after(q.cursor, q.paged, filter); err != nil {
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
		out.next = a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: string(last.ID)}, filter)
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
	Entitlements     *modelgate.Entitlements `json:"entitlements"` // null would mean every right
	SubAccountID     *string                 `json:"sub_account_id" null:"absent"`
	ExpiresInSeconds *int64                  `json:"expires_in_seconds" null:"absent"`
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
	bounds, most := b.Bounds(), 0
	if b.portal {
		most = modelgate.MaxSelfIssued
		if bounds, err = a.selfIssue(ctx, b, &wish, id.Time()); err != nil {
			return modelgate.IssuedKey{}, err
		}
	}
	record, err := a.audit(b, "key.issue", "key", id.String(), nil)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	catalog := a.Catalog()
	var secret modelgate.Secret
	key, err := a.Store.IssueKey(ctx, b.ClientID, store.IssueRequest{
		SubAccountID: subAccount,
		Issuer:       b.KeyID,
		MaxKeys:      most,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			ceiling := c.Bounds() // as it is now, not as the caller's look-up saw it
			if b.SubAccountID != "" {
				ceiling = bounds
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
// the ceiling it is made under.
func (a *API) selfIssue(ctx context.Context, b by, wish *modelgate.KeyWish, now time.Time) (modelgate.Ceiling, error) {
	if err := a.portalIssues(ctx, b); err != nil {
		return modelgate.Ceiling{}, err
	}
	return b.SelfIssue(wish, now)
}

// portalIssues refuses what the reseller has not switched on. The branding is
// read each time, so that switching it off holds at once.
func (a *API) portalIssues(ctx context.Context, b by) error {
	branding, err := a.Store.Branding(ctx, b.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return err
	}
	if !branding.AllowSelfIssue {
		return modelgate.Errorf(modelgate.Forbidden, "keys are not issued or revoked in this portal")
	}
	return nil
}

// ownKeysOnly reports whether the keys that a caller may see are those issued
// in its portal alone: so it is for a session there whose key reads nothing,
// where self-issuance is on. Errors: forbidden where it is not.
func (a *API) ownKeysOnly(ctx context.Context, b by) (bool, error) {
	if !b.portal || b.Has(modelgate.StatsRead) || b.Has(modelgate.KeysManage) {
		return false, nil
	}
	err := a.portalIssues(ctx, b)
	if modelgate.KindOf(err) == modelgate.Forbidden {
		err = modelgate.ErrMissingScope(modelgate.StatsRead)
	}
	return true, err
}

// revocation is the path and query of DELETE /gw/keys/{id}.
type revocation struct {
	id   modelgate.KeyID
	keep bool // the keys that were issued below it
}

func (v *revocation) read(x *exchange) error {
	children, given, err := x.query.Text("children")
	if err != nil {
		return err
	}
	if v.keep = children == "keep"; given && !v.keep {
		return modelgate.Errorf(modelgate.BadRequest, "children must be keep; left out they are revoked too")
	}
	id, err := x.pathID("key")
	v.id = modelgate.KeyID(id)
	return err
}

func (a *API) revokeKey(ctx context.Context, b by, in revocation) (none, error) {
	scope := store.KeyScope{SubAccountID: b.SubAccountID}
	if b.portal {
		if err := a.portalIssues(ctx, b); err != nil {
			return none{}, err
		}
		scope.SelfIssued = !b.Has(modelgate.KeysManage)
	}
	if in.keep && b.SubAccountID != "" {
		return none{}, modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot keep the keys issued below one that it revokes")
	}
	var set any
	revoke := a.Store.RevokeKey
	if in.keep {
		revoke = a.Store.RevokeKeyAlone
		set = map[string]string{"children": "keep"}
	}
	record, err := a.audit(b, "key.revoke", "key", string(in.id), set)
	if err != nil {
		return none{}, err
	}
	digests, err := revoke(ctx, b.ClientID, scope, in.id, record)
	if err != nil {
		return none{}, err
	}
	for _, d := range digests { // before the answer: here it holds at once
		a.Keys.Forget(d)
	}
	if in.keep {
		a.Keys.ForgetClient(b.ClientID) // the kept ones are bound by less
	}
	return none{}, nil
}
