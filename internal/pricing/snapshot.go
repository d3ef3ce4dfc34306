package pricing

import (
	"encoding/json"
	"fmt"
	"time"

	"modelgate"
)

// MaxSnapshot is how many bytes a snapshot has at most.
const MaxSnapshot = 4096

// Snapshot is the price of calls admitted at the instant, as text: a job is
// charged by it whatever the catalog says when the job ends. What depends on
// the instant is decided already. A price that takes more than MaxSnapshot bytes
// is kept without its tiers, which are for prompts and no job has one, and where
// that is not enough without all but its base; whole is false then. A nil price
// is "".
func Snapshot(p *modelgate.Price, at time.Time) (text string, whole bool) {
	if p == nil {
		return "", true
	}
	s := *dated(p, at)
	s.Base = windowed(&s, at, s.Base)
	tiers := s.Tiers
	s.Tiers = nil
	for _, t := range tiers {
		s.Tiers = append(s.Tiers, modelgate.TierPrice{Above: t.Above, Rates: only(windowed(&s, at, t.Rates), &t.Rates)})
	}
	short := s
	short.Tiers = nil
	for _, kept := range []modelgate.Price{s, short} {
		if text, err := json.Marshal(&kept); err == nil && len(text) <= MaxSnapshot {
			return string(text), true
		}
	}
	rest, _ := json.Marshal(&modelgate.Price{Base: s.Base, Factor: s.Factor}) // it has a JSON form
	return string(rest), false
}

// only is rates without the units that others do not price.
func only(rates modelgate.Rates, others *modelgate.Rates) modelgate.Rates {
	for u := range modelgate.UnitCount {
		if !others.Has(u) {
			rates.Unset(u)
		}
	}
	return rates
}

// FromSnapshot reads what Snapshot wrote; "" is nil.
func FromSnapshot(text string) (*modelgate.Price, error) {
	if text == "" {
		return nil, nil
	}
	p := new(modelgate.Price)
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("price snapshot: %w", err)
	}
	return p, nil
}
