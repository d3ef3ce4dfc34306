package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// portalKey is a key in a list of the portal.
type portalKey struct {
	ID         string
	SelfIssued bool `json:"self_issued"`
}

func (b *browser) keys() (keys []portalKey) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.want(200, "GET /p/acme/gw/keys", "")), &keys); err != nil {
		b.t.Fatal(err)
	}
	return keys
}

// signedIn is a browser in the portal with a new key of the first customer.
func (r *reseller) signedIn(t *testing.T, flags ...string) *browser {
	t.Helper()
	key, _ := r.NewKey(clientOf(t, r.bench), append(flags, "--sub-account", r.first)...)
	w := newBrowser(t, r.URL)
	w.signIn("/p/acme", key)
	return w
}

// TestPortalReads: who reads statistics reads the keys and budgets of its own
// sub-account in the portal, and changes nothing. The routes of the API want
// keys:manage as ever.
func TestPortalReads(t *testing.T) {
	t.Parallel()
	r := newReseller(t, false)
	manager := newBrowser(t, r.URL)
	manager.signIn("/dashboard", r.bench.key)
	for _, sub := range []string{r.first, r.second} {
		manager.want(204, "PUT /dashboard/gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"day","limit_usd":7}`, sub))
	}
	w := r.signedIn(t, "--scopes", "stats:read")
	keys := w.keys()
	if len(keys) != 2 {
		t.Errorf("keys %v, want the two of its sub-account", keys)
	}
	if text := w.want(200, "GET /p/acme/gw/budgets", ""); !strings.Contains(text, r.first) || strings.Contains(text, r.second) || !strings.Contains(text, "10.5") {
		t.Errorf("budgets: %s", text)
	}
	w.want(403, "DELETE /p/acme/gw/keys/"+keys[0].ID, "")
	w.want(403, "POST /p/acme/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":60}`)
	w.want(403, "PUT /p/acme/gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":7}`, keys[0].ID))
	w.want(403, "DELETE /p/acme/gw/budgets?scope=key&period=day&id="+keys[0].ID, "")
	w.want(403, "GET /p/acme/gw/ceiling", "")

	reader, _ := r.NewKey(clientOf(t, r.bench), "--sub-account", r.first, "--scopes", "stats:read")
	bearer := []string{"Authorization", "Bearer " + reader}
	for _, target := range []string{"GET /gw/keys", "GET /gw/budgets"} {
		if text := newBrowser(t, r.URL).want(403, target, "", bearer...); !strings.Contains(text, "keys:manage") {
			t.Errorf("%s: %s", target, text)
		}
	}
	caller := r.signedIn(t, "--scopes", "inference:use")
	for _, target := range []string{"GET /p/acme/gw/keys", "GET /p/acme/gw/budgets"} {
		if text := caller.want(403, target, ""); !strings.Contains(text, "stats:read") {
			t.Errorf("%s: %s", target, text)
		}
	}
}

// TestSelfIssueIsThePortals: with allow_self_issue a session issues, lists and
// revokes self-issued keys whatever the scopes of the key behind it, and
// touches no other key; without it nobody issues one there. The API wants
// keys:manage, whatever the portal allows.
func TestSelfIssueIsThePortals(t *testing.T) {
	t.Parallel()
	const good = `{"scopes":["inference:use"],"expires_in_seconds":3600}`
	r := newReseller(t, true)
	for _, scopes := range []string{"inference:use", "stats:read", "keys:manage"} {
		w := r.signedIn(t, "--scopes", scopes)
		var issued struct {
			APIKeyID string `json:"api_key_id"`
			Key      string
			Scopes   []string
		}
		if err := json.Unmarshal([]byte(w.want(200, "POST /p/acme/gw/keys", good)), &issued); err != nil || fmt.Sprint(issued.Scopes) != "[inference:use]" {
			t.Fatalf("%s: issued %+v, %v", scopes, issued, err)
		}
		selfIssued, others := 0, 0
		for _, k := range w.keys() {
			if k.SelfIssued && k.ID == issued.APIKeyID {
				selfIssued++
			} else {
				others++
			}
		}
		if selfIssued != 1 || (others > 0) != (scopes != "inference:use") {
			t.Errorf("%s: in the list are what was issued %d times, and %d others", scopes, selfIssued, others)
		}
		if scopes != "keys:manage" {
			key, id := r.NewKey(clientOf(t, r.bench), "--sub-account", r.first)
			w.want(404, "DELETE /p/acme/gw/keys/"+string(id), "") // the reseller's
			newBrowser(t, r.URL).want(200, "GET /gw/me", "", "Authorization", "Bearer "+key)
			newBrowser(t, r.URL).want(403, "POST /gw/keys", good, "Authorization", "Bearer "+issued.Key)
			newBrowser(t, r.URL).want(204, "DELETE /gw/keys/"+string(id), "", "Authorization", "Bearer "+r.bench.key)
		}
		w.want(204, "DELETE /p/acme/gw/keys/"+issued.APIKeyID, "")
		newBrowser(t, r.URL).want(401, "GET /gw/me", "", "Authorization", "Bearer "+issued.Key)
	}
	closed := newReseller(t, false)
	for _, scopes := range []string{"inference:use", "stats:read", "keys:manage"} {
		closed.signedIn(t, "--scopes", scopes).want(403, "POST /p/acme/gw/keys", good)
	}
	// Through the API the scope decides.
	newBrowser(t, closed.URL).want(200, "POST /gw/keys", good, "Authorization", "Bearer "+closed.key)
}

// TestSelfIssuedKeysStayBelow: what is issued in a portal calls no model that
// the key behind the session may not, and ends no later than that key.
func TestSelfIssuedKeysStayBelow(t *testing.T) {
	t.Parallel()
	r := newReseller(t, true)
	w := r.signedIn(t, "--scopes", "stats:read", "--expires-in-seconds", "600", "--entitlements", `[{"axis":"vendor","provider":"openai","model_pattern":"gpt-5-mini","effect":"allow"}]`)
	if text := w.want(403, "POST /p/acme/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":3600}`); !strings.Contains(text, "expires after the issuing key") {
		t.Errorf("a key that outlives its issuer: %s", text)
	}
	w.want(403, "POST /p/acme/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":60,"entitlements":[{"axis":"vendor","provider":"anthropic","model_pattern":"*","effect":"allow"}]}`)
	var issued struct{ Key string }
	if err := json.Unmarshal([]byte(w.want(200, "POST /p/acme/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":60}`)), &issued); err != nil {
		t.Fatal(err)
	}
	call := func(model string, status int) {
		t.Helper()
		newBrowser(t, r.URL).want(status, "POST /v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`, "Authorization", "Bearer "+issued.Key)
	}
	call("openai/gpt-5-mini", 200)
	call("acme/both", 403)
}
