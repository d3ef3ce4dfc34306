package modelgate

import (
	"maps"
	"strings"
	"sync/atomic"
)

// manyRules is from how many rules on a decision is remembered, maxDecisions
// how many of a caller are: with fewer rules, judging again is as fast.
const (
	manyRules    = 16
	maxDecisions = 64
)

// decisions are what a caller's rules said about targets. A caller never
// changes, and a reload makes new models, so what is remembered stays true;
// of models that are no more it is dropped with the rest when there are too
// many. Safe for concurrent use.
type decisions struct {
	known atomic.Pointer[map[decided]bool] // never changed, only replaced
}

// decided is a target as the key of a map. The models that serve a pair are
// one or those that the catalog of a moment lists for it, so that the first
// of them and their number stand for all.
type decided struct {
	provider, model string
	first           *Model
	count           int
}

func (t *Target) decided() decided {
	d := decided{provider: t.Provider, model: t.Model, count: len(t.Catalog)}
	if d.count > 0 {
		d.first = t.Catalog[0]
	}
	return d
}

func (ds *decisions) get(t *Target) (permitted, known bool) {
	m := ds.known.Load()
	if m == nil {
		return false, false
	}
	permitted, known = (*m)[t.decided()]
	return permitted, known
}

// add remembers a decision. One that another goroutine adds at the same time
// may be lost and is then made again.
func (ds *decisions) add(t *Target, permitted bool) {
	d := t.decided()
	d.provider, d.model = strings.Clone(d.provider), strings.Clone(d.model) // they may be parts of a body
	old, now := ds.known.Load(), map[decided]bool{}
	if old != nil && len(*old) < maxDecisions {
		now = maps.Clone(*old)
	}
	now[d] = permitted
	ds.known.CompareAndSwap(old, &now)
}

// Remember makes Permit keep what it decides, where there are many rules. It
// is called before the caller is shared; copies share what is kept and must
// not change their rules.
func (c *Caller) Remember() {
	n := len(c.Entitlements) + len(c.Denies)
	for _, b := range c.Backing {
		n += len(b)
	}
	if n >= manyRules {
		c.decisions = new(decisions)
	}
}
