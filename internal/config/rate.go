package config

import (
	"encoding/binary"
	"fmt"

	"crypto/sha256"
	"modelgate"
)

// maxRateRules is how many limits.rules there may be.
const maxRateRules = 100

// RateRule is a limit that applies to each target of a scope.
type RateRule struct {
	// `key`: each key. `sub_account`: the keys of each sub-account together.
	// `client`: each organization. `gateway`: all organizations together, to
	// protect an account at a provider.
	Scope modelgate.Level `yaml:"scope"`

	// The calls that count: `model:GLOB` (a slug, or provider/model where there is
	// none), or `tag:KEY=VALUE` (a pair of X-Gateway-Attribution; `*` limits each
	// value by itself). Empty: all.
	Match string `yaml:"match"`

	// `requests`, `input_tokens`, `output_tokens`, `tokens`, `usd` or
	// `concurrency`.
	Unit modelgate.LimitUnit `yaml:"unit"`

	// `second` (of requests only), `minute`, `hour` or `day`. Left out for
	// concurrency. An hour and a day are those of the clock in UTC. Their limits are
	// counted in the database, with and without Redis: a rule counts the calls since
	// an instance first had it, and the rules of the instance that read its
	// configuration last hold for all.
	Window string `yaml:"window"`

	// How much may be used in a window, on average: a whole number up to 1e9, or
	// dollars. Of concurrency, calls at once, up to 1e6.
	Limit modelgate.Nano `yaml:"limit"`

	// How much may be used at once after a pause. 0 means as much as limit. Left
	// out for concurrency, an hour and a day.
	Burst modelgate.Nano `yaml:"burst"`
}

// rateLimit is the rule as the gateway keeps it. Its number stays as long as the
// rule does, and is below 0. Errors say what is wrong with it.
func (r *RateRule) rateLimit() (*modelgate.RateLimit, error) {
	out := &modelgate.RateLimit{Level: r.Scope, Unit: r.Unit, Window: r.Window, Owner: modelgate.OwnerOperator}
	switch r.Scope {
	case modelgate.LevelGateway, modelgate.LevelClient, modelgate.LevelSubAccount, modelgate.LevelKey:
	default:
		return nil, fmt.Errorf("scope must be gateway, client, sub_account or key")
	}
	if r.Match != "" {
		var err error
		if out.Match, err = modelgate.ParseMatch(r.Match); err != nil {
			return nil, err
		}
	}
	if err := out.ValidateWindow(); err != nil {
		return nil, err
	}
	var whole [2]bool
	out.Limit, whole[0] = out.FromUnits(r.Limit)
	out.Burst, whole[1] = out.FromUnits(r.Burst)
	if !whole[0] || !whole[1] {
		return nil, fmt.Errorf("limit and burst must be whole numbers for unit %s", r.Unit)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%d\n%d", r.Scope, out.Match, r.Unit, r.Window, out.Limit, out.Burst))
	out.Number = -1 - int64(binary.LittleEndian.Uint64(sum[:])>>1)
	return out, out.ValidateAmounts()
}

// RateLimits are the rules, which must be valid: those that instances keep, and
// those on the clock, which the database counts.
func (l *Limits) RateLimits() (kept, clock []*modelgate.RateLimit) {
	for i := range l.Rules {
		r, err := l.Rules[i].rateLimit()
		switch {
		case err != nil:
		case r.OnClock():
			clock = append(clock, r)
		default:
			kept = append(kept, r)
		}
	}
	return kept, clock
}

func (l *Limits) checkRules(d *document) {
	d.faultIf(len(l.Rules) > maxRateRules, "limits.rules", "must be at most %d", maxRateRules)
	type place struct {
		scope  modelgate.Level
		match  string
		unit   modelgate.LimitUnit
		window string
	}
	seen := make(map[place]bool)
	for i := range l.Rules {
		path := element("limits.rules", i)
		r, err := l.Rules[i].rateLimit()
		if err != nil {
			d.fault(path, "%s", err)
			continue
		}
		at := place{r.Level, r.Match.String(), r.Unit, r.Window}
		d.faultIf(seen[at], path, "there is another rule of this scope, match, unit and window")
		seen[at] = true
	}
}
