package budget

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"modelgate"
)

// The model check runs the real Purse of two instances against the store, one
// event after another, in every order: calls are reserved, settled and booked,
// answers of the database get lost before and after they were committed,
// instances crash and come back, or stay away until their leases expire, and
// the limit changes. Each distinct state is visited once, and what must hold
// is checked in it.

const (
	instances = 2
	requests  = 3
)

var (
	epoch  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	moment = epoch.Add(time.Minute)
	names  = [instances]string{"a", "b"}
)

// phase is how far a request is.
type phase uint8

const (
	waiting phase = iota
	open
	ended  // with a cost, not booked
	booked // or refused
)

type request struct {
	phase  phase
	at     uint8
	amount modelgate.Nano
	cost   modelgate.Nano
}

// world is a state.
type world struct {
	limit, settled modelgate.Nano
	revision       int64
	stored         [instances]storedLease
	there          [instances]bool // the stored lease
	up             [instances]bool
	leases         [instances]counterLease
	has            [instances]bool // the lease in memory
	requests       [requests]request
	changes        uint8 // of the limit so far
	crashes        uint8

	// What overshoot is excused: the highest limit so far, what calls cost
	// beyond their reservation, the call that crossed, and what was under way
	// at an instance that was away too long.
	highest, short, crossing, expired modelgate.Nano
}

// explorer visits states.
type explorer struct {
	t      *testing.T
	mode   Mode
	amount []modelgate.Nano
	limits []modelgate.Nano
	seen   map[string]struct{}
	queue  []world
}

func (e *explorer) budget(w *world) modelgate.Budget {
	return modelgate.Budget{Level: modelgate.LevelClient, ID: "c", Period: modelgate.Day, Limit: w.limit, Revision: w.revision}
}

// machine is a world come to life: one instance's enforcer on a store.
type machine struct {
	*world
	store    *memoryStore
	enforcer *Enforcer
	at       int
	hold     [requests]Reservation
}

var counter = (&modelgate.Budget{Level: modelgate.LevelClient, ID: "c", Period: modelgate.Day}).Counter("c", moment)

// boot makes the machine of instance i.
func (e *explorer) boot(w *world, i int) *machine {
	b := newMemoryStore()
	b.limits[limitKey{modelgate.LevelClient, "c", modelgate.Day}] = w.limit
	s := b.spend(counter)
	s.settled = w.settled
	for n := range instances {
		if w.there[n] {
			copied := w.stored[n]
			s.stored[names[n]] = &copied
		}
	}
	m := &machine{world: w, store: b, at: i}
	m.enforcer = New(Options{
		Store: b, Instance: names[i], Mode: e.mode, Now: func() time.Time { return moment },
		Log: slog.New(slog.DiscardHandler), Unreachable: isLost, Flushed: func(context.Context) error { m.bookAll(); return nil },
	})
	m.enforcer.valid.Store(int64(time.Hour))
	a := m.enforcer.account("c")
	if w.has[i] {
		copied := w.leases[i]
		a.leases[counter] = &copied
	}
	for n, r := range w.requests {
		if r.phase == open && int(r.at) == i {
			m.hold[n] = Reservation{enforcer: m.enforcer, account: a, count: 1, needs: needs{money: r.amount}}
			m.hold[n].leases[0] = a.leases[counter]
		}
	}
	return m
}

// bookAll books what this instance has ended.
func (m *machine) bookAll() {
	for n := range m.requests {
		if r := &m.requests[n]; r.phase == ended && int(r.at) == m.at {
			m.store.book(names[m.at], counter, r.cost)
			r.phase = booked
		}
	}
}

// fillUp fills up the lease that the instance may have, as if it were in use.
func (m *machine) fillUp() {
	a := m.enforcer.account("c")
	if t := a.leases[counter]; t != nil {
		_ = m.enforcer.fillUp(context.Background(), a, []*counterLease{t}) // a lost answer
	}
}

// store puts the machine's state back into its world, without what makes no
// difference.
func (m *machine) spent(t *testing.T) {
	s := m.store.spend(counter)
	m.settled = s.settled
	for n := range instances {
		mine := s.stored[names[n]]
		m.there[n], m.stored[n] = mine != nil, storedLease{}
		if mine != nil {
			m.stored[n] = *mine
		}
	}
	p := m.enforcer.account("c").leases[counter]
	m.has[m.at], m.leases[m.at] = p != nil, counterLease{}
	if p != nil {
		m.leases[m.at] = *p
		if p.waiting != 0 {
			t.Errorf("waiting %d when nobody waits", p.waiting)
		}
	}
	for n := range instances {
		p, s := &m.leases[n], &m.stored[n]
		p.used, p.asked, p.refused = epoch, time.Time{}, time.Time{}
		p.uses, p.last, p.taken, p.refusedAt, p.rate = 0, 0, 0, 0, 1e12
		if !m.has[n] {
			*p = counterLease{}
		}
		switch { // numbers only matter in relation to each other
		case !m.has[n] || !m.there[n]:
			p.seq, s.seq = 10, min(s.seq, 10)
		case s.seq == p.seq:
			p.seq, s.seq = 10, 10
		default:
			if s.seq > p.seq {
				t.Errorf("number %d of the stored lease above %d of that in memory", s.seq, p.seq)
			}
			p.seq, s.seq = 10, 9
		}
		if p.state != returnLost {
			p.owed = 0
		}
	}
}

// steps are all states that one event leads to.
func (e *explorer) steps(w world) {
	for i := range instances {
		if !w.up[i] {
			e.event(w, i, func(m *machine) { m.restart() })
			if w.there[i] {
				e.event(w, i, func(m *machine) { m.expire() })
			}
			continue
		}
		for _, fail := range [][]loss{nil, {before}, {after}, {none, before}, {none, after}} {
			e.reserve(w, i, fail)
			if len(fail) < 2 {
				e.event(w, i, func(m *machine) { m.store.fail = fail; m.enforcer.returnIdle(context.Background()) })
				e.event(w, i, func(m *machine) { m.store.fail = fail; m.fillUp() })
			}
		}
		e.event(w, i, func(m *machine) { // tidied while the books are behind
			m.enforcer.Flushed = func(context.Context) error { return errLost }
			m.enforcer.returnIdle(context.Background())
		})
		e.settle(w, i)
		e.endWhileTidying(w, i)
		if w.crashes < 2 {
			e.event(w, i, func(m *machine) {
				m.up[i], m.crashes = false, m.crashes+1
				m.enforcer.account("c").leases = map[modelgate.Counter]*counterLease{}
			})
		}
	}
	if w.changes < 2 {
		for _, limit := range e.limits {
			if limit != w.limit {
				e.event(w, 0, func(m *machine) {
					m.limit, m.revision, m.changes = limit, m.revision+1, m.changes+1
					m.highest = max(m.highest, limit)
				})
			}
		}
	}
}

// event runs one and keeps the state it leads to.
func (e *explorer) event(w world, i int, do func(*machine)) {
	m := e.boot(&w, i)
	do(m)
	m.spent(e.t)
	e.visit(w)
}

func (e *explorer) reserve(w world, i int, fail []loss) {
	for n := range requests {
		if w.requests[n].phase != waiting {
			continue
		}
		for _, amount := range e.amount {
			e.event(w, i, func(m *machine) {
				m.store.fail = fail
				b := e.budget(&w)
				left := m.left()
				h, err := m.enforcer.Reserve(context.Background(), &modelgate.Caller{ClientID: "c", Budgets: []modelgate.Budget{b}}, new(modelgate.Traits), demand(amount))
				if err == nil && left+w.unused(i)+m.short <= 0 {
					e.t.Errorf("admitted %d with %d left: %s", amount, left, &w)
				}
				if err == nil {
					m.requests[n] = request{open, uint8(i), amount, 0}
					m.crossing = max(m.crossing, amount)
					if h.count != 1 || !h.Holds().Has(modelgate.LevelClient, modelgate.Day) {
						e.t.Errorf("a hold of %d leases, %b", h.count, h.Holds())
					}
				}
				if modelgate.KindOf(err) == modelgate.BudgetExceeded && left >= amount+e.shortAt(&w, i) {
					e.t.Errorf("refused %d with %d left", amount, left)
				}
			})
		}
		return // the others are the same
	}
}

// shortAt is what instance i owes: calls that cost more than was reserved.
func (e *explorer) shortAt(w *world, i int) modelgate.Nano { return max(0, -w.leases[i].free) }

// left is what the store has left.
func (m *machine) left() modelgate.Nano {
	s := m.store.spend(counter)
	return m.limit - s.settled - s.held()
}

func (e *explorer) settle(w world, i int) {
	for n := range requests {
		r := w.requests[n]
		if int(r.at) != i {
			continue
		}
		switch r.phase {
		case open:
			costs := []modelgate.Nano{0, r.amount}
			if e.mode == Estimate {
				costs = append(costs, r.amount+2)
			}
			for _, cost := range costs {
				e.event(w, i, func(m *machine) {
					m.hold[n].Settle(used(cost))
					m.hold[n].Settle(used(cost)) // once and for all
					m.requests[n] = request{ended, r.at, r.amount, cost}
					m.short += max(0, cost-r.amount)
				})
			}
		case ended:
			e.event(w, i, func(m *machine) {
				m.store.book(names[i], counter, r.cost)
				m.requests[n].phase = booked
			})
		}
	}
}

// endWhileTidying ends a call between the booking of others and what the tidying
// makes of that.
func (e *explorer) endWhileTidying(w world, i int) {
	for n, r := range w.requests {
		if int(r.at) != i || r.phase != open {
			continue
		}
		e.event(w, i, func(m *machine) {
			m.enforcer.Flushed = func(context.Context) error {
				m.bookAll()
				m.hold[n].Settle(used(r.amount))
				m.requests[n] = request{ended, r.at, r.amount, r.amount}
				return nil
			}
			m.enforcer.returnIdle(context.Background())
			if m.requests[n].phase == open { // nothing was idle
				m.hold[n].Settle(used(r.amount))
				m.requests[n] = request{ended, r.at, r.amount, r.amount}
			}
		})
	}
}

// restart books what the dead instance had under way, and then frees what it
// held.
func (m *machine) restart() {
	for n := range m.requests {
		r := &m.requests[n]
		if r.phase == open && int(r.at) == m.at {
			r.phase, r.cost = ended, r.amount
		}
	}
	m.bookAll()
	_ = m.store.EndLeases(context.Background(), names[m.at])
	m.up[m.at] = true
}

// expire frees what a dead instance held before anything is booked.
func (m *machine) expire() {
	for _, r := range m.requests {
		if int(r.at) == m.at && r.phase == open {
			m.expired += r.amount
		}
		if int(r.at) == m.at && r.phase == ended {
			m.expired += r.cost
		}
	}
	_ = m.store.EndLeases(context.Background(), names[m.at])
}

// visit checks a state that is new.
func (e *explorer) visit(w world) {
	key := w.key()
	if _, known := e.seen[key]; known {
		return
	}
	e.seen[key] = struct{}{}
	e.check(&w)
	e.queue = append(e.queue, w)
}

// under is what calls have of instance i's stored lease: reserved while they are open,
// then their costs until these are booked.
func (w *world) under(i int) (sum modelgate.Nano) {
	for _, r := range w.requests {
		if int(r.at) == i && r.phase == open {
			sum += r.amount
		}
		if int(r.at) == i && r.phase == ended {
			sum += r.cost
		}
	}
	return sum
}

// unused is what instance i's stored lease has besides.
func (w *world) unused(i int) modelgate.Nano { return max(0, w.stored[i].granted-w.under(i)) }

// check holds what can be spent against what may be.
func (e *explorer) check(w *world) {
	exposed := w.settled
	for i := range instances {
		under := w.under(i)
		exposed += under + max(0, w.leases[i].free)
		if !w.up[i] || !w.has[i] {
			continue
		}
		p := &w.leases[i]
		if got := p.free + under; p.state == noExchange && got != w.stored[i].granted {
			e.t.Errorf("the stored lease has %d, that in memory %d and %d under way: %s", w.stored[i].granted, p.free, under, w)
		}
	}
	most := w.highest + w.expired
	if e.mode == Estimate {
		most += w.crossing + w.short
	}
	if exposed > most {
		e.t.Errorf("%d can be spent of %d: %s", exposed, most, w)
	}
	e.checkLeaks(*w)
}

// checkLeaks lets everything come to its end: nothing may stay held.
func (e *explorer) checkLeaks(w world) {
	for _, r := range w.requests {
		if r.phase == open {
			return
		}
	}
	for i := range instances {
		m := e.boot(&w, i)
		if w.up[i] {
			m.bookAll()
			m.enforcer.returnIdle(context.Background())
		} else {
			m.restart()
		}
		m.spent(e.t)
	}
	held := max(w.stored[0].granted, 0) + max(w.stored[1].granted, 0)
	if held != 0 {
		e.t.Errorf("%d stays held: %s", held, &w)
	}
}

func (w *world) key() string {
	b := make([]byte, 0, 96)
	put := func(list ...modelgate.Nano) {
		for _, v := range list {
			b = binary.AppendVarint(b, int64(v))
		}
	}
	flag := func(list ...bool) {
		for _, v := range list {
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	put(w.limit, w.settled, modelgate.Nano(w.revision), w.highest, w.short, w.crossing, w.expired)
	for i := range instances {
		p, s := &w.leases[i], &w.stored[i]
		flag(w.up[i], w.there[i], w.has[i], p.known, p.gone)
		put(s.granted, s.amount, modelgate.Nano(s.seq), p.free, p.left, p.owed, modelgate.Nano(p.revision))
		b = append(b, byte(p.state), byte(p.open))
	}
	for _, r := range w.requests {
		b = append(b, byte(r.phase), r.at)
		put(r.amount, r.cost)
	}
	return string(append(b, w.changes, w.crashes))
}

func (w *world) String() string {
	return fmt.Sprintf("limit %d settled %d stored %+v leases %+v requests %+v", w.limit, w.settled, w.stored, w.leases, w.requests)
}

// states is how many the check visits of each mode; the spaces are larger.
var states = flag.Int("states", 10_000, "states to visit in each mode; make prove-money visits 600000")

func TestEveryOrderOfEvents(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Strict, Estimate} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			e := &explorer{
				t: t, mode: mode, amount: []modelgate.Nano{1, 3}, limits: []modelgate.Nano{4, 60, 400}, seen: make(map[string]struct{}),
			}
			for _, limit := range e.limits {
				e.visit(world{limit: limit, highest: limit, revision: 1, up: [instances]bool{true, true}})
			}
			visited := 0
			for len(e.queue) > 0 && visited < *states && !t.Failed() {
				// From both ends: short histories all, and some long ones.
				last := len(e.queue) - 1
				w := e.queue[last]
				if visited%2 == 0 {
					w, e.queue[0] = e.queue[0], w
				}
				e.queue = e.queue[:last]
				visited++
				e.steps(w)
			}
			t.Logf("%d states visited, %d known", visited, len(e.seen))
			if visited < *states {
				t.Errorf("the space has %d states only", visited)
			}
		})
	}
}
