package main

import (
	"net/url"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestOperatorLedgers: budgets that the operator sets bind, jobs are listed and
// polled, and records are found by what they say.
func TestOperatorLedgers(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return testkit.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOperatorBench(t, database(t))
			client := b.NewClient("acme")
			secret, key := b.NewKey(client)
			customer := &bench{b.Gateway, secret}
			budgets := "/operator/v1/organizations/" + string(client) + "/budgets"
			b.want(204, "finance", "PUT "+budgets, `{"scope":"client","period":"day","limit_usd":0.000000001}`, nil)
			b.want(204, "finance", "PUT "+budgets, `{"scope":"key","id":"`+string(key)+`","window":"total","limit_usd":5,"mode":"soft"}`, nil)
			var listed []struct {
				Scope, Owner, ID string
				Limit            float64  `json:"limit_usd"`
				Held             *float64 `json:"held_usd"`
			}
			b.want(200, "auditor", "GET "+budgets, "", &listed)
			if len(listed) != 2 || listed[0].Owner != "operator" || listed[0].Held == nil {
				t.Errorf("budgets: %+v", listed)
			}
			const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
			eventually(t, "the budget", func() bool {
				resp, _ := customer.post(t, "/v1/chat/completions", call)
				return resp.StatusCode == 402
			})
			b.want(204, "finance", "DELETE "+budgets+"?scope=client&period=day", "", nil)
			b.want(404, "finance", "DELETE "+budgets+"?scope=client&period=day", "", nil)
			eventually(t, "the end of the budget", func() bool {
				resp, _ := customer.post(t, "/v1/chat/completions", call)
				return resp.StatusCode == 200
			})
			b.want(404, "auditor", "GET /operator/v1/organizations/019a0000-0000-7000-8000-000000000001/budgets", "", nil)
			for _, bad := range []string{`{"scope":"client","id":"x","period":"day","limit_usd":1}`, `{"scope":"key","period":"day","limit_usd":1}`, `{"scope":"client","limit_usd":1}`} {
				b.want(400, "finance", "PUT "+budgets, bad, nil)
			}

			var members []any
			b.want(200, "auditor", "GET "+strings.Replace(budgets, "budgets", "people", 1), "", &members)
			b.want(404, "auditor", "GET /operator/v1/organizations/019a0000-0000-7000-8000-000000000001/people", "", nil)
			if len(members) != 0 {
				t.Errorf("people: %+v", members)
			}

			var records []struct{ ID, Action string }
			find := func(query string, want int) {
				t.Helper()
				b.want(200, "auditor", "GET /operator/v1/audit?"+query, "", &records)
				if len(records) != want {
					t.Errorf("audit?%s: %+v, want %d", query, records, want)
				}
			}
			find("action=budget.put", 2)
			find("action=budget.delete&organization="+strings.ToUpper(string(client)), 1)
			find("action=budget.put&target="+string(key), 1)
			find("action=budget.put&from=2100-01-01T00:00:00Z", 0)
			find("action=budget.put&to=2100-01-01T00:00:00Z", 2)
			find("action=budget.put&actor="+string(key), 0)
			first, _ := b.do("auditor", "GET /operator/v1/audit?action=budget.put&limit=1", "")
			find("action=budget.put&limit=1&cursor="+url.QueryEscape(first.Header.Get("X-Next-Cursor")), 1)
			for _, bad := range []string{"audit?actor=eve", "audit?organization=acme", "audit?limit=0", "audit?from=yesterday", "jobs?status=done", "events?status=gone",
				"jobs?organization=x", "organizations?status=gone", "organizations?billing=free"} {
				b.want(400, "auditor", "GET /operator/v1/"+bad, "", nil)
			}

			resp, text := customer.post(t, "/v1/videos", `{"model":"openai/sora-2","prompt":"waves","seconds":"4"}`)
			if resp.StatusCode != 200 {
				t.Fatalf("make a film: %d %s", resp.StatusCode, text)
			}
			type job struct {
				TaskID       string `json:"task_id"`
				Organization string `json:"organization_id"`
				Provider     string
				Status       string
			}
			var all, own []job
			eventually(t, "the job", func() bool {
				b.want(200, "support", "GET /operator/v1/jobs", "", &all)
				return len(all) == 1
			})
			b.want(200, "support", "GET /operator/v1/jobs?organization="+string(client), "", &own)
			if len(own) != 1 || own[0] != all[0] || own[0].Organization != string(client) {
				t.Fatalf("jobs of all %+v, of one %+v", all, own)
			}
			place := "/operator/v1/jobs/" + string(client) + "/" + all[0].Provider + "/" + url.PathEscape(all[0].TaskID) + "/poll"
			var polled job
			b.want(200, "support", "POST "+place, "", &polled)
			if polled.TaskID != all[0].TaskID {
				t.Errorf("polled %+v", polled)
			}
			find("action=job.poll", 1)
		})
	}
}
