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
