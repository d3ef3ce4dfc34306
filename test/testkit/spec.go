package testkit

import (
	"testing"
	"time"
)

// Spec is the scripts in spec and what they need. Each has an
// organization of its own with these keys: manager (all scopes), caller
// (inference:use), reader (stats:read) and denied (inference:use, no
// entitlements). Others belong to others: stranger manages another
// organization, european one with the policy eu_only, capped one that may hold
// two keys, and prepaid one with a prepaid balance.
type Spec struct {
	Gateway *Gateway
	// Processor is the gateway's, and ProcessorKey a key that it takes.
	Processor    *Processor
	ProcessorKey string
	Glob         string // of the files
}

// Play plays every script as a subtest; like is what each begins with: its
// client and contract.
func (s Spec) Play(t *testing.T, like Script) {
	g := s.Gateway
	stranger, _ := g.NewKey(g.NewClient("strangers"))
	european, _ := g.NewKey(g.NewClient("europeans", "--routing-policy", "eu_only"))
	capped, _ := g.NewKey(g.NewClient("small", "--max-keys", "2"))
	prepaid, _ := g.NewKey(g.NewClient("prepaid", "--billing", "manual"))
	RunFiles(t, s.Glob, func(t *testing.T) *Script {
		g := g.For(t)
		client := g.NewClient(t.Name())
		manager, managerID := g.NewKey(client)
		caller, callerID := g.NewKey(client, "--scopes", "inference:use")
		reader, _ := g.NewKey(client, "--scopes", "stats:read")
		denied, _ := g.NewKey(client, "--scopes", "inference:use", "--entitlements", "[]")
		script := like
		script.URL = g.URL
		script.Vars = map[string]string{
			"client": string(client), "manager": manager, "manager_id": string(managerID),
			"caller": caller, "caller_id": string(callerID), "reader": reader, "denied": denied,
			"prepaid": prepaid, "processor_key": s.ProcessorKey,
			"ping_signature":          SignNotice(s.Processor.Secret, []byte(`{"id":"evt_ping","type":"ping"}`), time.Now()),
			"reseller_ping_signature": SignNotice("whsec_0123456789abcdef", []byte(`{"id":"evt_ping","type":"ping"}`), time.Now()),
			"stranger":                stranger, "european": european, "capped": capped,
		}
		return &script
	})
}
