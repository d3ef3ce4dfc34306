package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
	"modelgate/test/testkit/openid"
)

// signInConfig lets accounts of a provider into organizations.
func signInConfig(p *openid.Provider, rules string) string {
	return fmt.Sprintf("sign_in: {providers: [{name: corp, label: Acme SSO, issuer: %q, client_id: %s, client_secret: s3cret, organizations: [%s]}]}\n",
		p.URL, openid.ClientID, rules)
}

// arrive goes through the provider and returns the answer to the callback at one
// instance; the sign-in was begun at another.
func arrive(t *testing.T, p *openid.Provider, w *browser, begin, end, returnTo string) (*http.Response, string) {
	t.Helper()
	w.url = begin
	var to struct{ URL string }
	if err := json.Unmarshal([]byte(w.want(200, "POST /dashboard/session/start", fmt.Sprintf(`{"provider":"corp","return_to":%q}`, returnTo))), &to); err != nil {
		t.Fatal(err)
	}
	w.url = end
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, end+"/dashboard/session/callback?"+p.Visit(to.URL).Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	for _, c := range w.Jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	resp, err := http.DefaultTransport.RoundTrip(r) // follows nothing
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	w.Jar.SetCookies(r.URL, resp.Cookies())
	return resp, string(text)
}

// TestPeopleSignIn follows a person through two instances that answer in turn:
// sign-in, calls under the member's rights, another organization, and the ends of
// sessions.
func TestPeopleSignIn(t *testing.T) {
	t.Parallel()
	database := testkit.Postgres(t)
	seed := testkit.StartGateway(t, testkit.GatewayOptions{Database: database})
	acme, other := seed.NewClient("Acme"), seed.NewClient("Other")
	key, _ := seed.NewKey(acme)
	p := openid.New(t, time.Now)
	start := func() *testkit.Gateway {
		rules := fmt.Sprintf("{organization: %s, group: ops, role: admin}, {organization: %s, group: staff, role: viewer}", acme, other)
		return testkit.StartGateway(t, testkit.GatewayOptions{Database: database, Server: `base_url: "http://gateway.test"`, More: signInConfig(p, rules)})
	}
	a, b := start(), start()

	w := newBrowser(t, a.URL)
	if got := w.want(200, "GET /dashboard/sign-in", ""); strings.TrimSpace(got) != `{"providers":[{"name":"corp","label":"Acme SSO"}]}` {
		t.Errorf("the page is offered %s", got)
	}
	w.want(405, "GET /dashboard/session/start", "")
	w.want(404, "POST /dashboard/session/start", `{"provider":"none"}`)
	w.want(400, "POST /dashboard/session/start", `{"providers":"corp"}`)
	w.want(404, "GET /dashboard/session/none", "")
	w.want(400, "GET /dashboard/session/callback?state=x&code=y", "", "Sec-Fetch-Mode", "navigate")
	resp, text := arrive(t, p, w, a.URL, b.URL, "/dashboard/usage?range=7d")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/dashboard/usage?range=7d" {
		t.Fatalf("%d %s %s\n%s", resp.StatusCode, resp.Header, text, b.Log())
	}
	for _, c := range resp.Cookies() {
		if c.Name == "dashboard" && (!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge < 23*3600) {
			t.Errorf("cookie %+v", c)
		}
		if c.Name == "sign-in" && c.MaxAge >= 0 {
			t.Errorf("the attempt's cookie stays: %+v", c)
		}
	}
	type view struct {
		Name   string
		Scopes []string
		Person struct {
			Name, Email, Role string
			Organizations     []struct{ ID, Name string }
		}
	}
	who := func() (v view) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.want(200, "GET /dashboard/session", "")), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := who()
	if v.Name != "Acme" || len(v.Scopes) != 3 || v.Person.Role != "admin" || v.Person.Email != "anna@example.com" || len(v.Person.Organizations) != 2 {
		t.Errorf("%+v", v)
	}
	for i, instance := range []*testkit.Gateway{a, b, a, b} {
		w.url = instance.URL
		w.want(200, "POST /dashboard/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`)
		if i == 0 {
			w.want(401, "GET /gw/me", "") // the cookie means nothing elsewhere
		}
	}
	if keys := w.want(200, "GET /dashboard/gw/keys", ""); !strings.Contains(keys, `"name":"anna@example.com"`) || !strings.Contains(keys, `"owner":`) {
		t.Errorf("keys: %s", keys)
	}
	if me := w.want(200, "GET /dashboard/gw/me", ""); !strings.Contains(me, `"keys:manage"`) {
		t.Errorf("me: %s", me)
	}

	// The other organization, where the person may only read.
	w.want(404, "POST /dashboard/session/organization", `{"client_id":"0192f000-0000-7000-8000-00000000000f"}`)
	w.want(204, "POST /dashboard/session/organization", fmt.Sprintf(`{"client_id":%q}`, other))
	if v := who(); v.Name != "Other" || v.Person.Role != "viewer" {
		t.Errorf("%+v", v)
	}
	w.want(403, "GET /dashboard/gw/keys", "")
	w.want(403, "POST /dashboard/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`)
	w.want(200, "GET /dashboard/gw/report?group_by=model", "")

	// The provider ends the session, and tells one instance.
	logout := func(token string) (*http.Response, string) {
		return newBrowser(t, b.URL).send("POST /dashboard/session/back-channel-logout/corp", url.Values{"logout_token": {token}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	}
	if resp, text := logout("nonsense"); resp.StatusCode != 400 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	w.url = a.URL
	w.want(200, "GET /dashboard/gw/me", "")
	if resp, text := logout(p.LogoutToken(nil)); resp.StatusCode != 200 || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	told := time.Now()
	w.url = b.URL
	w.want(401, "GET /dashboard/gw/me", "")
	for w.url = a.URL; ; {
		if resp, _ := w.send("GET /dashboard/gw/me", ""); resp.StatusCode == http.StatusUnauthorized {
			break
		}
		if time.Since(told) > 2*time.Second {
			t.Fatal("the other instance still answers")
		}
	}
	t.Logf("refused by the other instance after %s", time.Since(told))

	// The operator sees who is in, ends sessions, and has somebody forgotten.
	arrive(t, p, w, a.URL, b.URL, "")
	var people []struct {
		PersonID    string `json:"person_id"`
		Email, Role string
	}
	var sessions []struct{ ID, Kind, ClientID string }
	a.Admin(&people, "person", "list", "--client", "Acme")
	a.Admin(&sessions, "session", "list", "--client", "Acme")
	if len(people) != 1 || people[0].Email != "anna@example.com" || people[0].Role != "admin" || len(sessions) != 1 || sessions[0].Kind != "person" {
		t.Fatalf("%+v, %+v", people, sessions)
	}
	gone := func(what string) {
		t.Helper()
		for since := time.Now(); ; {
			if resp, _ := w.send("GET /dashboard/gw/me", ""); resp.StatusCode == http.StatusUnauthorized {
				return
			}
			if time.Since(since) > 2*time.Second {
				t.Fatalf("%s: still signed in", what)
			}
		}
	}
	a.Admin(new(any), "session", "revoke", "--client", "Acme", "--id", sessions[0].ID)
	gone("one session")
	arrive(t, p, w, a.URL, b.URL, "")
	a.Admin(new(any), "session", "revoke", "--client", "Acme", "--person", people[0].PersonID)
	gone("a person's sessions")
	arrive(t, p, w, a.URL, b.URL, "")
	a.Admin(new(any), "session", "revoke", "--all")
	gone("all sessions")
	arrive(t, p, w, a.URL, b.URL, "")
	a.Admin(new(any), "person", "erase", people[0].PersonID)
	gone("an erased person")
	a.Admin(&people, "person", "list")
	if len(people) != 0 {
		t.Errorf("%+v are members", people)
	}

	// Signing out says where the provider's own session ends.
	arrive(t, p, w, b.URL, a.URL, "")
	if text := w.want(200, "DELETE /dashboard/session", ""); !strings.Contains(text, p.URL+"/end?") {
		t.Errorf("signing out: %s", text)
	}
	w.want(401, "GET /dashboard/gw/me", "")

	// Somebody whose groups open nothing is told so, on a page.
	p.Claims = map[string]any{"groups": []string{"guests"}}
	resp, text = arrive(t, p, w, a.URL, b.URL, "")
	if resp.StatusCode != 403 || !strings.Contains(text, "your account at Acme SSO has no access here") || !strings.Contains(resp.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	w.want(401, "GET /dashboard/gw/me", "")
	w.signIn("/dashboard", key) // and keys sign in as ever
	if text := w.want(200, "GET /dashboard/session", ""); strings.Contains(text, `"person"`) {
		t.Errorf("a key's session: %s", text)
	}
	w.want(204, "DELETE /dashboard/session", "")
}
