package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
)

// TestPrune takes the oldest rows away in small steps. The books hold and
// statistics are the sum of what is left, throughout.
func TestPrune(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, client, 11).ID
		key, plain := issue(t, db, client, sub, 21).ID, issue(t, db, other, "", 22).ID
		var rows []modelgate.UsageRow
		for n := range 120 {
			r := row(client, n)
			r.At, r.KeyID, r.SubAccountID = noon.Add(-time.Duration(n)*time.Hour), key, sub
			r.Attribution = map[string]string{"user": fmt.Sprint(n % 40)}
			rows = append(rows, r)
		}
		young := row(other, 500)
		young.KeyID = plain
		book(t, db, "i", append(rows, young)...)
		compactAll(t, db)
		before := noon.Add(-30 * time.Hour) // its day is 2026-11-29
		for _, want := range [][]modelgate.ClientID{{client}, {}} {
			got, err := db.Prunable(t.Context(), before)
			must(t, err)
			if !slices.Equal(got, want) {
				t.Errorf("Prunable = %v, want %v", got, want)
			}
			gone := int64(0)
			for more, steps := len(want) > 0, 0; more; steps++ {
				var n int64
				n, more, err = db.Prune(t.Context(), client, before, 25)
				must(t, err)
				if gone += n; n > 25 || steps > 400 {
					t.Fatalf("step %d took %d rows", steps, n)
				}
				wantReconciled(t, db)
				wantStats(t, db, client, StatsQuery{GroupBy: "user", Since: noon.Add(-20 * time.Hour)})
			}
			if len(want) > 0 && gone != 120-37 {
				t.Errorf("%d rows went, want 83: those before 2026-11-29", gone)
			}
		}
		for _, g := range []modelgate.GroupBy{"day", "user", "provider"} {
			wantStats(t, db, client, StatsQuery{GroupBy: g, Since: noon.Add(-1000 * time.Hour)})
			wantStats(t, db, client, StatsQuery{GroupBy: g, SubAccountID: sub, Since: noon.Add(-1000 * time.Hour)})
		}
		for _, table := range []string{"rollup WHERE start", "latency_histogram WHERE hour", "usage_row WHERE created_at"} {
			if n := number(t, db, "SELECT COUNT(*) FROM "+table+" < $1", sqldb.Micros(Cutoff(before))); n != 0 {
				t.Errorf("%d of %s lie before the cutoff", n, table)
			}
		}
		if n, _, err := db.Prune(t.Context(), other, before, 25); n != 0 || err != nil {
			t.Errorf("Prune of what is young = %d, %v", n, err)
		}
		ever, err := db.Spend(t.Context(), client, modelgate.LevelClient, string(client), spend.Period{Period: modelgate.Total})
		must(t, err)
		if ever != 120*1000 {
			t.Errorf("what was ever spent = %v after pruning", ever)
		}
	})
}

// TestReconcileFindsWrongRollups damages rollups in every way.
func TestReconcileFindsWrongRollups(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		var rows []modelgate.UsageRow
		for n := range 120 {
			r := row(client, n*60)
			r.KeyID, r.Attribution = key, map[string]string{"user": fmt.Sprint(n % 80), "team": "search"}
			rows = append(rows, r)
		}
		book(t, db, "i", rows[:80]...)
		compactAll(t, db)
		book(t, db, "i", rows[80:]...)
		wantReconciled(t, db)
		wrong := stats.Page{}
		wrong.Add("user7\x00openai", stats.Sums{Requests: 1, Tokens: 1, Cost: 1})
		for name, damage := range map[string]func() error{
			"a page is gone": func() error {
				return exec(db, "DELETE FROM rollup WHERE grain = 'day' AND dimension = 'user' AND part = 3")
			},
			"a root is gone": func() error { return exec(db, "DELETE FROM rollup WHERE grain = 'hour' AND dimension = ''") },
			"a page is another": func() error {
				return exec(db, "UPDATE rollup SET data = $1 WHERE dimension = 'user' AND part = 5 AND grain = 'day'", wrong.Encode())
			},
			"an hour is another": func() error { return exec(db, "UPDATE rollup SET start = start + 7200000000 WHERE grain = 'hour'") },
			"a delta is gone": func() error {
				return exec(db, "DELETE FROM rollup_delta WHERE hour = (SELECT MAX(hour) FROM rollup_delta)")
			},
			"a row is gone": func() error { return exec(db, "DELETE FROM usage_row WHERE id = $1", rows[5].CallBegin.ID.String()) },
			"a row costs more": func() error {
				return exec(db, "UPDATE usage_row SET cost = cost + 1 WHERE id = $1", rows[6].CallBegin.ID.String())
			},
		} {
			must(t, exec(db, "CREATE TABLE kept AS SELECT * FROM rollup"))
			must(t, exec(db, "CREATE TABLE kept_row AS SELECT * FROM usage_row"))
			must(t, exec(db, "CREATE TABLE kept_delta AS SELECT * FROM rollup_delta"))
			must(t, damage())
			found, err := db.Reconcile(t.Context(), client)
			must(t, err)
			n := 0
			for _, d := range found {
				if d.What == "rollup" {
					n++
				}
			}
			if n == 0 {
				t.Errorf("%s: Reconcile = %v", name, found)
			}
			for _, restore := range []string{"DELETE FROM rollup", "INSERT INTO rollup SELECT * FROM kept", "DROP TABLE kept",
				"DELETE FROM usage_row", "INSERT INTO usage_row SELECT * FROM kept_row", "DROP TABLE kept_row",
				"DELETE FROM rollup_delta", "INSERT INTO rollup_delta SELECT * FROM kept_delta", "DROP TABLE kept_delta"} {
				must(t, exec(db, restore))
			}
		}
		wantReconciled(t, db)
		must(t, exec(db, "UPDATE rollup SET data = $1", []byte("?")))
		if _, err := db.Reconcile(t.Context(), client); err == nil {
			t.Error("Reconcile of damaged pages succeeds")
		}
		if _, err := db.Stats(t.Context(), client, StatsQuery{GroupBy: "day", Since: noon.Add(-30 * time.Hour)}); err == nil {
			t.Error("Stats of damaged pages succeeds")
		}
	})
}

func exec(db *DB, query string, args ...any) error {
	_, err := db.write.ExecContext(context.Background(), query, args...)
	return err
}

// TestFilteredUsageIsThatOfAll holds pages with filters against the whole
// list.
func TestFilteredUsageIsThatOfAll(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		clients := []modelgate.ClientID{createClient(t, db, 1), createClient(t, db, 2)}
		calls, offset := 0, int64(0)
		rapid.Check(t, func(rt *rapid.T) {
			var rows []modelgate.UsageRow
			for range rapid.IntRange(0, 20).Draw(rt, "rows") {
				calls++
				r := randomRow(rt, clients, calls%5000)
				r.ParseStatus = rapid.SampledFrom(modelgate.AllParseStatuses()).Draw(rt, "status")
				rows = append(rows, r)
			}
			offset++
			if _, err := db.Record(t.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}}); err != nil {
				rt.Fatalf("Record = %v", err)
			}
			q := drawQuery(rt)
			client := rapid.SampledFrom(clients).Draw(rt, "whose")
			l := UsageList{
				SubAccountID: q.SubAccountID, Provider: q.Provider, Since: q.Since,
				ParseStatus: modelgate.ParseStatus(rapid.SampledFrom([]string{"", "ok", "partial", "fine"}).Draw(rt, "of status")),
			}
			all, _, err := db.Usage(t.Context(), client, UsageList{})
			if err != nil {
				rt.Fatal(err)
			}
			var want []modelgate.UUID
			for i := range all {
				if l.matches(&all[i]) {
					want = append(want, all[i].CallBegin.ID)
				}
			}
			var got []modelgate.UUID
			l.Limit = rapid.IntRange(1, 9).Draw(rt, "limit")
			for more := true; more; {
				var part []modelgate.UsageRow
				if part, more, err = db.Usage(t.Context(), client, l); err != nil {
					rt.Fatal(err)
				}
				for _, r := range part {
					got = append(got, r.CallBegin.ID)
					l.After = &sqldb.Cursor{At: r.At, ID: r.CallBegin.ID.String()}
				}
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("%+v: %d rows, want %d", l, len(got), len(want))
			}
		})
	})
}

// TestLateRowsTakeTurnsWithPruning: a row that is old enough to be pruned is
// not booked in the middle of a step of pruning; others do not wait for it.
func TestLateRowsTakeTurnsWithPruning(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "postgres"))
	client := createClient(t, db, 1)
	book(t, db, "i", row(client, 1))
	compactAll(t, db)
	late, young := row(client, 2), row(client, 3)
	late.At = noon.Add(-63 * 24 * time.Hour)
	tx, err := db.write.BeginTx(t.Context(), nil)
	must(t, err)
	defer tx.Rollback()
	must(t, db.lockHeads(t.Context(), tx, []modelgate.ClientID{client}))
	book(t, db, "j", young)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if n, err := db.Record(ctx, Batch{Instance: "k", Rows: []modelgate.UsageRow{late}, Progress: Position{1, 1}}); err == nil {
		t.Errorf("%d late rows were booked while the client is pruned", n)
	}
	must(t, tx.Rollback())
	book(t, db, "k", late)
}
