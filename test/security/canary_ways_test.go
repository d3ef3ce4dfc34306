package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// visitor is a browser without a memory: it sends the cookie it is given.
type visitor struct {
	a      *aviary
	t      *testing.T
	cookie string
}

// do makes a call of the pages and returns what came, also the cookies.
func (v visitor) do(method, target, body string, headers ...string) (*http.Response, string) {
	v.t.Helper()
	req, err := http.NewRequest(method, v.a.URL+target, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if v.cookie != "" {
		req.Header.Set("Cookie", v.cookie)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: v.a.witness, Timeout: time.Minute}).Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp, string(text)
}

// signIn begins a session with a key.
func (a *aviary) signIn(t *testing.T, root, key string) visitor {
	t.Helper()
	v := visitor{a: a, t: t}
	resp, text := v.do("POST", root+"/session", `{"key":`+quote(key)+`}`)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		t.Fatalf("signing in at %s: %s %.200s", root, resp.Status, text)
	}
	v.cookie = resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	return v
}

// visitPages uses dashboard and portal with the cookies of sessions, in good
// ways and bad ones.
func (a *aviary) visitPages(t *testing.T) {
	t.Helper()
	bearer := []string{"Authorization", "Bearer " + a.key}
	nobody := visitor{a: a, t: t}
	for _, body := range []string{`{"key":` + quote(a.key[:50]+"abcdef") + `}`, `{"key":"` + promptCanary + `"}`, `{"key":`, a.key} {
		nobody.do("POST", "/dashboard/session", body)
	}
	v := a.signIn(t, "/dashboard", a.key)
	for _, path := range []string{"/session", "/gw/me", "/gw/usage", "/gw/keys", "/gw/stats", "/gw/evidence", "/gw/async", "/v1/models", "/gw/nothing", "/gw/usage?cursor=" + v.cookie, ""} {
		v.do("GET", "/dashboard"+path, "")
	}
	v.do("POST", "/dashboard/gw/keys", `{"scopes":["inference:use"]}`)
	v.do("POST", "/dashboard/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":`+quote(promptCanary)+`}]}`)
	// A cookie where none is looked for, and one that is cut, on its own and
	// beside a key.
	v.do("GET", "/gw/me", "")
	v.do("POST", "/openai/v1/chat/completions", `{"model":"gpt-5-mini","messages":[]}`, bearer...)
	visitor{a, t, v.cookie[:len(v.cookie)-3]}.do("GET", "/dashboard/gw/me", "")

	slug := fmt.Sprintf("canaries-%d", len(a.witness.keys))
	v.do("PUT", "/dashboard/gw/branding", fmt.Sprintf(`{"portal_slug":%q,"product_name":"Canaries","allow_self_issue":true}`, slug))
	_, text := v.do("POST", "/dashboard/gw/subaccounts", `{"name":"end customer","slug":"end"}`)
	var sub struct{ ID string }
	if json.Unmarshal([]byte(text), &sub) != nil || sub.ID == "" {
		t.Fatalf("no sub-account: %s", text)
	}
	_, text = v.do("POST", "/dashboard/gw/keys", `{"scopes":["inference:use","stats:read"],"sub_account_id":"`+sub.ID+`"}`)
	bound := keyForm.FindString(text)
	if bound == "" {
		t.Fatalf("no key: %s", text)
	}
	end := a.signIn(t, "/p/"+slug, bound)
	for _, path := range []string{"/session", "/gw/me", "/gw/usage", "/gw/keys", "/gw/stats", "/gw/branding", "/gw/evidence", ""} {
		end.do("GET", "/p/"+slug+path, "")
	}
	end.do("POST", "/p/"+slug+"/gw/keys", `{"scopes":["inference:use"]}`)
	end.do("GET", "/dashboard/session", "")
	end.do("DELETE", "/p/"+slug+"/session", "")
	v.do("DELETE", "/dashboard/session", "")
}

// checkWays holds the calls that were made against those through which a
// secret passes: each must have been answered well at least once, or nothing is
// proved about it.
func (a *aviary) checkWays(t *testing.T) {
	t.Helper()
	for _, way := range []string{
		"POST /v1/chat/completions", "POST /v1/messages", "POST /v1/embeddings", "POST /v1/images/generations", "POST /v1/audio/speech", "POST /v1/videos", "GET /v1/videos/",
		"POST /openai/v1/chat/completions", "POST /anthropic/v1/messages", "GET /gw/async", "GET /gw/usage", "GET /gw/evidence", "GET /gw/stats", "POST /gw/keys", "DELETE /gw/keys/",
		"PUT /gw/processor/config", "GET /gw/processor/config", "GET /gw/processor/events", "POST /gw/processor/customers", "POST /gw/billing/checkout", "POST /webhooks/processor",
		"PUT /gw/budgets", "PUT /gw/branding", "POST /dashboard/session", "GET /dashboard/gw/me", "POST /dashboard/gw/keys", "POST /dashboard/v1/chat/completions",
		"POST /p/canaries-", "GET /p/canaries-", "DELETE /dashboard/session", "GET /metrics",
	} {
		tried := false
		for _, s := range a.witness.answers {
			tried = tried || strings.HasPrefix(s.name, answerTo+way) && s.text[0] == '2'
		}
		if !tried {
			t.Errorf("no %s was answered well: that way was not tried", way)
		}
	}
}

// TestCanariesAreFound: the search that finds nothing finds what is there.
func TestCanariesAreFound(t *testing.T) {
	t.Parallel()
	n := new(needles)
	for _, form := range spellings(promptCanary) {
		n.add("prompt", form)
	}
	n.add("digest", "\x00\x01\x02\x03\x04")
	for text, want := range map[string]int{
		"": 0, "can": 0, promptCanary: 1, "x" + promptCanary + promptCanary: 2, promptCanary[:len(promptCanary)-1]: 0,
		"a\x00\x01\x02\x03\x04": 1, "\x00\x01\x02\x03": 0,
	} {
		found := map[int]bool{}
		n.find(text, func(_ string, at int) { found[at] = true })
		if len(found) != want {
			t.Errorf("%q: %d found, want %d", text, len(found), want)
		}
	}
	for _, form := range spellings(promptCanary) {
		hit := false
		n.find("before "+form+" after", func(string, int) { hit = true })
		if !hit {
			t.Errorf("%q is not found", form)
		}
	}
}
