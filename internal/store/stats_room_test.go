package store

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/stats"
)

// TestStatisticsOfTooManyValues asks for an attribution key that each call has
// another value of: of more than may be there is no answer, whether the rows or
// the rollups have them.
func TestStatisticsOfTooManyValues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		const calls = 40
		client := createClient(t, db, 1)
		for n := range calls {
			r := row(client, 100+n)
			r.At = noon.Add(-2*time.Hour + 5*time.Minute)
			r.Attribution = map[string]string{"call": fmt.Sprint(n)}
			book(t, db, "i", r)
		}
		compactAll(t, db)
		ask := func(since time.Duration, step int64, most int) error {
			s := stats.Statistics{Query: StatsQuery{GroupBy: "call", Since: noon.Add(-since)}, Client: client, Step: step, Most: most, Fresh: db.engine.freshPlan}
			return db.snapshot(t.Context(), "", func(tx *sql.Tx) error { return s.Collect(t.Context(), tx) })
		}
		for _, since := range []time.Duration{2*time.Hour - time.Minute, 24 * time.Hour} { // rows, rollups
			for _, step := range []int64{0, stats.HourMicros} {
				wantKind(t, fmt.Sprint("too many since ", since), ask(since, step, calls-1), modelgate.BadRequest)
				must(t, ask(since, step, calls))
			}
		}
		must(t, ask(time.Hour, 0, calls-1))
	})
}
