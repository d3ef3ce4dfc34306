package store

import (
	"maps"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

// countersOf is how many counters the rules of a client have.
func countersOf(t testing.TB, db *DB, client modelgate.ClientID) (n int) {
	t.Helper()
	must(t, db.read.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM spend WHERE client_id = $1 AND scope = 'rule'`, string(client)).Scan(&n))
	return n
}

// Counters of windows that are over go, in steps. What is held, what has no end
// and what plain budgets count stay, and so do the counters of other clients.
func TestForgetCounters(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		for _, p := range []modelgate.Period{modelgate.Day, modelgate.Week, modelgate.Month, modelgate.Ever} {
			putRule(t, db, client, rule(t, client, "tag:end_user=*", p, 1_000_000))
		}
		putRule(t, db, other, rule(t, other, "tag:end_user=*", modelgate.Day, 1_000_000))
		hard := rule(t, client, "tag:team=a", modelgate.Day, 1_000_000)
		hard.Mode = modelgate.Hard
		putRule(t, db, client, hard)
		key := map[modelgate.ClientID]modelgate.KeyID{client: issue(t, db, client, "", 21).ID, other: issue(t, db, other, "", 22).ID}
		n := 0
		call := func(c modelgate.ClientID, user string, at time.Time) {
			n++
			r := row(c, n)
			r.At, r.Cost, r.KeyID = at, 5, key[c]
			r.Attribution = map[string]string{"end_user": user, "team": "a", "key_id": string(key[c])}
			book(t, db, "i", r)
		}
		old, now := noon.Add(time.Hour), noon.AddDate(0, 0, 40)
		for _, user := range []string{"u1", "u2", "u3"} {
			call(client, user, old)
			call(client, user, now)
		}
		call(other, "u1", old)
		list, err := db.ClientsWithRules(t.Context())
		must(t, err)
		if len(list) != 2 {
			t.Errorf("clients with rules: %v", list)
		}
		// Of the old day an instance holds something.
		held := modelgate.Counter{ClientID: client, Level: modelgate.LevelRule, Period: modelgate.Day, Start: modelgate.Day.StartMicros(old)}
		must(t, db.read.QueryRowContext(t.Context(), `SELECT number FROM rule WHERE client_id = $1 AND match_text = 'tag:team=a'`, string(client)).Scan(&held.Rule))
		answers, err := db.Lease(t.Context(), "i", []modelgate.Ask{{Counter: held, Least: 10, Most: 10, Room: 10, Seq: 1}})
		must(t, err)
		if answers[0].Granted != 10 {
			t.Fatalf("the lease: %+v", answers)
		}
		before := countersOf(t, db, client)
		spent := func() map[modelgate.Period]int {
			list, err := db.Budgets(t.Context(), client, spend.BudgetList{At: now})
			must(t, err)
			out := make(map[modelgate.Period]int)
			for _, b := range list {
				out[b.Period] += len(b.Values)*1000 + int(b.Spend)
			}
			return out
		}
		said := spent()
		forget := func(want int64) {
			t.Helper()
			got, err := db.ForgetCounters(t.Context(), client, now.AddDate(0, 0, -7), 5)
			if err != nil || got != want {
				t.Errorf("forgot %d, %v, want %d", got, err, want)
			}
		}
		forget(5)
		forget(4) // three users in a day, a week and a month
		forget(0)
		if left := countersOf(t, db, client); left != before-9 {
			t.Errorf("%d counters of %d are left", left, before)
		}
		if says := spent(); !maps.Equal(says, said) {
			t.Errorf("the list says %v, and said %v", says, said)
		}
		if countersOf(t, db, other) != 1 {
			t.Error("the counters of another client are gone")
		}
		db.now = func() time.Time { return now }
		reconciled(t, db, client)
	})
}
