package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBillingExport kills the gateway again and again while it serves calls of
// end customers and sends what they are billed, to a processor that loses
// answers, fails and throttles. In the end the processor has counted exactly
// what was queued.
func TestBillingExport(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		const customers, callers = 8, 4
		events, kills := size(2_400, 50_000), size(3, 30)
		if database != "" && !*full {
			events, kills = events/2, kills/2
		}
		// A call that is under way at a kill has no usage, and so no event.
		calls := events + kills*customers*callers
		s := newSeller(t, testkit.GatewayOptions{
			Database: database, Binary: testkit.FailpointBinary(t), Env: []string{"MODELGATE_FAILPOINT_EXPORT_PAUSE=20"},
		}, customers)
		s.processor.SetFaults(testkit.ProcessorFaults{Lost: 0.10, Failed: 0.05, Throttled: 0.10})
		var made sync.WaitGroup
		began := time.Now()
		for i, e := range s.customers {
			l := s.load(&load{calls: calls / customers, first: i * calls, callers: callers, waits: true})
			l.key = e.key
			made.Go(func() { l.run(t.Context()) })
		}
		second := s.second(database)
		// The kills are spread over what the processor counts, not over the
		// calls: those end much earlier.
		for i := range kills {
			s.eventually("events are sent", 5*time.Minute, func() bool { return s.processor.Stats().Calls > (i+1)*calls/(kills+1) })
			s.Kill()
			s.restart()
		}
		made.Wait()
		s.eventually("nothing is pending", 10*time.Minute, func() bool { return s.pending() == 0 })
		took := time.Since(began)
		if second != nil {
			second.Stop()
		}
		s.settle()
		st := compareBills(s.processor.Ledger(), readOutbox(t, s.driver, s.source))
		st.right(t)
		stats := s.processor.Stats()
		if st.sent != st.events || st.events < events {
			t.Errorf("%d of %d events are sent, of %d calls, want %d or more: %+v", st.sent, st.events, calls, events, st)
		}
		if stats.MostAtOnce != 1 {
			t.Errorf("%d calls for one customer at once, want 1", stats.MostAtOnce)
		}
		if _, _, code := s.Run("reconcile", "--config", s.ConfigFile); code != 0 {
			t.Errorf("reconcile: exit %d", code)
		}
		if t.Failed() {
			t.Logf("the gateway's log ends with\n%s", tail(s.Log(), 4000))
		}
		fmt.Fprintf(t.Output(), "export under kill -9, %s: %d calls, %d kills, %d events sent for %d µUSD, counted %d µUSD; "+
			"processor: %+v; %.1f s\n", t.Name(), calls, kills, st.sent, st.outbox, st.ledger, stats, took.Seconds())
	})
}

// second is another instance on the same database, nil on SQLite, which one
// alone can use.
func (s *seller) second(database string) *testkit.Gateway {
	s.t.Helper()
	if database == "" {
		return nil
	}
	return testkit.StartGateway(s.t, testkit.GatewayOptions{
		Database: database, Upstream: s.upstream.URL, More: s.processor.Config(operatorKey), Binary: testkit.FailpointBinary(s.t),
		Env: []string{"MODELGATE_FAILPOINT_EXPORT_PAUSE=20"},
	})
}

// pending is how many events wait to be sent.
func (s *seller) pending() float64 {
	s.t.Helper()
	counts := s.want(200, "GET /gw/processor/events?limit=1", "")["counts"].(map[string]any)
	return counts["pending"].(float64)
}
