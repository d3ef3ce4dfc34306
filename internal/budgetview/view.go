// Package budgetview shows budgets: to organizations and their customers, and to
// the operator.
package budgetview

import (
	"time"

	"modelgate"
)

// View is a budget in a list. The members from Window on are left out where they
// are as they are for a plain budget.
type View struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     string           `json:"id,omitzero"`
	Period modelgate.Period `json:"period,omitempty"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	Spend  modelgate.Nano   `json:"spend_usd"`
	// Owner is "" for the viewer's own budgets.
	Owner  modelgate.Owner `json:"owner,omitempty"`
	Window string          `json:"window,omitempty"`
	Match  string          `json:"match,omitempty"`
	Mode   modelgate.Mode  `json:"mode,omitempty"`
	Alerts *[]int          `json:"alerts,omitzero"`
	// CountedSince and Values are those of a budget that counts each value of
	// an attribution key by itself. Spend is the sum then, also of values that
	// Values has no room for.
	CountedSince *time.Time              `json:"counted_since,omitempty"`
	Values       *[]modelgate.ValueSpend `json:"values,omitempty"`
}

// Of is a budget of which so much is spent, without its owner. The values become
// the view's.
func Of(b *modelgate.Budget, spent modelgate.Nano, values []modelgate.ValueSpend) View {
	v := View{Scope: b.Level, ID: b.ID, Period: b.Period, Limit: b.Limit, Spend: spent, Match: b.Match.String()}
	if b.Level == modelgate.LevelClient {
		v.ID = ""
	}
	if v.Window = b.Period.Window(); v.Window != "" {
		v.Period = ""
	}
	if b.Mode == modelgate.Soft {
		v.Mode = modelgate.Soft
	}
	if b.Alerts != nil {
		v.Alerts = &b.Alerts
	}
	if b.Match.Each() {
		if values == nil {
			values = []modelgate.ValueSpend{}
		}
		v.CountedSince, v.Values = &b.CountedSince, &values
	}
	return v
}

// Members are those of a request that say what a budget counts and does; nil is
// left out.
type Members struct {
	Period        string
	Window, Match *string
	Mode          *modelgate.Mode
	Alerts        *[]int
}

// Read adds to a budget what members say. Errors are bad_request.
func Read(b modelgate.Budget, m Members) (_ modelgate.Budget, err error) {
	if b.Period, err = modelgate.ParsePeriod(m.Period, m.Window); err != nil {
		return b, err
	}
	if m.Match != nil {
		if b.Match, err = modelgate.ParseMatch(*m.Match); err != nil {
			return b, err
		}
	}
	if m.Mode != nil {
		if b.Mode = *m.Mode; b.Mode == "" {
			b.Mode = "none" // which Validate refuses
		}
	}
	if m.Alerts != nil {
		b.Alerts = append([]int{}, *m.Alerts...) // not nil: none is not the default
	}
	b = b.Usual()
	return b, b.Validate()
}

// Billed turns amounts into those that a customer is billed.
func (v *View) Billed(m modelgate.Markup) {
	v.Limit, v.Spend = v.Limit.BilledInMicros(m), v.Spend.Billed(m)
	if v.Values != nil {
		for i := range *v.Values {
			s := &(*v.Values)[i].Spend
			*s = s.Billed(m)
		}
	}
}

// Change is what evidence says of a change. It names attribution keys and no
// values, which may be people's.
type Change struct {
	Period modelgate.Period `json:"period"`
	Match  string           `json:"match,omitempty"`
	Limit  *modelgate.Nano  `json:"limit_usd,omitempty"`
	Mode   modelgate.Mode   `json:"mode,omitempty"`
	Alerts []int            `json:"alerts,omitzero"`
	Owner  modelgate.Owner  `json:"owner,omitempty"`
}

// Set is the change that sets a budget.
func Set(b *modelgate.Budget) Change {
	return Change{Period: b.Period, Match: b.Match.Public(), Limit: &b.Limit, Mode: b.Mode, Alerts: b.Alerts}
}

// Removed is the change that removes a budget; owner is "" for the actor's own.
func Removed(b *modelgate.Budget, owner modelgate.Owner) Change {
	return Change{Period: b.Period, Match: b.Match.Public(), Owner: owner}
}

// Row is a budget as the operator sees it.
type Row struct {
	ClientID modelgate.ClientID `json:"client_id"`
	Scope    modelgate.Level    `json:"scope"`
	ID       string             `json:"id"`
	Period   modelgate.Period   `json:"period"` // or the window: week or total
	Match    string             `json:"match,omitempty"`
	Mode     modelgate.Mode     `json:"mode,omitempty"` // soft, else left out
	Owner    modelgate.Owner    `json:"owner"`
	Limit    modelgate.Nano     `json:"limit_usd"`
	Spend    modelgate.Nano     `json:"spend_usd"`
	Held     modelgate.Nano     `json:"held_usd"`
}

// RowOf is a budget of a client of which so much is spent and held.
func RowOf(client modelgate.ClientID, b *modelgate.Budget, spent, held modelgate.Nano) Row {
	r := Row{ClientID: client, Scope: b.Level, ID: b.ID, Period: b.Period, Match: b.Match.String(), Owner: b.Owner, Limit: b.Limit, Spend: spent, Held: held}
	if window := b.Period.Window(); window != "" {
		r.Period = modelgate.Period(window)
	}
	if b.Mode == modelgate.Soft {
		r.Mode = b.Mode
	}
	return r
}
