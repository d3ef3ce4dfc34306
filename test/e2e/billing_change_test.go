package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// change is something that happens to an end customer between the queueing of
// its events and their sending.
type change struct {
	name string
	make func(s *seller, e endCustomer)
	// after is what becomes of a call that is made after it: a new event, for
	// whom and at how many times the price, or none.
	after func(e endCustomer) (customer string, times int64)
	// status is what that call is answered; 0 means 200.
	status int
}

// changes are all that an organization can do.
func changes() []change {
	none := func(endCustomer) (string, int64) { return "", 0 }
	return []change{
		{"unmapped", func(s *seller, e endCustomer) {
			s.want(204, "DELETE /gw/processor/mappings/"+e.sub, "")
		}, none, 0},
		{"disabled", func(s *seller, _ endCustomer) {
			s.want(204, "PUT /gw/processor/config", `{"enabled":false}`)
		}, none, 0},
		{"suspended", func(s *seller, e endCustomer) {
			s.want(204, "PATCH /gw/subaccounts/"+e.sub, `{"status":"suspended"}`)
		}, none, 401},
		{"marked up", func(s *seller, e endCustomer) {
			s.want(204, "PATCH /gw/subaccounts/"+e.sub, `{"markup_pct":900}`)
		}, func(e endCustomer) (string, int64) { return e.customer, 10 }, 0},
		{"mapped to another", func(s *seller, e endCustomer) {
			s.mapTo(e, "cus_new")
		}, func(endCustomer) (string, int64) { return "cus_new", 1 }, 0},
		{"given another key", func(s *seller, _ endCustomer) {
			s.want(204, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, operatorKey))
		}, func(e endCustomer) (string, int64) { return e.customer, 1 }, 0},
	}
}

// TestBillingChanges makes one change each between the queueing of events and
// their sending: what was queued is sent as it was queued, and what comes
// after it goes by the change.
func TestBillingChanges(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		for _, c := range changes() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				own := database
				if own != "" {
					own = testkit.Postgres(t)
				}
				proveChange(t, own, c)
			})
		}
	})
}

func proveChange(t *testing.T, database string, c change) {
	t.Helper()
	s := newSeller(t, testkit.GatewayOptions{
		Database: database, Binary: testkit.FailpointBinary(t), Env: []string{"MODELGATE_FAILPOINT_EXPORT_PAUSE=20"},
	}, 1)
	e := s.customers[0]
	s.processor.SetFaults(testkit.ProcessorFaults{Throttled: 1}) // nothing is counted for the time being
	queued := map[string]bool{}
	for range 3 {
		queued[s.call(e.key)] = true
	}
	s.eventually("all is queued, and tried", time.Minute, func() bool {
		return s.pending() == float64(len(queued)) && s.processor.Stats().Throttled >= len(queued)
	})
	before := readOutbox(t, s.driver, s.source)
	c.make(s, e)
	if c.status == 0 {
		c.status = 200
	}
	status, text := s.ask(e.key, "POST /v1/chat/completions", chat)
	if status != c.status {
		t.Errorf("a call after it: %d %s, want %d", status, text, c.status)
	}
	s.processor.SetFaults(testkit.ProcessorFaults{})
	s.eventually("nothing is pending", time.Minute, func() bool { return s.pending() == 0 })
	s.settle()
	after := readOutbox(t, s.driver, s.source)
	sent, later := map[string]outboxEvent{}, []outboxEvent{}
	for _, e := range after {
		if e.status != "sent" {
			t.Errorf("%+v is not sent", e)
		}
		sent[e.usage] = e
		if !queued[e.usage] {
			later = append(later, e)
		}
	}
	var price int64
	for _, b := range before {
		price = b.value
		if a := sent[b.usage]; !queued[b.usage] || a.customer != b.customer || a.value != b.value || a.customer != e.customer {
			t.Errorf("queued as %+v, sent as %+v", b, a)
		}
	}
	if len(before) != len(queued) {
		t.Errorf("%d events were queued, want %d", len(before), len(queued))
	}
	customer, times := c.after(e)
	switch {
	case times == 0 && len(later) > 0:
		t.Errorf("events of later calls: %+v", later)
	case times > 0 && (len(later) != 1 || later[0].customer != customer || later[0].value < price*times-1 || later[0].value > price*times+times):
		t.Errorf("the event of a later call: %+v, want one for %s of %d times %d", later, customer, times, price)
	}
	compareBills(s.processor.Ledger(), after).right(t)
	if _, _, code := s.Run("reconcile", "--config", s.ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d", code)
	}
}

// chat is a call whose price is the same each time.
const chat = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"[[words=100]]"}]}`

// TestBillingJobs bills jobs when they are final and at what they cost in the
// end, whoever learns of the end, also when the gateway dies meanwhile.
func TestBillingJobs(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		s := newSeller(t, testkit.GatewayOptions{Database: database}, 1)
		e := s.customers[0]
		s.want(204, "PATCH /gw/subaccounts/"+e.sub, `{"markup_pct":50}`)
		film := func(seconds int, directions string) (job, row string) {
			t.Helper()
			return s.film(e.key, fmt.Sprintf(`{"model":"openai/sora-2","prompt":"a kite %s","seconds":"%d"}`, directions, seconds))
		}
		watched, one := film(8, "[[polls=1000]]")
		_, failed := film(4, "[[polls=1]] [[job=failed]]")
		_, alone := film(12, "[[polls=1]]")
		polled, two := film(2, "[[polls=2]]")
		// Provisional amounts are not billed, whatever happens.
		s.Kill()
		if events := readOutbox(t, s.driver, s.source); len(events) > 0 {
			t.Errorf("pending jobs are billed: %+v", events)
		}
		s.restart()
		for range 4 {
			s.ask(e.key, "GET /v1/videos/"+polled, "")
		}
		if status, text := s.ask(e.key, "DELETE /v1/videos/"+watched, ""); status != 200 {
			t.Errorf("DELETE: %d %s", status, text)
		}
		s.eventually("the jobs have ended and are billed", time.Minute, func() bool {
			_, text := s.ask(e.key, "GET /gw/async?status=pending", "")
			return strings.Contains(text, `"data":[]`) && s.pending() == 0
		})
		_, jobs := s.ask(e.key, "GET /gw/async", "")
		s.settle()
		got := map[string]int64{}
		for _, e := range readOutbox(t, s.driver, s.source) {
			if e.status != "sent" {
				t.Errorf("%+v", e)
			}
			got[e.usage] += e.value
		}
		// 0.1 USD a second and half as much again, in micro-USD.
		want := map[string]int64{alone: 12 * 150_000, two: 2 * 150_000}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("billed %v, want %v; nothing for %s, which failed, and %s, which was cancelled; of\n%s", got, want, failed, one, jobs)
		}
		compareBills(s.processor.Ledger(), readOutbox(t, s.driver, s.source)).right(t)
		if stdout, _, code := s.Run("reconcile", "--config", s.ConfigFile); code != 0 {
			t.Errorf("reconcile: exit %d\n%s", code, stdout)
		}
	})
}
