package main

import (
	"strings"
	"testing"
)

// TestOperatorProviders fails some calls and finds them under their provider.
func TestOperatorProviders(t *testing.T) {
	t.Parallel()
	b := newOperatorBench(t, "")
	client := b.NewClient("acme")
	secret, _ := b.NewKey(client)
	customer := &bench{b.Gateway, secret}
	type view struct {
		Name, Status string
		Models       int
		Calls        struct{ All, Served, Failed int }
		Last         *string `json:"last_call_at"`
	}
	state := func(name string) (found view) {
		var all []view
		b.want(200, "auditor", "GET /operator/v1/providers", "", &all)
		for _, v := range all {
			if v.Name == name {
				return v
			}
		}
		t.Fatalf("no provider %s: %+v", name, all)
		return found
	}
	if v := state("openai"); v.Status != "idle" || v.Models == 0 || v.Calls.All != 0 || v.Last != nil {
		t.Errorf("before any call: %+v", v)
	}
	const calls = 5
	for range calls {
		customer.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"[[status=500]]"}]}`)
	}
	eventually(t, "the calls", func() bool { return state("openai").Calls.All == calls })
	var failures []struct {
		Organization string `json:"organization_id"`
		Model        string
		Status       int
		Class        string
		ID           string `json:"request_id"`
	}
	b.want(200, "auditor", "GET /operator/v1/providers/openai/errors", "", &failures)
	if v := state("openai"); v.Status != "down" || v.Calls.Failed != calls || v.Last == nil || len(failures) != calls {
		t.Fatalf("after %d failures: %+v, listed %+v", calls, v, failures)
	}
	if f := failures[0]; f.Organization != string(client) || f.Status != 500 || f.Class != "failed" || f.Model == "" {
		t.Errorf("a failure: %+v", f)
	}
	var call []struct{ ID string }
	if b.want(200, "auditor", "GET /operator/v1/calls?id="+failures[0].ID, "", &call); len(call) != 1 {
		t.Errorf("the call of a failure: %+v", call)
	}
	var test struct {
		Reachable  bool
		Credential string
		Connect    *int `json:"connect_ms"`
	}
	b.want(200, "support", "POST /operator/v1/providers/openai/test", "", &test)
	if !test.Reachable || test.Connect == nil || test.Credential == "" {
		t.Errorf("the test: %+v", test)
	}
	if records := b.want(200, "auditor", "GET /operator/v1/audit?action=provider.test", "", nil); !strings.Contains(records, `"openai"`) {
		t.Errorf("records: %s", records)
	}
	if v := state("openai"); v.Calls.All != calls {
		t.Errorf("the test is a call: %+v", v)
	}
	var health struct {
		Database  struct{ Engine string }
		Instances []struct {
			ID     string
			Config string `json:"config_hash"`
		}
		Warnings []string
	}
	eventually(t, "the instance", func() bool {
		b.want(200, "auditor", "GET /operator/v1/health", "", &health)
		return len(health.Instances) == 1
	})
	if health.Database.Engine != "sqlite" || len(health.Instances[0].Config) != 64 || len(health.Warnings) != 1 || health.Warnings[0] != "provider openai is down" {
		t.Errorf("health: %+v", health)
	}
	b.want(404, "auditor", "GET /operator/v1/providers/nobody/errors", "", nil)
	b.want(404, "support", "POST /operator/v1/providers/nobody/test", "", nil)
	b.want(400, "auditor", "GET /operator/v1/providers?name=openai", "", nil)
}
