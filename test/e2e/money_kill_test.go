package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"modelgate"
)

// lives kills the first instance and starts it again on its data, so many
// times.
func (m *market) lives(kills int) {
	m.Helper()
	g := m.gateways[0]
	for range kills {
		select {
		case <-time.After(3 * time.Second):
		case <-m.Context().Done():
			return
		}
		g.Kill()
		g.Start()
		m.targets[0].set(g.URL)
	}
}

// TestMoneyKills kills an instance that holds leases of strict budgets.
func TestMoneyKills(t *testing.T) {
	t.Parallel()
	kills := size(2, 30)
	m := newMarket(t, 2, "strict", nil)
	limit := int64(kills) * 100_000 * 125 * outputRate // more than can be spent meanwhile
	m.budgets(limit, limit, limit)
	watched := m.watch(m.neverAbove)
	over := make(chan struct{})
	go func() {
		defer close(over)
		m.lives(kills)
	}()
	m.trade(strictDraw, func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	restarted, samples := time.Now(), watched()
	if m.filled("client") > 0.9 {
		t.Error("the budget was used up before the last kill")
	}
	freed := m.nothingHeld(90 * time.Second) // once the backlog is booked
	// Of what is left of a lower limit, 99 percent must be there to be spent.
	before := m.settled()
	limit = before + 1_000*125*outputRate
	m.budgets(limit, 0, 0)
	enough := limit - (limit-before)/100
	m.trade(strictDraw, func() bool { return m.settled() >= enough || time.Since(restarted) > 90*time.Second })
	usable := time.Since(restarted)
	m.nothingHeld(time.Minute)
	spent := m.settled()
	if spent < enough || spent > limit {
		t.Errorf("%d of %d are spent %v after the last restart, want at least %d", spent, limit, usable, enough)
	}
	m.close()
	all, passed, refused, failed := m.tally()
	if failed == 0 {
		t.Error("no call was cut: the kills came too late")
	}
	m.report(fmt.Sprintf("kill -9 of an instance that holds leases of strict budgets, %d times", kills),
		"attempts", all, "  passed", passed, "  refused", refused, "  cut, or nobody listened", failed, "samples of settled + held, none above", samples,
		"spent under kills, USD", modelgate.Nano(before), "left by a lowered limit, USD", modelgate.Nano(limit-before),
		"  of it spent", fmt.Sprintf("%.2f %%", 100*float64(spent-before)/float64(limit-before)), "  seconds after the last restart", fmt.Sprintf("%.1f", usable.Seconds()), "held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()))
}

// mishapDraw is a call of which anything can become.
func mishapDraw(random *rand.Rand, a *attempt) {
	strictDraw(random, a)
	a.said = []string{
		"", "", " [[status=500]]", " [[status=429]]", " [[status=400]]", " [[cut=0]]", " [[cut=1]]", " [[no_usage]]", " [[usage_null]]", " [[gzip]]", " [[nonsense]]",
	}[random.IntN(11)]
	if random.IntN(4) == 0 {
		a.leaves = time.Duration(1 + random.IntN(30)*int(time.Millisecond))
	}
}

// TestMoneyLeaks: whatever becomes of calls, nothing they held stays held.
func TestMoneyLeaks(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"estimate", "strict"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			attempts, kills := size(2_000, 40_000), size(1, 5)
			m := newMarket(t, 2, mode, nil)
			limit := int64(attempts) / 8 * 125 * outputRate
			m.budgets(limit, limit*7/10, limit*3/10)
			over := make(chan struct{})
			go func() {
				defer close(over)
				m.lives(kills)
			}()
			m.trade(mishapDraw, func() bool {
				select {
				case <-over:
					return m.marks.Load() >= int64(attempts)
				default:
					return false
				}
			})
			freed := m.nothingHeld(90 * time.Second)
			m.close()
			outcomes := map[int]int{}
			for _, a := range m.made {
				outcomes[a.status]++
			}
			for _, status := range []int{0, http.StatusOK, http.StatusBadRequest, http.StatusPaymentRequired, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway} {
				if outcomes[status] == 0 {
					t.Errorf("no call had the outcome %d", status)
				}
			}
			m.report("errors, cuts, callers that leave and kills, "+mode, "attempts", len(m.made), "outcomes", outcomes, "held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()))
		})
	}
}
