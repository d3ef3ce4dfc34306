package modelgate

import (
	"cmp"
	"slices"
	"time"
)

// LevelGateway is the level of rate limits for all organizations together. Only
// the configuration file sets them.
const LevelGateway Level = "gateway"

// RateLimit limits what calls of a level use in a while, or how many are under
// way at once. An owner has at most one for a target, a match, a unit and a
// window. All of them apply. It is not changed once it is shared.
type RateLimit struct {
	// Number names the bucket. It is new with each change, and unique; below 0
	// for a limit of the configuration file.
	Number int64
	Level  Level
	ID     string // of the client, sub-account or key; "" in the configuration file
	Match  *Match // which calls count; nil: all
	Unit   LimitUnit
	Window string // "second", "minute", "hour" or "day"; "" for concurrency
	// Limit is requests, tokens or calls, or nano-USD, in a window.
	Limit int64
	// Burst is the size of the bucket: in any span T at most Burst and T's share
	// of Limit is used. 0 is as much as Limit. An hour and a day have none: they
	// begin anew on the clock.
	Burst int64
	Owner Owner // "" is the organization
}

// The bounds of a rate limit.
const (
	maxRate   = 1_000_000_000
	maxTokens = 9_000_000_000 // in an hour or a day
	maxPlaces = 1_000_000
)

// Span is how long the window is; 0 for concurrency.
func (r *RateLimit) Span() time.Duration {
	switch r.Window {
	case "second":
		return time.Second
	case "minute":
		return time.Minute
	case string(Hour):
		return time.Hour
	case string(Day):
		return 24 * time.Hour
	}
	return 0
}

// OnClock reports whether the window is an hour or a day of the clock. Such a
// limit has a counter in the database, and is a Budget to who counts.
func (r *RateLimit) OnClock() bool { return r.Window == string(Hour) || r.Window == string(Day) }

// Budget is a limit that is OnClock as who counts knows it.
func (r *RateLimit) Budget() Budget {
	return Budget{
		Level: r.Level, ID: r.ID, Period: Period(r.Window), Match: r.Match, Unit: r.Unit, Rule: r.Number,
		Mode: Hard, Alerts: []int{}, Owner: r.Owner, Limit: Nano(r.Limit),
	}
}

// RateLimit is the opposite of RateLimit.Budget.
func (b *Budget) RateLimit() *RateLimit {
	return &RateLimit{
		Number: b.Rule, Level: b.Level, ID: b.ID, Match: b.Match, Unit: b.Unit, Window: string(b.Period), Limit: int64(b.Limit), Owner: b.Owner,
	}
}

// Size is the size of the bucket, or the calls at once.
func (r *RateLimit) Size() int64 { return cmp.Or(r.Burst, r.Limit) }

// OnEntry reports whether the limit is judged before anything is known of the
// call but its caller.
func (r *RateLimit) OnEntry() bool {
	return r.Match == nil && (r.Unit == UnitRequests || r.Unit == UnitConcurrency)
}

// Validate checks what can be set. Errors are bad_request.
func (r *RateLimit) Validate() error {
	if err := r.ValidateName(); err != nil {
		return err
	}
	return r.ValidateAmounts()
}

// ValidateName checks the level, the unit and the window. Errors are
// bad_request.
func (r *RateLimit) ValidateName() error {
	if !slices.Contains([]Level{LevelClient, LevelSubAccount, LevelKey}, r.Level) {
		return Errorf(BadRequest, "scope must be client, sub_account or key")
	}
	return r.ValidateWindow()
}

// ValidateAmounts checks the limit and the burst. Errors are bad_request.
func (r *RateLimit) ValidateAmounts() error {
	most := int64(maxRate)
	if r.OnClock() && r.Burst != 0 {
		return Errorf(BadRequest, "burst must be left out for window %s", r.Window)
	}
	if r.OnClock() && r.Unit != UnitRequests {
		most = maxTokens
	}
	switch r.Unit {
	case UnitConcurrency:
		most = maxPlaces
		if r.Burst != 0 {
			return Errorf(BadRequest, "burst must be left out for unit concurrency")
		}
	case UnitUSD:
		if r.Limit <= 0 || r.Limit > int64(MaxBudget) {
			return Errorf(BadRequest, "limit must be more than 0 and at most %s", MaxBudget)
		}
		if r.Burst < 0 || r.Burst > int64(MaxBudget) {
			return Errorf(BadRequest, "burst must be more than 0 and at most %s", MaxBudget)
		}
		return nil
	}
	if r.Limit < 1 || r.Limit > most {
		return Errorf(BadRequest, "limit must be from 1 to %d", most)
	}
	if r.Burst < 0 || r.Burst > most {
		return Errorf(BadRequest, "burst must be from 1 to %d", most)
	}
	return nil
}

// ValidateWindow checks the unit and its window. Errors are bad_request.
func (r *RateLimit) ValidateWindow() error {
	switch r.Unit {
	case UnitRequests:
		if r.Window != "second" && r.Window != "minute" && !r.OnClock() {
			return Errorf(BadRequest, "window must be second, minute, hour or day")
		}
	case UnitInputTokens, UnitOutputTokens, UnitTokens, UnitUSD:
		if r.Window != "minute" && !r.OnClock() {
			return Errorf(BadRequest, "window must be minute, hour or day for unit %s", r.Unit)
		}
	case UnitConcurrency:
		if r.Window != "" {
			return Errorf(BadRequest, "window must be left out for unit concurrency")
		}
	default:
		return Errorf(BadRequest, "unit must be requests, input_tokens, output_tokens, tokens, usd or concurrency")
	}
	return nil
}

// InUnits is an amount of the limit's as answers show it: of money as it is,
// else as WholeUnits.
func (r *RateLimit) InUnits(n int64) Nano {
	if r.Unit == UnitUSD {
		return Nano(n)
	}
	return WholeUnits(n)
}

// FromUnits is the opposite of InUnits. It is false where the amount is not
// whole.
func (r *RateLimit) FromUnits(n Nano) (amount int64, ok bool) {
	if r.Unit == UnitUSD {
		return int64(n), true
	}
	return int64(n / USD), n%USD == 0
}

// SeesRate reports whether the caller may see the figures of a rate limit: see
// Sees. Nobody sees what all organizations use together.
func (c *Caller) SeesRate(r *RateLimit) bool {
	if c.Token != nil {
		return false
	}
	return c.SubAccountID == "" && r.Level != LevelGateway || r.Level == LevelSubAccount || r.Level == LevelKey && (r.ID == "" || r.ID == string(c.KeyID))
}

// RateState is a rate limit that the caller sees, with so much used and needed
// in the limit's amounts: money as billed where the key is bound to a
// sub-account.
func (c *Caller) RateState(r *RateLimit, used, needed int64) LimitState {
	remaining := max(0, r.Size()-used)
	l := LimitState{
		Kind: LimitRate, Scope: r.Level, ID: c.targetID(r.Level), Match: r.Match.String(), Unit: r.Unit, Window: r.Window,
		Limit: r.InUnits(r.Limit), Used: r.InUnits(used), Remaining: r.InUnits(remaining), Needed: r.InUnits(needed),
	}
	if r.Unit == UnitUSD && c.SubAccountID != "" {
		for _, n := range []*Nano{&l.Limit, &l.Used, &l.Remaining, &l.Needed} {
			if *n > 0 {
				*n = n.BilledInMicros(c.Markup)
			}
		}
	}
	return l
}

// targetID is the id that answers name for a level of the caller's.
func (c *Caller) targetID(l Level) string {
	switch l {
	case LevelSubAccount:
		return string(c.SubAccountID)
	case LevelKey:
		return string(c.KeyID)
	}
	return ""
}

// compareRates sorts into the order in which limits are judged and shown: from
// the gateway down to the key.
func compareRates(a, b *RateLimit) int {
	rank := func(l Level) int {
		return slices.Index([]Level{LevelGateway, LevelClient, LevelSubAccount, LevelKey}, l)
	}
	return cmp.Or(rank(a.Level)-rank(b.Level), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Match.String(), b.Match.String()),
		cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Window, b.Window), cmp.Compare(a.Owner, b.Owner))
}

// SortRates sorts into the order in which limits are judged: from the gateway
// down to the key.
func SortRates(list []*RateLimit) { slices.SortFunc(list, compareRates) }

// Amounts are what a call uses of rate limits.
type Amounts struct {
	Requests, Input, Output int64 // the input with what was cached
	Cost                    Nano
}

// Amounts are those of a call that was booked with this usage and cost.
func (u *Usage) Amounts(cost Nano) Amounts {
	return Amounts{Requests: 1, Input: u.PromptTokens(), Output: u.CompletionTokens(), Cost: cost}
}

// Of is the amount in a limit's unit.
func (a *Amounts) Of(u LimitUnit) int64 {
	switch u {
	case UnitRequests:
		return a.Requests
	case UnitInputTokens:
		return a.Input
	case UnitOutputTokens:
		return a.Output
	case UnitTokens:
		return a.Input + a.Output
	case UnitUSD:
		return int64(a.Cost)
	}
	return 0
}
