package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"modelgate"
)

// rules sets a budget of each kind that has counters of its own: of an
// attribution pair, of each end user, of models, over a week and for ever.
func (m *market) rules(limit int64) {
	m.Helper()
	put := func(body string, times int64) {
		m.manage("PUT", "/gw/budgets", fmt.Sprintf(`{%s,"limit_usd":%s}`, body, modelgate.Nano(limit*times)))
	}
	put(`"scope":"client","period":"day","match":"tag:team=a"`, 1)
	put(`"scope":"client","window":"week","match":"tag:end_user=*"`, 1)
	put(fmt.Sprintf(`"scope":"key","id":%q,"window":"week"`, m.keys[2].id), 1)
	put(fmt.Sprintf(`"scope":"sub_account","id":%q,"window":"total"`, m.subs[1]), 2)
	put(`"scope":"client","window":"total","match":"model:acme/*"`, 7)
}

// rulePositions reads the counters of all rules in one statement.
func (m *market) rulePositions() []position {
	rows, err := m.db.QueryContext(m.Context(), `SELECT r.period || ' ' || r.match_text, s.scope_id, s.settled, s.held, r.amount
		FROM rule r JOIN spend s ON s.client_id = r.client_id AND s.scope = 'rule' AND s.period = r.period AND s.scope_id LIKE r.number || '/%'`)
	if err != nil {
		if m.Context().Err() == nil { // else the test has ended
			m.Error(err)
		}
		return nil
	}
	defer rows.Close()
	var all []position
	for rows.Next() {
		var p position
		if err := rows.Scan(&p.scope, &p.id, &p.settled, &p.held, &p.limit); err != nil {
			m.Error(err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		m.Error(err)
	}
	return all
}

// TestMoneyRules kills an instance that holds leases of strict budgets of every
// kind, while their limits are used up and raised again.
func TestMoneyRules(t *testing.T) {
	t.Parallel()
	kills := size(2, 20)
	m := newMarket(t, 2, "strict", nil)
	limit := int64(40) * 125 * outputRate
	m.rules(limit)
	watched := m.watch(func(at time.Time, _ []position) { m.neverAbove(at, m.rulePositions()) })
	over := make(chan struct{})
	go func() {
		defer close(over)
		m.lives(kills)
	}()
	raised := make(chan struct{})
	go func() {
		defer close(raised)
		for {
			select {
			case <-over:
				return
			case <-m.Context().Done():
				return
			case <-time.After(500 * time.Millisecond):
				limit += 40 * 125 * outputRate
				m.rules(limit)
			}
		}
	}()
	draw := func(random *rand.Rand, a *attempt) {
		strictDraw(random, a)
		switch a.mark % 3 {
		case 0:
			a.pairs = ",team=a"
		case 1:
			a.pairs = fmt.Sprintf(",end_user=u%d", random.IntN(4))
		}
	}
	m.trade(draw, func() bool {
		select {
		case <-raised:
			return true
		default:
			return false
		}
	})
	freed := m.nothingHeld(90 * time.Second)
	samples := watched()
	counters := map[string]int{}
	for _, p := range m.rulePositions() {
		counters[p.scope]++
		if p.settled > p.limit {
			t.Errorf("%s %s: %d are spent of %d", p.scope, p.id, p.settled, p.limit)
		}
	}
	if counters["week tag:end_user=*"] != 4 || len(counters) != 5 {
		t.Errorf("counters of rules: %v", counters)
	}
	m.close()
	all, passed, refused, failed := m.tally()
	if refused == 0 || failed == 0 || passed == 0 {
		t.Errorf("%d calls passed, %d were refused and %d cut", passed, refused, failed)
	}
	m.report(fmt.Sprintf("kill -9 of an instance that holds leases of budgets with a match or a window, %d times", kills),
		"attempts", all, "  passed", passed, "  refused", refused, "  cut, or nobody listened", failed,
		"samples of settled + held, none above", samples, "held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()))
}
