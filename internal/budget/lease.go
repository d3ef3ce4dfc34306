package budget

import (
	"time"

	"modelgate"
)

const (
	// ahead is for how long a lease is meant to last, and enough what it may
	// fall to before it is filled up: so long at least calls go on while the
	// database does not answer.
	ahead, enough = 90 * time.Second, 60 * time.Second
	// unknown is how many calls a second a lease is made for while no rate was
	// measured.
	unknown = 1
	// share is the part of what is left of a budget that one lease may take.
	// What is left shrinks with every lease, so that there is something for any
	// number of instances without counting them.
	share = 4
	// near is how many calls must still be left for a lease to hold more than
	// the calls that wait for it.
	near = 20
	// refusalAge is how long before a call the store was asked at the earliest for
	// its refusal to stand for that call too.
	refusalAge = 250 * time.Millisecond
	// shortest is the least time over which a rate is measured.
	shortest = 100 * time.Millisecond
)

// openExchange is the last change that the store was asked for, while it is not
// known what became of it.
type openExchange uint8

const (
	noExchange  openExchange = iota
	askLost                  // no answer to an ask: it is sent again under its number
	returnLost               // no answer to a return of owed
	closingLost              // no answer to a closing
)

// counterLease is what this instance holds of one counter. Its methods do no I/O, so
// that every order of events can be tried; the account's lock guards it.
//
// At any time, the lease in the database is free + what open calls have
// reserved + the cost of ended calls that are not booked, plus what a lost
// answer may have granted.
type counterLease struct {
	counter  modelgate.Counter
	unit     modelgate.LimitUnit // of a rate limit; "" for money
	revision int64               // of the limit that free was granted under
	gone     bool                // there is no such budget, as of revision

	free modelgate.Nano // below 0 while a call waits for money, or where calls cost more than was reserved
	open int            // calls with a reservation
	uses int64          // calls ever admitted
	used time.Time      // last admission or settlement

	seq   int64
	state openExchange
	owed  modelgate.Nano // of returnLost

	waiting   modelgate.Nano // of calls that wait for the store
	left      modelgate.Nano // of the budget, as of the last answer
	known     bool           // left means something
	last      modelgate.Nano // amount reserved
	taken     modelgate.Nano // reserved since asked
	asked     time.Time
	rate      float64   // nano-USD a second
	refused   time.Time // when the store was asked that refused; zero: it did not
	refusedAt modelgate.Nano
}

// newLease is an empty lease. Its numbers go on from those of any lease before it.
func newLease(k modelgate.Counter, b *modelgate.Budget, now time.Time) *counterLease {
	return &counterLease{counter: k, unit: b.Unit, revision: b.Revision, used: now, seq: now.UnixMicro()}
}

// take reserves an amount, which may leave free below 0.
func (c *counterLease) take(amount modelgate.Nano) {
	c.free -= amount
	c.open++
	c.last = amount
	c.taken += amount
}

// admit notes that a reservation stands. One that is taken back is no use of
// the lease, or calls refused elsewhere would keep money here.
func (c *counterLease) admit(now time.Time) {
	c.uses++
	c.used = now
}

// put ends a reservation: what the call did not cost is free again.
func (c *counterLease) put(amount, cost modelgate.Nano, now time.Time) {
	c.free += amount - cost
	c.open--
	c.used = now
	if c.free > 0 {
		c.refused = time.Time{}
	}
}

// undo takes back a reservation of which nothing came.
func (c *counterLease) undo(amount modelgate.Nano) {
	c.free += amount
	c.open--
	c.taken -= amount
}

// stale reports whether a newer limit is known than free was granted under.
func (c *counterLease) stale(b *modelgate.Budget) bool { return b.Revision > c.revision }

// crossed reports whether more is settled and held of the budget than its
// limit, as of the last answer. What is free then was granted for the call that
// crossed the limit, and admits no other: it goes back, and the store decides.
func (c *counterLease) crossed() bool { return c.known && c.left < 0 }

// renew notes a new limit. What was free under the old one must be given
// back: it may be more than the new one leaves.
func (c *counterLease) renew(b *modelgate.Budget) {
	c.revision, c.gone, c.known, c.refused = b.Revision, false, false, time.Time{}
}

// refuses reports whether a call that began at an instant is refused without
// asking the store. In strict mode a smaller one might still fit.
func (c *counterLease) refuses(amount modelgate.Nano, m Mode, began time.Time) bool {
	if c.refused.IsZero() || began.Sub(c.refused) >= refusalAge {
		return false
	}
	return m == Estimate || amount >= c.refusedAt
}

// ask is what to ask the store for while free is below 0; amount is that of
// the call at hand.
func (c *counterLease) ask(amount modelgate.Nano, m Mode, now time.Time) modelgate.Ask {
	if c.state != askLost {
		c.seq++
	}
	least := -c.free
	room := least
	if m == Estimate { // what ended calls cost beyond their reservations must fit
		room = max(least-amount, 0) + 1
	}
	most, plenty := c.most(least, amount, now)
	return modelgate.Ask{Counter: c.counter, Least: least, Most: most, Plenty: plenty, Room: room, Seq: c.seq}
}

// most is what the next lease may hold: enough for ahead at the rate of late,
// and no more than a share of what is left; near the limit just enough for
// the calls that wait. While neither is known it is what the rate unknown
// needs, of which the store must have plenty.
func (c *counterLease) most(least, amount modelgate.Nano, now time.Time) (most, plenty modelgate.Nano) {
	c.measure(now)
	exact := max(least, min(least.Add(c.waiting), modelgate.MaxBudget))
	const calls = unknown * modelgate.Nano(ahead/time.Second)
	switch {
	case !c.known && amount <= modelgate.MaxBudget/(share*calls) && exact < calls*amount:
		return calls * amount, share * calls * amount
	case !c.known, c.left/near < amount:
		return exact, 0
	}
	most = c.left / share
	if wanted := c.rate * ahead.Seconds(); wanted < float64(most) {
		most = modelgate.Nano(wanted)
	}
	return max(most, exact), 0
}

// pace is how much is reserved a second: since asked, and before that.
func (c *counterLease) pace(now time.Time) float64 {
	if c.asked.IsZero() {
		return c.rate
	}
	rate := float64(c.taken) / max(now.Sub(c.asked), shortest).Seconds()
	if c.rate != 0 {
		rate = (rate + c.rate) / 2
	}
	return rate
}

// measure begins to measure the rate anew.
func (c *counterLease) measure(now time.Time) {
	c.rate = c.pace(now)
	c.asked, c.taken = now, 0
}

// wanted is what the lease should hold beside what calls have reserved; 0 where
// it is not to be filled up: near the limit, and while something about it is to
// be settled first.
func (c *counterLease) wanted(now time.Time) modelgate.Nano {
	if !c.known || c.gone || c.waiting > 0 || c.crossed() || c.left/near < c.last || c.state != noExchange && c.state != askLost {
		return 0
	}
	return modelgate.Nano(min(c.pace(now)*ahead.Seconds(), float64(c.left.Add(max(c.free, 0))/share)))
}

// low reports whether the lease is to be filled up.
func (c *counterLease) low(now time.Time) bool {
	wanted := c.wanted(now)
	return wanted > 0 && float64(c.free) < float64(wanted)*enough.Seconds()/ahead.Seconds()
}

// fill is what fills up a lease that is low, where the budget has as much.
func (c *counterLease) fill(now time.Time) modelgate.Ask {
	if c.state != askLost {
		c.seq++
	}
	most := c.wanted(now) - c.free
	c.measure(now)
	return modelgate.Ask{Counter: c.counter, Least: 1, Most: most, Room: 1, Seq: c.seq}
}

// granted takes an answer in.
func (c *counterLease) granted(h modelgate.Held) {
	c.free += h.Granted
	c.state = noExchange
	c.left, c.known = h.Left, true
	c.gone = h.Gone
}

// denied notes the refusal of an amount that the store was asked for. The time of
// the question counts: by the time of the answer, which can be seconds later,
// others may have returned what they held.
func (c *counterLease) denied(h modelgate.Held, amount modelgate.Nano, asked time.Time) {
	c.ungranted(h)
	if h.Granted == 0 {
		c.refused, c.refusedAt = asked, amount
	}
}

// ungranted notes that this budget refused, or another did. Of an ask that was
// sent again the latter does not tell whether it had been granted the first
// time.
func (c *counterLease) ungranted(h modelgate.Held) {
	c.left, c.known = h.Left, true
	if h.Granted == 0 || c.state != askLost {
		c.state = noExchange
	}
}

// giveBack takes all that is free out, to be returned. What is left of the
// budget then is not known.
func (c *counterLease) giveBack() modelgate.Return {
	c.seq++
	c.known = false
	c.owed, c.free = c.free, 0
	return modelgate.Return{Counter: c.counter, Amount: c.owed, Seq: c.seq}
}

// close takes everything out. Nothing may be under way.
func (c *counterLease) close() modelgate.Return {
	c.free = 0
	return modelgate.Return{Counter: c.counter, Close: true}
}

// again is the return whose answer was lost.
func (c *counterLease) again() (modelgate.Return, bool) {
	switch c.state {
	case returnLost:
		return modelgate.Return{Counter: c.counter, Amount: c.owed, Seq: c.seq}, true
	case closingLost:
		return modelgate.Return{Counter: c.counter, Close: true}, true
	}
	return modelgate.Return{}, false
}

// lost notes that there was no answer to a return.
func (c *counterLease) lost(r modelgate.Return) {
	c.state = returnLost
	if r.Close {
		c.state = closingLost
	}
}
