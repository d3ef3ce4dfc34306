package modelgate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// frozen is a price as text. What depends on the instant is decided already.
type frozen struct {
	Base        string             `json:"base,omitempty"`
	Images      []ImagePrice       `json:"images,omitempty"`
	Tiers       []frozenTier       `json:"tiers,omitempty"`
	Multipliers []frozenMultiplier `json:"multipliers,omitempty"`
}

type frozenTier struct {
	Above int64  `json:"above"`
	Rates string `json:"rates"`
}

type frozenMultiplier struct {
	Field      string `json:"field"`
	Value      string `json:"value"`
	Millionths int64  `json:"millionths"`
}

// MaxFrozen is how many bytes a frozen price has at most.
const MaxFrozen = 1024

// Freeze is the price of calls admitted at the instant, as text: a job is
// charged by it whatever the catalog says when the job ends. A price that
// takes more than MaxFrozen bytes is frozen without its tiers, which are for
// prompts and no job has one, and where that is not enough without its
// pictures and multipliers: see Freezes. A nil price is "".
func (p *Price) Freeze(at time.Time) string {
	text, _ := p.snapshot(at)
	return text
}

// Freezes reports whether a job is charged by all of the price that can matter
// to it.
func (p *Price) Freezes() bool {
	_, whole := p.snapshot(time.Time{})
	return whole
}

func (p *Price) snapshot(at time.Time) (text string, whole bool) {
	if p == nil {
		return "", true
	}
	f := frozen{Base: p.windowed(at, p.dated(at)).String(), Images: p.Images}
	for _, t := range p.Tiers {
		f.Tiers = append(f.Tiers, frozenTier{t.Above, p.windowed(at, t.Rates).String()})
	}
	for _, m := range p.Multipliers {
		f.Multipliers = append(f.Multipliers, frozenMultiplier(m))
	}
	for _, kept := range []frozen{f, {Base: f.Base, Images: f.Images, Multipliers: f.Multipliers}} {
		if text, err := json.Marshal(kept); err == nil && len(text) <= MaxFrozen {
			return string(text), true
		}
	}
	rest, _ := json.Marshal(frozen{Base: f.Base}) // one string: it has a JSON form
	return string(rest), false
}

// ThawPrice reads what Freeze wrote; "" is nil.
func ThawPrice(text string) (*Price, error) {
	if text == "" {
		return nil, nil
	}
	var f frozen
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("frozen price: %w", err)
	}
	p := &Price{Images: f.Images}
	var err error
	if p.Base, err = ParseRates(f.Base); err != nil {
		return nil, err
	}
	for _, t := range f.Tiers {
		rates, err := ParseRates(t.Rates)
		if err != nil {
			return nil, err
		}
		p.Tiers = append(p.Tiers, TierPrice{t.Above, rates})
	}
	for _, m := range f.Multipliers {
		p.Multipliers = append(p.Multipliers, Multiplier(m))
	}
	return p, nil
}

// ParseRates reads what Rates.String wrote.
func ParseRates(text string) (Rates, error) {
	var r Rates
	for word := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(word, "=")
		unit, ok := UnitByName(name)
		usd, err := ParseUSD(value)
		if !ok || err != nil {
			return Rates{}, fmt.Errorf("rates: %q is not unit=price", word)
		}
		if err := r.Set(unit, usd); err != nil {
			return Rates{}, err
		}
	}
	return r, nil
}
