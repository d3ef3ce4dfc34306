package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/stats"
)

// TestCompactionBesideBooking has instances book while others compact: whoever asks for
// statistics meanwhile finds each call once.
func TestCompactionBesideBooking(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		const instances, batches, size = 3, 25, 12
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 3).ID
		var begun, booked atomic.Int64
		var booking, beside sync.WaitGroup
		for i := range instances {
			booking.Go(func() {
				for n := range batches {
					rows := make([]modelgate.UsageRow, size)
					for j := range rows {
						rows[j] = row(client, (i*batches+n)*size+j)
						rows[j].KeyID, rows[j].Attribution = key, map[string]string{"user": fmt.Sprint(j * n)}
					}
					begun.Add(size)
					if _, err := db.Record(t.Context(), Batch{Instance: fmt.Sprint(i), Rows: rows, Progress: Position{Offset: int64(n + 1)}}); err != nil {
						t.Errorf("Record = %v", err)
					}
					booked.Add(size)
				}
			})
		}
		done := make(chan struct{})
		until := func(step func()) {
			beside.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						step()
					}
				}
			})
		}
		for most := range 2 {
			until(func() {
				if _, err := db.CompactRollups(t.Context(), []modelgate.ClientID{client, "nobody"}, 3+most); err != nil {
					t.Errorf("CompactRollups = %v", err)
				}
			})
		}
		until(func() {
			least, found := booked.Load(), int64(0)
			buckets, err := db.Stats(t.Context(), client, StatsQuery{GroupBy: "user", Since: noon.AddDate(0, 0, -30)})
			for _, b := range buckets {
				found += b.Requests
			}
			if most := begun.Load(); err != nil || found < least || found > most {
				t.Errorf("statistics of %d calls (%v), want between %d and %d", found, err, least, most)
			}
		})
		booking.Wait()
		close(done)
		beside.Wait()
		wantStats(t, db, client, StatsQuery{GroupBy: "user", Since: noon.AddDate(0, 0, -30)})
		wantReconciled(t, db)
		compactAll(t, db)
		wantStats(t, db, client, StatsQuery{GroupBy: "user", Since: noon.AddDate(0, 0, -30)})
		wantReconciled(t, db)
	})
}

// TestCompactionBounds is how much one transaction does.
func TestCompactionBounds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 3).ID
		for hour := range 4 {
			rows := make([]modelgate.UsageRow, stats.CompactionEntries/6)
			for i := range rows {
				rows[i] = row(client, hour*len(rows)+i)
				rows[i].At = noon.Add(-time.Duration(hour) * time.Hour)
				rows[i].KeyID, rows[i].Attribution = key, map[string]string{"a": fmt.Sprint(i), "b": fmt.Sprint(i), "c": fmt.Sprint(i)}
			}
			book(t, db, "i", rows...)
			late := row(client, 100_000+hour)
			late.KeyID, late.At = key, rows[0].At
			book(t, db, "i", late)
		}
		for step, want := range []struct {
			most int
			left int64
			more bool
		}{{100, 4, true}, {3, 1, true}, {1, 0, false}, {1, 0, false}} {
			more, err := db.CompactRollups(t.Context(), []modelgate.ClientID{client}, want.most)
			must(t, err)
			if left := rowsIn(t, db, "rollup_delta"); left != want.left || more != want.more {
				t.Errorf("step %d left %d deltas, more: %t; want %d, %t", step, left, more, want.left, want.more)
			}
		}
		wantReconciled(t, db)
	})
}

// TestCompactionOfDamagedDeltas leaves everything as it is, and tells whose it is.
func TestCompactionOfDamagedDeltas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		book(t, db, "i", row(client, 1), row(client, 2))
		must(t, exec(db, "UPDATE rollup_delta SET data = $1", []byte{stats.PageFormat, 9}))
		if _, err := db.CompactRollups(t.Context(), []modelgate.ClientID{client}, 9); !errors.Is(err, stats.ErrPage) {
			t.Errorf("CompactRollups = %v, want %v", err, stats.ErrPage)
		}
		if pages, deltas := rowsIn(t, db, "rollup"), rowsIn(t, db, "rollup_delta"); pages != 0 || deltas == 0 {
			t.Errorf("%d pages and %d deltas are left", pages, deltas)
		}
		if _, err := db.Stats(t.Context(), client, StatsQuery{GroupBy: "day", Since: noon.AddDate(0, 0, -1)}); !errors.Is(err, stats.ErrPage) {
			t.Errorf("Stats = %v, want %v", err, stats.ErrPage)
		}
	})
}
