package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"

	"modelgate"
	"modelgate/test/testkit"
)

// browser keeps cookies as a browser does, and nothing else.
type browser struct {
	t *testing.T
	*http.Client
	url string
	// contract, unless nil, is what requests of the dashboard to the API and their
	// answers are held against.
	contract *testkit.Contract
}

func newBrowser(t *testing.T, url string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t: t, Client: &http.Client{Jar: jar}, url: url}
}

// send makes a request; headers come in pairs.
func (b *browser) send(target, body string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	method, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.contract != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for _, c := range b.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	resp, text := exchange(b.t, r)
	b.Jar.SetCookies(r.URL, resp.Cookies())
	if asked, ok := strings.CutPrefix(r.URL.Path, "/dashboard/gw/"); ok && b.contract != nil {
		r.URL.Path = "/gw/" + asked
		if err := b.contract.Check(r, []byte(body), resp, []byte(text)); err != nil {
			b.t.Errorf("%s: %v", target, err)
		}
	}
	return resp, text
}

// want sends and expects a status.
func (b *browser) want(status int, target, body string, headers ...string) string {
	b.t.Helper()
	resp, text := b.send(target, body, headers...)
	if resp.StatusCode != status {
		b.t.Errorf("%s = %d %s, want %d", target, resp.StatusCode, text, status)
	}
	return text
}

func (b *browser) signIn(root, key string) {
	b.t.Helper()
	b.want(200, "POST "+root+"/session", fmt.Sprintf(`{"key":%q}`, key))
}

// TestSessions follows a session of the dashboard from its beginning to its
// ends.
func TestSessions(t *testing.T) {
	t.Parallel()
	g := newBench(t, testkit.GatewayOptions{})
	w := newBrowser(t, g.URL)
	w.want(401, "GET /dashboard/session", "")
	w.want(401, "GET /dashboard/gw/me", "")
	w.want(401, "POST /dashboard/session", `{"key":"gw_live_x"}`)
	w.want(400, "POST /dashboard/session", `{"key":1}`)
	w.want(405, "PUT /dashboard/session", `{}`)

	resp, text := w.send("POST /dashboard/session", fmt.Sprintf(`{"key":" %s "}`, g.key))
	cookies := resp.Cookies()
	if resp.StatusCode != 200 || len(cookies) != 1 || strings.Contains(text, g.key) {
		t.Fatalf("%d %v %s", resp.StatusCode, cookies, text)
	}
	c := cookies[0]
	if c.Name != "dashboard" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/dashboard" || c.MaxAge < 11*3600 || c.MaxAge > 12*3600 || strings.Contains(c.Value, g.key) {
		t.Errorf("cookie %+v", c)
	}
	var who struct {
		Name, OrganizationID string
		Scopes               []string
	}
	if err := json.Unmarshal([]byte(w.want(200, "GET /dashboard/session", "")), &who); err != nil || who.Name != t.Name() || len(who.Scopes) != 3 {
		t.Errorf("%+v, %v", who, err)
	}
	w.want(200, "GET /dashboard/gw/me", "")
	w.want(200, "GET /dashboard/v1/models", "")
	w.want(200, "GET /dashboard/v1/models/openai/gpt-5-mini", "")
	w.want(404, "GET /dashboard/gw/none", "")
	w.want(405, "POST /dashboard/gw/me", "")
	w.want(200, "POST /dashboard/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`)
	// A key in a header is nothing here: the session alone decides.
	w.want(200, "GET /dashboard/gw/me", "", "Authorization", "Bearer gw_live_x")
	newBrowser(t, g.URL).want(401, "GET /dashboard/gw/me", "", "Authorization", "Bearer "+g.key)
	// And a session is nothing anywhere else.
	empty := newBrowser(t, g.URL)
	empty.want(401, "GET /gw/me", "", "Cookie", "dashboard="+c.Value)
	empty.want(401, "GET /v1/models", "", "Cookie", "dashboard="+c.Value)
	empty.want(401, "GET /dashboard/gw/me", "", "Cookie", "dashboard="+c.Value[:len(c.Value)-2])

	for _, site := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
		w.want(403, "POST /dashboard/gw/subaccounts", `{"name":"x","slug":"x"}`, site...)
		w.want(403, "POST /dashboard/session", fmt.Sprintf(`{"key":%q}`, g.key), site...)
		w.want(403, "DELETE /dashboard/session", "", site...)
	}
	w.want(200, "POST /dashboard/gw/subaccounts", `{"name":"x","slug":"x"}`, "Sec-Fetch-Site", "same-origin")

	stolen := newBrowser(t, g.URL)
	w.want(204, "DELETE /dashboard/session", "")
	w.want(401, "GET /dashboard/gw/me", "")
	stolen.want(401, "GET /dashboard/gw/me", "", "Cookie", "dashboard="+c.Value)
	w.signIn("/dashboard", g.key)
	former := w.Jar.Cookies(mustURL(t, g.URL+"/dashboard/"))[0].Value
	w.signIn("/dashboard", g.key) // ends what the browser held before
	stolen.want(401, "GET /dashboard/gw/me", "", "Cookie", "dashboard="+former)

	// A session ends with its key, and a restart does not end it.
	key, id := g.NewKey(clientOf(t, g))
	w.signIn("/dashboard", key)
	g.Stop()
	g.Start()
	w.url = g.URL
	w.want(200, "GET /dashboard/gw/me", "")
	w.want(204, "DELETE /dashboard/gw/keys/"+string(id), "")
	w.want(401, "GET /dashboard/gw/me", "")
}

// clientOf is the organization of a bench.
func clientOf(t *testing.T, g *bench) (id clientID) {
	t.Helper()
	var rows []struct{ ID clientID }
	g.Admin(&rows, "client", "list")
	if len(rows) != 1 {
		t.Fatalf("%d organizations", len(rows))
	}
	return rows[0].ID
}

// TestSessionsOverTLS gives the cookie the prefix that only its host can set.
func TestSessionsOverTLS(t *testing.T) {
	t.Parallel()
	g := newBench(t, testkit.GatewayOptions{Server: "base_url: https://gate.example"})
	resp, text := newBrowser(t, g.URL).send("POST /dashboard/session", fmt.Sprintf(`{"key":%q}`, g.key), "Origin", "https://gate.example")
	if resp.StatusCode != 200 || !strings.Contains(text, `"base_url":"https://gate.example"`) {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if c := resp.Cookies()[0]; c.Name != "__Host-dashboard" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("cookie %+v", c)
	}
}

// TestSessionsOnPostgres are good on every instance, and need no secret that
// these share.
func TestSessionsOnPostgres(t *testing.T) {
	t.Parallel()
	database := testkit.Postgres(t)
	a := newBench(t, testkit.GatewayOptions{Database: database})
	w := newBrowser(t, a.URL)
	w.signIn("/dashboard", a.key)
	b := testkit.StartGateway(t, testkit.GatewayOptions{Database: database, More: "session_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\n"})
	w.url = b.URL // the same host, as behind a load balancer
	w.want(200, "GET /dashboard/gw/me", "")
	if !strings.Contains(b.Log(), "session_key") {
		t.Error("serve does not say that session_key does nothing")
	}
}

// reseller is an organization with a portal and two customers.
type reseller struct {
	*bench
	first, second string // sub-accounts
	key, sibling  string // of theirs
}

func newReseller(t *testing.T, selfIssue bool) *reseller {
	t.Helper()
	r := &reseller{bench: newBench(t, testkit.GatewayOptions{})}
	manager := newBrowser(t, r.URL)
	manager.signIn("/dashboard", r.bench.key)
	customer := func(slug string) (id, key string) {
		var made struct{ ID string }
		text := manager.want(200, "POST /dashboard/gw/subaccounts", fmt.Sprintf(`{"name":"Customer %s","slug":%q}`, slug, slug))
		if err := json.Unmarshal([]byte(text), &made); err != nil {
			t.Fatal(err)
		}
		manager.want(204, "PATCH /dashboard/gw/subaccounts/"+made.ID, `{"markup_pct":50}`)
		key, _ = r.NewKey(clientOf(t, r.bench), "--sub-account", made.ID)
		return made.ID, key
	}
	r.first, r.key = customer("first")
	r.second, r.sibling = customer("second")
	manager.want(200, "PUT /dashboard/gw/branding", fmt.Sprintf(`{"portal_slug":"acme","product_name":"Acme AI","allow_self_issue":%v}`, selfIssue))
	return r
}

// TestPortals lets in the customers of the portal's reseller and nobody else.
func TestPortals(t *testing.T) {
	t.Parallel()
	r := newReseller(t, false)
	other := r.NewClient("other")
	foreign, _ := r.NewKey(other)
	w := newBrowser(t, r.URL)
	for name, key := range map[string]string{"the reseller's own": r.bench.key, "a stranger's": foreign} {
		if resp, text := w.send("POST /p/acme/session", fmt.Sprintf(`{"key":%q}`, key)); resp.StatusCode != 401 || !strings.Contains(text, "invalid gateway key") {
			t.Errorf("%s key: %d %s", name, resp.StatusCode, text)
		}
	}
	w.want(403, "POST /dashboard/session", fmt.Sprintf(`{"key":%q}`, r.key))
	w.signIn("/p/acme", r.key)
	text := w.want(200, "GET /p/acme/session", "")
	for _, secret := range []string{"organization_id", "billing", "markup", t.Name()} {
		if strings.Contains(text, secret) {
			t.Errorf("a customer's session shows %s: %s", secret, text)
		}
	}
	if !strings.Contains(text, "Customer first") {
		t.Errorf("session %s", text)
	}
	w.want(200, "GET /p/acme/gw/me", "")
	w.want(403, "GET /p/acme/gw/subaccounts", "")
	w.want(403, "GET /p/acme/gw/branding", "")
	w.want(401, "GET /dashboard/gw/me", "")
	w.want(404, "GET /p/none/gw/me", "")
	w.want(404, "POST /p/none/session", `{}`)
	if text := w.want(200, "GET /p/acme/gw/keys", ""); strings.Contains(text, r.second) {
		t.Errorf("keys of a sibling: %s", text)
	}
	// Portals have no doors: what is sent there is a page, or nothing.
	w.want(405, "POST /p/acme/v1/chat/completions", `{}`)

	// The old address is gone with a new one, and the session with it.
	manager := newBrowser(t, r.URL)
	manager.signIn("/dashboard", r.bench.key)
	cookie := w.Jar.Cookies(mustURL(t, r.URL+"/p/acme/"))[0].Value
	manager.want(200, "PUT /dashboard/gw/branding", `{"portal_slug":"acme-two","product_name":"Acme AI","allow_self_issue":false}`)
	w.want(401, "GET /p/acme-two/gw/me", "", "Cookie", "portal-acme-two="+cookie)
	w.signIn("/p/acme-two", r.key)
	manager.want(204, "PATCH /dashboard/gw/subaccounts/"+r.first, `{"status":"suspended"}`)
	w.want(401, "GET /p/acme-two/gw/me", "")
}

// TestSelfIssue holds what a customer may issue in a portal to its terms.
func TestSelfIssue(t *testing.T) {
	t.Parallel()
	const good = `{"scopes":["inference:use"],"expires_in_seconds":7776000}`
	closed := newReseller(t, false)
	w := newBrowser(t, closed.URL)
	w.signIn("/p/acme", closed.key)
	w.want(403, "POST /p/acme/gw/keys", good)
	var keys []struct{ ID string }
	if err := json.Unmarshal([]byte(w.want(200, "GET /p/acme/gw/keys", "")), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	w.want(403, "DELETE /p/acme/gw/keys/"+keys[0].ID, "")

	r := newReseller(t, true)
	w = newBrowser(t, r.URL)
	w.signIn("/p/acme", r.key)
	for _, bad := range []string{
		`{"scopes":["inference:use"]}`,
		`{"scopes":["inference:use"],"expires_in_seconds":7776001}`,
		`{"scopes":["inference:use","stats:read"],"expires_in_seconds":60}`,
		`{"scopes":["keys:manage"],"expires_in_seconds":60}`,
		`{"scopes":[],"expires_in_seconds":60}`,
		fmt.Sprintf(`{"scopes":["inference:use"],"expires_in_seconds":60,"sub_account_id":%q}`, r.second),
	} {
		w.want(403, "POST /p/acme/gw/keys", bad)
	}
	// Twenty at once: the customer has one key and gets nine more.
	issued := make(chan string, 20)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if resp, text := w.send("POST /p/acme/gw/keys", good); resp.StatusCode == 200 {
				issued <- text
			} else if resp.StatusCode != 403 || !strings.Contains(text, "active key limit reached") {
				t.Errorf("%d %s", resp.StatusCode, text)
			}
		})
	}
	all.Wait()
	if len(issued) != 9 {
		t.Fatalf("%d keys issued, want 9", len(issued))
	}
	var key struct{ APIKeyID, Key, SubAccountID string }
	text := strings.NewReplacer("api_key_id", "APIKeyID", "sub_account_id", "SubAccountID").Replace(<-issued)
	if err := json.Unmarshal([]byte(text), &key); err != nil || key.SubAccountID != r.first {
		t.Fatalf("%s: %v", text, err)
	}
	w.want(204, "DELETE /p/acme/gw/keys/"+key.APIKeyID, "")
	w.want(200, "POST /p/acme/gw/keys", good)
	// The sibling's count is its own.
	sibling := newBrowser(t, r.URL)
	sibling.signIn("/p/acme", r.sibling)
	sibling.want(200, "POST /p/acme/gw/keys", good)
	sibling.want(404, "DELETE /p/acme/gw/keys/"+key.APIKeyID, "")
}

type clientID = modelgate.ClientID

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
