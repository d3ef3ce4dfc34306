package store

import (
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/report"
)

// TestQuestionsAboutAll asks about the calls of a thousand organizations: 20,000
// calls of an hour, in full 200,000 of a day, where a report is to take no longer
// than a second.
func TestQuestionsAboutAll(t *testing.T) {
	const clients, seconds = 1000, 1
	calls, day := 20_000, time.Hour
	if *full {
		calls, day = 200_000, 24*time.Hour
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			db := open(t, options(t, engine))
			ids := make([]modelgate.ClientID, clients)
			for i := range ids {
				ids[i] = createClient(t, db, i+1)
			}
			var spent modelgate.Nano
			batch := make([]modelgate.UsageRow, 0, 2000)
			for n := range calls {
				r := row(ids[n*7919%clients], n)
				r.CallBegin.ID = modelgate.NewIDs(func() time.Time { return noon.Add(-time.Duration(n) * day / time.Duration(calls)) }).New()
				r.At, r.StatusCode, r.LatencyMS = r.CallBegin.ID.Time(), 200, int64(n%3000)
				if n%1000 == 0 {
					r.StatusCode = 500
				}
				spent = spent.Add(r.Cost)
				if batch = append(batch, r); len(batch) == cap(batch) || n == calls-1 {
					book(t, db, "i", batch...)
					batch = batch[:0]
				}
			}
			_, err := db.write.Exec("ANALYZE")
			must(t, err)
			everyone := CallFilter{Everyone: true, From: noon.Add(-2 * day)}
			measure := func(what string, ask func()) {
				t.Helper()
				best := time.Hour
				for range 3 {
					begun := time.Now()
					ask()
					best = min(best, time.Since(begun))
				}
				t.Logf("%s: %v", what, best.Round(time.Millisecond))
				if *full && best > seconds*time.Second {
					t.Errorf("%s takes %v, more than %d s", what, best, seconds)
				}
			}
			measure("report by organization", func() {
				made := report.New(report.Query{GroupBy: []report.Dimension{report.Organization}, Interval: report.Whole, Top: 50, Order: report.ByCost})
				must(t, db.EachCall(t.Context(), everyone, made.Add))
				if rows := made.Rows(); len(rows) != 51 || made.Totals.Requests != int64(calls) || made.Totals.Cost != spent {
					t.Errorf("%d rows, %d calls of %s, want %d of %s", len(rows), made.Totals.Requests, made.Totals.Cost, calls, spent)
				}
			})
			page := func(f CallFilter, want int) func() {
				return func() {
					found, _, err := db.Calls(t.Context(), CallList{CallFilter: f, Limit: 100})
					must(t, err)
					if len(found) != want {
						t.Errorf("a page of %d calls, want %d", len(found), want)
					}
				}
			}
			measure("the newest calls", page(everyone, 100))
			failed := everyone
			failed.Statuses = []StatusRange{{500, 599}}
			measure("the newest failures", page(failed, min(calls/1000, 100)))
			measure("calls by provider", func() {
				counts, err := db.ProviderCalls(t.Context(), noon.Add(-5*time.Minute))
				must(t, err)
				if len(counts) == 0 {
					t.Error("no calls")
				}
			})
		})
	}
}
