package e2e

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBillingResend leaves an event without an answer for longer than the
// processor remembers it: neither the gateway nor its organization sends it
// again, the operator's command does.
func TestBillingResend(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		s := newSeller(t, testkit.GatewayOptions{
			Database: database, Binary: testkit.FailpointBinary(t), Env: []string{"MODELGATE_FAILPOINT_EXPORT_PAUSE=20"},
		}, 1)
		s.processor.SetFaults(testkit.ProcessorFaults{Lost: 1})
		id := s.call(s.customers[0].key)
		s.eventually("it was tried", time.Minute, func() bool { return s.processor.Stats().Lost > 0 })
		s.resend(id, 1, "no failed billing event")
		s.eventually("it has failed", time.Minute, func() bool { s.longAgo(id); return s.event().Status == "failed" })
		if e := s.event(); !strings.HasPrefix(e.LastError, "ambiguous: ") {
			t.Errorf("it has failed with %+v", e)
		}
		s.processor.SetFaults(testkit.ProcessorFaults{})
		tries := s.processor.Stats().Calls
		s.want(204, "POST /gw/processor/events/"+id+"/retry", "")
		if e := s.event(); e.Status != "failed" || !strings.HasPrefix(e.LastError, "ambiguous: ") || s.processor.Stats().Calls != tries {
			t.Errorf("after a retry: %+v, %+v", e, s.processor.Stats())
		}
		s.resend(id, 0, id+" is queued")
		s.eventually("it is sent", time.Minute, func() bool { return s.event().Status == "sent" })
		s.resend(id, 1, "no failed billing event")
		_, chain := s.ask(s.key, "GET /gw/evidence", "")
		if n := strings.Count(chain, "processor.event.resend"); n != 1 {
			t.Errorf("%d records of a resend in the evidence, want 1", n)
		}
		s.settle()
		st := compareBills(s.processor.Ledger(), readOutbox(t, s.driver, s.source))
		st.right(t)
		if st.sent != 1 || st.events != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// resend runs the operator's command, which must end and say so.
func (s *seller) resend(id string, code int, says string) {
	s.t.Helper()
	stdout, stderr, got := s.Run("export", "resend", id, "--config", s.ConfigFile)
	if got != code || !strings.Contains(stdout+stderr, says) {
		s.t.Errorf("export resend: exit %d %s%s, want %d and %q", got, stdout, stderr, code, says)
	}
}

// longAgo makes the first try of an event one of yesterday. A try that is under
// way at that moment notes again when it was.
func (s *seller) longAgo(id string) {
	s.t.Helper()
	db, err := sql.Open(s.driver, s.source)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	day := 23 * time.Hour
	_, err = db.Exec("UPDATE processor_event SET unsure_at = unsure_at - $1 WHERE usage_id = $2 AND status = 'pending' AND unsure_at > $3",
		day.Microseconds(), id, time.Now().Add(-day).UnixMicro())
	if err != nil {
		s.t.Logf("the gateway writes at the same time: %v", err) // it is tried again
	}
}

// listed is an event as its organization sees it.
type listed struct{ Status, LastError string }

// event is the newest event.
func (s *seller) event() listed {
	s.t.Helper()
	events := s.want(200, "GET /gw/processor/events", "")["events"].([]any)
	if len(events) == 0 {
		s.t.Fatal("no event")
	}
	e := events[0].(map[string]any)
	return listed{fmt.Sprint(e["status"]), fmt.Sprint(e["last_error"])}
}
