package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// TestOperatorFigures holds the calls and the report of all organizations against
// what each organization sees of its own.
func TestOperatorFigures(t *testing.T) {
	t.Parallel()
	b := newOperatorBench(t, "")
	type figures struct {
		Requests int
		Cost     float64 `json:"cost_usd"`
	}
	type answer struct {
		Totals figures
		Rows   []struct {
			Group, Label []string
			figures
		}
	}
	own := map[string]figures{}
	const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	for i, name := range []string{"acme", "globex"} {
		client := b.NewClient(name)
		secret, _ := b.NewKey(client)
		customer := &bench{b.Gateway, secret}
		for range i + 1 {
			if resp, text := customer.post(t, "/v1/chat/completions", call); resp.StatusCode != 200 {
				t.Fatalf("a call of %s: %d %s", name, resp.StatusCode, text)
			}
		}
		var mine answer
		_, text := customer.get(t, "/gw/report?group_by=organization")
		if !strings.Contains(text, "group_by must be") {
			t.Errorf("an organization groups by organization: %s", text)
		}
		_, text = customer.get(t, "/gw/report")
		if err := json.Unmarshal([]byte(text), &mine); err != nil || mine.Totals.Requests != i+1 {
			t.Fatalf("the report of %s: %s", name, text)
		}
		own[string(client)] = mine.Totals
		if i == 1 {
			b.want(204, "admin", "PATCH /operator/v1/organizations/"+string(client), `{"status":"suspended"}`, nil)
		}
	}
	var all answer
	b.want(200, "auditor", "GET /operator/v1/report?group_by=organization&order=requests", "", &all)
	if all.Totals.Requests != 3 || len(all.Rows) != 2 || all.Rows[0].Label[0] != "globex" {
		t.Fatalf("the report of all: %+v", all)
	}
	for _, row := range all.Rows {
		if row.figures != own[row.Group[0]] {
			t.Errorf("%s has %+v, and sees %+v", row.Label, row.figures, own[row.Group[0]])
		}
		var one answer
		b.want(200, "auditor", "GET /operator/v1/report?organization="+strings.ToUpper(row.Group[0]), "", &one)
		if one.Totals != row.figures {
			t.Errorf("the filter has %+v, the group %+v", one.Totals, row.figures)
		}
		var calls []struct {
			Organization string `json:"organization_id"`
			Name         string `json:"organization_name"`
		}
		b.want(200, "auditor", "GET /operator/v1/calls?organization="+row.Group[0], "", &calls)
		if len(calls) != row.Requests || calls[0].Organization != row.Group[0] || calls[0].Name != row.Label[0] {
			t.Errorf("the calls of %s: %+v", row.Label, calls)
		}
	}
	first, text := b.do("auditor", "GET /operator/v1/calls?limit=2", "")
	next := first.Header.Get("X-Next-Cursor")
	if strings.Count(text, `"organization_id"`) != 2 || next == "" {
		t.Errorf("the first page: %s, cursor %q", text, next)
	}
	var rest []struct{ ID string }
	b.want(200, "auditor", "GET /operator/v1/calls?limit=2&cursor="+url.QueryEscape(next), "", &rest)
	if len(rest) != 1 {
		t.Errorf("the second page: %+v", rest)
	}
	file := b.want(200, "auditor", "GET /operator/v1/calls?format=csv", "", nil)
	if strings.Count(file, "\n") != 4 || strings.Count(file, "globex") != 2 {
		t.Errorf("the file: %s", file)
	}
	for _, bad := range []string{"calls?organization=acme", "report?organization=", "report?group_by=org", "calls?client_id=x", "report?sort=name"} {
		b.want(400, "auditor", "GET /operator/v1/"+bad, "", nil)
	}
}
