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

// pending says what became of the last change that the store was asked for.
type pending uint8

const (
	settled     pending = iota
	askLost             // no answer to an ask: it is sent again under its number
	returnLost          // no answer to a return of owed
	closingLost         // no answer to a closing
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
	state pending
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
func (t *counterLease) take(amount modelgate.Nano) {
	t.free -= amount
	t.open++
	t.last = amount
	t.taken += amount
}

// admit notes that a reservation stands. One that is taken back is no use of
// the lease, or calls refused elsewhere would keep money here.
func (t *counterLease) admit(now time.Time) {
	t.uses++
	t.used = now
}

// put ends a reservation: what the call did not cost is free again.
func (t *counterLease) put(amount, cost modelgate.Nano, now time.Time) {
	t.free += amount - cost
	t.open--
	t.used = now
	if t.free > 0 {
		t.refused = time.Time{}
	}
}

// undo takes back a reservation of which nothing came.
func (t *counterLease) undo(amount modelgate.Nano) {
	t.free += amount
	t.open--
	t.taken -= amount
}

// stale reports whether a newer limit is known than free was granted under.
func (t *counterLease) stale(b *modelgate.Budget) bool { return b.Revision > t.revision }

// crossed reports whether more is settled and held of the budget than its
// limit, as of the last answer. What is free then was granted for the call that
// crossed the limit, and admits no other: it goes back, and the store decides.
func (t *counterLease) crossed() bool { return t.known && t.left < 0 }

// renew notes a new limit. What was free under the old one must be given
// back: it may be more than the new one leaves.
func (t *counterLease) renew(b *modelgate.Budget) {
	t.revision, t.gone, t.known, t.refused = b.Revision, false, false, time.Time{}
}

// refuses reports whether a call that began at an instant is refused without
// asking the store. In strict mode a smaller one might still fit.
func (t *counterLease) refuses(amount modelgate.Nano, m Mode, began time.Time) bool {
	if t.refused.IsZero() || began.Sub(t.refused) >= refusalAge {
		return false
	}
	return m == Estimate || amount >= t.refusedAt
}

// ask is what to ask the store for while free is below 0; amount is that of
// the call at hand.
func (t *counterLease) ask(amount modelgate.Nano, m Mode, now time.Time) modelgate.Ask {
	if t.state != askLost {
		t.seq++
	}
	least := -t.free
	room := least
	if m == Estimate { // what ended calls cost beyond their reservations must fit
		room = max(least-amount, 0) + 1
	}
	most, plenty := t.most(least, amount, now)
	return modelgate.Ask{Counter: t.counter, Least: least, Most: most, Plenty: plenty, Room: room, Seq: t.seq}
}

// most is what the next lease may hold: enough for ahead at the rate of late,
// and no more than a share of what is left; near the limit just enough for
// the calls that wait. While neither is known it is what the rate unknown
// needs, of which the store must have plenty.
func (t *counterLease) most(least, amount modelgate.Nano, now time.Time) (most, plenty modelgate.Nano) {
	t.measure(now)
	exact := max(least, min(least.Add(t.waiting), modelgate.MaxBudget))
	const calls = unknown * modelgate.Nano(ahead/time.Second)
	switch {
	case !t.known && amount <= modelgate.MaxBudget/(share*calls) && exact < calls*amount:
		return calls * amount, share * calls * amount
	case !t.known, t.left/near < amount:
		return exact, 0
	}
	most = t.left / share
	if wanted := t.rate * ahead.Seconds(); wanted < float64(most) {
		most = modelgate.Nano(wanted)
	}
	return max(most, exact), 0
}

// pace is how much is reserved a second: since asked, and before that.
func (t *counterLease) pace(now time.Time) float64 {
	if t.asked.IsZero() {
		return t.rate
	}
	rate := float64(t.taken) / max(now.Sub(t.asked), shortest).Seconds()
	if t.rate != 0 {
		rate = (rate + t.rate) / 2
	}
	return rate
}

// measure begins to measure the rate anew.
func (t *counterLease) measure(now time.Time) {
	t.rate = t.pace(now)
	t.asked, t.taken = now, 0
}

// wanted is what the lease should hold beside what calls have reserved; 0 where
// it is not to be filled up: near the limit, and while something about it is to
// be settled first.
func (t *counterLease) wanted(now time.Time) modelgate.Nano {
	if !t.known || t.gone || t.waiting > 0 || t.crossed() || t.left/near < t.last || t.state != settled && t.state != askLost {
		return 0
	}
	return modelgate.Nano(min(t.pace(now)*ahead.Seconds(), float64(t.left.Add(max(t.free, 0))/share)))
}

// low reports whether the lease is to be filled up.
func (t *counterLease) low(now time.Time) bool {
	wanted := t.wanted(now)
	return wanted > 0 && float64(t.free) < float64(wanted)*enough.Seconds()/ahead.Seconds()
}

// fill is what fills up a lease that is low, where the budget has as much.
func (t *counterLease) fill(now time.Time) modelgate.Ask {
	if t.state != askLost {
		t.seq++
	}
	most := t.wanted(now) - t.free
	t.measure(now)
	return modelgate.Ask{Counter: t.counter, Least: 1, Most: most, Room: 1, Seq: t.seq}
}

// granted takes an answer in.
func (t *counterLease) granted(h modelgate.Held) {
	t.free += h.Granted
	t.state = settled
	t.left, t.known = h.Left, true
	t.gone = h.Gone
}

// denied notes the refusal of an amount that the store was asked for. The time of
// the question counts: by the time of the answer, which can be seconds later,
// others may have returned what they held.
func (t *counterLease) denied(h modelgate.Held, amount modelgate.Nano, asked time.Time) {
	t.ungranted(h)
	if h.Granted == 0 {
		t.refused, t.refusedAt = asked, amount
	}
}

// ungranted notes that this budget refused, or another did. Of an ask that was
// sent again the latter does not tell whether it had been granted the first
// time.
func (t *counterLease) ungranted(h modelgate.Held) {
	t.left, t.known = h.Left, true
	if h.Granted == 0 || t.state != askLost {
		t.state = settled
	}
}

// giveBack takes all that is free out, to be returned. What is left of the
// budget then is not known.
func (t *counterLease) giveBack() modelgate.Return {
	t.seq++
	t.known = false
	t.owed, t.free = t.free, 0
	return modelgate.Return{Counter: t.counter, Amount: t.owed, Seq: t.seq}
}

// close takes everything out. Nothing may be under way.
func (t *counterLease) close() modelgate.Return {
	t.free = 0
	return modelgate.Return{Counter: t.counter, Close: true}
}

// again is the return whose answer was lost.
func (t *counterLease) again() (modelgate.Return, bool) {
	switch t.state {
	case returnLost:
		return modelgate.Return{Counter: t.counter, Amount: t.owed, Seq: t.seq}, true
	case closingLost:
		return modelgate.Return{Counter: t.counter, Close: true}, true
	}
	return modelgate.Return{}, false
}

// lost notes that there was no answer to a return.
func (t *counterLease) lost(r modelgate.Return) {
	t.state = returnLost
	if r.Close {
		t.state = closingLost
	}
}
