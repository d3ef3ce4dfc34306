package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/store/stats"
)

// TestLatencyHistograms holds what is counted against the rows it was counted from.
func TestLatencyHistograms(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		random := rand.New(rand.NewPCG(3, 4))
		var rows []modelgate.UsageRow
		for n := range 300 {
			r := row(client, 1+n*150) // over half a day
			r.LatencyMS, r.Cost = random.Int64N(90_000), modelgate.Nano(random.Int64N(1e9))
			r.StatusCode = []int{200, 201, 400, 502}[random.IntN(4)]
			if random.IntN(2) == 0 {
				r.SubAccountID = "s"
			}
			rows = append(rows, r)
		}
		book(t, db, "i", rows[:100]...)
		book(t, db, "i", rows[50:]...) // half of them come again
		book(t, db, "i", row(other, 9))

		midnight := noon.Truncate(24 * time.Hour)
		for name, q := range map[string]LatencyQuery{
			"by hour":           {Step: time.Hour},
			"by day":            {Step: 24 * time.Hour, Since: midnight},
			"since":             {Step: time.Hour, Since: midnight.Add(5*time.Hour + time.Minute)},
			"of a sub-account":  {Step: time.Hour, SubAccountID: "s"},
			"of an unknown one": {Step: time.Hour, SubAccountID: "x"},
		} {
			want := map[time.Time]stats.LatencySums{}
			for _, r := range rows {
				at := r.At.Truncate(q.Step)
				if at.Before(q.Since.Truncate(q.Step)) || q.SubAccountID != "" && r.SubAccountID != q.SubAccountID {
					continue
				}
				failed := int64(0)
				if r.StatusCode >= 400 {
					failed = 1
				}
				sum := want[at]
				want[at] = stats.LatencySums{Requests: sum.Requests + 1, Errors: sum.Errors + failed, TotalTokens: sum.TotalTokens + r.Usage.TotalTokens(),
					Cost: sum.Cost + r.Cost, LatencyMS: sum.LatencyMS + r.LatencyMS}
			}
			spans, err := db.LatencyHistograms(t.Context(), client, q)
			must(t, err)
			got := map[time.Time]stats.LatencySums{}
			for i, p := range spans {
				var calls int64
				for _, n := range p.Classes {
					calls += n
				}
				if i > 0 && !spans[i-1].At.Before(p.At) || calls != p.Requests {
					t.Errorf("%s: span %d: %+v", name, i, p)
				}
				got[p.At] = p.LatencySums
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	})
}

// TestReconcileFindsWrongLatencyHistograms breaks a count in every way.
func TestReconcileFindsWrongLatencyHistograms(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		r := row(client, 1)
		r.SubAccountID = modelgate.SubAccountID(createSubAccount(t, db, client, 3).ID)
		book(t, db, "i", r)
		for change, key := range map[string]string{
			"UPDATE latency_histogram SET errors = errors + 2 WHERE scope = 'client'":      "client/" + string(client) + "/2026-11-30T00/errors",
			"UPDATE latency_histogram SET latency_ms = 1 WHERE scope = 'sub_account'":      "sub_account/" + string(r.SubAccountID) + "/2026-11-30T00/latency_ms",
			"DELETE FROM latency_histogram WHERE scope = 'client'":                         "client/" + string(client) + "/2026-11-30T00/cost",
			"UPDATE latency_histogram SET hour = hour + 3600000000 WHERE scope = 'client'": "client/" + string(client) + "/2026-11-30T01/requests",
		} {
			tx, err := db.write.BeginTx(t.Context(), nil)
			must(t, err)
			_, err = tx.ExecContext(t.Context(), change)
			must(t, err)
			found, err := stats.CheckLatencies(t.Context(), tx, client, 0)
			must(t, err)
			must(t, tx.Rollback())
			ok := false
			for _, d := range found {
				ok = ok || d.What == "latency_histogram" && d.Key == key && d.Have != 0
			}
			if !ok {
				t.Errorf("%s: found %+v, want %s", change, found, key)
			}
		}
	})
}
