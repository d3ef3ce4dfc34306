package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate/internal/gatetest"
)

// TestSpec plays the scripts in spec/, one per section of the API's
// specification, against the real binary. Each has an organization of its own
// with these keys: manager (all scopes), caller (inference:use), reader
// (stats:read) and denied (inference:use, no entitlements). Others belong
// to others: stranger manages another organization, european one with the policy
// eu_only, and capped one that may hold two keys; prepaid manages one with a
// prepaid balance.
//
// Every exchange is held against the contract, and every operation of the
// contract must be among them.
func TestSpec(t *testing.T) {
	t.Parallel()
	const processorKey = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"
	p := gatetest.NewProcessor(t, processorKey)
	g := gatetest.StartGateway(t, gatetest.GatewayOptions{More: p.Config(processorKey)})
	stranger, _ := g.NewKey(g.NewClient("strangers"))
	eu := g.NewClient("europeans", "--routing-policy", "eu_only")
	european, _ := g.NewKey(eu)
	capped, _ := g.NewKey(g.NewClient("small", "--max-keys", "2"))
	prepaid, _ := g.NewKey(g.NewClient("prepaid", "--billing", "manual"))
	contract := gatetest.NewContract(t, fetch(t, g.URL+"/openapi.json"))
	t.Cleanup(func() {
		for _, op := range contract.Missing() {
			if strings.HasPrefix(op, "proxyDelete ") {
				continue // what providers let be deleted are jobs
			}
			t.Errorf("no script in spec/ has %s answered with success", op)
		}
	})
	gatetest.RunFiles(t, "../../spec/*.txt", func(t *testing.T) *gatetest.Script {
		g := g.For(t)
		client := g.NewClient(t.Name())
		manager, managerID := g.NewKey(client)
		caller, callerID := g.NewKey(client, "--scopes", "inference:use")
		reader, _ := g.NewKey(client, "--scopes", "stats:read")
		denied, _ := g.NewKey(client, "--scopes", "inference:use", "--entitlements", "[]")
		return &gatetest.Script{URL: g.URL, Contract: contract, Vars: map[string]string{
			"client": string(client), "manager": manager, "manager_id": string(managerID),
			"caller": caller, "caller_id": string(callerID), "reader": reader, "denied": denied,
			"prepaid": prepaid, "processor_key": processorKey,
			"ping_signature": gatetest.SignNotice(p.Secret, []byte(`{"id":"evt_ping","type":"ping"}`), time.Now()),
			"stranger":       stranger, "european": european, "capped": capped,
		}}
	})
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", url, resp.StatusCode, err)
	}
	return text
}
