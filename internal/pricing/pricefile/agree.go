package pricefile

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"modelgate"
)

// Model is a model of a provider and what the lists say of it.
type Model struct {
	Slug     string
	Provider string // in the configuration
	Entries  []Entry
	seller   bool // the list is the provider's own
}

// Match finds the models of the providers in the lists, by slug. Of the entries of
// one list the first is taken. What cannot stand in a catalog is left out.
func Match(entries []Entry, providers []Provider) []Model {
	found := make(map[string]*Model)
	for _, p := range providers {
		for _, e := range entries {
			slug := p.slug(e.Model)
			if !slices.Contains(p.Sources, e.Source) || p.List != "" && p.List != e.List || !slugged.MatchString(slug) || !plain(e.Model) {
				continue
			}
			m := found[slug]
			if m == nil {
				m = &Model{Slug: slug, Provider: p.Name}
				found[slug] = m
			}
			if m.Provider == p.Name && !slices.ContainsFunc(m.Entries, func(x Entry) bool { return x.List == e.List }) {
				m.Entries = append(m.Entries, e)
				m.seller = m.seller || e.List == "OpenRouter"
			}
		}
	}
	out := make([]Model, 0, len(found))
	for _, slug := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[slug])
	}
	return out
}

// Place is where in a price a unit has one.
type Place struct {
	ServiceTier string // "" where none is named
	Above       int64  // tokens of the prompt; 0 for any
	Unit        string
}

// String spells the place in words.
func (p Place) String() string {
	text := p.Unit
	if p.Above > 0 {
		text += fmt.Sprintf(" above %d", p.Above)
	}
	if p.ServiceTier != "" {
		text += " at " + p.ServiceTier
	}
	return text
}

// places are the prices of an entry by their places.
func (e *Entry) places() map[Place]string {
	all := make(map[Place]string)
	put := func(tier string, above int64, prices []Price) {
		for _, p := range prices {
			all[Place{tier, above, p.Unit}] = p.USD
		}
	}
	put("", 0, e.Prices)
	for _, t := range e.Tiers {
		put("", t.Above, t.Prices)
	}
	for _, v := range e.Variants {
		put(v.ServiceTier, v.Above, v.Prices)
	}
	return all
}

// Places are the prices of the catalog by their places; none for nil. Tables,
// windows, multipliers and other variants are not for comparison.
func Places(p *modelgate.Price) map[Place]string {
	all := make(map[Place]string)
	if p == nil {
		return all
	}
	put := func(tier string, above int64, rates modelgate.Rates) {
		for _, r := range rates.List() {
			all[Place{tier, above, r.Unit.String()}] = r.USD.String()
		}
	}
	put("", 0, p.Base)
	for _, t := range p.Tiers {
		put("", t.Above, t.Rates)
	}
	for _, v := range p.Variants {
		if len(v.When) == 1 && v.When[0].Field == "service_tier" {
			put(v.When[0].Value, v.Above, v.Rates)
		}
	}
	return all
}

// Statement is what a list says of a place.
type Statement struct {
	List string `json:"name"`
	USD  string `json:"value"`
}

// Stated are what the lists say of a model, by place. Thresholds that are one
// token apart are one, the lower.
func (m *Model) Stated(also map[Place]string) map[Place][]Statement {
	thresholds := make(map[int64]bool)
	for p := range also {
		thresholds[p.Above] = true
	}
	for i := range m.Entries {
		for p := range m.Entries[i].places() {
			thresholds[p.Above] = true
		}
	}
	all := make(map[Place][]Statement)
	for i := range m.Entries {
		for p, usd := range m.Entries[i].places() {
			if p.Above > 1 && thresholds[p.Above-1] {
				p.Above--
			}
			all[p] = append(all[p], Statement{m.Entries[i].List, usd})
		}
	}
	return all
}

// Change is what the lists would change of a model's price.
type Change struct {
	Slug     string `json:"slug"`
	Provider string `json:"provider"`
	// Doubts are why a person has to approve it; none where two lists agree.
	Doubts []string `json:"doubts"`
	// Drastic says that a price moves by more than twice, to 0 or vanishes: a person
	// has to name the model.
	Drastic bool `json:"drastic"`

	model  *Model
	prices map[Place]string
	lists  []string
}

// Compare is how the lists would change the price of a model that costs now; now is
// empty where the catalog does not have it. It is nil where nothing would change.
func (m *Model) Compare(now map[Place]string) *Change {
	c := &Change{Slug: m.Slug, Provider: m.Provider, Doubts: []string{}, model: m, prices: make(map[Place]string)}
	stated, changed := m.Stated(now), false
	for _, p := range sorted(stated) {
		says := stated[p]
		old, had := now[p]
		c.prices[p] = says[0].USD
		if had && old == says[0].USD && !contradicted(says) {
			continue
		}
		changed = changed || old != says[0].USD
		switch {
		case contradicted(says):
			c.doubt("%s: %s", p, spell(says))
		case len(says) == 1 && !m.seller:
			c.doubt("%s: only %s states %s", p, says[0].List, says[0].USD)
		}
		if len(now) > 0 && had && drastic(old, says[0].USD) {
			c.Drastic = true
			c.doubt("%s moves from %s to %s", p, old, says[0].USD)
		}
	}
	for _, p := range sorted(now) {
		unit, _ := modelgate.UnitByName(p.Unit)
		if _, stays := stated[p]; !stays && unit.Scaled() {
			changed, c.Drastic = true, true
			c.doubt("%s, now %s, is in no list", p, now[p])
		}
	}
	if !changed {
		return nil
	}
	for i := range m.Entries {
		c.lists = append(c.lists, m.Entries[i].List)
	}
	return c
}

func (c *Change) doubt(format string, args ...any) {
	c.Doubts = append(c.Doubts, fmt.Sprintf(format, args...))
}

// Approved reports whether a change may be made: nobody doubts it, or a person
// approves of all, or of this one by name.
func (c *Change) Approved(approved []string) bool {
	return len(c.Doubts) == 0 || slices.Contains(approved, c.Slug) || slices.Contains(approved, "all") && !c.Drastic
}

// entry is the model with the prices of the change.
func (c *Change) entry() Entry {
	e := c.model.Entries[0]
	e.Prices, e.Tiers, e.Variants = nil, nil, nil
	for _, p := range sorted(c.prices) {
		price := Price{p.Unit, c.prices[p]}
		switch {
		case p.ServiceTier != "":
			i := slices.IndexFunc(e.Variants, func(v Variant) bool { return v.ServiceTier == p.ServiceTier && v.Above == p.Above })
			if i < 0 {
				i = len(e.Variants)
				e.Variants = append(e.Variants, Variant{ServiceTier: p.ServiceTier, Above: p.Above})
			}
			e.Variants[i].Prices = append(e.Variants[i].Prices, price)
		case p.Above > 0:
			i := slices.IndexFunc(e.Tiers, func(t Tier) bool { return t.Above == p.Above })
			if i < 0 {
				i = len(e.Tiers)
				e.Tiers = append(e.Tiers, Tier{Above: p.Above})
			}
			e.Tiers[i].Prices = append(e.Tiers[i].Prices, price)
		default:
			e.Prices = append(e.Prices, price)
		}
	}
	return e
}

// contradicted reports whether the lists state different prices.
func contradicted(says []Statement) bool {
	return slices.ContainsFunc(says, func(s Statement) bool { return s.USD != says[0].USD })
}

func spell(says []Statement) string {
	var parts []string
	for _, s := range says {
		parts = append(parts, s.List+" "+s.USD)
	}
	return strings.Join(parts, ", ")
}

// drastic reports whether a price moves by more than twice, or to or from 0.
func drastic(from, to string) bool {
	a, fine := new(big.Rat).SetString(from)
	b, good := new(big.Rat).SetString(to)
	if !fine || !good || a.Sign() == 0 || b.Sign() == 0 {
		return from != to
	}
	ratio := new(big.Rat).Quo(b, a)
	return ratio.Cmp(big.NewRat(2, 1)) > 0 || ratio.Cmp(big.NewRat(1, 2)) < 0
}

// sorted are the places of a map, in the order of the catalog.
func sorted[V any](m map[Place]V) []Place {
	return slices.SortedFunc(maps.Keys(m), func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.ServiceTier, b.ServiceTier), cmp.Compare(a.Above, b.Above), byUnit(Price{Unit: a.Unit}, Price{Unit: b.Unit}))
	})
}
