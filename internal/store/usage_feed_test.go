package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// odd are rows with everything that makes rows differ.
func odd(client modelgate.ClientID) []modelgate.UsageRow {
	rows := make([]modelgate.UsageRow, 40)
	for i := range rows {
		r := row(client, 40-i)
		switch i % 8 {
		case 1:
			r.CallBegin.Provider, r.CallBegin.Model, r.Slug, r.Author = "nul\x00", "bad\xff", "", ""
		case 2:
			r.Attribution, r.ViaSDK = nil, true
		case 3:
			r.Attribution = map[string]string{"a": `"quoted"`, "b": strings.Repeat("long", 300)}
		case 4:
			r.StatusCode, r.ParseStatus, r.Usage, r.Cost = 502, modelgate.ParseUnknown, modelgate.Usage{}, 0
		case 5:
			r.SubAccountID, r.ClientID = "s", "other"
		case 6:
			r.PriceLabel, r.KeyID, r.FirstByteMS = "", "", 0
		case 7:
			r.Usage.ServiceTier = "flex"
		}
		rows[i] = r
	}
	return rows
}

// TestFeedInsertsWhatSingleRowsInsert compares the tables that the two ways
// lead to, column by column.
func TestFeedInsertsWhatSingleRowsInsert(t *testing.T) {
	t.Parallel()
	stored := func(insert func(*DB) usageInsertion) (lines []string) {
		db := open(t, options(t, "sqlite"))
		_, err := db.recordBy(t.Context(), Batch{Instance: "i", Rows: odd("c"), Progress: Position{0, 1}}, insert(db))
		must(t, err)
		lines, err = sqldb.List(t.Context(), db.read, sqldb.ScanText, `SELECT concat_ws('|', `+usageColumns+`, typeof(via_sdk), typeof(id)) FROM usage_row ORDER BY 1`)
		must(t, err)
		return lines
	}
	fed, single := stored(func(db *DB) usageInsertion { return db.feed.insert }), stored(func(db *DB) usageInsertion { return db.insertUsageSingly })
	if len(fed) != 40 || len(single) != 40 {
		t.Fatalf("%d rows fed and %d inserted singly, want 40", len(fed), len(single))
	}
	for i := range fed {
		if fed[i] != single[i] {
			t.Errorf("row %d is\n%s\nby the feed, and\n%s\nby itself", i, fed[i], single[i])
		}
	}
}

// TestFeedInsertsAllOrNothing: what the feed cannot insert leaves no row, and
// no row in the feed.
func TestFeedInsertsAllOrNothing(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "sqlite"))
	spoiled, ended := odd("c"), context.Canceled
	spoiled[39].Cost = -1
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	known := odd("c")
	known[20] = known[10]
	for name, c := range map[string]struct {
		ctx  context.Context
		rows []modelgate.UsageRow
		want error
	}{
		"spoiled": {t.Context(), spoiled, sqldb.ErrValue},
		"known":   {t.Context(), known, errKnown},
		"ended":   {cancelled, odd("c"), ended},
	} {
		err := db.handle.UpdateOnce(t.Context(), func(tx *sql.Tx) error {
			return db.feed.insert(c.ctx, tx, c.rows, func(r *modelgate.UsageRow) { t.Errorf("%s: %s counts as inserted", name, r.ID) })
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: insert = %v, want %v", name, err, c.want)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM usage_row"); n != 0 || db.feed.groups != nil || db.feed.err != nil {
			t.Errorf("%s: %d rows are there, and %d groups in the feed (%v)", name, n, len(db.feed.groups), db.feed.err)
		}
	}
	if n := book(t, db, "i", known...); n != 39 {
		t.Errorf("Record of a batch with one row twice = %d, want 39", n)
	}
	if n := book(t, db, "i", odd("c")...); n != 1 {
		t.Errorf("Record of a batch with one new row = %d, want 1", n)
	}
}

// TestFeedCountsWhatSingleStatementsCount compares counters, leases and latency histograms
// that the two ways lead to.
func TestFeedCountsWhatSingleStatementsCount(t *testing.T) {
	t.Parallel()
	stored := func(feed bool) (lines []string) {
		db := open(t, options(t, "sqlite"))
		if !feed {
			db.feed, db.handle.Feed = nil, nil
		}
		rows := odd("c")
		rows[3].KeyID, rows[5].KeyID = "nul\x00", "bad\xff"
		must(t, db.update(t.Context(), "slices", func(tx *sql.Tx) error {
			for i, id := range []string{"c", "k"} {
				level := []modelgate.Level{modelgate.LevelClient, modelgate.LevelKey}[i]
				_, err := tx.ExecContext(t.Context(), `INSERT INTO spend (client_id, scope, scope_id, period, period_start, settled, held)
VALUES ('c', $1, $2, 'total', 0, 0, 1000)`, level, id)
				if err != nil {
					return err
				}
				_, err = tx.ExecContext(t.Context(), `INSERT INTO slice (client_id, scope, scope_id, period, period_start, instance, granted, seq, amount)
VALUES ('c', $1, $2, 'total', 0, 'i', 1000, 1, 1000)`, level, id)
				if err != nil {
					return err
				}
			}
			return nil
		}))
		for i := range rows {
			rows[i].Holds = rows[i].Holds.Add(&modelgate.Budget{Level: modelgate.LevelClient, Period: modelgate.Total})
		}
		for _, part := range [][]modelgate.UsageRow{rows[:1], rows[1:30], rows[30:]} {
			book(t, db, "i", part...)
		}
		for _, query := range []string{
			"SELECT concat_ws('|', client_id, scope, scope_id, period, period_start, settled, held) FROM spend ORDER BY 1",
			"SELECT concat_ws('|', client_id, scope, scope_id, hour, latency_class, requests, errors, total_tokens, cost, latency_ms, typeof(client_id), typeof(hour)) FROM latency_histogram ORDER BY 1",
			"SELECT concat_ws('|', client_id, scope, scope_id, period, period_start, instance, granted, seq, amount) FROM slice ORDER BY 1",
		} {
			some, err := sqldb.List(t.Context(), db.read, sqldb.ScanText, query)
			must(t, err)
			if len(some) == 0 {
				t.Errorf("nothing for %s", query)
			}
			lines = append(lines, some...)
		}
		return lines
	}
	if fed, single := stored(true), stored(false); !slices.Equal(fed, single) {
		t.Errorf("by the feed\n%s\nby single statements\n%s", strings.Join(fed, "\n"), strings.Join(single, "\n"))
	}
}

// TestFeedFindsLeasesByTheirKey: each tuple is looked for, not each lease.
func TestFeedFindsLeasesByTheirKey(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "sqlite"))
	plan, err := sqldb.List(t.Context(), db.write, func(s sqldb.Scanner) (line string, err error) {
		var id, parent, unused int
		err = s.Scan(&id, &parent, &unused, &line)
		return line, err
	}, "EXPLAIN QUERY PLAN "+queries(t)["sqlSQLiteLeaseSpend"])
	must(t, err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "SEARCH slice USING PRIMARY KEY (client_id=?") {
		t.Errorf("the plan is\n%s", text)
	}
}
