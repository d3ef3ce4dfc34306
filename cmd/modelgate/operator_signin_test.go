package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
	"modelgate/test/testkit/openid"
)

// arrive goes through the provider and returns the answer to the callback.
func (o *operatorBrowser) arrive(p *openid.Provider, returnTo string, groups ...string) *http.Response {
	o.b.t.Helper()
	p.Claims = map[string]any{"groups": groups}
	text, _ := o.want(200, "POST /operator/session/start", fmt.Sprintf(`{"provider":"corp","return_to":%q}`, returnTo))
	var to struct{ URL string }
	if err := json.Unmarshal([]byte(text), &to); err != nil {
		o.b.t.Fatal(err)
	}
	return o.back(p.Visit(to.URL).Encode())
}

// back is the provider sending the browser back.
func (o *operatorBrowser) back(query string) *http.Response {
	o.b.t.Helper()
	o.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := http.NewRequestWithContext(o.b.t.Context(), http.MethodGet, o.b.url+"/operator/session/callback?"+query, nil)
	if err != nil {
		o.b.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	resp, err := o.client.Do(r)
	if err != nil {
		o.b.t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// TestOperatorsSignIn opens sessions of the console with accounts of a provider:
// the first rule that fits gives the role, an account without one is refused, and
// the sessions end with the provider's.
func TestOperatorsSignIn(t *testing.T) {
	t.Parallel()
	p := openid.New(t, time.Now)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &operatorBench{t: t, url: "http://" + l.Addr().String(), tokens: map[string]string{}}
	address := l.Addr().String()
	l.Close()
	b.Gateway = testkit.StartGateway(t, testkit.GatewayOptions{Server: `base_url: "http://gateway.test"`, More: fmt.Sprintf(
		"\noperator: {listen: %q, base_url: %q, sign_in: corp, roles: [{group: gw-ops, role: admin}, {group: helpers, role: support}, {group: gw-ops, role: auditor}], idle: 5m, absolute: 1h}\n",
		address, b.url) + signInConfig(p, "{organization: 0192f000-0000-7000-8000-000000000001, group: gw-ops, role: admin}")})

	eventually(t, "the console", func() bool {
		resp, err := http.Get(b.url + "/operator/session")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	olga := b.browser()
	if text, _ := olga.want(200, "GET /operator/session/offers", ""); strings.TrimSpace(text) != `{"providers":[{"name":"corp","label":"Acme SSO"}]}` {
		t.Errorf("offered: %s", text)
	}
	olga.want(404, "POST /operator/session/start", `{"provider":"none"}`)
	olga.want(400, "POST /operator/session/start", `{"providers":"corp"}`)
	olga.want(403, "POST /operator/session/start", `{"provider":"corp"}`, "Sec-Fetch-Site", "cross-site")
	olga.want(405, "GET /operator/session/start", "")
	resp := olga.arrive(p, "/operator/keys?q=x", "helpers", "gw-ops")
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/operator/keys?q=x" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, c := range resp.Cookies() {
		if c.Name == "operator" && (!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 3600) {
			t.Errorf("cookie %+v", c)
		}
	}
	text, _ := olga.want(200, "GET /operator/session", "")
	if !strings.Contains(text, `"name":"anna@example.com"`) || !strings.Contains(text, `"role":"admin"`) {
		t.Errorf("the session is %s", text)
	}
	olga.want(200, "POST /operator/v1/organizations", `{"name":"x"}`, "Sec-Fetch-Site", "same-origin")
	if text, _ := olga.want(200, "GET /operator/v1/audit?action=operator.sign_in", ""); !strings.Contains(text, `"provider":"corp"`) || strings.Contains(text, "anna") {
		t.Errorf("records %s", text)
	}
	if resp := olga.back(url.Values{"state": {"x"}, "code": {"good"}}.Encode()); resp.StatusCode != 400 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		t.Errorf("a callback without a beginning: %d", resp.StatusCode)
	}
	if resp := b.browser().arrive(p, "https://evil.example", "helpers"); resp.Header.Get("Location") != "/operator" {
		t.Errorf("sent to %s", resp.Header.Get("Location"))
	}

	// Another role, and none.
	hugo := b.browser()
	hugo.arrive(p, "", "helpers")
	hugo.want(403, "POST /operator/v1/organizations", `{"name":"y"}`)
	guest := b.browser()
	if resp := guest.arrive(p, "", "guests"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("who is no operator: %d", resp.StatusCode)
	}
	guest.want(401, "GET /operator/session", "")

	// What was begun for the dashboard ends nowhere else.
	w := newBrowser(t, b.URL)
	var to struct{ URL string }
	if err := json.Unmarshal([]byte(w.want(200, "POST /dashboard/session/start", `{"provider":"corp"}`)), &to); err != nil {
		t.Fatal(err)
	}
	theirs := p.Visit(to.URL).Encode()
	dashboard, err := url.Parse(b.URL + "/dashboard/session/callback")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Jar.Cookies(dashboard) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/operator/session/callback?"+theirs, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(&http.Cookie{Name: "operator-sign-in", Value: c.Value})
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("a sign-in of the dashboard opens the console: %d", resp.StatusCode)
		}
	}

	// The provider ends sessions, under either address.
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	b.browser().want(400, "POST /operator/session/back-channel-logout/corp", "logout_token=x", form...)
	b.browser().want(200, "POST /operator/session/back-channel-logout/corp", url.Values{"logout_token": {p.LogoutToken(nil)}}.Encode(), form...)
	olga.want(401, "GET /operator/session", "")
	olga.arrive(p, "", "gw-ops")
	olga.want(200, "GET /operator/session", "")
	newBrowser(t, b.URL).want(200, "POST /dashboard/session/back-channel-logout/corp", url.Values{"logout_token": {p.LogoutToken(nil)}}.Encode(), form...)
	olga.want(401, "GET /operator/session", "")

	// Signing out says where the provider's own session ends.
	olga.arrive(p, "", "gw-ops")
	if text, _ := olga.want(200, "DELETE /operator/session", ""); !strings.Contains(text, p.URL+"/end?") {
		t.Errorf("signing out: %s", text)
	}
	olga.want(401, "GET /operator/session", "")

	// A link works with the provider away.
	p.Close()
	var made struct{ URL string }
	b.Admin(&made, "operator", "link")
	_, secret, _ := strings.Cut(made.URL, "#")
	olga.want(200, "POST /operator/session", fmt.Sprintf(`{"token":%q}`, secret))
	olga.want(200, "GET /operator/v1/organizations", "")
}
