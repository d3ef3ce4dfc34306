package selfservice

import (
	"context"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/null"
	"modelgate/internal/ratelimit"
	"modelgate/internal/store/access"
)

// TokenBounds are the operator's bounds of browser tokens.
type TokenBounds struct {
	MaxTTL     time.Duration  // the longest that one may live
	DefaultCap modelgate.Nano // of one whose request names none; 0 is none
	PerClient  int            // live ones of an organization
	Minted     func()         // called for each one that is minted; nil is nobody
	// SharedRates are the buckets that requests with tokens share; nil is none.
	SharedRates func(*http.Request, *modelgate.Caller) []ratelimit.Bucket
}

// newToken is the body of POST /gw/tokens.
type newToken struct {
	EndUser           string            `json:"end_user"`
	Models            []string          `json:"models"`
	ExpiresInSeconds  *int64            `json:"expires_in_seconds" null:"absent"`
	MaxUSD            *modelgate.Nano   `json:"max_usd" null:"absent"`
	Origins           *[]string         `json:"origins" null:"absent"`
	Attribution       map[string]string `json:"attribution" null:"absent"`
	RequestsPerMinute *int              `json:"requests_per_minute" null:"absent"`
}

func (n *newToken) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.MaxUSD != nil && *n.MaxUSD <= 0 {
		return modelgate.Errorf(modelgate.BadRequest, "max_usd must be more than 0 and at most %s", modelgate.MaxBudget)
	}
	return nil
}

// tokenRequest is the request with its defaults. The cap of a token that a bound key
// mints is as billed, and is kept as what that costs.
func (a *API) tokenRequest(by actor, in newToken) modelgate.TokenRequest {
	r := modelgate.TokenRequest{
		EndUser: in.EndUser, Models: in.Models, Attribution: in.Attribution, RequestsPerMinute: modelgate.DefaultTokenRequests,
		ExpiresInSeconds: min(modelgate.DefaultTokenTTL, a.longestToken()), Cap: a.Tokens.DefaultCap,
	}
	if in.ExpiresInSeconds != nil {
		r.ExpiresInSeconds = *in.ExpiresInSeconds
	}
	if in.MaxUSD != nil {
		r.Cap = *in.MaxUSD
	}
	if in.RequestsPerMinute != nil {
		r.RequestsPerMinute = *in.RequestsPerMinute
	}
	if in.Origins != nil {
		r.Origins = *in.Origins
		if r.Origins == nil {
			r.Origins = []string{}
		}
	}
	if by.SubAccountID != "" && r.Cap > 0 && r.Cap <= modelgate.MaxBudget {
		r.Cap = max(r.Cap.Unbilled(by.Markup), 1)
	}
	return r
}

// longestToken is how many seconds a token may live.
func (a *API) longestToken() int64 { return int64(a.Tokens.MaxTTL / time.Second) }

// mintedToken is the answer to a mint: the only place a token is ever shown.
type mintedToken struct {
	TokenID   modelgate.TokenID `json:"token_id"`
	Token     string            `json:"token"`
	ExpiresAt time.Time         `json:"expires_at"`
}

func (a *API) mintToken(ctx context.Context, by actor, in newToken) (mintedToken, error) {
	request := a.tokenRequest(by, in)
	if err := request.Validate(a.longestToken()); err != nil {
		return mintedToken{}, err
	}
	token, secret := request.Mint(a.IDs.New())
	record := a.audit(by, "token.mint", "token", string(token.ID), struct {
		KeyID     modelgate.KeyID `json:"api_key_id"`
		Models    []string        `json:"models"`
		MaxUSD    *modelgate.Nano `json:"max_usd"`
		ExpiresAt time.Time       `json:"expires_at"`
	}{by.KeyID, token.Models, null.IfZero(token.Cap), token.ExpiresAt})
	minted := access.Minted{Token: token, ClientID: by.ClientID, SubAccountID: by.SubAccountID, KeyID: by.KeyID}
	if err := a.Store.MintToken(ctx, minted, secret.Digest(), a.Tokens.PerClient, record); err != nil {
		return mintedToken{}, err
	}
	if a.Tokens.Minted != nil {
		a.Tokens.Minted()
	}
	return mintedToken{token.ID, secret.Reveal(), token.ExpiresAt}, nil
}

// tokenScope is which tokens the caller may see and revoke: with keys:manage
// those of all its keys' tenants, else its own.
func (by actor) tokenScope() access.TokenScope {
	scope := access.TokenScope{SubAccountID: by.SubAccountID}
	if !by.Has(modelgate.KeysManage) {
		scope.KeyID = by.KeyID
	}
	return scope
}

// tokenQuery is the query of GET /gw/tokens.
type tokenQuery struct {
	endUser string
	limit   int
	cursor  *string
}

func (q *tokenQuery) read(x *exchange) error {
	q.endUser, _ = x.query.Text("end_user")
	q.limit = x.query.Int("limit", 1, 1000, 100)
	q.cursor = x.cursor()
	return nil
}

// tokenView is a live token in a list.
type tokenView struct {
	TokenID           modelgate.TokenID `json:"token_id"`
	KeyID             modelgate.KeyID   `json:"api_key_id"`
	EndUser           string            `json:"end_user"`
	Models            []string          `json:"models"`
	Origins           *[]string         `json:"origins"` // null for every page
	Attribution       map[string]string `json:"attribution"`
	RequestsPerMinute int               `json:"requests_per_minute"`
	MaxUSD            *modelgate.Nano   `json:"max_usd"` // null for none
	SpendUSD          modelgate.Nano    `json:"spend_usd"`
	CreatedAt         time.Time         `json:"created_at"`
	ExpiresAt         time.Time         `json:"expires_at"`
}

func (a *API) tokens(ctx context.Context, by actor, q tokenQuery) (page[tokenView], error) {
	a.settle(ctx)
	list := access.TokenList{TokenScope: by.tokenScope(), EndUser: q.endUser, Limit: q.limit}
	filter := filter("tokens", by, string(list.KeyID), q.endUser)
	var err error
	if list.After, err = a.after(q.cursor, filter); err != nil {
		return page[tokenView]{}, err
	}
	tokens, more, err := a.Store.Tokens(ctx, by.ClientID, list)
	return page[tokenView]{
		views(tokens, by.viewToken),
		next(a, filter, tokens, more, func(t *access.Minted) (time.Time, string) { return t.CreatedAt, string(t.ID) }),
	}, err
}

// viewToken shows an end customer the cap and the spend of its token as billed.
func (by actor) viewToken(t *access.Minted) tokenView {
	v := tokenView{
		TokenID: t.ID, KeyID: t.KeyID, EndUser: t.EndUser, Models: t.Models, Attribution: t.Attribution,
		RequestsPerMinute: t.RequestsPerMinute, MaxUSD: null.IfZero(t.Cap), SpendUSD: t.Spend, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt,
	}
	if t.Origins != nil {
		v.Origins = &t.Origins
	}
	if v.Attribution == nil {
		v.Attribution = map[string]string{}
	}
	if by.SubAccountID != "" {
		if t.Cap > 0 {
			v.MaxUSD = null.IfZero(t.Cap.BilledInMicros(by.Markup))
		}
		v.SpendUSD = t.Spend.Billed(by.Markup)
	}
	return v
}

// tokenName is the path of DELETE /gw/tokens/{id}.
type tokenName struct{ id modelgate.TokenID }

func (n *tokenName) read(x *exchange) error {
	id, err := x.pathID("token")
	n.id = modelgate.TokenID(id)
	return err
}

func (a *API) revokeToken(ctx context.Context, by actor, in tokenName) error {
	record := a.audit(by, "token.revoke", "token", string(in.id), nil)
	if err := a.Store.RevokeToken(ctx, by.ClientID, by.tokenScope(), in.id, record); err != nil {
		return err
	}
	a.Keys.ForgetTokens(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}

// tokensOf is the query of DELETE /gw/tokens.
type tokensOf struct{ endUser string }

func (q *tokensOf) read(x *exchange) error {
	if q.endUser, _ = x.query.Text("end_user"); q.endUser == "" {
		return modelgate.Errorf(modelgate.BadRequest, "end_user is required; DELETE /gw/tokens/{id} revokes a single token")
	}
	return nil
}

// revokeTokens revokes all live tokens of an end user. The record does not name
// the user.
func (a *API) revokeTokens(ctx context.Context, by actor, in tokensOf) error {
	record := a.audit(by, "token.revoke", "client", string(by.ClientID), map[string]bool{"of_end_user": true})
	if _, err := a.Store.RevokeTokensOf(ctx, by.ClientID, by.tokenScope(), in.endUser, record); err != nil {
		return err
	}
	a.Keys.ForgetTokens(by.ClientID)
	return nil
}
