package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
)

// till is one instance's enforcer with a clock that only moves by hand.
type till struct {
	*testing.T
	*Enforcer
	store *memoryStore
	now   atomic.Int64 // nanoseconds past moment
	// unbooked are the calls that have ended.
	mu       sync.Mutex
	unbooked []func()
}

func newTill(t *testing.T, mode Mode, b *memoryStore) *till {
	x := &till{T: t, store: b}
	x.Enforcer = New(Options{
		Store: b, Instance: t.Name(), Mode: mode, Log: slog.New(slog.DiscardHandler),
		Now:     func() time.Time { return moment.Add(time.Duration(x.now.Load())) },
		Flushed: func(context.Context) error { x.book(); return nil }, Unreachable: isLost,
	})
	if err := x.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return x
}

// book does what the shipper does with the calls that have ended.
func (x *till) book() {
	x.mu.Lock()
	ended := x.unbooked
	x.unbooked = nil
	x.mu.Unlock()
	for _, f := range ended {
		f()
	}
}

// settle ends a call at a cost, which is booked later.
func (x *till) settle(h *Reservation, c *modelgate.Caller, at time.Time, cost modelgate.Nano) {
	var counters []modelgate.Counter
	for i := range c.Budgets {
		if b := &c.Budgets[i]; h.Holds().Has(b.Level, b.Period) {
			counters = append(counters, b.Counter(c.ClientID, at))
		}
	}
	x.mu.Lock()
	x.unbooked = append(x.unbooked, func() {
		for _, k := range counters {
			x.store.book(x.Instance, k, cost)
		}
	})
	x.mu.Unlock()
	h.Settle(used(cost))
}

// idle lets so much time pass that everything unused goes back.
func (x *till) idle() {
	x.now.Add(int64(2 * idleAge))
	x.returnIdle(x.Context())
}

// held is what the database says is reserved, of all counters together.
func (x *till) held() (sum modelgate.Nano) {
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	for _, s := range x.store.spends {
		sum += s.held()
	}
	return sum
}

// caller has budgets in the order in which refusals are answered, which the
// the store knows.
func (b *memoryStore) caller(budgets ...modelgate.Budget) *modelgate.Caller {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range budgets {
		budgets[i].Revision = max(budgets[i].Revision, 1)
		b.limits[limitKey{budgets[i].Level, budgets[i].ID, budgets[i].Period}] = budgets[i].Limit
	}
	modelgate.SortBudgets(budgets)
	return &modelgate.Caller{ClientID: "c", SubAccountID: "s", KeyID: "k", Budgets: budgets}
}

func budget(l modelgate.Level, p modelgate.Period, limit modelgate.Nano) modelgate.Budget {
	id := map[modelgate.Level]string{modelgate.LevelClient: "c", modelgate.LevelSubAccount: "s", modelgate.LevelKey: "k"}[l]
	return modelgate.Budget{Level: l, ID: id, Period: p, Limit: limit}
}

func (x *till) reserve(c *modelgate.Caller, amount modelgate.Nano) (Reservation, error) {
	return x.Reserve(x.Context(), c, new(modelgate.Traits), demand(amount))
}

// Every budget has a limit that a call of 6 does not fit into, but for those
// named; the refusal is that of the first.
func TestRefusalsComeInOneOrder(t *testing.T) {
	t.Parallel()
	order := []modelgate.Budget{
		budget(modelgate.LevelClient, modelgate.Total, 5), budget(modelgate.LevelClient, modelgate.Day, 5), budget(modelgate.LevelClient, modelgate.Month, 5),
		budget(modelgate.LevelSubAccount, modelgate.Day, 5), budget(modelgate.LevelSubAccount, modelgate.Month, 5),
		budget(modelgate.LevelKey, modelgate.Day, 5), budget(modelgate.LevelKey, modelgate.Month, 5),
	}
	for n := range len(order) + 1 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			b := newMemoryStore()
			budgets := append([]modelgate.Budget(nil), order...)
			for i := range n {
				budgets[i].Limit = 100
			}
			x := newTill(t, Strict, b)
			h, err := x.reserve(b.caller(budgets...), 6)
			want := map[int]error{0: modelgate.ErrBalance, len(order): nil}
			w, special := want[n]
			if !special {
				w = modelgate.ErrBudget
			}
			if !errors.Is(err, w) {
				t.Fatalf("Reserve = %v, want %v", err, w)
			}
			if err == nil && h.count != len(order) {
				t.Errorf("the hold has %d budgets, want all %d", h.count, len(order))
			}
			if err != nil && x.held() != 0 {
				t.Errorf("%d is held after a refusal", x.held())
			}
			if held, _ := x.Leases(); err == nil && held != len(order) {
				t.Errorf("%d leases are told, want %d", held, len(order))
			}
			h.Release()
			h.Release()
			x.idle()
			if x.held() != 0 || len(x.account("c").leases) != 0 {
				t.Errorf("%d is held at the end, in %d leases", x.held(), len(x.account("c").leases))
			}
			if held, free := x.Leases(); held != 0 || free != 0 {
				t.Errorf("%d leases with %d are told at the end", held, free)
			}
		})
	}
}

// What the call that crosses a limit does not cost admits no other: only the
// the store does, while something is left.
func TestOnlyTheBankAdmitsPastALimit(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 4))
	x := newTill(t, Estimate, b)
	call := func(amount, cost modelgate.Nano, want error) {
		t.Helper()
		x.now.Add(int64(refusalAge))
		h, err := x.reserve(c, amount)
		if !errors.Is(err, want) {
			t.Errorf("Reserve(%d) = %v, want %v", amount, err, want)
		}
		x.settle(&h, c, moment, cost)
	}
	call(8, 3, nil) // crosses the limit, and leaves 1
	call(2, 0, nil) // may cross it, for 1 is left
	call(1, 1, nil)
	call(1, 0, modelgate.ErrBudget)
	if asks := x.Stats().Asks; asks != 4 {
		t.Errorf("the store was asked %d times, want each time", asks)
	}
	x.idle()
	if x.held() != 0 || b.spend(counter).settled != 4 {
		t.Errorf("%d held and %d settled, want 0 and 4", x.held(), b.spend(counter).settled)
	}
}

func TestStrictAdmitsOnlyWhatFits(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 10))
	x := newTill(t, Strict, b)
	var log strings.Builder
	x.Enforcer.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	first, err := x.reserve(c, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.reserve(c, 4); !errors.Is(err, modelgate.ErrBudget) {
		t.Errorf("4 of 3: %v", err)
	}
	if want := "scope=client id=c period=day limit_usd=0.00000001 left_usd=0.000000003 reserve_usd=0.000000004"; !strings.Contains(log.String(), want) {
		t.Errorf("the log does not say %s:\n%s", want, &log)
	}
	asked := x.Stats().Asks
	unbound := *c
	unbound.SubAccountID = ""
	_, refused := x.reserve(&unbound, 5)
	if l, ok := errors.AsType[*modelgate.LimitError](refused); !ok || l.State.Used != 7 || l.State.Remaining != 3 || l.State.Needed != 5 {
		t.Errorf("5 of 3 without asking the store: %+v", l)
	}
	if _, err := x.reserve(c, 5); !errors.Is(err, modelgate.ErrBudget) || x.Stats().Asks != asked {
		t.Errorf("a dearer call right after a refusal: %v, %d asks", err, x.Stats().Asks-asked)
	}
	second, err := x.reserve(c, 3) // a cheaper one may fit
	if err != nil {
		t.Errorf("3 of 3: %v", err)
	}
	x.settle(&first, c, moment, 1)
	third, err := x.reserve(c, 6)
	if err != nil {
		t.Errorf("what came back is not used: %v", err)
	}
	x.settle(&second, c, moment, 3)
	x.settle(&third, c, moment, 6)
	x.idle()
	if s := b.spend(counter); s.settled != 10 || s.held() != 0 {
		t.Errorf("%d settled and %d held, want 10 and 0", s.settled, s.held())
	}
}

// A call belongs to the day and the month of its admission, however long it
// takes.
func TestPeriodsEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last, next     string
		days, months   int // counters after both calls
		refusedByMonth bool
	}{
		{"2026-11-29T23:59:59.999999999Z", "2026-11-30T00:00:00Z", 2, 1, true},
		{"2026-11-30T23:59:59.999999999Z", "2026-12-01T00:00:00Z", 2, 2, false},
		{"2026-12-31T23:59:59.999999999Z", "2027-01-01T00:00:00Z", 2, 2, false},
		{"2028-02-28T23:59:59.999999999Z", "2028-02-29T00:00:00Z", 2, 1, true},
		{"2028-02-29T23:59:59.999999999Z", "2028-03-01T00:00:00Z", 2, 2, false},
		{"2026-06-30T23:59:59.999999999Z", "2026-07-01T01:59:59+02:00", 1, 1, true}, // the same day in UTC
	} {
		t.Run(c.last, func(t *testing.T) {
			t.Parallel()
			at := func(s string) time.Time {
				v, err := time.Parse(time.RFC3339Nano, s)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			b := newMemoryStore()
			who := b.caller(budget(modelgate.LevelClient, modelgate.Day, 10), budget(modelgate.LevelClient, modelgate.Month, 12))
			x := newTill(t, Strict, b)
			old, err := x.Reserve(t.Context(), who, new(modelgate.Traits), &Demand{At: at(c.last), Money: 10})
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Reserve(t.Context(), who, new(modelgate.Traits), &Demand{At: at(c.next), Money: 3})
			if refused := err != nil; refused != c.refusedByMonth {
				t.Errorf("3 in the next period: %v", err)
			}
			young, err := x.Reserve(t.Context(), who, new(modelgate.Traits), &Demand{At: at(c.next), Money: 2})
			if refused := err != nil; refused != (c.days == 1) {
				t.Errorf("2 in the next period: %v", err)
			}
			x.settle(&old, who, at(c.last), 9) // after the end of its period
			x.settle(&young, who, at(c.next), 2)
			x.book()
			days, months := 0, 0
			for k, s := range b.spends {
				if k.Period == modelgate.Day {
					days++
				} else {
					months++
				}
				want := modelgate.Nano(0)
				if k.Start == k.Period.Start(at(c.last)).UnixMicro() {
					want += 9
				}
				if k.Start == k.Period.Start(at(c.next)).UnixMicro() && c.days == 2 {
					want += 2
				}
				if s.settled != want {
					t.Errorf("%+v has %d settled, want %d", k, s.settled, want)
				}
			}
			if days != c.days || months != c.months {
				t.Errorf("%d days and %d months, want %d and %d", days, months, c.days, c.months)
			}
		})
	}
}

// A limit that is lowered binds at once where it is known; what is spent
// already stays spent, and a removal lets calls pass.
func TestLimitsChange(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 1_000_000), budget(modelgate.LevelKey, modelgate.Day, 1_000_000))
	x := newTill(t, Strict, b)
	set := func(limit modelgate.Nano) {
		lowered := budget(modelgate.LevelClient, modelgate.Day, limit)
		lowered.Revision = c.Budgets[0].Revision + 1
		c = b.caller(lowered, c.Budgets[1])
		x.now.Add(int64(refusalAge))
	}
	for range 3 { // the lease grows with use
		x.now.Add(int64(time.Second))
		h, err := x.reserve(c, 100)
		if err != nil {
			t.Fatal(err)
		}
		x.settle(&h, c, moment, 100)
	}
	set(200)
	if _, err := x.reserve(c, 1); !errors.Is(err, modelgate.ErrBudget) {
		t.Errorf("1 with 300 of 200 spent: %v", err)
	}
	set(301)
	x.book()
	if _, err := x.reserve(c, 2); !errors.Is(err, modelgate.ErrBudget) {
		t.Errorf("2 of 1: %v", err)
	}
	h, err := x.reserve(c, 1)
	if err != nil {
		t.Errorf("1 of 1: %v", err)
	}
	h.Release()
	b.mu.Lock()
	delete(b.limits, limitKey{modelgate.LevelClient, "c", modelgate.Day})
	b.mu.Unlock()
	x.now.Add(int64(refusalAge))
	h, err = x.reserve(c, 5000) // a caller that was looked up before the removal
	if err != nil || h.Holds().Has(modelgate.LevelClient, modelgate.Day) || !h.Holds().Has(modelgate.LevelKey, modelgate.Day) {
		t.Errorf("after the removal: %v, holds %b", err, h.Holds())
	}
	h.Release()
	set(302) // it is back
	if _, err := x.reserve(c, 5000); !errors.Is(err, modelgate.ErrBudget) {
		t.Errorf("5000 of 2: %v", err)
	}
}

// While the database is away a enforcer admits what it holds, and no more.
func TestBankAway(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 1_000_000))
	x := newTill(t, Estimate, b)
	for range 5 {
		x.now.Add(int64(time.Second))
		h, err := x.reserve(c, 1000)
		if err != nil {
			t.Fatal(err)
		}
		x.settle(&h, c, moment, 1000)
	}
	b.fail = make([]loss, 1000)
	for i := range b.fail {
		b.fail[i] = before
	}
	admitted := 0
	for ; admitted < 2000; admitted++ {
		h, err := x.reserve(c, 1000)
		if err != nil {
			if modelgate.KindOf(err) != modelgate.Unavailable {
				t.Fatalf("without a database: %v", err)
			}
			break
		}
		x.settle(&h, c, moment, 1000)
	}
	if admitted < 20 || admitted > 250 {
		t.Errorf("%d calls were admitted without a database, want what a lease of a quarter holds", admitted)
	}
	failures := x.Stats().Failures
	for range 100 {
		if _, err := x.reserve(c, 1000); modelgate.KindOf(err) != modelgate.Unavailable {
			t.Fatalf("without a database: %v", err)
		}
	}
	if n := x.Stats().Failures - failures; n != 0 {
		t.Errorf("a database that just failed was asked %d times more", n)
	}
	b.fail = nil
	x.now.Add(int64(refusalAge))
	h, err := x.reserve(c, 1000)
	if err != nil {
		t.Errorf("with the database back: %v", err)
	}
	h.Release()
	x.idle()
	if x.held() != 0 {
		t.Errorf("%d stays held", x.held())
	}
}

// A first lease lasts for a while where plenty is left, and is one call where
// it is not.
func TestTheFirstSlice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, held modelgate.Nano }{
		{90*share*1000 - 1, 1000}, {90 * share * 1000, 90_000}, {modelgate.MaxBudget, 90_000},
	} {
		b := newMemoryStore()
		who := b.caller(budget(modelgate.LevelClient, modelgate.Day, c.limit), budget(modelgate.LevelKey, modelgate.Day, modelgate.MaxBudget))
		x := newTill(t, Strict, b)
		h, err := x.reserve(who, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if held := b.spend(counter).held(); held != c.held {
			t.Errorf("with %d left, %d is held for a first call of 1000, want %d", c.limit, held, c.held)
		}
		x.settle(&h, who, moment, 1000)
	}
}

// An instance that has seen a single call of a client goes on without a
// database, and so do the other clients where one of them had just become idle.
func TestBankAwaySoon(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	x := newTill(t, Estimate, b)
	var clients []*modelgate.Caller
	for i := range 5 {
		c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 1_000_000))
		c.ClientID = modelgate.ClientID(fmt.Sprint(i))
		clients = append(clients, c)
	}
	call := func(c *modelgate.Caller) error {
		h, err := x.reserve(c, 1000)
		if err == nil {
			x.settle(&h, c, moment, 1000)
		}
		return err
	}
	for _, c := range clients {
		if err := call(c); err != nil {
			t.Fatal(err)
		}
	}
	x.book()
	b.fail = slices.Repeat([]loss{before}, 1000)
	for range 10 { // idle, again and again
		x.idle()
	}
	without := make(map[modelgate.ClientID]bool)
	for range 60 {
		x.now.Add(int64(time.Second))
		for _, c := range clients {
			if call(c) != nil {
				without[c.ClientID] = true
			}
		}
	}
	if len(without) > 1 {
		t.Errorf("%d of %d clients were refused without a database, want one at most", len(without), len(clients))
	}
	b.fail = nil
	x.now.Add(int64(refusalAge))
	x.idle()
	x.idle()
	if x.held() != 0 {
		t.Errorf("%d stays held", x.held())
	}
}

// However far calls have used up what is at hand when the database goes away,
// at a steady rate they go on for as long as a lease is kept for.
func TestBankAwayAtAnyTime(t *testing.T) {
	t.Parallel()
	const every, cost = 100 * time.Millisecond, 1000
	for after := time.Duration(0); after < 2*ahead; after += 7 * time.Second {
		b := newMemoryStore()
		x := newTill(t, Estimate, b)
		c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 1_000_000_000), budget(modelgate.LevelKey, modelgate.Month, 2_000_000_000))
		calls := func(d time.Duration) {
			for end := x.Now().Add(d); x.Now().Before(end); x.now.Add(int64(every)) {
				h, err := x.reserve(c, cost)
				if err != nil {
					t.Fatalf("away after %v, for %v by now: %v", after, d-end.Sub(x.Now()), err)
				}
				x.settle(&h, c, moment, cost)
				if x.now.Load()%int64(tickAge) == 0 {
					x.returnIdle(t.Context())
				}
			}
		}
		calls(2*time.Second + after)
		b.fail = slices.Repeat([]loss{before}, 10_000)
		calls(enough - time.Second)
		b.fail = nil
		x.book()
		if held, most := x.held(), modelgate.Nano(2*cost*int64(ahead/every)); held > most {
			t.Errorf("away after %v: %d held at last, want at most %d", after, held, most)
		}
	}
}

// Many calls at once on two instances, with a database whose answers get lost
// now and then: nothing passes a limit, nothing leaks, nothing is counted twice.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Strict, Estimate} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			const limit, most = 60_000, 100
			b := newMemoryStore()
			b.sometimes = rand.New(rand.NewPCG(1, 2))
			c := b.caller(budget(modelgate.LevelClient, modelgate.Day, limit), budget(modelgate.LevelClient, modelgate.Month, 2*limit), budget(modelgate.LevelKey, modelgate.Day, limit-1))
			x, y := newTill(t, mode, b), newTill(t, mode, b)
			y.Instance = "other"
			var spent, refused, unsure atomic.Int64
			var calls sync.WaitGroup
			for i := range 32 {
				at := []*till{x, y}[i%2]
				random := rand.New(rand.NewPCG(3, uint64(i)))
				calls.Go(func() {
					for range 200 {
						at.now.Add(int64(50 * time.Millisecond))
						amount := modelgate.Nano(1 + random.IntN(most))
						h, err := at.reserve(c, amount)
						switch modelgate.KindOf(err) {
						case modelgate.BudgetExceeded:
							refused.Add(1)
							continue
						case modelgate.Unavailable:
							unsure.Add(1)
							continue
						}
						if s := b.exposed(counter); mode == Strict && s > limit {
							t.Errorf("%d is settled and held of %d", s, limit)
						}
						cost := modelgate.Nano(random.Int64N(int64(amount) + 1))
						spent.Add(int64(cost))
						at.settle(&h, c, moment, cost)
						if random.IntN(8) == 0 {
							at.book()
						}
						if random.IntN(50) == 0 {
							at.returnIdle(t.Context())
						}
					}
				})
			}
			calls.Wait()
			b.sometimes = nil
			x.idle()
			y.idle()
			s := b.spend(counter)
			if int64(s.settled) != spent.Load() || x.held() != 0 {
				t.Errorf("%d settled and %d held, want %d and 0", s.settled, x.held(), spent.Load())
			}
			if over := spent.Load() - limit; over > most {
				t.Errorf("%d spent past the limit, want at most one call of %d", over, most)
			}
			if spent.Load() < limit*99/100 {
				t.Errorf("%d of %d could be spent", spent.Load(), limit)
			}
			t.Logf("%d spent of %d, %d refused, %d without an answer, %d asks", spent.Load(), limit, refused.Load(), unsure.Load(), x.Stats().Asks+y.Stats().Asks)
		})
	}
}

// Amounts beyond any limit, which a request can ask for, are no way around one.
func TestAmountsBeyondAnyLimit(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Estimate, Strict} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := newMemoryStore()
			c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 100))
			x := newTill(t, mode, b)
			first, err := x.reserve(c, 10)
			if err != nil {
				t.Fatal(err)
			}
			x.settle(&first, c, moment, 30) // the lease has less than nothing
			x.now.Add(int64(refusalAge))
			huge, err := x.reserve(c, math.MaxInt64)
			if mode == Strict && !errors.Is(err, modelgate.ErrBudget) {
				t.Errorf("Reserve(all there is) = %v, want a refusal", err)
			}
			x.now.Add(int64(refusalAge))
			if _, err := x.reserve(c, 200); !errors.Is(err, modelgate.ErrBudget) {
				t.Errorf("200 of 70 beside that: %v, want a refusal", err)
			}
			for range 20 { // as many at once
				x.now.Add(int64(refusalAge))
				if h, err := x.reserve(c, math.MaxInt64); err == nil {
					defer h.Release()
				}
			}
			huge.Release()
			x.idle()
			if s := b.spend(counter); s.settled != 30 || s.held() > 0 {
				t.Errorf("%d settled and %d held, want 30 and nothing", s.settled, s.held())
			}
		})
	}
}

// A call that ends while the enforcer waits for the books is not in them: its
// cost stays held until it is.
func TestACallEndsWhileThePurseTidies(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 100))
	x := newTill(t, Strict, b)
	for range 2 { // the second lease holds more than the call
		x.now.Add(int64(time.Second))
		h, err := x.reserve(c, 1)
		if err != nil {
			t.Fatal(err)
		}
		x.settle(&h, c, moment, 1)
	}
	long, err := x.reserve(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, free := x.Leases(); free == 0 {
		t.Fatal("the lease holds nothing beside the call")
	}
	x.Flushed = func(context.Context) error {
		x.book()
		x.settle(&long, c, moment, 1)
		return nil
	}
	x.idle()
	if s := b.spend(counter); s.settled+s.held() < 3 {
		t.Errorf("%d settled and %d held after 3 calls of 1", s.settled, s.held())
	}
	x.Flushed = func(context.Context) error { x.book(); return nil }
	x.book()
	x.idle()
	if s := b.spend(counter); s.settled != 3 || s.held() != 0 {
		t.Errorf("%d settled and %d held, want 3 and nothing", s.settled, s.held())
	}
}

// threeLevels is a caller with a budget of the month at each level.
func threeLevels(b *memoryStore) *modelgate.Caller {
	const limit = 1_000_000 * modelgate.USD
	return b.caller(budget(modelgate.LevelClient, modelgate.Month, limit), budget(modelgate.LevelSubAccount, modelgate.Month, limit), budget(modelgate.LevelKey, modelgate.Month, limit))
}

func TestReserveAllocatesNothing(t *testing.T) {
	b := newMemoryStore()
	c := threeLevels(b)
	x := newTill(t, Estimate, b)
	call := func() {
		h, err := x.reserve(c, 1000)
		if err != nil {
			t.Fatal(err)
		}
		h.Settle(used(500))
	}
	for range 5 {
		x.now.Add(int64(time.Second))
		call()
	}
	asked := x.Stats().Asks
	if n := testing.AllocsPerRun(100, call); n != 0 || x.Stats().Asks != asked {
		t.Errorf("%v allocations a call and %d asks, want none", n, x.Stats().Asks-asked)
	}
}

func BenchmarkReserve(b *testing.B) {
	memory := newMemoryStore()
	c := threeLevels(memory)
	p := New(Options{
		Store: memory, Instance: "i", Mode: Estimate, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Flushed: func(context.Context) error { return nil }, Unreachable: isLost,
	})
	if err := p.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := p.Reserve(b.Context(), c, new(modelgate.Traits), demand(1000))
		if err != nil {
			b.Fatal(err)
		}
		h.Settle(used(1000))
	}
	b.ReportMetric(float64(p.Stats().Asks)/float64(b.N), "asks/op")
}

// A refusal is no older than the question: where the answer took long, a call
// that begins after it asks again and finds what has come back meanwhile.
func TestRefusalIsAsOldAsItsQuestion(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, 100))
	k := c.Budgets[0].Counter(c.ClientID, moment)
	x := newTill(t, Estimate, b)
	leaseAll := func(seq int64) {
		t.Helper()
		if _, err := b.Lease(t.Context(), "other", []modelgate.Ask{{Counter: k, Least: 100, Most: 100, Room: 100, Seq: seq}}); err != nil {
			t.Fatal(err)
		}
	}
	endAll := func() {
		t.Helper()
		if err := b.EndLeases(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}
	}
	leaseAll(1)
	for range 3 { // the first asks, and its refusal stands for the others
		if _, err := x.reserve(c, 10); err == nil {
			t.Error("a call was admitted while another instance held all")
		}
		endAll()
	}
	if asks := x.Stats().Asks; asks != 1 {
		t.Errorf("%d questions for calls at one instant, want 1", asks)
	}
	x.now.Add(int64(refusalAge))
	leaseAll(2)
	b.judged = func() { // the answer is on its way for longer than a refusal stands
		b.judged = nil
		x.now.Add(int64(3 * time.Second))
		endAll()
	}
	if _, err := x.reserve(c, 10); err == nil {
		t.Error("a call was admitted while another instance held all")
	}
	if _, err := x.reserve(c, 10); err != nil {
		t.Errorf("a call that began after the answer: %v, want it admitted with all of the budget left", err)
	}
}
