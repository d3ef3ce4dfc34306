package budget

import (
	"errors"
	"testing"
	"time"

	"modelgate"
)

// limit adds a rate limit to a caller and to the store.
func (b *memoryStore) limitBy(t testing.TB, c *modelgate.Caller, u modelgate.LimitUnit, p modelgate.Period, match string, limit modelgate.Nano) *modelgate.Budget {
	t.Helper()
	r := b.rule(t, c, match, p, limit)
	r.Unit = u
	modelgate.SortRules(c.Rules)
	return r
}

// A call takes of each counter what it uses in the counter's unit, the call that
// crosses a limit completes, and what was not used comes back.
func TestLimitsHoldTheirUnits(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Estimate, Strict} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := newMemoryStore()
			c := b.caller(budget(modelgate.LevelClient, modelgate.Day, modelgate.USD))
			c.SubAccountID = ""
			limits := map[modelgate.LimitUnit]*modelgate.Budget{}
			for u, limit := range map[modelgate.LimitUnit]modelgate.Nano{
				modelgate.UnitRequests: 1000, modelgate.UnitInputTokens: 100, modelgate.UnitOutputTokens: 1000, modelgate.UnitTokens: 10_000, modelgate.UnitUSD: modelgate.USD,
			} {
				limits[u] = b.limitBy(t, c, u, modelgate.Hour, "", limit)
			}
			x := newTill(t, mode, b)
			d := &Demand{At: moment, Money: 500, Use: modelgate.Amounts{Requests: 1, Input: 60, Output: 40, Cost: 300}}
			var open []Reservation
			for range 2 { // the second crosses the 100 tokens of input
				h, err := x.Reserve(t.Context(), c, tagged(), d)
				if err != nil {
					t.Fatal(err)
				}
				if h.Amount() != 500 || len(h.Rules()) != 5 {
					t.Errorf("%v of money on the rules %v", h.Amount(), h.Rules())
				}
				open = append(open, h)
			}
			_, err := x.Reserve(t.Context(), c, tagged(), d)
			limit, _ := errors.AsType[*modelgate.LimitError](err)
			retry, _ := errors.AsType[*modelgate.RetryError](err)
			if !errors.Is(err, modelgate.ErrRateLimited) || limit == nil || retry == nil {
				t.Fatalf("a third call: %v", err)
			}
			end := moment.Truncate(time.Hour).Add(time.Hour)
			if s := limit.State; s.Unit != modelgate.UnitInputTokens || s.Window != "hour" || s.Period != "" || s.Kind != modelgate.LimitRate ||
				s.Limit != 100*modelgate.USD || s.Used != 120*modelgate.USD || s.Remaining != 0 || s.Needed != 60*modelgate.USD || !s.ResetsAt.Equal(end) || retry.After != end.Sub(moment) {
				t.Errorf("it is told %+v, to come back after %v", s, retry.After)
			}
			for i := range open {
				open[i].Settle(&modelgate.Amounts{Requests: 1, Input: 10, Output: 5, Cost: 7})
			}
			x.now.Add(int64(refusalAge))
			h, err := x.Reserve(t.Context(), c, tagged(), d)
			if err != nil {
				t.Fatalf("after two calls have used less: %v", err)
			}
			k := limits[modelgate.UnitInputTokens].Counter("c", moment)
			x.account("c").mu.Lock()
			if l := x.account("c").leases[k]; l.open != 1 || b.exposed(k)-l.free != 2*10+60 {
				t.Errorf("%d open, %v of %v free; want two calls of 10 and one of 60 to be taken", l.open, l.free, b.exposed(k))
			}
			x.account("c").mu.Unlock()
			if left, reserved := h.Left(limits[modelgate.UnitInputTokens].Rule); !reserved || left > 100-20-60 {
				t.Errorf("%v is left, reserved %v", left, reserved)
			}
		})
	}
}

// A rate limit refuses before a budget does, whichever is known first.
func TestLimitsRefuseBeforeBudgets(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Total, 5))
	x := newTill(t, Strict, b)
	if _, err := x.reserve(c, 6); !errors.Is(err, modelgate.ErrBalance) {
		t.Fatal(err)
	}
	requests := b.limitBy(t, c, modelgate.UnitRequests, modelgate.Day, "", 1)
	used := requests.Counter("c", moment)
	b.spend(used).settled = 1
	if _, err := x.reserve(c, 6); !errors.Is(err, modelgate.ErrRateLimited) { // the balance's refusal is still remembered
		t.Errorf("the limit and the balance are used up: %v", err)
	}
	b.spend(used).settled = 0
	x.now.Add(int64(refusalAge))
	if _, err := x.reserve(c, 6); !errors.Is(err, modelgate.ErrBalance) {
		t.Errorf("the balance alone is used up: %v", err)
	}
	if n := b.exposed(used); n != 0 {
		t.Errorf("%v is held of the limit by calls that the balance has refused", n)
	}
}

// A call that costs nothing counts as a request, and no money and no tokens are
// held for it.
func TestFreeCallsCountAsRequests(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Total, 0))
	requests := b.limitBy(t, c, modelgate.UnitRequests, modelgate.Hour, "", 2)
	tokens := b.limitBy(t, c, modelgate.UnitTokens, modelgate.Hour, "", 1)
	b.spend(tokens.Counter("c", moment)).settled = 1
	x := newTill(t, Strict, b)
	d := &Demand{At: moment, Free: true, Use: modelgate.Amounts{Requests: 1}}
	for range 2 {
		h, err := x.Reserve(t.Context(), c, tagged(), d)
		if err != nil || h.count != 1 || h.Amount() != 0 || h.Rules()[0] != requests.Rule {
			t.Fatalf("%v, %d counters", err, h.count)
		}
	}
	if _, err := x.Reserve(t.Context(), c, tagged(), d); !errors.Is(err, modelgate.ErrRateLimited) {
		t.Errorf("a third call: %v", err)
	}
}

// Three instances with a database in common let as many calls pass in an hour as
// the limit says, and not one more at any instant.
func TestHourLimitOverInstances(t *testing.T) {
	t.Parallel()
	const limit = 500
	b := newMemoryStore()
	c := b.caller()
	hour := b.limitBy(t, c, modelgate.UnitRequests, modelgate.Hour, "", limit)
	k := hour.Counter("c", moment)
	instances := []*till{newTill(t, Estimate, b), newTill(t, Estimate, b), newTill(t, Estimate, b)}
	for i, x := range instances {
		x.Instance += string(rune('a' + i))
	}
	admitted := make([]int, 3)
	for refused := 0; refused < 3; {
		refused = 0
		for i, x := range instances {
			for range 1 + i { // at rates of their own
				h, err := x.reserve(c, 1)
				if errors.Is(err, modelgate.ErrRateLimited) {
					refused++
					x.now.Add(int64(refusalAge))
					x.idle() // gives back what this one does not use
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				admitted[i]++
				h.Settle(used(0))
				b.book(x.Instance, k, 1)
			}
		}
		if n := b.exposed(k); n > limit {
			t.Fatalf("%v is used and held of %d", n, limit)
		}
	}
	if n := admitted[0] + admitted[1] + admitted[2]; n != limit || min(admitted[0], admitted[1], admitted[2]) == 0 {
		t.Errorf("%v calls were admitted, want %d", admitted, limit)
	}
}

// fileRule adds a limit of the configuration file.
func (b *memoryStore) fileRule(c *modelgate.Caller, l modelgate.Level, limit modelgate.Nano) *modelgate.Budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &modelgate.Budget{Level: l, Period: modelgate.Day, Unit: modelgate.UnitRequests, Limit: limit, Rule: -int64(len(b.rules) + 1), Revision: 1}
	b.rules[r.Rule] = limit
	c.Rules = append(c.Rules, r)
	modelgate.SortRules(c.Rules)
	return r
}

// Limits of the configuration file bind each target by itself, and those of the
// gateway all organizations together: a call that one of the others refuses has
// used nothing of it.
func TestLimitsOfTheGateway(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, modelgate.USD))
	gateway, key := b.fileRule(c, modelgate.LevelGateway, 3), b.fileRule(c, modelgate.LevelKey, 2)
	other := *c
	other.ClientID, other.KeyID, other.Budgets = "other", "k2", nil
	x := newTill(t, Strict, b)
	d := &Demand{At: moment, Money: 500, Use: modelgate.Amounts{Requests: 1}}
	reserve := func(c *modelgate.Caller) (Reservation, error) {
		x.now.Add(int64(refusalAge))
		return x.Reserve(t.Context(), c, &modelgate.Traits{KeyID: c.KeyID}, d)
	}
	var open []Reservation
	for range 2 {
		h, err := reserve(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Rules(); len(got) != 2 || got[0] != gateway.Rule || got[1] != key.Rule || h.Amount() != 500 || !h.Any() {
			t.Errorf("reserved %v on the rules %v", h.Amount(), got)
		}
		open = append(open, h)
	}
	for range 3 { // the key's limit refuses, and takes nothing of the gateway's
		_, err := reserve(c)
		limit, _ := errors.AsType[*modelgate.LimitError](err)
		if limit == nil || !errors.Is(err, modelgate.ErrRateLimited) || limit.State.Scope != modelgate.LevelKey || limit.State.ID != "k" {
			t.Fatalf("a third call of the key: %v", err)
		}
	}
	h, err := reserve(&other)
	if err != nil {
		t.Fatalf("the third call of all: %v", err)
	}
	if k := key.ValueCounter("other", moment, "k2"); b.exposed(k) == 0 {
		t.Error("the other key has no counter of its own")
	}
	for _, who := range []*modelgate.Caller{&other, c} {
		_, err := reserve(who)
		if _, told := errors.AsType[*modelgate.LimitError](err); told || !errors.Is(err, modelgate.ErrRateLimited) {
			t.Errorf("the fourth call of all: %v; want a refusal without figures", err)
		}
	}
	open[0].Release()
	x.now.Add(int64(refusalAge))
	again, err := reserve(&other)
	if err != nil {
		t.Fatalf("after a call came to nothing: %v", err)
	}
	open[0].Release() // does nothing
	for _, h := range []Reservation{open[1], h, again} {
		h.Settle(&modelgate.Amounts{Requests: 1, Cost: 400})
	}
	x.account(modelgate.FileClient).mu.Lock()
	defer x.account(modelgate.FileClient).mu.Unlock()
	if l := x.account(modelgate.FileClient).leases[gateway.Counter("c", moment)]; l == nil || l.open != 0 {
		t.Errorf("the gateway's lease: %+v", l)
	}
	if n := b.exposed(gateway.Counter("c", moment)); n != 3 {
		t.Errorf("%d of the gateway's limit are taken, want 3", n)
	}
}

// The gateway's counters are among the most that a call may have.
func TestTooManyWithTheGateway(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := threeLevels(b)
	b.fileRule(c, modelgate.LevelGateway, 100)
	for n := len(c.Budgets) + 1; n < MaxCounters; n++ {
		b.fileRule(c, modelgate.LevelClient, 100)
	}
	x := newTill(t, Strict, b)
	h, err := x.Reserve(t.Context(), c, tagged(), demand(10))
	if err != nil || h.count+h.above.count != MaxCounters {
		t.Fatalf("%d counters: %v", MaxCounters, err)
	}
	h.Settle(used(10))
	b.fileRule(c, modelgate.LevelGateway, 100)
	if _, err := x.Reserve(t.Context(), c, tagged(), demand(10)); !errors.Is(err, errTooMany) {
		t.Errorf("%d counters: %v", MaxCounters+1, err)
	}
}
