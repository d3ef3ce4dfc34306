package ratelimit

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"modelgate"
)

// MaxRules is how many rate limits may apply to one call.
const MaxRules = 16

// errTooManyRules answers a call to which more apply: no limit is skipped.
var errTooManyRules = modelgate.Errorf(modelgate.Forbidden, "more than %d limits apply to this call", MaxRules)

// Rates holds calls to the rate limits that were set for their callers and in
// the configuration file. Safe for concurrent use.
type Rates struct {
	// Refused counts a call that a limit refused; nil counts none.
	Refused func(*modelgate.RateLimit)
	// Took notes how long a draw has taken; nil notes nothing.
	Took func(time.Duration)

	buckets bucketStore
	file    atomic.Pointer[[]*modelgate.RateLimit]
}

// bucketStore keeps the buckets and places: localBuckets or sharedBuckets.
type bucketStore interface {
	// draw takes from all of the buckets of one group or from none.
	draw(group string, draws []draw) verdict
	// levels only reads.
	levels(group string, draws []draw) verdict
	// add changes what is drawn from buckets.
	add(group string, changes []draw)
}

// NewRates keeps rates where the limiter keeps the limits of keys. The
// limiter is a *Local or a *Shared.
func NewRates(l Limiter) *Rates {
	r := new(Rates)
	r.Configure(nil)
	switch l := l.(type) {
	case *Shared:
		r.buckets = l.buckets
	case *Local:
		r.buckets = newLocalBuckets(l.now)
	}
	return r
}

// Configure sets the limits of the configuration file, which must be valid.
// Each target of a limit has a bucket of its own.
func (r *Rates) Configure(rules []*modelgate.RateLimit) { r.file.Store(&rules) }

// bucketName names a bucket. Limits that are set again have another number, and
// so a full bucket.
type bucketName struct {
	rule  int64
	id    string // of the target, for limits of the configuration file
	value string // of the tag, for limits with a bucket for each value
}

// draw is what a call takes of one bucket or number of places.
type draw struct {
	rule  *modelgate.RateLimit
	name  bucketName
	cost  int64
	lease *lease // of a place in Redis
}

// rate is the amount that comes back in a microsecond; 0 for concurrency.
func (d *draw) rate() float64 {
	if d.rule.Window == "" {
		return 0
	}
	return float64(d.rule.Limit) / float64(d.rule.Span().Microseconds())
}

// verdict is the answer to a draw.
type verdict struct {
	refused int           // the index of the limit that makes the call wait longest; below 0 for none
	after   time.Duration // until that has enough
	levels  []int64       // of each bucket afterwards
	by      bucketStore   // that has judged, and takes changes
}

// Taken is what a call has drawn. The zero value is nothing. It is used by one
// goroutine at a time.
type Taken struct {
	buckets bucketStore // nil: nothing was drawn
	draws   []draw
	group   string
	settled bool
	above   *Taken // of the gateway, where limits for all organizations apply
	// Shown are the limits with a window that bound the call and that its
	// caller may see.
	Shown []Shown
}

// Shown is a limit as headers show it.
type Shown struct {
	Rule  *modelgate.RateLimit
	State modelgate.LimitState
	Full  time.Duration // until nothing is drawn
}

// Enter draws from the limits that need to know nothing of a call but its
// caller. Errors: rate_limited, a *modelgate.RetryError; forbidden where too
// many limits apply.
func (r *Rates) Enter(c *modelgate.Caller) (Taken, error) {
	file := *r.file.Load()
	if len(file) == 0 && len(c.RateLimits) == 0 {
		return Taken{}, nil
	}
	s := selection{caller: c, entry: true}
	return r.take(&s, file, &modelgate.Amounts{Requests: 1})
}

// Uses reports whether a limit in this unit may apply to a call of the caller's.
func (r *Rates) Uses(c *modelgate.Caller, t *modelgate.Traits, u modelgate.LimitUnit) bool {
	counts := func(l *modelgate.RateLimit) bool {
		if l.Unit != u {
			return false
		}
		_, counts := l.Match.Counts(t)
		return counts
	}
	return slices.ContainsFunc(c.RateLimits, counts) || slices.ContainsFunc(*r.file.Load(), counts)
}

// Limit draws from the limits that Enter leaves, for a call that will probably
// use so much. Errors are those of Enter.
func (r *Rates) Limit(c *modelgate.Caller, t *modelgate.Traits, estimate *modelgate.Amounts) (Taken, error) {
	file := *r.file.Load()
	s := selection{caller: c, traits: t}
	return r.take(&s, file, estimate)
}

// Any reports whether any limit may apply to the caller's calls.
func (r *Rates) Any(c *modelgate.Caller) bool {
	return len(c.RateLimits) > 0 || len(*r.file.Load()) > 0
}

// take draws from what is selected: first of the gateway, then of the
// organization, each all or none.
func (r *Rates) take(s *selection, file []*modelgate.RateLimit, amounts *modelgate.Amounts) (Taken, error) {
	s.collect(file)
	if s.others+len(s.gateway)+len(s.own) > MaxRules {
		return Taken{}, errTooManyRules
	}
	above, err := r.drawAll(s, "", s.gateway, amounts)
	if err != nil {
		return above, err
	}
	t, err := r.drawAll(s, string(s.caller.ClientID), s.own, amounts)
	if err != nil {
		above.End()
		return t, err
	}
	if above.buckets != nil {
		t.Shown = append(t.Shown, above.Shown...)
		t.above = &above
	}
	return t, nil
}

// drawAll draws for one group: "" for the gateway, else an organization.
func (r *Rates) drawAll(s *selection, group string, draws []draw, amounts *modelgate.Amounts) (Taken, error) {
	if len(draws) == 0 {
		return Taken{}, nil
	}
	for i := range draws {
		draws[i].cost = min(max(amounts.Of(draws[i].rule.Unit), 0), int64(modelgate.MaxBudget))
	}
	began := time.Now()
	v := r.buckets.draw(group, draws)
	if r.Took != nil {
		r.Took(time.Since(began))
	}
	shown := show(s.caller, draws, v.levels)
	if v.refused < 0 {
		return Taken{buckets: v.by, draws: draws, group: group, Shown: shown}, nil
	}
	d := &draws[v.refused]
	if r.Refused != nil {
		r.Refused(d.rule)
	}
	var err error = modelgate.ErrRateLimited
	if s.caller.SeesRate(d.rule) {
		state := s.caller.RateState(d.rule, v.levels[v.refused], max(d.cost, 1))
		err = &modelgate.LimitError{Err: modelgate.ErrRateLimited, State: state}
	}
	return Taken{Shown: shown}, &modelgate.RetryError{Err: err, After: v.after}
}

// show lists what headers may say.
func show(c *modelgate.Caller, draws []draw, levels []int64) []Shown {
	list := make([]Shown, 0, len(draws))
	for i := range draws {
		d := &draws[i]
		if d.rule.Window == "" || !c.SeesRate(d.rule) {
			continue
		}
		full := time.Duration(min(float64(levels[i])/d.rate()*1e3, math.MaxInt64/2))
		list = append(list, Shown{d.rule, c.RateState(d.rule, levels[i], 0), full})
	}
	return list
}

// Settle notes what a call has used in the end. What it drew too much comes
// back, and what it drew too little is drawn now.
func (t *Taken) Settle(used *modelgate.Amounts) {
	if t.above != nil {
		t.above.Settle(used)
	}
	if t.buckets == nil || t.settled {
		return
	}
	t.settled = true
	var changes []draw
	for _, d := range t.draws {
		actual := min(max(used.Of(d.rule.Unit), 0), int64(modelgate.MaxBudget))
		if diff := actual - d.cost; d.rule.Window != "" && diff != 0 {
			d.cost = diff
			changes = append(changes, d)
		}
	}
	t.change(changes)
}

// Keep is Settle for what has cost what was drawn.
func (t *Taken) Keep() {
	t.settled = true
	if t.above != nil {
		t.above.Keep()
	}
}

// End gives the places back, and where the call was not settled all that it
// drew. It does nothing the second time.
func (t *Taken) End() {
	if t.above != nil {
		t.above.End()
	}
	if t.buckets == nil {
		return
	}
	var changes []draw
	for _, d := range t.draws {
		switch {
		case d.lease != nil:
			d.lease.end()
		case d.rule.Window == "":
			d.cost = -1
			changes = append(changes, d)
		case !t.settled && d.cost != 0:
			d.cost = -d.cost
			changes = append(changes, d)
		}
	}
	t.change(changes)
	t.buckets = nil
}

func (t *Taken) change(changes []draw) {
	if len(changes) > 0 {
		t.buckets.add(t.group, changes)
	}
}

// State lists the limits that would bind a call of the caller's, in the order in
// which they are judged, but for those that it may not see.
func (r *Rates) State(c *modelgate.Caller, t *modelgate.Traits) []Shown {
	file := *r.file.Load()
	if len(file) == 0 && len(c.RateLimits) == 0 {
		return nil
	}
	var list []Shown
	for _, entry := range []bool{true, false} {
		s := selection{caller: c, traits: t, entry: entry}
		s.collect(file)
		if len(s.own) == 0 {
			continue
		}
		v := r.buckets.levels(string(c.ClientID), s.own)
		for i := range s.own {
			if d := &s.own[i]; c.SeesRate(d.rule) {
				list = append(list, Shown{d.rule, c.RateState(d.rule, v.levels[i], 0), 0})
			}
		}
	}
	return list
}
