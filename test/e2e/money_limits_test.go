package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"modelgate"
)

// strictDraw is a call whose answer is never longer than it may be.
func strictDraw(random *rand.Rand, a *attempt) {
	a.limit = 1 + random.Int64N(500)
	a.output = random.Int64N(a.limit + 1)
}

// longDraw is a call whose answer is up to three times as long as it may be.
func longDraw(random *rand.Rand, a *attempt) {
	a.limit, a.output = 100, random.Int64N(301)
}

// levels are the budgets in the order in which they become the narrowest, as
// those above are removed.
func (m *market) levels(limit int64) []struct {
	scope  string
	remove func()
} {
	m.budgets(share(limit, 0), share(limit, 1), share(limit, 2))
	return []struct {
		scope  string
		remove func()
	}{
		{"client", func() { m.manage("DELETE", "/gw/budgets?scope=client&period=month", "") }},
		{"sub_account", func() {
			for _, id := range m.subs {
				m.manage("DELETE", "/gw/budgets?scope=sub_account&period=month&id="+id, "")
			}
		}},
		{"key", func() {}},
	}
}

// share is the limit at the level of that number.
func share(limit int64, level int) int64 { return limit * [...]int64{10, 7, 3}[level] / 10 }

// exhaust trades until the budgets of a scope are used up to 99 percent and
// so many attempts were made, for a bounded time.
func (m *market) exhaust(scope string, attempts int, draw func(*rand.Rand, *attempt)) (filled float64) {
	m.Helper()
	stop, deadline := make(chan struct{}), time.Now().Add(5*time.Minute)
	until := m.marks.Load() + int64(attempts)
	go func() {
		defer close(stop)
		for range time.Tick(20 * time.Millisecond) {
			if filled = m.filled(scope); m.marks.Load() >= until && filled >= 0.99 || time.Now().After(deadline) || m.Context().Err() != nil {
				return
			}
		}
	}()
	m.trade(draw, func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	})
	<-stop
	if filled < 0.99 {
		m.Errorf("%s: only %.2f %% of a limit could be spent", scope, 100*filled)
	}
	return filled
}

// neverAbove is what holds of strict budgets at any moment.
func (m *market) neverAbove(_ time.Time, all []position) {
	for _, p := range all {
		if p.settled+p.held > p.limit || p.held < 0 {
			m.Errorf("%s %s: %d settled and %d held of %d", p.scope, p.id, p.settled, p.held, p.limit)
		}
	}
}

// TestMoneyStrict holds strict budgets to their limits at every moment.
func TestMoneyStrict(t *testing.T) {
	t.Parallel()
	attempts := size(5_000, 100_000)
	m := newMarket(t, 2, "strict", nil)
	limit := int64(attempts) / 4 * 125 * outputRate
	levels := m.levels(limit)
	watched := m.watch(m.neverAbove)
	began := time.Now()
	figures := []any{}
	for i, level := range levels {
		filled := m.exhaust(level.scope, attempts/len(levels), strictDraw)
		over := m.overshoot(level.scope, share(limit, i))
		if over > 0 {
			t.Errorf("%s: the provider's ledger has %d more than a limit", level.scope, over)
		}
		figures = append(figures, level.scope+": spent of its limit, at least", fmt.Sprintf("%.3f %%", 100*filled), "  overshoot, of any, USD", modelgate.Nano(max(over, 0)))
		level.remove()
	}
	took := time.Since(began)
	freed := m.nothingHeld(time.Minute)
	samples := watched()
	m.close()
	all, passed, refused, failed := m.tally()
	if failed > 0 {
		t.Errorf("%d calls had neither an answer nor a refusal", failed)
	}
	m.report("strict budgets, 256 callers, 2 instances, 3 levels", append([]any{
		"attempts", all, "  passed", passed, "  refused", refused, "attempts a second", fmt.Sprintf("%.0f", float64(all)/took.Seconds()),
		"samples of settled + held", samples, "held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()),
	}, figures...)...)
}

// overshoot is how much more than its limit any budget of a scope has, by the
// provider's ledger. Nothing may be under way.
func (m *market) overshoot(scope string, limit int64) int64 {
	bills, spent := m.bills(), map[int]int64{}
	for _, a := range m.made {
		spent[m.group(scope, a)] += bills[a.mark]
	}
	most := -limit
	for _, n := range spent {
		most = max(most, n-limit)
	}
	return most
}

// group numbers the budgets of a scope that an attempt counts towards.
func (m *market) group(scope string, a *attempt) int {
	return map[string]int{"client": 0, "sub_account": m.keys[a.key].sub, "key": a.key}[scope]
}

// TestMoneyEstimate holds budgets that estimate to their bound: a limit is
// passed by one call at most, and by what the estimates of calls that were not
// booked yet were short.
func TestMoneyEstimate(t *testing.T) {
	t.Parallel()
	attempts := size(5_000, 100_000)
	m := newMarket(t, 2, "estimate", nil)
	limit := int64(attempts) / 4 * 150 * outputRate
	began := time.Now()
	figures := []any{}
	watched := m.watch(m.noteBooked)
	for i, level := range m.levels(limit) {
		m.exhaust(level.scope, attempts/3, longDraw)
		share := share(limit, i)
		over, bound := m.judgeEstimates(level.scope, share)
		figures = append(figures, level.scope+": overshoot, at most, USD", modelgate.Nano(over), "  the bound of that, USD", modelgate.Nano(bound), "  of the limit, USD", modelgate.Nano(share))
		level.remove()
	}
	took := time.Since(began)
	watched()
	freed := m.nothingHeld(time.Minute)
	m.close()
	all, passed, refused, failed := m.tally()
	if failed > 0 {
		t.Errorf("%d calls had neither an answer nor a refusal", failed)
	}
	m.report("budgets that estimate, answers of up to 3 times the estimate, 256 callers, 2 instances, 3 levels", append([]any{
		"attempts", all, "  passed", passed, "  refused", refused, "attempts a second", fmt.Sprintf("%.0f", float64(all)/took.Seconds()), "held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()),
	}, figures...)...)
}

// atBest is for how long a call that has ended may not be booked yet where the
// machine has time.
const atBest = time.Second

// noteBooked remembers how much was booked.
func (m *market) noteBooked(at time.Time, all []position) {
	sum := int64(0)
	for _, p := range all {
		if p.scope == "key" {
			sum += p.settled
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.booked = append(m.booked, bookedSum{at, sum})
}

// unbooked is for how long a call that had ended was not booked at the most, as
// was seen: at any sample, all calls up to some have ended that together cost
// what is booked. That is doubled, because an instance may lag alone.
func (m *market) unbooked(bills map[int]int64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := slices.Clone(m.made)
	slices.SortFunc(calls, func(a, b *attempt) int { return a.over.Compare(b.over) })
	lag, next, sum := time.Duration(0), 0, int64(0)
	for _, s := range m.booked {
		for next < len(calls) && sum+bills[calls[next].mark] <= s.sum {
			sum += bills[calls[next].mark]
			next++
		}
		if next < len(calls) {
			lag = max(lag, s.at.Sub(calls[next].over))
		}
	}
	return max(atBest, 2*lag)
}

// judgeEstimates compares what each budget of a scope has spent with its
// bound, both by the provider's ledger. Nothing may be under way.
func (m *market) judgeEstimates(scope string, limit int64) (worst, boundOfWorst int64) {
	m.Helper()
	bills := m.bills()
	unbooked := m.unbooked(bills)
	groups := map[int][]*attempt{}
	for _, a := range m.made {
		if a.status != http.StatusOK {
			continue
		}
		group := m.group(scope, a)
		groups[group] = append(groups[group], a)
	}
	worst = -limit
	for group, calls := range groups {
		spent, last := int64(0), calls[0]
		for _, a := range calls {
			spent += bills[a.mark]
			if a.begun.After(last.begun) {
				last = a
			}
		}
		bound := last.estimate()
		for _, a := range calls {
			if a.begun.Before(last.over) && a.over.Add(unbooked).After(last.begun) {
				bound += max(0, bills[a.mark]-a.estimate())
			}
		}
		if spent-limit > bound {
			m.Errorf("%s %d: %d spent of %d, want at most %d more", scope, group, spent, limit, bound)
		}
		if spent-limit > worst {
			worst, boundOfWorst = spent-limit, bound
		}
	}
	return worst, boundOfWorst
}
