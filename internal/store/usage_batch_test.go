package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/store/spend"
)

func TestRecordSpend(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		today, tomorrow := row(client, 1), row(client, 2)
		today.SubAccountID = "s"
		tomorrow.At = noon.Add(24 * time.Hour) // the next day and the next month
		free := row(client, 3)
		free.Cost, free.KeyID = 0, "idle"
		if n := book(t, db, "i", today, tomorrow, free, today); n != 3 {
			t.Errorf("Record = %d, want 3", n)
		}
		book(t, db, "i", row(client, 4))
		day, next := spend.Period{Period: modelgate.Day, Start: modelgate.Day.Start(noon)}, spend.Period{Period: modelgate.Day, Start: modelgate.Day.Start(tomorrow.At)}
		month := spend.Period{Period: modelgate.Month, Start: modelgate.Month.Start(noon)}
		for _, c := range []struct {
			scope  modelgate.Level
			id     string
			period spend.Period
			want   modelgate.Nano
		}{
			{modelgate.LevelClient, string(client), day, 2000},
			{modelgate.LevelClient, string(client), next, 1000},
			{modelgate.LevelClient, string(client), month, 2000},
			{modelgate.LevelSubAccount, "s", day, 1000},
			{modelgate.LevelSubAccount, "s", month, 1000},
			{modelgate.LevelKey, id(1), month, 2000},
			{modelgate.LevelKey, "idle", month, 0},
			{modelgate.LevelKey, "s", month, 0},
		} {
			got, err := db.Spend(ctx, client, c.scope, c.id, c.period)
			if err != nil || got != c.want {
				t.Errorf("Spend(%s %s, %v) = %d, %v, want %d", c.scope, c.id, c.period, got, err, c.want)
			}
		}
		if got, err := db.Spend(ctx, "other", modelgate.LevelClient, string(client), day); err != nil || got != 0 {
			t.Errorf("another organization reads %d, %v, want 0", got, err)
		}
	})
}

func TestPeriodStart(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 2, 29, 23, 59, 59, 999, time.FixedZone("east", -3600)) // 1 March in UTC
	for p, want := range map[modelgate.Period]time.Time{
		modelgate.Day:   time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC),
		modelgate.Month: time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got := p.Start(at); !got.Equal(want) {
			t.Errorf("%s starts %v, want %v", p, got, want)
		}
	}
	if got := modelgate.Month.Start(noon); !got.Equal(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the month starts %v", got)
	}
}

// TestRecordTwiceAddsNothing sends batches of many sizes again, whole and in
// parts, and from another instance.
func TestRecordTwiceAddsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		rows := make([]modelgate.UsageRow, 150)
		for n := range rows {
			rows[n] = row(client, n)
		}
		want := 0
		for _, part := range [][]modelgate.UsageRow{rows[:1], rows[:66], rows[3:140], rows, rows, nil} {
			before := number(t, db, "SELECT COUNT(*) FROM usage_row")
			n := book(t, db, "i", part...)
			if after := number(t, db, "SELECT COUNT(*) FROM usage_row"); after-before != int64(n) {
				t.Errorf("Record = %d, but %d rows came", n, after-before)
			}
			want += n
		}
		if n := book(t, db, "j", rows...); n != 0 {
			t.Errorf("another instance booked %d rows again", n)
		}
		got, err := db.Spend(ctx, client, modelgate.LevelClient, string(client), spend.Period{Period: modelgate.Day, Start: modelgate.Day.Start(noon)})
		if err != nil || got != 150_000 || want != 150 {
			t.Errorf("%d rows and spend %d, %v, want 150 and 150000", want, got, err)
		}
	})
}

func TestRecordRefusesToGoBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		record := func(n int, p Position) error {
			_, err := db.Record(ctx, Batch{Instance: "i", Rows: []modelgate.UsageRow{row(client, n)}, Progress: p})
			return err
		}
		if _, ok, err := db.SpoolProgress(ctx, "i"); ok || err != nil {
			t.Errorf("SpoolProgress before any = %t, %v", ok, err)
		}
		must(t, record(1, Position{2, 50}))
		must(t, record(1, Position{2, 50})) // sent again
		_, err := db.write.Exec("DELETE FROM usage_row")
		must(t, err)
		for _, p := range []Position{{2, 49}, {1, 9000}, {0, 0}} {
			if err := record(1, p); !errors.Is(err, ErrBehind) || Unreachable(err) || Poisoned(err) {
				t.Errorf("Record at %v = %v, want ErrBehind", p, err)
			}
		}
		if n := number(t, db, "SELECT COUNT(*) FROM usage_row"); n != 0 {
			t.Errorf("%d pruned rows came back", n)
		}
		must(t, record(2, Position{3, 0}))
		got, ok, err := db.SpoolProgress(ctx, "i")
		if want := (Position{3, 0}); err != nil || !ok || got != want {
			t.Errorf("SpoolProgress = %v, %t, %v, want %v", got, ok, err, want)
		}
		if _, err := db.Record(ctx, Batch{}); err == nil {
			t.Error("a batch without an instance was booked")
		}
	})
}

// TestPoisonedRowIsFoundByHalving does what a shipper does.
func TestPoisonedRowIsFoundByHalving(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*modelgate.UsageRow){
		"constraint":    func(r *modelgate.UsageRow) { r.ClientID = "" },
		"negative cost": func(r *modelgate.UsageRow) { r.Cost = -1 },
		"sum too large": func(r *modelgate.UsageRow) { r.Cost = math.MaxInt64 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, db *DB) {
				client := createClient(t, db, 1)
				rows := make([]modelgate.UsageRow, 70)
				for n := range rows {
					rows[n] = row(client, n)
				}
				book(t, db, "i", rows[:10]...)
				spoil(&rows[41])
				offset := int64(100)
				var poison []modelgate.UUID
				var ship func([]modelgate.UsageRow)
				ship = func(part []modelgate.UsageRow) {
					offset++
					_, err := db.Record(t.Context(), Batch{Instance: "i", Rows: part, Progress: Position{1, offset}})
					switch {
					case err == nil:
					case !Poisoned(err) || Unreachable(err):
						t.Fatalf("Record = %v, want it poisoned", err)
					case len(part) == 1:
						poison = append(poison, part[0].CallBegin.ID)
					default:
						ship(part[:len(part)/2])
						ship(part[len(part)/2:])
					}
				}
				ship(rows)
				if d := cmp.Diff([]modelgate.UUID{uuid(41)}, poison); d != "" {
					t.Errorf("poisoned rows (-want +got):\n%s", d)
				}
				if n := number(t, db, "SELECT COUNT(*) FROM usage_row"); n != 69 {
					t.Errorf("%d rows are booked, want 69", n)
				}
				wantReconciled(t, db, "unknown_key")
			})
		})
	}
}

// TestRecordersAtOnce books overlapping batches from several instances, in
// opposite orders, and finds every cost counted once.
func TestRecordersAtOnce(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		var clients [3]modelgate.ClientID
		for n := range clients {
			clients[n] = createClient(t, db, n+1)
		}
		var group sync.WaitGroup
		for _, instance := range []string{"a", "b", "c", "d"} {
			group.Go(func() {
				for batch := range 6 {
					var rows []modelgate.UsageRow
					for n := range 30 {
						if instance > "b" {
							n = 29 - n
						}
						call := batch*20 + n
						rows = append(rows, row(clients[call%3], call))
					}
					_, err := db.Record(t.Context(), Batch{Instance: instance, Rows: rows, Progress: Position{0, int64(batch)}})
					if err != nil {
						t.Errorf("Record = %v", err)
					}
				}
			})
		}
		group.Wait()
		if n := number(t, db, "SELECT COUNT(*) FROM usage_row"); n != 130 {
			t.Errorf("%d rows, want 130", n)
		}
		wantReconciled(t, db, "unknown_key")
	})
}

func TestRecordNothingOfAFailedBatch(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		bad := row("", 2)
		_, err := db.Record(t.Context(), Batch{Instance: "i", Rows: []modelgate.UsageRow{row(client, 1), bad}, Progress: Position{1, 1}})
		if !Poisoned(err) {
			t.Fatalf("Record = %v, want it poisoned", err)
		}
		for _, table := range []string{"usage_row", "spend", "spool_progress"} {
			if n := number(t, db, "SELECT COUNT(*) FROM "+table); n != 0 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := db.Record(ctx, Batch{Instance: "i", Progress: Position{1, 1}}); err == nil || Poisoned(err) {
			t.Errorf("Record by a caller who left = %v", err)
		}
	})
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, client, 11).ID
		mine := issue(t, db, client, sub, 21).ID
		issue(t, db, other, "", 22)
		a, b := row(client, 1), row(client, 2)
		a.KeyID, a.SubAccountID, b.KeyID, b.SubAccountID = mine, sub, mine, sub
		b.At = noon.Add(-40 * 24 * time.Hour)
		c := row(other, 3)
		c.KeyID = modelgate.KeyID(id(22))
		book(t, db, "i", a, b, c)
		if got, err := db.Reconcile(ctx, ""); err != nil || len(got) != 0 {
			t.Fatalf("Reconcile of sound books = %v, %v", got, err)
		}

		stray := row("ghost", 4)
		foreign, moved := row(other, 5), row(client, 6)
		foreign.KeyID, foreign.Cost = mine, 0
		moved.KeyID, moved.Cost = mine, 0
		book(t, db, "i", stray, foreign, moved)
		for _, damage := range []string{
			"DELETE FROM usage_row WHERE id = '" + id(3) + "'",
			"DELETE FROM spend WHERE scope = 'key' AND period = 'month' AND period_start < 1793000000000000",
			"UPDATE spend SET settled = settled + 1 WHERE scope = 'sub_account' AND period = 'day' AND period_start > 1793000000000000",
		} {
			_, err := db.write.Exec(damage)
			must(t, err)
		}
		got, err := db.Reconcile(ctx, "")
		must(t, err)
		got = slices.DeleteFunc(got, func(d Difference) bool {
			return d.What == "latency_histogram" || d.What == "rollup" || strings.HasPrefix(d.What, "evidence") // these have tests of their own
		})
		key, key2 := string(mine), id(22)
		want := []Difference{
			{ClientID: client, What: "spend", Key: "key/" + key + "/month/2026-10-01", Want: 1000, Have: 0},
			{ClientID: client, What: "spend", Key: "sub_account/" + string(sub) + "/day/2026-11-30", Want: 1000, Have: 1001},
			{ClientID: client, What: "wrong_sub_account", Key: key, Want: 0, Have: 1},
			{ClientID: other, What: "spend", Key: "client/" + string(other) + "/day/2026-11-30", Want: 0, Have: 1000},
			{ClientID: other, What: "spend", Key: "client/" + string(other) + "/month/2026-11-01", Want: 0, Have: 1000},
			{ClientID: other, What: "spend", Key: "client/" + string(other) + "/total", Want: 0, Have: 1000},
			{ClientID: other, What: "spend", Key: "key/" + key2 + "/day/2026-11-30", Want: 0, Have: 1000},
			{ClientID: other, What: "spend", Key: "key/" + key2 + "/month/2026-11-01", Want: 0, Have: 1000},
			{ClientID: other, What: "unknown_key", Key: key, Want: 0, Have: 1},
			{ClientID: "ghost", What: "unknown_client", Key: "ghost", Want: 0, Have: 1},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Reconcile (-want +got):\n%s", d)
		}
		one, err := db.Reconcile(ctx, client)
		must(t, err)
		if d := cmp.Diff(want[:3], one); d != "" {
			t.Errorf("Reconcile of one client (-want +got):\n%s", d)
		}
	})
}

// wantReconciled checks that the books hold, but for the kinds of difference
// that the test's rows are known to have.
func wantReconciled(t *testing.T, db *DB, known ...string) {
	t.Helper()
	got, err := db.Reconcile(t.Context(), "")
	must(t, err)
	for _, d := range got {
		fine := false
		for _, what := range known {
			fine = fine || d.What == what
		}
		if !fine {
			t.Errorf("difference %+v", d)
		}
	}
}

// TestBooksAlwaysReconcile books random batches, with repeats.
func TestBooksAlwaysReconcile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		clients := []modelgate.ClientID{createClient(t, db, 1), createClient(t, db, 2)}
		offset := int64(0)
		rapid.Check(t, func(rt *rapid.T) {
			var rows []modelgate.UsageRow
			for range rapid.IntRange(0, 90).Draw(rt, "rows") {
				n := rapid.IntRange(0, 400).Draw(rt, "call")
				r := row(clients[n%2], n)
				r.At = noon.Add(-time.Duration(n*n) * time.Minute)
				r.KeyID = modelgate.KeyID(id(n % 5))
				r.SubAccountID = modelgate.SubAccountID([]string{"", "s"}[n%3/2])
				r.Cost = modelgate.Nano(n * 37 % 11 * 1000)
				rows = append(rows, r)
			}
			offset++
			if _, err := db.Record(t.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}}); err != nil {
				rt.Fatalf("Record = %v", err)
			}
		})
		wantReconciled(t, db, "unknown_key")
		if number(t, db, "SELECT COUNT(*) FROM usage_row") == 0 {
			t.Error("nothing was booked")
		}
	})
}
