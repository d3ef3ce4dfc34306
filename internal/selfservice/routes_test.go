package selfservice_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/selfservice"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// scopeTable is which scope a route needs, once more.
var scopeTable = []struct{ endpoint, scope string }{
	{"GET /gw/me", ""},
	{"GET /gw/models", ""},
	{"GET /gw/prices", ""},
	{"GET /gw/quota", ""},
	{"GET /v1/models", ""},
	{"GET /v1/models/openai/gpt-5-mini", ""},
	{"GET /gw/ceiling", "keys:manage"},
	{"GET /gw/keys", "keys:manage"},
	{"POST /gw/keys", "keys:manage"},
	{"DELETE /gw/keys/" + unknownID, "keys:manage"},
	{"GET /gw/subaccounts", "keys:manage"},
	{"POST /gw/subaccounts", "keys:manage"},
	{"PATCH /gw/subaccounts/" + unknownID, "keys:manage"},
	{"GET /gw/people", "keys:manage"},
	{"PATCH /gw/people/" + unknownID, "keys:manage"},
	{"DELETE /gw/people/" + unknownID, "keys:manage"},
	{"GET /gw/sessions", ""},
	{"DELETE /gw/sessions", ""},
	{"DELETE /gw/sessions/" + unknownID, ""},
	{"GET /gw/tokens", ""},
	{"POST /gw/tokens", "inference:use"},
	{"DELETE /gw/tokens", ""},
	{"DELETE /gw/tokens/" + unknownID, ""},
	{"GET /gw/branding", "keys:manage"},
	{"PUT /gw/branding", "keys:manage"},
	{"GET /gw/budgets", "keys:manage"},
	{"PUT /gw/budgets", "keys:manage"},
	{"DELETE /gw/budgets", "keys:manage"},
	{"GET /gw/limits", "keys:manage"},
	{"PUT /gw/limits", "keys:manage"},
	{"DELETE /gw/limits", "keys:manage"},
	{"POST /gw/billing/checkout", "keys:manage"},
	{"GET /gw/alerts", "stats:read"},
	{"PUT /gw/alerts", "keys:manage"},
	{"DELETE /gw/alerts", "keys:manage"},
	{"GET /gw/wallets", "stats:read"},
	{"GET /gw/wallets/" + unknownID, "stats:read"},
	{"PUT /gw/wallets/" + unknownID, "keys:manage"},
	{"GET /gw/wallets/" + unknownID + "/entries", "stats:read"},
	{"POST /gw/wallets/" + unknownID + "/entries", "keys:manage"},
	{"GET /gw/wallet", "stats:read"},
	{"POST /gw/wallet/checkout", "keys:manage"},
	{"GET /gw/processor/webhook", "stats:read"},
	{"PUT /gw/processor/webhook", "keys:manage"},
	{"GET /gw/wallet/entries", "stats:read"},
	{"GET /gw/processor/config", "stats:read"},
	{"PUT /gw/processor/config", "keys:manage"},
	{"PUT /gw/processor/mappings/" + unknownID, "keys:manage"},
	{"DELETE /gw/processor/mappings/" + unknownID, "keys:manage"},
	{"POST /gw/processor/customers", "keys:manage"},
	{"GET /gw/processor/events", "stats:read"},
	{"POST /gw/processor/events/retry", "keys:manage"},
	{"POST /gw/processor/events/" + unknownID + "/retry", "keys:manage"},
	{"GET /gw/stats", "stats:read"},
	{"GET /gw/usage", "stats:read"},
	{"GET /gw/async", "stats:read"},
	{"GET /gw/calls", "stats:read"},
	{"GET /gw/report", "stats:read"},
	{"GET /gw/series", "stats:read"},
	{"GET /gw/focus", "stats:read"},
	{"GET /gw/evidence", "stats:read"},
}

const unknownID = "00000000-0000-7000-8000-00000000ffff"

// TestScopeTableIsWhole keeps an endpoint from being served without a line
// in the table above, whose scopes TestScopes then holds it to.
func TestScopeTableIsWhole(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, row := range scopeTable {
		path := strings.NewReplacer("mappings/"+unknownID, "mappings/{sub_account_id}", "wallets/"+unknownID, "wallets/{sub_account_id}", "events/"+unknownID, "events/{usage_record_id}", unknownID, "{id}", "openai/gpt-5-mini", "{slug...}").Replace(row.endpoint)
		listed = append(listed, path)
	}
	served := selfservice.Patterns()
	slices.Sort(listed)
	slices.Sort(served)
	if diff := cmp.Diff(listed, served); diff != "" {
		t.Errorf("served, and in the table: %s", diff)
	}
}

func TestScopes(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		for _, held := range append(modelgate.AllScopes(), "") {
			key := g.key(client, func(k *modelgate.Key) {
				k.Scopes = slices.DeleteFunc([]modelgate.Scope{held}, func(s modelgate.Scope) bool { return s == "" })
			})
			for _, row := range scopeTable {
				reply := g.do(key, row.endpoint, "")
				if row.scope == "" || row.scope == string(held) {
					if reply.status == 403 && !strings.HasPrefix(row.endpoint, "GET /gw/wallet") { // a wallet is a bound key's
						g.Errorf("%s with %q = %s", row.endpoint, held, reply.body)
					}
					continue
				}
				reply.refused(403, "forbidden", "missing required scope: "+row.scope)
			}
		}
	})
}

func TestUnauthenticated(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		suspended := g.subAccount(client, "gone")
		keys := map[string]string{
			"none":      "",
			"malformed": "gw_live_x",
			"unknown":   modelgate.NewSecret().Reveal(),
			"expired":   g.key(client, func(k *modelgate.Key) { k.ExpiresAt = time.Now().Add(-time.Second) }),
			"suspended": g.key(client, func(k *modelgate.Key) { k.SubAccountID = suspended }),
		}
		root := g.rootKey(client)
		g.do(root, "PATCH /gw/subaccounts/"+string(suspended), `{"status":"suspended"}`).want(204, "")
		targets := []string{"GET /gw/nothing", "TRACE /gw/keys", "GET /gw", "GET /gw/"}
		for _, row := range scopeTable {
			targets = append(targets, row.endpoint)
		}
		for name, key := range keys {
			for _, target := range targets {
				a := g.do(key, target, "").refused(401, "unauthorized", "invalid gateway key")
				if a.header.Get("X-Should-Retry") != "false" {
					g.Errorf("%s key: %v", name, a.header)
				}
			}
		}
	})
}

func TestKeyHeaders(t *testing.T) {
	g := setup(t, "sqlite")
	key := g.rootKey(g.client(unchanged))
	for _, c := range []struct {
		header, value string
		gw, v1        int
	}{
		{"Authorization", "Bearer " + key, 200, 200},
		{"Authorization", "bearer " + key, 200, 200},
		{"Authorization", key, 200, 200},
		{"Authorization", "Basic " + key, 401, 401},
		{"X-Api-Key", key, 401, 200},
		{"Api-Key", key, 401, 200},
		{"X-Goog-Api-Key", key, 401, 200},
		{"Cookie", "key=" + key, 401, 401},
	} {
		for target, status := range map[string]int{"/gw/me": c.gw, "/v1/models": c.v1, "/gw/me?key=" + key: c.gw} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", target, nil)
			r.Header.Set(c.header, c.value)
			g.send(r).want(status, "")
		}
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	g := setup(t, "sqlite")
	key := g.rootKey(g.client(unchanged))
	for _, path := range []string{"/gw", "/gw/", "/gw/nothing", "/gw/keys/", "//gw/keys", "/gw//keys", "/gw/keys/a/b", "/gw/me/x", "/GW/me",
		"/gw/./me", "/v1/models/", "/gw%2Fme"} {
		g.do(key, "GET "+path, "").refused(404, "not_found", "no such path")
	}
	for target, allow := range map[string]string{
		"POST /gw/me":               "GET, HEAD",
		"PUT /gw/keys":              "GET, HEAD, POST",
		"HEAD /gw/keys/x":           "DELETE",
		"GET /gw/keys/x":            "DELETE",
		"DELETE /gw/branding":       "GET, HEAD, PUT",
		"POST /v1/models":           "GET, HEAD",
		"DELETE /v1/models/a/b":     "GET, HEAD",
		"OPTIONS /gw/subaccounts/x": "PATCH",
	} {
		a := g.do(key, target, "")
		if a.header.Get("Allow") != allow || a.status != 405 {
			g.Errorf("%s = %d, Allow %q, want 405 and %q", target, a.status, a.header.Get("Allow"), allow)
		}
		if !strings.HasPrefix(target, "HEAD") {
			a.refused(405, "bad_request", "")
		}
	}
}

// TestForeignIDs compares a foreign id with one that never was: the answers
// must not differ, and nothing may change.
func TestForeignIDs(t *testing.T) {
	each(t, func(g *gate) {
		mine, theirs := g.client(unchanged), g.client(unchanged)
		key, other := g.rootKey(mine), g.rootKey(theirs)
		foreignSub := g.subAccount(theirs, "shop")
		foreignKey := g.do(other, "POST /gw/keys", `{"scopes":[]}`).field("api_key_id")
		for _, id := range []string{foreignKey, unknownID, "x", "%00", "%ff", "%27%3B--", strings.Repeat("a", 5000), strings.ToUpper(foreignKey)} {
			g.do(key, "DELETE /gw/keys/"+id, "").refused(404, "not_found", "key not found")
		}
		for _, id := range []string{string(foreignSub), unknownID, "x", "%00"} {
			g.do(key, "PATCH /gw/subaccounts/"+id, `{"name":"stolen"}`).refused(404, "not_found", "sub-account not found")
			g.do(key, "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, strings.ReplaceAll(id, "%00", ""))).
				refused(403, "forbidden", "sub-account not found or not active")
		}
		if n := g.count("SELECT COUNT(*) FROM sub_account WHERE name = 'stolen'"); n != 0 {
			g.Errorf("%d foreign sub-accounts changed", n)
		}
		if n := g.count("SELECT COUNT(*) FROM api_key WHERE status = 'revoked'"); n != 0 {
			g.Errorf("%d foreign keys revoked", n)
		}
		// The organization cannot be chosen.
		g.do(key, "POST /gw/subaccounts", fmt.Sprintf(`{"name":"n","slug":"s","client_id":%q}`, theirs)).want(200, "")
		if n := g.count(fmt.Sprintf("SELECT COUNT(*) FROM sub_account WHERE client_id = '%s'", theirs)); n != 1 {
			g.Errorf("the other organization has %d sub-accounts, want its own one", n)
		}
	})
}

func TestRateLimit(t *testing.T) {
	g := setup(t, "sqlite")
	one, burst := 1, 3
	client := g.client(func(c *modelgate.Client) {
		c.Limits = modelgate.Limits{RequestsPerSecond: &one, Burst: &burst}
	})
	key := g.key(client, func(k *modelgate.Key) { k.Scopes = []modelgate.Scope{} })
	g.do(key, "GET /gw/keys", "").refused(403, "forbidden", "") // a refusal for want of the scope comes first and is free
	for range burst {
		g.do(key, "GET /gw/me", "").want(200, "")
	}
	for _, target := range []string{"GET /gw/me", "GET /gw/nothing", "POST /gw/me"} {
		a := g.do(key, target, "").refused(429, "rate_limited", "rate limit exceeded")
		if a.header.Get("Retry-After") != "1" {
			g.Errorf("%s: Retry-After %q, want 1", target, a.header.Get("Retry-After"))
		}
	}
	g.do(key, "GET /gw/keys", "").refused(403, "forbidden", "")
}

func TestClientThatLeft(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		key := g.rootKey(client)
		g.do(key, "GET /gw/me", "").want(200, "")
		gone, leave := context.WithCancel(g.Context())
		leave()
		change := httptest.NewRequestWithContext(gone, "POST", "/gw/subaccounts", strings.NewReader(`{"name":"n","slug":"s"}`))
		change.Header.Set("Authorization", key)
		g.send(change).want(200, "")
		if n := g.count("SELECT COUNT(*) FROM sub_account"); n != 1 {
			g.Errorf("%d sub-accounts, want the one whose client did not wait", n)
		}
		read := httptest.NewRequestWithContext(gone, "GET", "/gw/subaccounts", nil)
		read.Header.Set("Authorization", key)
		g.send(read)
		if g.log.Len() > 0 {
			g.Errorf("a read whose client left was logged: %s", &g.log)
		}
	})
}

func TestBodyBounds(t *testing.T) {
	g := setup(t, "sqlite")
	key := g.rootKey(g.client(unchanged))
	const bound = 10 << 20
	body := func(size int) string {
		text := `{"name":"n","slug":"s` + fmt.Sprint(size) + `","client_id":"`
		return text + strings.Repeat("x", size-len(text)-2) + `"}`
	}
	for size, status := range map[int]int{bound: 200, bound + 1: 413} {
		for _, declared := range []int64{int64(size), -1} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/gw/subaccounts", strings.NewReader(body(size)))
			r.Header.Set("Authorization", key)
			r.ContentLength = declared
			a := g.send(r)
			if declared == -1 && status == 200 {
				a.refused(409, "conflict", "") // the declared one came first
				continue
			}
			a.want(status, "")
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/gw/subaccounts", strings.NewReader("x"))
	r.Header.Set("Authorization", key)
	r.Header.Set("Content-Encoding", "gzip")
	g.send(r).refused(400, "bad_request", "")
}

func TestFaultIsLoggedAndNotShown(t *testing.T) {
	g := setup(t, "sqlite")
	key := g.rootKey(g.client(unchanged))
	if _, err := g.raw.Exec("ALTER TABLE sub_account RENAME TO broken"); err != nil {
		t.Fatal(err)
	}
	g.do(key, "GET /gw/me", "").refused(500, "internal_error", "internal error")
	a := g.do(key, "GET /gw/subaccounts", "").refused(500, "internal_error", "internal error")
	if log := g.log.String(); !strings.Contains(log, a.header.Get("X-Gateway-Request-Id")) || strings.Contains(log, key) {
		t.Errorf("log: %s", log)
	}
	b := g.do(key, "GET /v1/models", "")
	b.refused(500, "internal", "internal error")
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgresCluster(t)
	url := cluster.Database(t)
	g := open(t, store.Options{URL: url}, "pgx", url)
	client := g.client(unchanged)
	known, unseen := g.rootKey(client), g.rootKey(client)
	g.do(known, "GET /gw/me", "").want(200, "")
	cluster.Stop(t)
	g.do(known, "GET /gw/me", "").want(200, "")
	g.do(known, "GET /v1/models", "").want(200, "")
	g.do(known, "GET /gw/keys", "").refused(503, "unavailable", "")
	g.do(known, "POST /gw/keys", `{"scopes":[]}`).refused(503, "unavailable", "")
	g.do(unseen, "GET /gw/me", "").refused(503, "unavailable", "key cannot be verified right now; retry shortly")
	cluster.Start(t)
	g.do(unseen, "GET /gw/me", "").want(200, "")
	g.do(known, "POST /gw/keys", `{"scopes":[]}`).want(200, "")
}
