package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"modelgate/test/testkit"
)

// filmCatalog is a film at a dime a second whose provider says in the end how
// long it has become.
const filmCatalog = `
  - {slug: wan/film, kind: video, routes: [{provider: dashscope, model: wan}], price: {second: 0.1}}`

// TestAsyncMoney follows the money of jobs: what a pending one costs for the
// time being counts against budgets and balance, is in no bill, and gives way
// everywhere to what it costs in the end.
func TestAsyncMoney(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		m := newMouthpiece(t)
		o := testkit.GatewayOptions{
			Database: database, Catalog: filmCatalog, More: "enforcement: {budgets: estimate, balance: true}\n",
			Providers: fmt.Sprintf("\n  - {name: dashscope, format: dashscope, base_url: %q, region: eu, credential: sk-upstream}", m.URL),
		}
		s := &films{seller: newSeller(t, o, 2), m: m}
		buyer := s.customers[1] // billed 7.000001 % more
		s.Admin(nil, "client", "set", string(s.client), "--billing", "manual")
		s.Admin(nil, "balance", "credit", "--client", string(s.client), "--usd", "10")
		s.want(204, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"day","limit_usd":0.9}`, buyer.sub))

		row := s.make(buyer.key, "a", 200)
		s.stands("one is pending", 0.4, 9.6, 1)
		if got := s.list("GET /gw/usage?id=" + row).Get("0"); got.Get("parse_status").String() != "provisional" || got.Get("cost_usd").Num != 0.4 {
			t.Errorf("row %s", got.Raw)
		}
		s.make(buyer.key, "b", 200)
		s.make(buyer.key, "c", 200) // 0.80 of 0.90 are held: it is the call that crosses the limit
		s.make(buyer.key, "d", 402)
		s.stands("three are pending", 1.2, 8.8, 3) // what was refused before it left has no row
		if n := s.list("GET /gw/processor/events").Get("events.#").Int(); n != 0 {
			t.Errorf("%d events of jobs that are pending", n)
		}

		s.ends(buyer.key, "a", `{"output":{"task_status":"SUCCEEDED"},"usage":{"output_video_duration":6.5}}`)
		s.ends(buyer.key, "b", `{"output":{"task_status":"FAILED"}}`)
		s.ends(buyer.key, "c", `{"output":{"task_status":"CANCELED"}}`)
		s.stands("all have ended", 0.65, 9.35, 3)
		if got := s.list("GET /gw/usage?id=" + row).Get("0"); got.Get("parse_status").String() != "ok" || got.Get("cost_usd").Num != 0.65 {
			t.Errorf("row %s", got.Raw)
		}
		events := s.list("GET /gw/processor/events").Get("events")
		if e := events.Get("0"); events.Get("#").Int() != 1 || e.Get("usage_record_id").String() != row || e.Get("amount_usd").Num != 0.6955 {
			t.Errorf("events %s, want one of 0.65 USD and 7.000001 %%, in whole micro-USD", events.Raw)
		}
		s.eventually("the event is sent", patience, func() bool { return s.pending() == 0 })
		s.finals(row)
		s.make(buyer.key, "d", 200) // there is room again
		s.stands("another is pending", 1.05, 8.95, 4)
		s.settle()
		if stdout, stderr, code := s.Run("reconcile", "--config", s.ConfigFile); code != 0 {
			t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
		}
	})
}

// films is a seller of films.
type films struct {
	*seller
	m *mouthpiece
}

// make asks for a film of 4 seconds, which is answered with the status, and
// returns the id of the row.
func (s *films) make(key, id string, want int) (row string) {
	s.t.Helper()
	s.m.say("POST /api/v1/services/aigc/video-generation/video-synthesis", fmt.Sprintf(`{"output":{"task_id":%q,"task_status":"PENDING"}}`, id))
	s.m.say("GET /api/v1/tasks/"+id, `{"output":{"task_status":"RUNNING"}}`)
	status, answer := s.ask(key, "POST /v1/videos", `{"model":"wan/film","input":{"prompt":"x"},"parameters":{"duration":4}}`)
	if status != want {
		s.t.Fatalf("film %s: %d %s, want %d", id, status, answer, want)
	}
	if status != 200 {
		return ""
	}
	s.eventually("job "+id+" is in the ledger", patience, func() bool {
		return s.list("GET /gw/async?scope=client&limit=1").Get("data.0.task_id").String() == id
	})
	return s.list("GET /gw/usage?limit=1").Get("0.id").String() // the newest
}

// ends has the provider end a job, and its maker see that.
func (s *films) ends(key, id, says string) {
	s.t.Helper()
	s.m.say("GET /api/v1/tasks/"+id, says)
	if status, answer := s.ask(key, "GET /v1/videos/"+id, ""); status != 200 || answer != says {
		s.t.Errorf("poll of %s: %d %s", id, status, answer)
	}
}

func (s *films) list(target string) gjson.Result {
	s.t.Helper()
	status, text := s.ask(s.key, target, "")
	if status != 200 {
		s.t.Fatalf("%s: %d %s", target, status, text)
	}
	return gjson.Parse(text)
}

// stands holds everything that knows of the spend against it.
func (s *films) stands(when string, spent, balance float64, calls int64) {
	s.t.Helper()
	if got := s.list("GET /gw/budgets").Get("0.spend_usd").Num; got != spent {
		s.t.Errorf("%s: the budget says %v, want %v", when, got, spent)
	}
	for _, by := range []string{"provider", "day", "sub_account"} {
		got := s.list("GET /gw/stats?group_by=" + by)
		var cost float64
		for _, b := range got.Array() {
			cost += b.Get("total_cost_usd").Num
		}
		if cost != spent || got.Get("0.requests").Int() != calls {
			s.t.Errorf("%s: stats by %s %s, want %v of %d calls", when, by, got.Raw, spent, calls)
		}
	}
	sum := 0.0
	for _, r := range s.list("GET /gw/usage").Array() {
		sum += r.Get("cost_usd").Num
	}
	if diff := sum - spent; diff > 1e-9 || diff < -1e-9 {
		s.t.Errorf("%s: the rows cost %v, want %v", when, sum, spent)
	}
	var shown struct {
		Balance float64 `json:"balance_usd"`
	}
	s.Admin(&shown, "balance", "show", "--client", string(s.client))
	if shown.Balance != balance {
		s.t.Errorf("%s: the balance is %v, want %v", when, shown.Balance, balance)
	}
}

// finals holds the evidence against what has ended: three jobs, the row's at
// its cost.
func (s *films) finals(row string) {
	s.t.Helper()
	var seen int
	s.eventually("the evidence is chained", time.Minute, func() bool {
		_, file := s.ask(s.key, "GET /gw/evidence", "")
		seen = strings.Count(file, `"type":"usage.final"`)
		for line := range strings.Lines(file) {
			rec := gjson.Get(line, "rec")
			if rec.Get("type").String() != "usage.final" || rec.Get("ref").String() != row {
				continue
			}
			if rec.Get("cost_usd").String() != "0.650000000" || rec.Get("previous_cost_usd").String() != "0.400000000" || rec.Get("parse_status").String() != "ok" {
				s.t.Errorf("evidence of the end: %s", rec.Raw)
			}
		}
		return seen >= 3
	})
	if seen != 3 {
		s.t.Errorf("the evidence has %d ends, want 3", seen)
	}
}
