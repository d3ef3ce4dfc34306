// Package quota is how rate limits, and what is used of all limits, are written
// in requests and answers of the API.
package quota

import (
	"strings"
	"time"

	"modelgate"
)

// State is a limit as error.limit shows it, without what a call needs of it.
type State struct {
	Kind      modelgate.LimitKind `json:"kind"`
	Scope     modelgate.Level     `json:"scope"`
	ID        string              `json:"id,omitempty"`
	Match     string              `json:"match,omitempty"`
	Mode      modelgate.Mode      `json:"mode,omitempty"` // of a budget that refuses nothing: soft
	Unit      modelgate.LimitUnit `json:"unit"`
	Period    modelgate.Period    `json:"period,omitempty"`
	Window    string              `json:"window,omitempty"`
	Limit     modelgate.Nano      `json:"limit"`
	Used      modelgate.Nano      `json:"used"`
	Remaining modelgate.Nano      `json:"remaining"`
	ResetsAt  *time.Time          `json:"resets_at"`
	// Owner is "" for what the caller has set, and for limits of single keys.
	Owner modelgate.Owner `json:"owner,omitempty"`
}

// StateOf is a limit without an owner.
func StateOf(l modelgate.LimitState) State {
	return State{
		Kind: l.Kind, Scope: l.Scope, ID: l.ID, Match: l.Match, Unit: l.Unit, Period: l.Period, Window: l.Window,
		Limit: l.Limit, Used: l.Used, Remaining: l.Remaining, ResetsAt: l.ResetsAt,
	}
}

// View is a rate limit in a list.
type View struct {
	Scope  modelgate.Level     `json:"scope"`
	ID     string              `json:"id,omitempty"`
	Match  string              `json:"match,omitempty"`
	Unit   modelgate.LimitUnit `json:"unit"`
	Window string              `json:"window,omitempty"`
	Limit  modelgate.Nano      `json:"limit"`
	Burst  *modelgate.Nano     `json:"burst,omitempty"` // nil: as much as Limit
	// Owner is "" for the caller's own limits.
	Owner modelgate.Owner `json:"owner,omitempty"`
}

// ViewOf is a rate limit as a caller reads it, without an owner: money as billed
// to an end customer.
func ViewOf(c *modelgate.Caller, l *modelgate.RateLimit) View {
	shown := func(n int64) *modelgate.Nano {
		amount := l.InUnits(n)
		if l.Unit == modelgate.UnitUSD && c.SubAccountID != "" {
			amount = amount.BilledInMicros(c.Markup)
		}
		return &amount
	}
	v := View{Scope: l.Level, ID: l.ID, Match: l.Match.String(), Unit: l.Unit, Window: l.Window, Limit: *shown(l.Limit)}
	if l.Level == modelgate.LevelClient {
		v.ID = ""
	}
	if l.Burst != 0 {
		v.Burst = shown(l.Burst)
	}
	return v
}

// NewLimit is the body of PUT /gw/limits.
type NewLimit struct {
	Scope  modelgate.Level     `json:"scope"`
	ID     *string             `json:"id" null:"absent"`
	Match  *string             `json:"match" null:"absent"`
	Unit   modelgate.LimitUnit `json:"unit"`
	Window *string             `json:"window" null:"absent"`
	Limit  modelgate.Nano      `json:"limit"`
	Burst  *modelgate.Nano     `json:"burst" null:"absent"`
	_      struct{}            `ignore:"owner"`
}

// Rule is the rate limit without its target and owner. Errors are bad_request.
func (n *NewLimit) Rule() (modelgate.RateLimit, error) {
	var window, match string
	if n.Window != nil {
		window = *n.Window
	}
	if n.Match != nil {
		match = *n.Match
	}
	r, err := Rule(n.Scope, n.Unit, window, match, n.Match != nil)
	if err != nil {
		return r, err
	}
	if r.Limit, err = Amount(&r, "limit", n.Limit); err != nil {
		return r, err
	}
	if n.Burst != nil {
		if r.Burst, err = Amount(&r, "burst", *n.Burst); err != nil {
			return r, err
		}
		if r.Burst == 0 {
			r.Burst = -1 // 0 is not the same as left out
		}
	}
	return r, r.Validate()
}

// Rule is a rate limit by its name, without a target. Errors are bad_request.
func Rule(scope modelgate.Level, unit modelgate.LimitUnit, window, match string, matched bool) (modelgate.RateLimit, error) {
	r := modelgate.RateLimit{Level: scope, Unit: unit, Window: window}
	if matched {
		var err error
		if r.Match, err = modelgate.ParseMatch(match); err != nil {
			return r, err
		}
	}
	return r, r.ValidateName()
}

// Amount reads an amount of the limit's. Errors are bad_request.
func Amount(r *modelgate.RateLimit, name string, n modelgate.Nano) (int64, error) {
	amount, whole := r.FromUnits(n)
	if !whole {
		return 0, modelgate.Errorf(modelgate.BadRequest, "%s must be a whole number for unit %s", name, r.Unit)
	}
	return amount, nil
}

// Change is what an audit record says of a rate limit.
type Change struct {
	Match  string              `json:"match,omitempty"`
	Unit   modelgate.LimitUnit `json:"unit"`
	Window string              `json:"window,omitempty"`
	Limit  *modelgate.Nano     `json:"limit,omitempty"` // what was set; nil: it was removed
	Burst  *modelgate.Nano     `json:"burst,omitempty"`
	Owner  modelgate.Owner     `json:"owner,omitempty"` // where it is not the actor's own
}

// Removed is the record of a rate limit that was removed.
func Removed(r *modelgate.RateLimit) Change {
	return Change{Match: r.Match.String(), Unit: r.Unit, Window: r.Window}
}

// Set is the record of a rate limit that was set.
func Set(r *modelgate.RateLimit) Change {
	c := Removed(r)
	limit, burst := r.InUnits(r.Limit), r.InUnits(r.Size())
	c.Limit, c.Burst = &limit, &burst
	return c
}

// Target completes a rate limit with its target. A bound key sets those of its
// own keys alone. Errors: bad_request, forbidden, not_found.
func Target(c *modelgate.Caller, r *modelgate.RateLimit, id *string) error {
	switch {
	case c.SubAccountID != "" && r.Level != modelgate.LevelKey:
		return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account can set limits of scope key only")
	case r.Level == modelgate.LevelClient && id != nil:
		return modelgate.Errorf(modelgate.BadRequest, "id must be left out for scope client")
	case r.Level == modelgate.LevelClient:
		r.ID = string(c.ClientID)
		return nil
	case id == nil:
		return modelgate.Errorf(modelgate.BadRequest, "id is required for scope %s", r.Level)
	}
	parsed, ok := modelgate.ParseUUID(*id)
	if !ok {
		return modelgate.Errorf(modelgate.NotFound, "limit target not found")
	}
	r.ID = parsed.String()
	return nil
}

// Call is the call that GET /gw/quota is asked about: attribution is key=value
// pairs, separated by commas, or "". Errors are bad_request.
func Call(c *modelgate.Caller, slug, attribution string) (modelgate.Traits, error) {
	t := modelgate.Traits{Slug: slug, KeyID: c.KeyID, SubAccountID: c.SubAccountID}
	if attribution == "" {
		return t, nil
	}
	t.Attribution = make(map[string]string)
	for pair := range strings.SplitSeq(attribution, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || !modelgate.IsAttributionKey(key) {
			return t, modelgate.Errorf(modelgate.BadRequest, "attribution must be key=value pairs separated by commas")
		}
		t.Attribution[key] = value
	}
	return t, nil
}
