package e2e

import (
	"fmt"
	"testing"
	"time"

	"modelgate"
)

// TestMoneyWallet lets 64 callers on two instances burst at wallets that hold less
// than they reserve at once, again and again. No wallet is ever below zero, and what
// was taken off it is what its rows come to, and what the provider served.
func TestMoneyWallet(t *testing.T) {
	t.Parallel()
	const markup, small = 50, 60_000_000 // percent; about 16 reservations
	rounds, attempts := size(3, 60), size(300, 600)
	m := newMarket(t, 2, "strict", nil)
	m.callers, m.refusal = 64, `{"error":{"type":"insufficient_balance"`
	for _, id := range m.subs {
		m.manage("PATCH", "/gw/subaccounts/"+id, fmt.Sprintf(`{"markup_pct":%d}`, markup))
		m.manage("PUT", "/gw/wallets/"+id, `{"enabled":true}`)
	}
	watched := m.watch(m.neverAbove)
	for i := range rounds {
		for _, id := range m.subs {
			m.manage("POST", "/gw/wallets/"+id+"/entries", fmt.Sprintf(`{"kind":"purchase","amount_usd":%s,"external_id":"round-%d"}`, modelgate.Nano(small), i))
		}
		until := m.marks.Load() + int64(attempts)
		m.trade(strictDraw, func() bool { return m.marks.Load() >= until })
	}
	samples := watched()
	freed := m.nothingHeld(time.Minute)
	least, limit := m.filled("sub_account"), int64(rounds)*small
	bills, served := m.bills(), map[int]int64{}
	for _, a := range m.made {
		served[m.keys[a.key].sub] += bills[a.mark] * (100 + markup) / 100
	}
	over := -limit
	for i, id := range m.subs {
		var debits, settled int64
		if err := m.db.QueryRow(`SELECT (SELECT CAST(SUM(wallet_debit) AS BIGINT) FROM usage_row WHERE sub_account_id = $1),
			(SELECT settled FROM spend WHERE scope = 'sub_account' AND scope_id = $1 AND period = 'total')`, id).Scan(&debits, &settled); err != nil {
			t.Fatal(err)
		}
		if debits != settled || debits != served[i] {
			t.Errorf("%s: rows come to %d, taken off were %d, the provider served %d", id, debits, settled, served[i])
		}
		over = max(over, debits-limit)
	}
	if over > 0 {
		t.Errorf("a wallet is %d below zero", over)
	}
	m.close()
	all, passed, refused, failed := m.tally()
	if failed > 0 || refused == 0 || least < 0.5 {
		t.Errorf("%d calls had neither an answer nor a refusal, %d were refused, and %.2f %% of a wallet was spent", failed, refused, 100*least)
	}
	m.report(fmt.Sprintf("two small wallets, 64 callers, 2 instances, strict, filled %d times", rounds),
		"attempts", all, "  passed", passed, "  refused", refused, "samples of settled + held, none above", samples,
		"spent of what was paid in, at least", fmt.Sprintf("%.2f %%", 100*least), "below zero, at most, USD", modelgate.Nano(max(over, 0)),
		"held back to 0 after s", fmt.Sprintf("%.2f", freed.Seconds()))
}
