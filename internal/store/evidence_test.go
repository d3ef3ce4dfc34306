package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
)

// chainAll chains everything that is pending.
func chainAll(t testing.TB, db *DB) (records int) {
	t.Helper()
	for {
		n, more, err := db.ChainEvidence(t.Context(), "")
		must(t, err)
		if records += n; !more {
			return records
		}
	}
}

// export is a whole part as lines of "seq type", checked as a reader would.
func export(t testing.TB, db *DB, client modelgate.ClientID, r evidence.Range) (evidence.Part, []string) {
	t.Helper()
	part, err := db.Evidence(t.Context(), client, r)
	must(t, err)
	chain := records.Chain{Head: records.Head{ClientID: client, Seq: part.From - 1, Hash: part.Prev}}
	lines := []string{}
	must(t, db.EvidenceLines(t.Context(), part, func(l evidence.Line) error {
		if l.Prev != chain.Hash {
			t.Fatalf("line %d does not follow the one before", l.Seq)
		}
		chain.Append(l.Record)
		if l.Seq != chain.Seq || l.Hash != chain.Hash {
			t.Fatalf("line %d %s, computed %d %s", l.Seq, l.Hash, chain.Seq, chain.Hash)
		}
		canonical := jsontext.Value(bytes.Clone(l.Record))
		must(t, canonical.Canonicalize())
		if !bytes.Equal(canonical, l.Record) {
			t.Fatalf("a record is not in canonical form:\n%s\n%s", l.Record, canonical)
		}
		_, kind, _ := strings.Cut(string(l.Record), `"type":"`)
		if i := strings.LastIndex(string(l.Record), `"type":"`); i >= 0 {
			kind = string(l.Record)[i+len(`"type":"`):]
		}
		kind, _, _ = strings.Cut(kind, `"`)
		lines = append(lines, fmt.Sprint(l.Seq, " ", kind))
		return nil
	}))
	if chain.Seq != part.To || chain.Hash != part.Last {
		t.Fatalf("the part ends at %d %s, want %d %s", chain.Seq, chain.Hash, part.To, part.Last)
	}
	return part, lines
}

func TestEvidenceHasWhatIsBooked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		a, b := createClient(t, db, 1), createClient(t, db, 2)
		odd := row(a, 3)
		odd.CallBegin.Model, odd.Slug, odd.Author = "m\x00\xff\"\\\n\u2028😀", "", ""
		book(t, db, "i", row(a, 1), row(b, 2), odd)
		book(t, db, "i", row(a, 1)) // again: no row, no record
		if got := chainAll(t, db); got != 5 {
			t.Fatalf("%d records, want 5", got)
		}
		_, lines := export(t, db, a, evidence.Range{})
		if want := "[1 audit 2 usage 3 usage]"; fmt.Sprint(lines) != want {
			t.Errorf("records of the first client: %v, want %s", lines, want)
		}
		_, lines = export(t, db, b, evidence.Range{})
		if want := "[1 audit 2 usage]"; fmt.Sprint(lines) != want {
			t.Errorf("records of the second client: %v, want %s", lines, want)
		}
		if oldest, err := db.EvidenceBacklog(t.Context()); err != nil || !oldest.IsZero() {
			t.Errorf("EvidenceBacklog = %v, %v; want none", oldest, err)
		}
	})
}

// A failed transaction leaves no record, as it leaves no row.
func TestEvidenceFailsWithItsTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		bad := row(client, 2)
		bad.Cost = -1
		_, err := db.Record(t.Context(), Batch{Instance: "i", Rows: []modelgate.UsageRow{row(client, 1), bad}, Progress: Position{0, 1}})
		if !Poisoned(err) {
			t.Fatalf("Record = %v, want poisoned", err)
		}
		wantKind(t, "DeleteBudget", db.PutBudget(t.Context(), client, "", modelgate.Budget{
			Level: modelgate.LevelKey, ID: id(9), Period: modelgate.Day, Limit: 1}, audit("budget.put")), modelgate.NotFound)
		if got := chainAll(t, db); got != 1 {
			t.Errorf("%d records, want that of the client alone", got)
		}
	})
}

func TestEvidenceRanges(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		// Twenty records after the audit, in chunks of four; minute n has call n,
		// but for one that was booked late.
		minute := func(n int) time.Time { return uuid(60 * n).Time() }
		for i := range 5 {
			var rows []modelgate.UsageRow
			for j := range 4 {
				n := 4*i + j + 2
				if n == 15 {
					n = 1
				}
				rows = append(rows, row(client, 60*n))
			}
			book(t, db, "i", rows...)
			chainAll(t, db)
		}
		for _, c := range []struct {
			r        evidence.Range
			from, to int64
		}{
			{evidence.Range{}, 1, 21},
			{evidence.Range{From: 7}, 7, 21},
			{evidence.Range{To: 7}, 1, 7},
			{evidence.Range{From: 3, To: 3}, 3, 3},
			{evidence.Range{From: 22}, 22, 21},
			{evidence.Range{To: 99}, 1, 21},
			{evidence.Range{From: 5, Limit: 6}, 5, 10},
			{evidence.Range{Limit: 1000}, 1, 21},
			{evidence.Range{Since: minute(10)}, 1, 21}, // the audit is of noon
			{evidence.Range{From: 2, Since: minute(10)}, 10, 21},
			{evidence.Range{From: 2, Since: minute(16)}, 16, 21},
			{evidence.Range{From: 2, Until: minute(2)}, 2, 15}, // the late one
			{evidence.Range{From: 2, Until: minute(18)}, 2, 17},
			{evidence.Range{Until: minute(0)}, 1, 0},
			{evidence.Range{Since: noon.Add(time.Hour)}, 22, 21},
			{evidence.Range{From: 2, Since: minute(10), Until: minute(12), Limit: 3}, 10, 12},
		} {
			part, lines := export(t, db, client, c.r)
			if part.From != c.from || part.To != c.to || int64(len(lines)) != c.to-c.from+1 || part.Head.Seq != 21 {
				t.Errorf("%+v: %d to %d with %d lines, want %d to %d", c.r, part.From, part.To, len(lines), c.from, c.to)
			}
		}
		all := queries(t)
		for n := range 24 {
			for _, from := range []int64{1, 8, 21} {
				var early, late int64 // 0 for none
				_ = db.read.QueryRow(all["sqlEvidenceSinceEarly"], string(client), sqldb.Micros(minute(n)), from).Scan(&early)
				_ = db.read.QueryRow(all["sqlEvidenceSinceLate"], string(client), sqldb.Micros(minute(n)), from).Scan(&late)
				if early != late || early == 0 && n < 22 {
					t.Errorf("since minute %d, from %d: the first chunk begins at %d or %d", n, from, early, late)
				}
			}
		}
		_, err := db.Evidence(t.Context(), client, evidence.Range{From: 23})
		wantKind(t, "a range past the end", err, modelgate.BadRequest)
	})
}

// Sequencers race each other and whoever books; the chains stay whole.
func TestSequencersRace(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		const clients, batches = 5, 40
		var ids [clients]modelgate.ClientID
		for i := range ids {
			ids[i] = createClient(t, db, i+1)
		}
		var booking, chaining sync.WaitGroup
		for w := range 2 {
			booking.Go(func() {
				for i := range batches {
					var rows []modelgate.UsageRow
					for j, c := range ids {
						rows = append(rows, row(c, (w*batches+i)*clients+j))
					}
					book(t, db, fmt.Sprint("i", w), rows...)
				}
			})
		}
		stop := make(chan struct{})
		for range 3 {
			chaining.Go(func() {
				for {
					if _, _, err := db.ChainEvidence(t.Context(), ""); err != nil {
						t.Errorf("ChainEvidence: %v", err)
						return
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		booking.Wait()
		close(stop)
		chaining.Wait()
		chainAll(t, db)
		for _, c := range ids {
			part, lines := export(t, db, c, evidence.Range{})
			if len(lines) != 1+2*batches || part.To != part.Head.Seq {
				t.Errorf("client %s has %d records, want %d", c, len(lines), 1+2*batches)
			}
		}
	})
}

func TestEvidenceThatWasChangedIsNotExported(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		for n := range 3 {
			book(t, db, "i", row(client, n))
			chainAll(t, db)
		}
		part, err := db.Evidence(t.Context(), client, evidence.Range{})
		must(t, err)
		read := func() error {
			return db.EvidenceLines(t.Context(), part, func(evidence.Line) error { return nil })
		}
		must(t, read())
		pack, err := evidence.NewPacker()
		must(t, err)
		lines := []byte("{\"v\":1}\n")
		_, err = db.write.Exec("UPDATE evidence_batch SET records = $1 WHERE id = (SELECT batch_id FROM evidence_chunk WHERE first_seq = 3)", pack.Pack(lines))
		must(t, err)
		if err := read(); err == nil || !strings.Contains(err.Error(), "does not hold together") {
			t.Errorf("reading changed evidence = %v", err)
		}
	})
}

// Records that are damaged or gone before they are in their chain stop that
// chain, and no other one.
func TestDamagedRecordsStopTheirChainOnly(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"other bytes":   "UPDATE evidence_batch SET records = $2 WHERE id = $1",
		"other records": "UPDATE evidence_pending SET records = records + 1 WHERE batch_id = $1",
		"gone":          "DELETE FROM evidence_batch WHERE id = $1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, db *DB) {
				a, b := createClient(t, db, 1), createClient(t, db, 2)
				var batch string
				must(t, db.read.QueryRow("SELECT MIN(batch_id) FROM evidence_pending WHERE client_id = $1", string(a)).Scan(&batch))
				args := []any{batch, []byte("x")}
				_, err := db.write.Exec(damage, args[:strings.Count(damage, "$")]...)
				must(t, err)
				for _, client := range []modelgate.ClientID{"", a} {
					if n, _, err := db.ChainEvidence(t.Context(), client); err == nil {
						t.Errorf("%d damaged records of client %q were chained", n, client)
					}
				}
				if n, more, err := db.ChainEvidence(t.Context(), b); n != 1 || more || err != nil {
					t.Errorf("the other client: %d records, more %t, %v", n, more, err)
				}
				waiting, err := db.EvidenceWaiting(t.Context())
				if must(t, err); !slices.Equal(waiting, []modelgate.ClientID{a}) {
					t.Errorf("EvidenceWaiting = %v, want %v", waiting, a)
				}
			})
		})
	}
}

func TestPruneKeepsTheEndAndARecord(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		_, err := db.write.Exec("UPDATE evidence_pending SET first_at = 1, last_at = 1")
		must(t, err)
		for n := range 6 {
			book(t, db, "i", row(client, 60*n))
			chainAll(t, db)
		}
		before, _ := export(t, db, client, evidence.Range{To: 4})
		signed := 0
		p := evidence.Pruning{Before: uuid(60 * 3).Time(), Chunks: 2, Audit: audit("evidence.prune"), Sign: func(h records.Head) (string, error) {
			if signed++; h.Seq != 4 || h.Hash != before.Last || h.ClientID != client {
				t.Errorf("signed %+v", h)
			}
			return "the note", nil
		}}
		calls := 1
		for ; ; calls++ {
			p.Audit = audit("evidence.prune")
			more, err := db.PruneEvidence(t.Context(), client, p)
			must(t, err)
			if !more {
				break
			}
		}
		if calls != 3 || signed != 1 {
			t.Errorf("%d calls, signed %d times; want 3 and once", calls, signed)
		}
		part, lines := export(t, db, client, evidence.Range{From: 1})
		if want := "[5 usage 6 usage 7 usage 8 audit]"; fmt.Sprint(lines) != want || part.Anchor != "the note" || part.Prev != before.Last {
			t.Errorf("after pruning: %v, anchor %q; want %s", lines, part.Anchor, want)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM evidence_batch"); n != 4 {
			t.Errorf("%d batches are left, want 4", n)
		}
	})
}

// The end of what was pruned is a part of the chain as any other.
func TestReconcileMissesTheEndOfWhatWasPruned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		book(t, db, "i", row(client, 1))
		chainAll(t, db)
		_, err := db.PruneEvidence(t.Context(), client, evidence.Pruning{Before: noon.Add(time.Hour), Chunks: 9, Audit: audit("evidence.prune"),
			Sign: func(records.Head) (string, error) { return "the note", nil }})
		must(t, err)
		_, err = db.write.Exec("DELETE FROM evidence_anchor")
		must(t, err)
		found, err := db.Reconcile(t.Context(), client)
		must(t, err)
		if want := (Difference{ClientID: client, What: "evidence_chain", Key: "from record 3", Want: 3, Have: 2}); !slices.Contains(found, want) {
			t.Errorf("Reconcile = %+v, want %+v", found, want)
		}
		if part, err := db.Evidence(t.Context(), client, evidence.Range{}); err == nil || !strings.Contains(err.Error(), "does not hold together") {
			t.Errorf("Evidence = %+v, %v", part, err)
		}
	})
}

func TestOneExportAtATime(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		chainAll(t, db)
		ticket, err := db.BeginExport(t.Context(), client, time.Minute, audit("evidence.export"))
		must(t, err)
		_, err = db.BeginExport(t.Context(), client, time.Minute, audit("evidence.export"))
		wantKind(t, "a second export", err, modelgate.RateLimited)
		must(t, db.ExtendExport(t.Context(), &ticket, 2*time.Minute))
		must(t, db.ExtendExport(t.Context(), &ticket, 0))
		_, err = db.BeginExport(t.Context(), client, time.Minute, audit("evidence.export"))
		must(t, err)
		if got := chainAll(t, db); got != 2 {
			t.Errorf("%d records of exports, want 2", got)
		}
		if err := db.ExtendExport(t.Context(), &ticket, time.Minute); err == nil {
			t.Error("a ticket that was given back was extended")
		}
	})
}

func TestEvidenceKeysFollowEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		createClient(t, db, 1)
		createClient(t, db, 2)
		add := func(n int64) error {
			return db.AddEvidenceKey(t.Context(), evidence.Key{N: n, VKey: fmt.Sprint("key ", n), Statement: "s", At: noon},
				func() modelgate.Audit { return audit("") })
		}
		must(t, add(1))
		if err := add(1); err == nil {
			t.Error("two first keys")
		}
		must(t, add(2))
		keys, err := db.EvidenceKeys(t.Context())
		must(t, err)
		if len(keys) != 2 || keys[1].VKey != "key 2" {
			t.Errorf("EvidenceKeys = %+v", keys)
		}
		if got := chainAll(t, db); got != 4 {
			t.Errorf("%d records, want one a client for itself and one for the new key", got)
		}
	})
}

func TestEvidenceLease(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		lease := func(instance string) bool {
			ok, err := db.LeaseEvidence(t.Context(), instance, time.Minute)
			must(t, err)
			return ok
		}
		if !lease("a") || lease("b") || !lease("a") {
			t.Error("a lease that one has is not its own alone")
		}
		db.now = func() time.Time { return noon.Add(2 * time.Minute) }
		if !lease("b") || lease("a") {
			t.Error("a lease that ended was not taken over")
		}
	})
}

func TestReconcileHoldsEvidenceAgainstRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		book(t, db, "i", row(client, 1), row(client, 2))
		differences := func() []Difference {
			t.Helper()
			found, err := db.Reconcile(t.Context(), client)
			must(t, err)
			return slices.DeleteFunc(found, func(d Difference) bool { return !strings.HasPrefix(d.What, "evidence") })
		}
		want := func(when string, want ...Difference) {
			t.Helper()
			if got := differences(); !slices.Equal(got, want) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		want("pending")
		chainAll(t, db)
		book(t, db, "i", row(client, 3))
		want("chained and pending")
		chainAll(t, db)
		_, err := db.write.Exec("UPDATE usage_row SET cost = cost + 5 WHERE id = $1", id(3))
		must(t, err)
		want("a changed row", Difference{ClientID: client, What: "evidence_cost", Key: "2026-11-30", Want: 3005, Have: 3000})
		_, err = db.write.Exec("DELETE FROM usage_row WHERE id = $1", id(3))
		must(t, err)
		want("a missing row", Difference{ClientID: client, What: "evidence_calls", Key: "2026-11-30", Want: 2, Have: 3}, Difference{ClientID: client, What: "evidence_cost", Key: "2026-11-30", Want: 2000, Have: 3000})
		_, err = db.write.Exec("DELETE FROM evidence_chunk WHERE first_seq = 2")
		must(t, err)
		want("a missing stretch", Difference{ClientID: client, What: "evidence_chain", Key: "from record 2", Want: 4, Have: 1})
	})
}
