package operator

import (
	"context"
	"errors"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/keyview"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// keyView is a key as in GET /gw/keys, with whose it is and its own limits.
type keyView struct {
	keyview.View
	Organization modelgate.ClientID `json:"organization_id"`
	Limits       modelgate.Limits   `json:"limits"`
}

func viewKey(k *modelgate.Key) keyView { return keyView{keyview.Of(k), k.ClientID, k.Limits} }

func views(keys []modelgate.Key) []keyView {
	out := []keyView{}
	for i := range keys {
		out = append(out, viewKey(&keys[i]))
	}
	return out
}

// keys lists keys of one organization or of all, the newest first.
func (a *API) keys(ctx context.Context, x *exchange) (any, error) {
	sub := x.query.Filter("sub_account")
	find, given := x.query.Text("q")
	state := httpx.OneOf(x.query, "status", "", access.KeyActive, access.KeyExpired, access.KeyRevoked)
	limit := x.query.Int("limit", 1, 200, 50)
	cursor, continued := x.query.Text("cursor")
	client, err := x.organizationFilter()
	switch {
	case err != nil:
		return nil, err
	case given && (find == "" || len(find) > longestFind):
		return nil, modelgate.Errorf(modelgate.BadRequest, "q must be a part of a name, an id or the beginning of a key, of 1 to %d bytes", longestFind)
	case modelgate.WellFormed(find):
		return nil, modelgate.Errorf(modelgate.BadRequest, "q must not be a whole key, which is a secret; POST its SHA-256 to /operator/v1/keys/find")
	}
	list := access.KeyList{SubAccountID: modelgate.SubAccountID(sub), Find: find, State: state, Limit: limit}
	filter := strings.Join([]string{"operator keys", string(client), sub, find, string(state)}, "\x00")
	if continued {
		at, err := a.Cursors.Read(cursor, filter)
		if err != nil {
			return nil, err
		}
		list.After = &store.Cursor{At: at.At, ID: at.ID}
	}
	keys, more, err := a.Store.KeysOfAll(ctx, client, list)
	if err != nil {
		return nil, err
	}
	if more {
		last := &keys[len(keys)-1]
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: string(last.ID)}, filter))
	}
	return views(keys), nil
}

// keyQuestion is the body of POST /operator/v1/keys/find: exactly one member. The
// secret itself is never sent.
type keyQuestion struct {
	Digest *string `json:"digest" null:"absent"`
	Prefix *string `json:"prefix" null:"absent"`
	ID     *string `json:"id" null:"absent"`
}

// The length of a prefix that finds keys, in characters: gw_live_ and some of the
// rest, up to what is stored.
const leastPrefix, mostPrefix = 12, 16

func (a *API) findKeys(ctx context.Context, x *exchange) (any, error) {
	var in keyQuestion
	if err := x.body(&in); err != nil {
		return nil, err
	}
	var key modelgate.Key
	var err error
	switch {
	case in.Digest != nil && in.Prefix == nil && in.ID == nil:
		digest, parseErr := modelgate.ParseDigest(*in.Digest)
		if parseErr != nil {
			return nil, parseErr
		}
		key, err = a.Store.FindKeyByDigest(ctx, digest)
	case in.ID != nil && in.Prefix == nil && in.Digest == nil:
		key, err = a.Store.FindKey(ctx, modelgate.KeyID(strings.ToLower(*in.ID)))
	case in.Prefix != nil && in.ID == nil && in.Digest == nil:
		if n := len(*in.Prefix); n < leastPrefix || n > mostPrefix {
			return nil, modelgate.Errorf(modelgate.BadRequest, "prefix must be the first %d to %d characters of a key", leastPrefix, mostPrefix)
		}
		keys, _, err := a.Store.KeysOfAll(ctx, "", access.KeyList{Prefix: *in.Prefix, Limit: 200})
		return views(keys), err
	default:
		return nil, modelgate.Errorf(modelgate.BadRequest, "give exactly one of digest, prefix and id")
	}
	if modelgate.KindOf(err) == modelgate.NotFound {
		return []keyView{}, nil
	}
	return []keyView{viewKey(&key)}, err
}

func (a *API) revokeKey(ctx context.Context, x *exchange) (any, error) {
	id, err := x.pathID("id", "key")
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	key, err := a.Store.FindKey(ctx, modelgate.KeyID(id))
	if err != nil {
		return nil, err
	}
	digests, err := a.Store.RevokeKey(ctx, key.ClientID, access.KeyScope{}, key.ID, a.audit(x, key.ClientID, "key.revoke", "key", id, nil))
	if err != nil {
		return nil, err
	}
	a.Keys.ForgetRevoked(key.ClientID, digests) // before the response, so that it takes effect at once on this instance
	return nil, nil
}

func (a *API) putKeyLimits(ctx context.Context, x *exchange) (any, error) {
	var in struct {
		RequestsPerSecond *int `json:"requests_per_second" null:"absent"`
		Burst             *int `json:"burst" null:"absent"`
		Concurrency       *int `json:"concurrency" null:"absent"`
	}
	id, err := x.pathID("id", "key")
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	limits := modelgate.Limits{RequestsPerSecond: in.RequestsPerSecond, Burst: in.Burst, Concurrency: in.Concurrency}
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	key, err := a.Store.FindKey(ctx, modelgate.KeyID(id))
	if err != nil {
		return nil, err
	}
	if err := a.Store.SetKeyLimits(ctx, key.ClientID, key.ID, limits, a.audit(x, key.ClientID, "key.limits", "key", id, limits)); err != nil {
		return nil, err
	}
	a.Keys.ForgetClient(key.ClientID)
	return nil, nil
}

// newKey is the body of POST …/organizations/{org}/keys, as of POST /gw/keys.
type newKey struct {
	Scopes           *[]modelgate.Scope      `json:"scopes"`
	Entitlements     *modelgate.Entitlements `json:"entitlements"` // null would mean every right
	SubAccountID     *string                 `json:"sub_account_id" null:"absent"`
	ExpiresInSeconds *int64                  `json:"expires_in_seconds" null:"absent"`
	Name             *string                 `json:"name" null:"absent"`
}

// issueKey issues a key in the operator's name, under the organization's ceiling.
func (a *API) issueKey(ctx context.Context, x *exchange) (any, error) {
	var in newKey
	org, err := x.org()
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	if in.Scopes == nil {
		return nil, modelgate.Errorf(modelgate.BadRequest, "scopes is required; [] grants none")
	}
	wish := modelgate.KeyRequest{
		Scopes: *in.Scopes, Name: in.Name, Entitlements: in.Entitlements, ExpiresInSeconds: in.ExpiresInSeconds,
		SubAccountID: modelgate.SubAccountID(orElse(in.SubAccountID, "")),
	}
	if err := wish.Validate(); err != nil {
		return nil, err
	}
	id, catalog := a.IDs.New(), a.Catalog()
	var secret modelgate.Secret
	key, err := a.Store.IssueKey(ctx, org, access.IssueRequest{
		SubAccountID: wish.SubAccountID,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			key, drawn, err := wish.Issue(org, c.Bounds(), catalog, id)
			if err != nil {
				return modelgate.Key{}, modelgate.Digest{}, err
			}
			secret = drawn
			return key, drawn.Digest(), nil
		},
	}, a.audit(x, org, "key.issue", "key", id.String(), nil))
	if err != nil {
		return nil, notFound(err)
	}
	return modelgate.Issued(key, secret), nil
}
