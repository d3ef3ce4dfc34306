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
