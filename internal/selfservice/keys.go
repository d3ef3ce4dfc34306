package selfservice

import (
	"context"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/keyview"
	"modelgate/internal/store/access"
)

// keyQuery is the query of GET /gw/keys. Without a limit all keys are listed.
type keyQuery struct {
	limit  int
	cursor *string
	find   string // "" for all
}

// longestFind bounds what a list is searched for, in bytes.
const longestFind = 400

func (q *keyQuery) read(x *exchange) error {
	q.limit = x.query.Int("limit", 1, 1000, 0)
	q.cursor = x.cursor()
	text, given := x.query.Text("q")
	q.find = strings.TrimSpace(text)
	switch {
	case given && (q.find == "" || len(q.find) > longestFind):
		return modelgate.Errorf(modelgate.BadRequest, "q must be a part of a name, an id or the beginning of a key, of 1 to %d bytes", longestFind)
	case modelgate.WellFormed(q.find):
		return modelgate.Errorf(modelgate.BadRequest, "q must not be a whole key, which is a secret; its first 16 characters find it")
	}
	return nil
}

func (a *API) listKeys(ctx context.Context, by actor, q keyQuery) (page[keyview.View], error) {
	list := access.KeyList{SubAccountID: by.SubAccountID, Find: q.find, Limit: q.limit, Owner: by.ownKeys()}
	var err error
	if list.SelfIssued, err = a.ownKeysOnly(ctx, by); err != nil {
		return page[keyview.View]{}, err
	}
	filter := filter("keys", by, strconv.FormatBool(list.SelfIssued), q.find, string(list.Owner))
	if list.After, err = a.after(q.cursor, filter); err != nil {
		return page[keyview.View]{}, err
	}
	keys, more, err := a.Store.Keys(ctx, by.ClientID, list)
	return page[keyview.View]{
		views(keys, keyview.Of),
		next(a, filter, keys, more, func(k *modelgate.Key) (time.Time, string) { return k.CreatedAt, string(k.ID) }),
	}, err
}

// newKey is the body of POST /gw/keys.
type newKey struct {
	Scopes           *[]modelgate.Scope      `json:"scopes"`
	Entitlements     *modelgate.Entitlements `json:"entitlements"` // null would mean every right
	SubAccountID     *string                 `json:"sub_account_id" null:"absent"`
	ExpiresInSeconds *int64                  `json:"expires_in_seconds" null:"absent"`
	Name             *string                 `json:"name" null:"absent"`
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

func (k *newKey) wish(subAccount modelgate.SubAccountID) modelgate.KeyRequest {
	return modelgate.KeyRequest{
		Scopes: *k.Scopes, Name: k.Name, Entitlements: k.Entitlements, SubAccountID: subAccount, ExpiresInSeconds: k.ExpiresInSeconds,
	}
}

func (a *API) issueKey(ctx context.Context, by actor, in newKey) (modelgate.IssuedKey, error) {
	subAccount, err := by.bind(in.SubAccountID)
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	wish, id := in.wish(subAccount), a.IDs.New()
	bounds, most := by.Bounds(), 0
	if by.portal {
		most = modelgate.MaxSelfIssued
		if err := a.portalIssues(ctx, by); err != nil {
			return modelgate.IssuedKey{}, err
		}
		if bounds, err = by.SelfIssue(&wish, id.Time()); err != nil {
			return modelgate.IssuedKey{}, err
		}
	}
	owner := by.ownKeys()
	if owner != "" {
		most = modelgate.MaxSelfIssued
		if err := wish.ByDeveloper(); err != nil {
			return modelgate.IssuedKey{}, err
		}
	}
	catalog := a.Catalog()
	var secret modelgate.Secret
	key, err := a.Store.IssueKey(ctx, by.ClientID, access.IssueRequest{
		SubAccountID: subAccount,
		Issuer:       by.KeyID,
		Owner:        owner,
		MaxKeys:      most,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			ceiling := c.Bounds() // the current one; the caller's may be cached
			if by.SubAccountID != "" {
				ceiling = bounds
			}
			key, drawn, err := wish.Issue(by.ClientID, ceiling, catalog, id)
			if err != nil {
				return modelgate.Key{}, modelgate.Digest{}, err
			}
			secret = drawn
			return key, drawn.Digest(), nil
		},
	}, a.audit(by, "key.issue", "key", id.String(), nil))
	if err != nil {
		return modelgate.IssuedKey{}, err
	}
	return modelgate.Issued(key, secret), nil
}

// ownKeys is the person whose keys alone a developer lists, issues and revokes; ""
// for all other callers.
func (by actor) ownKeys() modelgate.PersonID {
	if by.Role == modelgate.RoleDeveloper {
		return by.PersonID
	}
	return ""
}

// bind is the sub-account that a new key belongs to. A bound key issues keys
// for its own sub-account only. The store checks that the sub-account exists and
// is active.
func (by actor) bind(asked *string) (modelgate.SubAccountID, error) {
	if asked == nil {
		return by.SubAccountID, nil
	}
	id, ok := modelgate.ParseUUID(*asked)
	subAccount := modelgate.SubAccountID(id.String())
	if !ok || by.SubAccountID != "" && subAccount != by.SubAccountID {
		return "", modelgate.Errorf(modelgate.Forbidden, "sub-account not found or not active")
	}
	return subAccount, nil
}

// portalIssues is an error where the reseller has not allowed self-issuance. The
// branding is read each time, so that switching it off takes effect at once.
func (a *API) portalIssues(ctx context.Context, by actor) error {
	branding, err := a.Store.Branding(ctx, by.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return err
	}
	if !branding.AllowSelfIssue {
		return modelgate.Errorf(modelgate.Forbidden, "keys are not issued or revoked in this portal")
	}
	return nil
}

// ownKeysOnly reports whether a caller may see only the keys that were issued in
// its portal. That is so in a portal session whose key has no scope to read keys.
// Errors: forbidden where self-issuance is off.
func (a *API) ownKeysOnly(ctx context.Context, by actor) (bool, error) {
	if !by.portal || by.Has(modelgate.StatsRead) || by.Has(modelgate.KeysManage) {
		return false, nil
	}
	err := a.portalIssues(ctx, by)
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
	children, given := x.query.Text("children")
	if v.keep = children == "keep"; given && !v.keep {
		return modelgate.Errorf(modelgate.BadRequest, "children must be keep; left out they are revoked too")
	}
	id, err := x.pathID("key")
	v.id = modelgate.KeyID(id)
	return err
}

func (a *API) revokeKey(ctx context.Context, by actor, in revocation) error {
	scope := access.KeyScope{SubAccountID: by.SubAccountID, Owner: by.ownKeys()}
	if by.portal {
		if err := a.portalIssues(ctx, by); err != nil {
			return err
		}
		scope.SelfIssued = !by.Has(modelgate.KeysManage)
	}
	revoke, set := a.Store.RevokeKey, any(nil)
	if in.keep {
		if by.SubAccountID != "" {
			return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot keep the keys issued below one that it revokes")
		}
		revoke, set = a.Store.RevokeKeyAlone, map[string]string{"children": "keep"}
	}
	digests, err := revoke(ctx, by.ClientID, scope, in.id, a.audit(by, "key.revoke", "key", string(in.id), set))
	if err != nil {
		return err
	}
	a.Keys.ForgetRevoked(by.ClientID, digests) // before the response, so that it takes effect at once on this instance
	if in.keep {
		a.Keys.ForgetClient(by.ClientID) // the keys that were kept have fewer ancestors now
	}
	return nil
}
