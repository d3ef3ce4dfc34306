package main

import (
	"testing"

	"modelgate/internal/gatetest"
)

// TestSpec plays the scripts in spec/, one per section of the API's
// specification, against the real binary. Each has an organization of its own
// with these keys: manager (all scopes), caller (inference:use), reader
// (stats:read) and denied (inference:use, no entitlements). Three more belong to
// others: stranger manages another organization, european one with the policy
// eu_only, and capped one that may hold two keys.
func TestSpec(t *testing.T) {
	t.Parallel()
	g := gatetest.StartGateway(t, gatetest.GatewayOptions{})
	stranger, _ := g.NewKey(g.NewClient("strangers"))
	eu := g.NewClient("europeans", "--routing-policy", "eu_only")
	european, _ := g.NewKey(eu)
	capped, _ := g.NewKey(g.NewClient("small", "--max-keys", "2"))
	gatetest.RunFiles(t, "../../spec/*.txt", func(t *testing.T) *gatetest.Script {
		g := g.For(t)
		client := g.NewClient(t.Name())
		manager, managerID := g.NewKey(client)
		caller, callerID := g.NewKey(client, "--scopes", "inference:use")
		reader, _ := g.NewKey(client, "--scopes", "stats:read")
		denied, _ := g.NewKey(client, "--scopes", "inference:use", "--entitlements", "[]")
		return &gatetest.Script{URL: g.URL, Vars: map[string]string{
			"client": string(client), "manager": manager, "manager_id": string(managerID),
			"caller": caller, "caller_id": string(callerID), "reader": reader, "denied": denied,
			"stranger": stranger, "european": european, "capped": capped,
		}}
	})
}
