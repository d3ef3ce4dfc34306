package pricing

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"modelgate"
)

// snapshot is a price as text. What depends on the instant is decided already.
type snapshot struct {
	Base        string                 `json:"base,omitempty"`
	Images      []modelgate.ImagePrice `json:"images,omitempty"`
	Tiers       []tierSnapshot         `json:"tiers,omitempty"`
	Multipliers []multiplierSnapshot   `json:"multipliers,omitempty"`
}

type tierSnapshot struct {
	Above int64  `json:"above"`
	Rates string `json:"rates"`
}

type multiplierSnapshot struct {
	Field      string `json:"field"`
	Value      string `json:"value"`
	Millionths int64  `json:"millionths"`
}

// MaxSnapshot is how many bytes a snapshot has at most.
const MaxSnapshot = 1024

// Snapshot is the price of calls admitted at the instant, as text: a job is
// charged by it whatever the catalog says when the job ends. A price that
// takes more than MaxSnapshot bytes is kept without its tiers, which are for
// prompts and no job has one, and where that is not enough without its
// pictures and multipliers; whole is false then. A nil price is "".
func Snapshot(p *modelgate.Price, at time.Time) (text string, whole bool) {
	if p == nil {
		return "", true
	}
	s := snapshot{Base: windowed(p, at, dated(p, at)).String(), Images: p.Images}
	for _, t := range p.Tiers {
		s.Tiers = append(s.Tiers, tierSnapshot{t.Above, windowed(p, at, t.Rates).String()})
	}
	for _, m := range p.Multipliers {
		s.Multipliers = append(s.Multipliers, multiplierSnapshot(m))
	}
	for _, kept := range []snapshot{s, {Base: s.Base, Images: s.Images, Multipliers: s.Multipliers}} {
		if text, err := json.Marshal(kept); err == nil && len(text) <= MaxSnapshot {
			return string(text), true
		}
	}
	rest, _ := json.Marshal(snapshot{Base: s.Base}) // one string: it has a JSON form
	return string(rest), false
}

// FromSnapshot reads what Snapshot wrote; "" is nil.
func FromSnapshot(text string) (*modelgate.Price, error) {
	if text == "" {
		return nil, nil
	}
	var s snapshot
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("price snapshot: %w", err)
	}
	p := &modelgate.Price{Images: s.Images}
	var err error
	if p.Base, err = parseRates(s.Base); err != nil {
		return nil, err
	}
	for _, t := range s.Tiers {
		rates, err := parseRates(t.Rates)
		if err != nil {
			return nil, err
		}
		p.Tiers = append(p.Tiers, modelgate.TierPrice{Above: t.Above, Rates: rates})
	}
	for _, m := range s.Multipliers {
		p.Multipliers = append(p.Multipliers, modelgate.Multiplier(m))
	}
	return p, nil
}

// parseRates reads what Rates.String wrote.
func parseRates(text string) (r modelgate.Rates, err error) {
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		unit, ok := modelgate.UnitByName(name)
		usd, err := modelgate.ParseUSD(value)
		if !ok || err != nil {
			return r, fmt.Errorf("rates: %q is not unit=price", word)
		}
		if err := r.Set(unit, usd); err != nil {
			return r, err
		}
	}
	return r, nil
}
