package config

import (
	"time"

	"modelgate"
)

// CORS is which other sites' pages may call model doors, the provider proxy,
// the lists of models, /gw/me and /gw/quota. What a page knows, its visitors know.
type CORS struct {
	// Origins of these pages: https://app.example.com, https://*.example.com
	// for all hosts below a domain, or "*" for every page; at most 100.
	// Cookies are never accepted from them. Default: none.
	Origins []string `yaml:"origins"`

	// How long browsers may cache the answer for an origin; from 0 to 24h.
	MaxAge time.Duration `yaml:"max_age"`

	// Whether these pages may use keys, too. Without it a key from one of
	// these origins, but for that of base_url, is answered 403, and pages use
	// tokens of `POST /gw/tokens`.
	AllowKeys bool `yaml:"allow_keys"`
}

func (c *CORS) setDefaults() { c.MaxAge = 10 * time.Minute }

// Tokens are the bounds of browser tokens.
type Tokens struct {
	// The longest that a token may live; from 30s to 24h.
	MaxTTL time.Duration `yaml:"max_ttl"`

	// USD that the calls of a token may cost, where its request does not say. 0
	// sets no cap. A cap holds whatever `enforcement` says of budgets.
	DefaultMaxUSD modelgate.Nano `yaml:"default_max_usd"`

	// Live tokens that an organization may have; one more is answered 409. From
	// 1 to 10000000.
	PerClient int `yaml:"per_client"`
}

func (t *Tokens) setDefaults() {
	*t = Tokens{MaxTTL: time.Hour, DefaultMaxUSD: modelgate.USD, PerClient: 100_000}
}

func (t *Tokens) check(d *document) {
	d.faultIf(t.MaxTTL < minTokenTTL || t.MaxTTL > maxTokenTTL || t.MaxTTL%time.Second != 0, "tokens.max_ttl", "must be from 30s to 24h, in whole seconds")
	d.faultIf(t.DefaultMaxUSD < 0 || t.DefaultMaxUSD > modelgate.MaxBudget, "tokens.default_max_usd", "must be from 0 to %s", modelgate.MaxBudget)
	d.faultIf(t.PerClient < 1 || t.PerClient > maxTokens, "tokens.per_client", "must be from 1 to %d", maxTokens)
}
