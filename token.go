package modelgate

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// TokenID names a browser token (UUIDv7).
type TokenID string

// The bounds of a request for a browser token.
const (
	MinTokenTTL     = 30  // seconds
	DefaultTokenTTL = 900 // seconds
	// DefaultTokenRequests is how many requests a minute a token may make where
	// its request does not say.
	DefaultTokenRequests = 60

	maxTokenRequests = 6000 // a minute
	maxEndUser       = 128  // bytes
	maxTokenModels   = 50
	maxTokenModel    = 256 // bytes
	maxTokenOrigins  = 10
	maxTokenOrigin   = 512 // bytes
	maxTokenPairs    = 8   // of attribution, beside the token's own
)

// Token is what a caller is held to beside the rights of its key, because it
// came with a browser token: a secret of a short life that a backend mints for
// one of its users. Callers share it, and nothing changes it.
type Token struct {
	ID                TokenID
	EndUser           string
	Models            []string // slugs or globs; at least one
	Origins           []string // the pages that may use it; nil for all
	Attribution       map[string]string
	RequestsPerMinute int
	// Cap is the most that all its calls together may cost, as in a budget: not
	// as billed. 0 sets none.
	Cap       Nano
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Permits reports whether the token is for the model with a slug.
func (t *Token) Permits(slug string) bool {
	return slices.ContainsFunc(t.Models, func(pattern string) bool { return Glob(pattern, slug) })
}

// permitsAny reports whether the token is for one of the models. A route that
// the catalog does not have is no model's.
func (t *Token) permitsAny(models []*Model) bool {
	return slices.ContainsFunc(models, func(m *Model) bool { return t.Permits(m.Slug) })
}

// PermitsOrigin reports whether the page of an origin, "" for none, may use the
// token. Browsers state it truthfully; whoever else has the token may not.
func (t *Token) PermitsOrigin(origin string) bool {
	return t.Origins == nil || slices.Contains(t.Origins, origin)
}

// Pairs are the attribution that every call of the token has.
func (t *Token) Pairs() map[string]string {
	pairs := make(map[string]string, len(t.Attribution)+2)
	maps.Copy(pairs, t.Attribution)
	pairs[AttributionTokenID], pairs[AttributionEndUser] = string(t.ID), t.EndUser
	return pairs
}

// Budget is the token's cap, false where it has none.
func (t *Token) Budget() (Budget, bool) {
	return Budget{Level: LevelToken, ID: string(t.ID), Period: Ever, Limit: t.Cap}, t.Cap > 0
}

// Made reports whether a job with this attribution was made by a token of the
// same end user.
func (t *Token) Made(attribution map[string]string) bool {
	return attribution[AttributionTokenID] != "" && attribution[AttributionEndUser] == t.EndUser
}

// TokenRequest is a request for a browser token.
type TokenRequest struct {
	EndUser           string
	Models            []string
	Origins           []string // nil means absent: every page
	Attribution       map[string]string
	ExpiresInSeconds  int64
	RequestsPerMinute int
	Cap               Nano // 0 means none
}

// Validate checks a request; longest is the most seconds that a token may live.
// Errors are bad_request.
func (r *TokenRequest) Validate(longest int64) error {
	if r.EndUser == "" || len(r.EndUser) > maxEndUser || !plain(r.EndUser) {
		return Errorf(BadRequest, "end_user must be 1 to %d bytes without control characters", maxEndUser)
	}
	if len(r.Models) == 0 || len(r.Models) > maxTokenModels || slices.ContainsFunc(r.Models, func(m string) bool {
		return m == "" || len(m) > maxTokenModel || !plain(m)
	}) {
		return Errorf(BadRequest, "models must be 1 to %d slugs or globs such as openai/*, each of at most %d bytes", maxTokenModels, maxTokenModel)
	}
	if r.ExpiresInSeconds < MinTokenTTL || r.ExpiresInSeconds > longest {
		return Errorf(BadRequest, "expires_in_seconds must be an integer from %d to %d", MinTokenTTL, longest)
	}
	if r.RequestsPerMinute < 1 || r.RequestsPerMinute > maxTokenRequests {
		return Errorf(BadRequest, "requests_per_minute must be an integer from 1 to %d", maxTokenRequests)
	}
	if r.Cap < 0 || r.Cap > MaxBudget {
		return Errorf(BadRequest, "max_usd must be more than 0 and at most %s", MaxBudget)
	}
	if err := r.validateOrigins(); err != nil {
		return err
	}
	return r.validatePairs()
}

func (r *TokenRequest) validateOrigins() error {
	if r.Origins == nil {
		return nil
	}
	if len(r.Origins) == 0 || len(r.Origins) > maxTokenOrigins {
		return Errorf(BadRequest, "origins must be 1 to %d; leave it out for every page", maxTokenOrigins)
	}
	for _, o := range r.Origins {
		scheme, host, found := strings.Cut(o, "://")
		if !found || scheme == "" || host == "" || len(o) > maxTokenOrigin || !plain(o) || strings.ContainsAny(host, "/?#@* ") {
			return Errorf(BadRequest, "origins must be as browsers send them, such as https://app.example.com, without a path")
		}
	}
	return nil
}

func (r *TokenRequest) validatePairs() error {
	if len(r.Attribution) > maxTokenPairs {
		return Errorf(BadRequest, "attribution must have at most %d pairs", maxTokenPairs)
	}
	for key, value := range r.Attribution {
		switch {
		case SetByGateway(key) || key == AttributionEndUser:
			return Errorf(BadRequest, "attribution: %s is set by the gateway; leave it out", key)
		case !IsAttributionKey(key) || len(value) > MaxAttributionValue || !plain(value):
			return Errorf(BadRequest, "attribution must be pairs of keys [A-Za-z0-9_.-]{1,%d} and values of at most %d bytes without control characters",
				MaxAttributionKey, MaxAttributionValue)
		}
	}
	return nil
}

// plain reports whether a text is valid UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Mint makes the token and its secret, and stores nothing. The request is valid.
func (r *TokenRequest) Mint(id UUID) (Token, Secret) {
	now := id.Time()
	return Token{
		ID: TokenID(id.String()), EndUser: r.EndUser, Models: r.Models, Origins: r.Origins, Attribution: r.Attribution,
		RequestsPerMinute: r.RequestsPerMinute, Cap: r.Cap,
		CreatedAt: now, ExpiresAt: now.Add(time.Duration(r.ExpiresInSeconds) * time.Second),
	}, newSecret(tokenPrefix)
}

// As is the caller of a key when it comes with the token: it has the scope
// inference:use alone, and ends with the token at the latest.
func (c *Caller) As(t *Token) Caller {
	narrowed := *c
	narrowed.Token, narrowed.decisions = t, nil
	narrowed.Scopes = slices.DeleteFunc(slices.Clone(c.Scopes), func(s Scope) bool { return s != InferenceUse })
	if c.ExpiresAt.IsZero() || t.ExpiresAt.Before(c.ExpiresAt) {
		narrowed.ExpiresAt = t.ExpiresAt
	}
	if b, capped := t.Budget(); capped {
		narrowed.Budgets = append(slices.Clone(c.Budgets), b)
	}
	return narrowed
}

// The errors of tokens.
var (
	ErrTokenRoute  = &Error{Forbidden, "a token cannot use this route"}
	ErrTokenOrigin = &Error{Forbidden, "origin not permitted for this token"}
)

// Attribute adds what the token fixes to the pairs that a call brought, which
// may be nil and are not changed. Errors are bad_request where one differs.
func (t *Token) Attribute(pairs map[string]string) (map[string]string, error) {
	all := t.Pairs()
	for key, value := range pairs {
		if fixed, there := all[key]; there && fixed != value {
			return nil, Errorf(BadRequest, "X-Gateway-Attribution: %s is fixed by the token; leave it out", key)
		}
		all[key] = value
	}
	return all, nil
}
