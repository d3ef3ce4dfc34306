package store

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"modelgate"
)

// BenchmarkRecord is a shipper's transaction; each row is another key's.
func BenchmarkRecord(b *testing.B) {
	for _, engine := range engines {
		for _, size := range []int{1, 64, 500} {
			b.Run(fmt.Sprintf("%s/%d", engine, size), func(b *testing.B) {
				db := open(b, options(b, engine))
				ids := modelgate.NewIDs(time.Now)
				rows := make([]modelgate.UsageRow, size)
				b.ReportAllocs()
				offset, cpu := int64(0), processorTime(b)
				for b.Loop() {
					offset++
					for i := range rows {
						rows[i] = row("client", i)
						rows[i].CallBegin.ID, rows[i].KeyID = ids.New(), modelgate.KeyID(id(i%50))
						rows[i].At = rows[i].CallBegin.ID.Time()
					}
					n, err := db.Record(b.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}})
					if err != nil || n != size {
						b.Fatalf("Record = %d, %v", n, err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64((processorTime(b)-cpu).Microseconds())/float64(b.N*size), "cpu-µs/row")
			})
		}
	}
}

// processorTime is what this process has used; a database server's is not in it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCaller is the look-up of a key among thousands.
func BenchmarkCaller(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			db := open(b, options(b, engine))
			fill(b, db, 0)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := db.Caller(b.Context(), digest(21), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChainEvidence is what the sequencer does with the records of a
// backlog of full batches, and with those of many clients in small ones.
func BenchmarkChainEvidence(b *testing.B) {
	for _, engine := range engines {
		for _, clients := range []int{1, 250} {
			b.Run(fmt.Sprintf("%s/%d clients", engine, clients), func(b *testing.B) {
				db := open(b, options(b, engine))
				ids := modelgate.NewIDs(db.now)
				rows, records, offset := make([]modelgate.UsageRow, 500), 0, int64(0)
				for b.Loop() {
					b.StopTimer()
					for range 8 {
						offset++
						for i := range rows {
							rows[i] = row(modelgate.ClientID(id(i%clients)), i)
							rows[i].CallBegin.ID = ids.New()
						}
						_, err := db.Record(b.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}})
						must(b, err)
					}
					b.StartTimer()
					records += chainAll(b, db)
				}
				b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

// BenchmarkEndUsers reserves for calls and books them, 500 at once, under a budget of
// each end user: of one, who has a lease already, and of as many new ones, whose
// counters are made by it.
func BenchmarkEndUsers(b *testing.B) {
	const size, callers = 500, 64
	for _, engine := range engines {
		for _, who := range []string{"one", "new"} {
			b.Run(engine+"/"+who, func(b *testing.B) {
				db := open(b, options(b, engine))
				client := createClient(b, db, 1)
				key := issue(b, db, client, "", 21).ID
				putRule(b, db, client, rule(b, client, "tag:end_user=*", modelgate.Day, modelgate.USD))
				caller, err := db.Caller(b.Context(), digest(21), nil)
				must(b, err)
				ids, offset, seq, users := modelgate.NewIDs(time.Now), int64(0), int64(0), 0
				rows, asks := make([]modelgate.UsageRow, size), make([]modelgate.Ask, 0, callers)
				lease := func() {
					_, err := db.Lease(b.Context(), "i", asks)
					must(b, err)
					asks = asks[:0]
				}
				for b.Loop() {
					offset++
					for i := range rows {
						user := "one"
						if who == "new" {
							users++
							user = fmt.Sprint("user-", users)
						}
						rows[i] = row(client, i)
						rows[i].CallBegin.ID, rows[i].KeyID, rows[i].Attribution = ids.New(), key, map[string]string{"end_user": user}
						rows[i].At = rows[i].CallBegin.ID.Time()
						if who == "new" || i == 0 {
							seq++
							k := caller.Rules[0].ValueCounter(client, rows[i].At, user)
							asks = append(asks, modelgate.Ask{Counter: k, Least: 1000, Most: 1000, Room: 1000, Seq: seq})
						}
						if len(asks) == callers {
							lease()
						}
					}
					lease()
					n, err := db.Record(b.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}})
					if err != nil || n != size {
						b.Fatalf("Record = %d, %v", n, err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}
