package pricefile

import (
	"slices"
	"time"

	"modelgate"
)

// The findings of a check.
const (
	Differs   = "differs"  // the lists agree on another price
	Disputed  = "disputed" // the lists do not agree
	Single    = "single"   // only one list states it
	Missing   = "missing"  // the lists state a price that the catalog lacks
	Extra     = "extra"    // no list states it
	OtherTier = "tier"     // the thresholds differ
	Stale     = "stale"    // it was checked more than 90 days ago
)

// staleAfter is how long a price is taken for checked.
const staleAfter = 90 * 24 * time.Hour

// Finding is a price of the catalog that the lists do not simply confirm.
type Finding struct {
	Slug        string      `json:"slug"`
	Provider    string      `json:"provider"`
	Unit        string      `json:"unit"` // "" for the price as a whole
	Above       int64       `json:"above"`
	ServiceTier string      `json:"service_tier,omitempty"`
	Ours        string      `json:"ours"` // "" for none
	Lists       []Statement `json:"lists"`
	Finding     string      `json:"finding"`
}

// Fails reports whether the finding says that the catalog may be wrong.
func (f *Finding) Fails() bool {
	return slices.Contains([]string{Differs, Disputed, Missing, OtherTier}, f.Finding)
}

// Check compares a price of the catalog with what the lists say of its model.
func (m *Model) Check(p *modelgate.Price, now time.Time) (found []Finding) {
	ours := Places(p)
	stated := m.Stated(ours)
	note := func(at Place, finding string) {
		lists := stated[at]
		if lists == nil {
			lists = []Statement{}
		}
		found = append(found, Finding{m.Slug, m.Provider, at.Unit, at.Above, at.ServiceTier, ours[at], lists, finding})
	}
	for _, at := range sorted(stated) {
		says := stated[at]
		switch mine, has := effective(ours, at); {
		case contradicted(says):
			note(at, Disputed)
		case mine == says[0].USD:
			if len(says) == 1 && len(m.Entries) > 1 && !m.seller && has {
				note(at, Single)
			}
		case at.Above > 0 && !knows(ours, at):
			note(at, OtherTier)
		case has:
			note(at, Differs)
		default:
			note(at, Missing)
		}
	}
	for _, at := range sorted(ours) {
		unit, _ := modelgate.UnitByName(at.Unit)
		switch {
		case stated[at] != nil || !unit.Scaled():
		case at.Above > 0 && at.ServiceTier == "" && !knows(stated, at):
			note(at, OtherTier)
		default:
			note(at, Extra)
		}
	}
	if checked := p.Origin.Checked; !checked.IsZero() && now.Sub(checked) > staleAfter {
		note(Place{}, Stale)
	}
	return found
}

// knows reports whether a price has anything at a threshold and service tier.
func knows[V any](all map[Place]V, at Place) bool {
	for p := range all {
		if p.ServiceTier == at.ServiceTier && p.Above == at.Above {
			return true
		}
	}
	return false
}

// effective is what a place costs: without a price of its own what its fallback
// does. has says that it has one of its own.
func effective(all map[Place]string, at Place) (usd string, has bool) {
	if usd, has = all[at]; has {
		return usd, true
	}
	unit, _ := modelgate.UnitByName(at.Unit)
	for {
		for _, place := range []Place{{at.ServiceTier, at.Above, unit.String()}, {"", 0, unit.String()}} {
			if usd, there := all[place]; there {
				return usd, false
			}
		}
		next, ok := unit.Fallback()
		if !ok {
			return "", false
		}
		unit = next
	}
}
