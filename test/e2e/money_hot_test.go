package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sort"
	"testing"
	"time"

	"modelgate"
)

// budgetStatements are those that reserve and give back. What books the rows
// of calls is not among them.
func budgetStatements() []string {
	return []string{
		"sqlRaiseHeld", "sqlLowerHeld", "sqlNewSpend", "sqlLeft", "sqlChangeLease", "sqlMadeChange", "sqlEndLease",
		"sqlLeasesOfInstance", "sqlLeaseHolders", "sqlNoteSilence", "sqlGiveUpHolder", "sqlRenewLeases", "sqlForgetHolder",
	}
}

// remainder is what is left of the budgets at a time, by scope and id.
type remainder struct {
	at   time.Time
	left map[string]int64
}

// TestMoneyHot: an organization that calls all the time costs the database
// next to nothing, and is not refused while there is money.
func TestMoneyHot(t *testing.T) {
	t.Parallel()
	rate, length := size(150, 1500), size(8*time.Second, 60*time.Second)
	var valves []*valve
	m := newMarket(t, 2, "estimate", func(_ int, database string) string {
		v, url := newValve(t, database)
		valves = append(valves, v)
		return url
	})
	const tokens = 100
	draw := func(random *rand.Rand, a *attempt) {
		a.limit, a.output = tokens, random.Int64N(tokens+1)
	}
	near := 20 * (&attempt{limit: tokens}).estimate()
	calls := int64(float64(rate) * length.Seconds())
	limit := calls * tokens / 2 * outputRate
	m.budgets(10*limit, 10*limit, 10*limit)
	paced := func(n int) {
		began, first := time.Now(), m.marks.Load()
		m.trade(func(random *rand.Rand, a *attempt) {
			draw(random, a)
			time.Sleep(time.Until(began.Add(time.Duration(float64(int64(a.mark)-first) / float64(rate) * float64(time.Second)))))
		}, func() bool { return m.marks.Load() >= first+int64(n) })
	}
	paced(3 * rate) // the organization is known, and how much it uses

	count := func() (n int64) {
		for _, v := range valves {
			n += v.count(budgetStatements()...)
		}
		return n
	}
	var samples []remainder
	var plenty time.Duration // how long there was more than near
	var asked int64          // statements meanwhile
	began, before := time.Now(), count()
	then, so := began, before
	watched := m.watch(func(at time.Time, all []position) {
		r, n := remainder{at: at, left: map[string]int64{}}, count()
		for _, p := range all {
			r.left[p.scope+p.id] = p.limit - p.settled - p.held
		}
		samples = append(samples, r)
		if r.left["client"+string(m.client)] > near {
			plenty += at.Sub(then)
			asked += n - so
		}
		then, so = at, n
	})
	paced(int(calls / 2))
	calm, calmTime := count()-before, time.Since(began)
	limit = m.settled() + limit*3/10 // is used up after three fifths of what follows
	m.budgets(limit, 0, 0)
	paced(int(calls / 2))
	watched()
	took, rest := time.Since(began), count()-before-asked
	m.nothingHeld(time.Minute)
	refused, passed, wrong, waited := 0, 0, 0, 0
	for _, a := range m.made {
		switch a.status {
		case http.StatusOK:
			passed++
		case http.StatusPaymentRequired:
			refused++
			if !m.wasNear(samples, a, near) {
				wrong++
			}
		case http.StatusServiceUnavailable:
			waited++ // the database did not answer in time, which says nothing of money
		default:
			t.Errorf("a call had the outcome %d after %v: %s", a.status, a.over.Sub(a.begun), a.answer)
		}
	}
	m.close()
	if waited > passed/10 {
		t.Errorf("%d calls found no answer from the database in time, and %d passed", waited, passed)
	}
	if wrong > 0 {
		t.Errorf("%d of %d refusals came while more than 20 reservations were left", wrong, refused)
	}
	perSecond, calmPerSecond := float64(asked)/plenty.Seconds(), float64(calm)/calmTime.Seconds()
	// A small limit has no middle, and in a short run the leases are still growing
	// to what is used; asking for each call would take more than 450 a second.
	if worst, most := size(calmPerSecond, max(perSecond, calmPerSecond)), size(45.0, 20.0); worst > most {
		t.Errorf("%.1f budget statements a second, want at most %.0f", worst, most)
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	m.report("a hot organization with budgets at three levels on 2 instances", "calls a second", fmt.Sprintf("%.0f", float64(calls)/took.Seconds()),
		"  passed", passed, "  refused", refused, "  refused with more than 20 R left", wrong, "  without an answer from the database", waited, "limit, USD", modelgate.Nano(limit), "20 R, USD", modelgate.Nano(near),
		"seconds with more than 20 R left", fmt.Sprintf("%.1f", plenty.Seconds()), "  budget statements a second", fmt.Sprintf("%.2f", perSecond),
		"  and before the limit was lowered", fmt.Sprintf("%.2f", calmPerSecond),
		"  and after that", fmt.Sprintf("%.2f", float64(rest)/(took-plenty).Seconds()), "samples", len(samples))
}

// wasNear reports whether, while the call was made or a second before, for a
// refusal is remembered for 250 ms and its answer may have been on its way, any
// of its budgets had no more than near left. The samples around that count too,
// for what was between them.
func (m *market) wasNear(samples []remainder, a *attempt, near int64) bool {
	key := m.keys[a.key]
	from, to := a.begun.Add(-time.Second), a.over
	first := sort.Search(len(samples), func(i int) bool { return samples[i].at.After(from) })
	for _, s := range samples[max(first-1, 0):] {
		if min(s.left["client"+string(m.client)], s.left["sub_account"+m.subs[key.sub]], s.left["key"+key.id]) <= near {
			return true
		}
		if s.at.After(to) {
			break
		}
	}
	return false
}
