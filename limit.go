package modelgate

import (
	"math"
	"time"
)

// LimitKind says what kind of limit refuses or binds a call.
type LimitKind string

// The kinds.
const (
	LimitBudget  LimitKind = "budget"
	LimitBalance LimitKind = "balance"
	LimitWallet  LimitKind = "wallet"
	LimitRate    LimitKind = "rate"
	LimitToken   LimitKind = "token" // the cap of a browser token
)

// LimitUnit is what a limit counts.
type LimitUnit string

// The units. Concurrency is calls at once.
const (
	UnitUSD          LimitUnit = "usd"
	UnitRequests     LimitUnit = "requests"
	UnitInputTokens  LimitUnit = "input_tokens" // cached ones included
	UnitOutputTokens LimitUnit = "output_tokens"
	UnitTokens       LimitUnit = "tokens"
	UnitConcurrency  LimitUnit = "concurrency"
)

// LimitState is a limit that binds a caller and how much of it is used, as
// answers show it. The figures are billionths of the unit, as Nano is of a dollar.
type LimitState struct {
	Kind   LimitKind `json:"kind"`
	Scope  Level     `json:"scope"`
	ID     string    `json:"id,omitempty"`    // of the sub-account, key or token; "" for scope client
	Match  string    `json:"match,omitempty"` // which calls count; "" for all
	Unit   LimitUnit `json:"unit"`
	Period Period    `json:"period,omitempty"` // of a budget: day or month
	Window string    `json:"window,omitempty"` // of another budget: "week" or "total"; of a rate: see RateLimit
	Limit  Nano      `json:"limit"`
	// Used is what is booked and what open calls have reserved. Of a rate it is
	// what was drawn from the bucket and has not come back.
	Used      Nano       `json:"used"`
	Remaining Nano       `json:"remaining"` // ≥ 0
	Needed    Nano       `json:"needed"`    // what the refused call would reserve
	ResetsAt  *time.Time `json:"resets_at"` // nil: never, or little by little
}

// WholeUnits is a number of requests or calls as LimitState holds it. A number
// that it cannot hold counts as the largest.
func WholeUnits(n int64) Nano { return Nano(min(n, math.MaxInt64/int64(USD))) * USD }

// LimitError is the refusal of a call by a limit whose figures the caller may
// see.
type LimitError struct {
	Err   *Error
	State LimitState
}

// Error returns the message, without the figures.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns the error that the figures are about.
func (e *LimitError) Unwrap() error { return e.Err }

// RetryError is the refusal of a call that may pass later.
type RetryError struct {
	Err   error         // a *LimitError or *Error
	After time.Duration // more than 0; when the call would pass if nobody else calls
}

// Error returns the message, without the figures.
func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal itself.
func (e *RetryError) Unwrap() error { return e.Err }

// Sees reports whether the caller may see the figures of a budget. A key that
// is bound to a sub-account sees those of its sub-account and its own; what
// binds it from above is its reseller's business. A browser token sees its own.
func (c *Caller) Sees(b *Budget) bool {
	if c.Token != nil {
		return b.Level == LevelToken
	}
	return b.Level != LevelGateway && (c.SubAccountID == "" || b.Level != LevelClient && b.Generation == 0)
}

// Refuse is the refusal by one of the caller's budgets of a call admitted at an
// instant, with the figures where the caller may see them. It is a *LimitError
// or the budget's plain Refusal; of a rate limit either is in a *RetryError.
func (c *Caller) Refuse(b *Budget, used, needed Nano, at time.Time) error {
	var err error = b.Refusal()
	if c.Sees(b) {
		err = &LimitError{Err: b.Refusal(), State: c.StateOf(b, used, needed, at)}
	}
	if b.Unit == "" {
		return err
	}
	return &RetryError{Err: err, After: b.Period.End(at).Sub(at)}
}

// StateOf is a budget that the caller Sees: as billed where the key is bound to
// a sub-account.
func (c *Caller) StateOf(b *Budget, used, needed Nano, at time.Time) LimitState {
	l := LimitState{
		Kind: LimitBudget, Scope: b.Level, ID: b.ID, Match: b.Match.String(), Unit: UnitUSD, Period: b.Period,
		Limit: b.InUnits(b.Limit), Used: b.InUnits(max(used, 0)), Needed: b.InUnits(needed),
	}
	if b.Level == LevelClient {
		l.ID = ""
	} else if b.InFile() {
		l.ID = c.targetID(b.Level)
	}
	if l.Window = b.Period.Window(); l.Window != "" {
		l.Period = ""
	}
	if b.IsWallet() {
		l.Kind, l.Period, l.Limit = LimitWallet, "", max(l.Limit, 0)
		l.Remaining = max(l.Limit-l.Used, 0)
		return l // in billed dollars already
	}
	if b.Unit != "" {
		l.Kind, l.Unit, l.Period, l.Window = LimitRate, b.Unit, "", string(b.Period)
	}
	if b.IsBalance() {
		l.Kind, l.Period = LimitBalance, ""
	} else if b.Level == LevelToken {
		l.Kind, l.Period, l.Window = LimitToken, "", ""
	} else if end := b.Period.End(at); !end.IsZero() {
		l.ResetsAt = &end
	}
	if c.SubAccountID != "" && l.Unit == UnitUSD {
		l.Limit = l.Limit.BilledInMicros(c.Markup)
		l.Needed = l.Needed.BilledInMicros(c.Markup)
		if l.Used > 0 {
			l.Used = l.Used.BilledInMicros(c.Markup)
		}
	}
	l.Remaining = max(l.Limit-l.Used, 0)
	return l
}
