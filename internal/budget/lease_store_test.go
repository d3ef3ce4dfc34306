package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"modelgate"
)

// memoryStore is the database in memory, by the rules of internal/store.
type memoryStore struct {
	mu     sync.Mutex
	limits map[limitKey]modelgate.Nano // absent: there is no such budget
	rules  map[int64]modelgate.Nano    // likewise, by number
	spends map[modelgate.Counter]*spend
	holds  int // transactions
	backs  int
	fail   []loss // of the next transactions
	// judged, where it is there, is called once a transaction that leases is
	// judged and before its answer arrives.
	judged func()
	// sometimes, where it is there, makes one transaction in twenty fail.
	sometimes *rand.Rand
}

type limitKey struct {
	level  modelgate.Level
	id     string
	period modelgate.Period
}

type spend struct {
	settled modelgate.Nano
	stored  map[string]*storedLease
}

type storedLease struct {
	granted, amount modelgate.Nano
	seq             int64
}

// loss says how a transaction fails.
type loss uint8

const (
	none   loss = iota
	before      // nothing is changed
	after       // everything is, but the answer is lost
)

var errLost = errors.New("no answer")

func isLost(err error) bool { return errors.Is(err, errLost) }

func newMemoryStore() *memoryStore {
	return &memoryStore{limits: make(map[limitKey]modelgate.Nano), rules: make(map[int64]modelgate.Nano), spends: make(map[modelgate.Counter]*spend)}
}

func (b *memoryStore) spend(k modelgate.Counter) *spend {
	if b.spends[k] == nil {
		b.spends[k] = &spend{stored: make(map[string]*storedLease)}
	}
	return b.spends[k]
}

func (s *spend) held() (sum modelgate.Nano) {
	for _, x := range s.stored {
		sum += max(x.granted, 0)
	}
	return sum
}

// exposed is what is settled and held of a counter.
func (b *memoryStore) exposed(k modelgate.Counter) modelgate.Nano {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spend(k)
	return s.settled + s.held()
}

func (b *memoryStore) next() loss {
	if b.sometimes != nil {
		return []loss{before, after, none}[min(b.sometimes.IntN(40), 2)]
	}
	if len(b.fail) == 0 {
		return none
	}
	l := b.fail[0]
	b.fail = b.fail[1:]
	return l
}

func (b *memoryStore) limit(k modelgate.Counter) (modelgate.Nano, bool) {
	if k.Rule != 0 {
		l, ok := b.rules[k.Rule]
		return l, ok
	}
	l, ok := b.limits[limitKey{k.Level, k.ID, k.Period}]
	return l, ok || k.Period == modelgate.Total
}

// Lease grants all asks or none.
func (b *memoryStore) Lease(_ context.Context, instance string, asks []modelgate.Ask) ([]modelgate.Held, error) {
	answers, err := b.lease(instance, asks)
	if b.judged != nil {
		b.judged()
	}
	return answers, err
}

func (b *memoryStore) lease(instance string, asks []modelgate.Ask) ([]modelgate.Held, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds++
	how := b.next()
	if how == before {
		return nil, errLost
	}
	answers := make([]modelgate.Held, len(asks))
	refused := false
	for i := range asks {
		answers[i] = b.judge(instance, &asks[i])
		refused = refused || answers[i].Granted == 0 && !answers[i].Gone
	}
	if !refused {
		for i := range asks {
			b.change(asks[i].Counter, instance, answers[i].Granted, asks[i].Seq)
		}
	}
	if how == after {
		return nil, errLost
	}
	return answers, nil
}

func (b *memoryStore) judge(instance string, a *modelgate.Ask) modelgate.Held {
	s := b.spend(a.Counter)
	limit, ok := b.limit(a.Counter)
	left := limit - s.settled - s.held()
	mine := s.stored[instance]
	switch {
	case mine != nil && mine.seq == a.Seq:
		return modelgate.Held{Granted: mine.amount, Left: left}
	case !ok:
		return modelgate.Held{Gone: true}
	case left >= max(a.Most, a.Plenty):
		return modelgate.Held{Granted: a.Most, Left: left - a.Most}
	case left >= a.Room:
		return modelgate.Held{Granted: a.Least, Left: left - a.Least}
	}
	return modelgate.Held{Left: left}
}

func (b *memoryStore) change(k modelgate.Counter, instance string, amount modelgate.Nano, seq int64) {
	s := b.spend(k)
	mine := s.stored[instance]
	if mine == nil {
		mine = &storedLease{}
		s.stored[instance] = mine
	}
	if mine.seq >= seq || amount == 0 {
		return
	}
	mine.granted, mine.amount, mine.seq = mine.granted+amount, amount, seq
}

// GiveBack makes all of the returns.
func (b *memoryStore) GiveBack(_ context.Context, instance string, returns []modelgate.Return) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backs++
	how := b.next()
	if how == before {
		return errLost
	}
	for _, r := range returns {
		if r.Close {
			delete(b.spend(r.Counter).stored, instance)
			continue
		}
		b.change(r.Counter, instance, -r.Amount, r.Seq)
	}
	if how == after {
		return errLost
	}
	return nil
}

// RenewLeases does nothing: nothing expires here.
func (b *memoryStore) RenewLeases(context.Context, string) (bool, error) { return true, nil }

// EndLeases ends all of an instance's leases.
func (b *memoryStore) EndLeases(_ context.Context, instance string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.spends {
		delete(s.stored, instance)
	}
	return nil
}

// EndExpiredLeases finds none.
func (b *memoryStore) EndExpiredLeases(context.Context) error { return nil }

// book does what the shipper's transaction does.
func (b *memoryStore) book(instance string, k modelgate.Counter, cost modelgate.Nano) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.spend(k)
	s.settled += cost
	if mine := s.stored[instance]; mine != nil {
		mine.granted -= cost
	}
}

// demand is what a call asks for that reserves an amount of budgets.
func demand(amount modelgate.Nano) *Demand {
	return &Demand{At: moment, Money: amount, Use: modelgate.Amounts{Requests: 1}}
}

// used is what a call has used that was booked at a cost.
func used(cost modelgate.Nano) *modelgate.Amounts {
	return &modelgate.Amounts{Requests: 1, Cost: cost}
}
