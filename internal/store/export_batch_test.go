package store

import (
	"fmt"
	"strings"
	"testing"

	"modelgate/internal/pricing"

	"modelgate"
	"modelgate/internal/store/billing"
)

// A batch is taken and settled by its events' keys, however many are pending.
func TestBatchesOfEventsUseTheKey(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "postgres"))
	_, err := db.write.ExecContext(t.Context(), `INSERT INTO processor_event (client_id, created_at, usage_id, sub_account_id, customer_id, markup, value, status, attempts,
  queued_at, next_attempt_at, unsure_at, generation, sent_at, last_error)
SELECT 'c', g, 'u' || g, 's', 'cus', 0, 1, 'pending', 0, g, g, 0, 0, 0, '' FROM generate_series(1, 20000) AS g`)
	must(t, err)
	_, err = db.write.ExecContext(t.Context(), "ANALYZE processor_event") // as the server does by itself
	must(t, err)
	for name, one := range map[string][]any{
		"eventTries":       {"c", 1, "u1", 5, 1},
		"eventSettlements": {"c", 1, "u1", "sent", 1, 0, 0, 5, ""},
	} {
		var args []any
		for range 32 {
			args = append(args, one...)
		}
		plan := strings.Join(explained(t, db, "EXPLAIN "+billing.Statements(32)[name], args...), "\n")
		if !strings.Contains(plan, "Index Scan using processor_event_pkey") || strings.Contains(plan, "Seq Scan on processor_event") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

// A job is billed when it is final, at what it costs in the end and on the
// terms of that moment.
func TestJobsAreBilledWhenFinal(t *testing.T) {
	eachBilling(t, func(b *biller) {
		made := 0
		begin := func() int {
			b.Helper()
			made++
			r := film(b.client, made)
			r.SubAccountID = b.sub
			book(b, b.DB, "instance", r)
			return made
		}
		end := func(n int, news modelgate.JobNews) {
			b.Helper()
			f, ok := pricing.FinishJob(jobOf(b, b.DB, b.client, n), news)
			if !ok {
				b.Fatalf("job %d does not end", n)
			}
			for range 2 { // the second is too late
				_, err := b.FinishJobs(b.Context(), []modelgate.JobFinal{f})
				must(b, err)
			}
		}
		want := func(values string) {
			b.Helper()
			if got := fmt.Sprint(b.values()); got != values {
				b.Errorf("values %s, want %s", got, values)
			}
		}
		succeeds := modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: 2 * modelgate.USD}
		first, failing, overdue, cancelled, orphan := begin(), begin(), begin(), begin(), begin()
		want("[]")
		b.markup("50")
		end(first, succeeds)
		want("[3000000]")
		end(failing, modelgate.JobNews{Event: modelgate.JobFails})
		end(cancelled, modelgate.JobNews{Event: modelgate.JobIsCancelled})
		want("[3000000]")
		end(overdue, modelgate.JobNews{Event: modelgate.JobOverdue}) // its provisional cost is what it costs
		want("[3000000 1500000]")
		must(b, b.DeleteMapping(b.Context(), b.client, b.sub, audit("x")))
		end(orphan, succeeds)
		late := begin()
		b.mapTo("cus_2")
		end(late, succeeds)
		want("[3000000 1500000 3000000]")
		if e := b.list("").Events[0]; e.CustomerID != "cus_2" || e.UsageID != modelgate.UsageID(id(late)) {
			b.Errorf("the last is %+v", e)
		}
		clean0(b, b.DB, b.client)
	})
}
