package store

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"modelgate"
)

// traffic is whose calls a benchmark books.
type traffic struct {
	name                       string
	clients, subAccounts, keys int // sub-accounts and keys of each client
	providers, models          int
}

func traffics() []traffic {
	return []traffic{
		{"one organization", 1, 1, 256, 1, 1},
		{"many", 20, 10, 100, 5, 40},
	}
}

// row is the n-th call.
func (s traffic) row(n int, call modelgate.UUID) modelgate.UsageRow {
	mixed := n * 7919 % 1_000_003
	client := mixed % s.clients
	sub := client*s.subAccounts + mixed/s.clients%s.subAccounts
	key := sub*1000 + mixed/7%(s.keys/s.subAccounts)
	r := row(modelgate.ClientID(id(1_000_000+client)), n)
	r.CallBegin.ID, r.At = call, call.Time()
	r.SubAccountID, r.KeyID = modelgate.SubAccountID(id(2_000_000+sub)), modelgate.KeyID(id(3_000_000+key))
	r.CallBegin.Provider = fmt.Sprintf("provider-%d", mixed/11%s.providers)
	r.CallBegin.Model = fmt.Sprintf("model-%d", mixed/13%s.models)
	r.Slug = "author/" + r.CallBegin.Model
	r.Author = "author-" + r.CallBegin.Model[len(r.CallBegin.Model)-1:]
	r.LatencyMS = int64(mixed % 3000)
	if mixed%50 == 0 && s.clients > 1 {
		r.ParseStatus = modelgate.ParsePartial
	}
	r.Attribution = map[string]string{"team": "search", modelgate.AttributionKeyID: string(r.KeyID), modelgate.AttributionSubAccountID: string(r.SubAccountID)}
	return r
}

// BenchmarkRecordHistory is a busy shipper's transaction beside rows that are
// there: 100,000, or what MODELGATE_BENCH_ROWS says.
func BenchmarkRecordHistory(b *testing.B) {
	held := 100_000
	if n, err := strconv.Atoi(os.Getenv("MODELGATE_BENCH_ROWS")); err == nil {
		held = n
	}
	for _, engine := range engines {
		for _, s := range traffics() {
			for _, size := range []int{1000, 4000} {
				b.Run(fmt.Sprintf("%s/%s/%d", engine, s.name, size), func(b *testing.B) { s.benchmark(b, engine, held, size) })
			}
		}
	}
}

func (s traffic) benchmark(b *testing.B, engine string, held, size int) {
	db := open(b, options(b, engine))
	ids := modelgate.NewIDs(time.Now)
	n := 0
	next := func(rows []modelgate.UsageRow) Batch {
		for i := range rows {
			n++
			rows[i] = s.row(n, ids.New())
		}
		for i := 0; i+8 < len(rows); i += 8 { // calls do not end in the order in which they begin
			rows[i], rows[i+7] = rows[i+7], rows[i]
		}
		return Batch{Instance: "i", Rows: rows, Progress: Position{0, int64(n)}}
	}
	record := func(batch Batch) {
		if got, err := db.Record(b.Context(), batch); err != nil || got != len(batch.Rows) {
			b.Fatalf("Record = %d, %v", got, err)
		}
	}
	rows := make([]modelgate.UsageRow, 4000)
	for n < held {
		record(next(rows))
	}
	b.ReportAllocs()
	cpu := time.Duration(0)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		batch := next(rows[:size])
		b.StartTimer()
		before := processorTime(b)
		record(batch)
		cpu += processorTime(b) - before
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(cpu.Nanoseconds())/1000/float64(b.N*size), "cpu-µs/row")
}
