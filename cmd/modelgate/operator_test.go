package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"modelgate/test/testkit"
)

// operatorBench is a gateway with the operator's API.
type operatorBench struct {
	*testkit.Gateway
	t      *testing.T
	url    string
	tokens map[string]string // secrets by role
}

func newOperatorBench(t *testing.T, database string) *operatorBench {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	b := &operatorBench{t: t, url: "http://" + address, tokens: map[string]string{}}
	b.Gateway = testkit.StartGateway(t, testkit.GatewayOptions{Database: database, More: fmt.Sprintf("\noperator: {listen: %q}\n", address)})
	for _, role := range []string{"admin", "finance", "support", "auditor"} {
		var made struct{ Token string }
		b.Admin(&made, "operator", "token", "create", "--name", role, "--role", role)
		b.tokens[role] = made.Token
	}
	return b
}

// do sends a request with a token or a role's token, again while the token asks too
// often, and returns status and body.
func (b *operatorBench) do(as, request, body string) (resp *http.Response, text string) {
	b.t.Helper()
	eventually(b.t, "the rate of the token", func() bool {
		resp, text = b.once(as, request, body)
		return resp.StatusCode != http.StatusTooManyRequests
	})
	return resp, text
}

func (b *operatorBench) once(as, request, body string) (*http.Response, string) {
	b.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if secret, ok := b.tokens[as]; ok {
		as = secret
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+as)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(text)
}

// want sends a request that is answered with a status, and decodes the answer.
func (b *operatorBench) want(status int, as, request, body string, into any) string {
	b.t.Helper()
	resp, text := b.do(as, request, body)
	if resp.StatusCode != status {
		b.t.Fatalf("%s as %s %s = %d, want %d: %s", request, as, body, resp.StatusCode, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			b.t.Fatalf("%s: %v: %s", request, err, text)
		}
	}
	return text
}

// TestOperatorAPI goes through an operator's day on both databases: a customer is
// made, gets a key and money, is looked at, loses a leaked key, and is suspended.
func TestOperatorAPI(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return testkit.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newOperatorBench(t, database(t))
			var org struct {
				ID       string
				Status   string
				Balance  *float64 `json:"balance_usd"`
				Keys     int      `json:"active_keys"`
				Spend    float64  `json:"spend_30d_usd"`
				Requests int      `json:"requests_30d"`
				Last     *string  `json:"last_call_at"`
			}
			const fixed = "019a0000-0000-7000-8000-00000000abcd"
			create := fmt.Sprintf(`{"id":%q,"name":"Globex","billing":"manual"}`, fixed)
			b.want(200, "admin", "POST /operator/v1/organizations", create, &org)
			b.want(200, "admin", "POST /operator/v1/organizations", create, &org) // the same again
			b.want(409, "admin", "POST /operator/v1/organizations", fmt.Sprintf(`{"id":%q,"name":"Other"}`, fixed), nil)
			place := "/operator/v1/organizations/" + org.ID
			entry := fmt.Sprintf(`{"id":%q,"amount_usd":25,"note":"first payment"}`, "019a0000-0000-7000-8000-00000000abce")
			b.want(200, "finance", "POST "+place+"/balance/entries", entry, nil)
			b.want(200, "finance", "POST "+place+"/balance/entries", entry, nil)
			b.want(409, "finance", "POST "+place+"/balance/entries", strings.Replace(entry, "25", "26", 1), nil)
			var key struct {
				ID  string `json:"api_key_id"`
				Key string
			}
			b.want(200, "admin", "POST "+place+"/keys", `{"scopes":["inference:use","stats:read"],"name":"crawler"}`, &key)
			customer := &bench{b.Gateway, key.Key}
			if resp, text := customer.post(t, "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`); resp.StatusCode != 200 {
				t.Fatalf("a call of the new key: %d %s", resp.StatusCode, text)
			}
			eventually(t, "the figures", func() bool {
				b.want(200, "auditor", "GET "+place, "", &org)
				return org.Requests == 1
			})
			if org.Balance == nil || *org.Balance >= 25 || org.Spend <= 0 || *org.Balance+org.Spend != 25 || org.Keys != 1 || org.Last == nil {
				t.Errorf("the organization after a call: %+v", org)
			}
			var list []struct{ ID, Name string }
			b.want(200, "support", "GET /operator/v1/organizations?q=glob&sort=-spend_30d", "", &list)
			if len(list) != 1 || list[0].ID != org.ID {
				t.Errorf("found %+v", list)
			}

			sum := sha256.Sum256([]byte(key.Key))
			for _, question := range []string{
				fmt.Sprintf(`{"digest":%q}`, hex.EncodeToString(sum[:])), fmt.Sprintf(`{"id":%q}`, key.ID), fmt.Sprintf(`{"prefix":%q}`, key.Key[:16]),
			} {
				var found []struct {
					ID           string
					Organization string `json:"organization_id"`
				}
				text := b.want(200, "support", "POST /operator/v1/keys/find", question, &found)
				if len(found) != 1 || found[0].ID != key.ID || found[0].Organization != org.ID || strings.Contains(text, key.Key) {
					t.Errorf("find %s: %s", question, text)
				}
			}
			const call = `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
			resp, text := customer.post(t, "/gw/tokens", `{"end_user":"visitor","models":["openai/gpt-5-mini"]}`)
			var minted struct{ Token string }
			if err := json.Unmarshal([]byte(text), &minted); err != nil || resp.StatusCode != 200 {
				t.Fatalf("mint a browser token: %d %s", resp.StatusCode, text)
			}
			visitor := &bench{b.Gateway, minted.Token}
			if resp, text := visitor.post(t, "/v1/chat/completions", call); resp.StatusCode != 200 {
				t.Fatalf("a call of the browser token: %d %s", resp.StatusCode, text)
			}
			b.want(204, "support", "DELETE /operator/v1/keys/"+key.ID, "", nil)
			if resp, text := visitor.post(t, "/v1/chat/completions", call); resp.StatusCode != 401 {
				t.Errorf("a browser token right after its key's revocation: %d %s", resp.StatusCode, text)
			}
			if resp, _ := customer.get(t, "/gw/me"); resp.StatusCode != 401 {
				t.Errorf("right after the revocation: %d", resp.StatusCode)
			}
			var keys []struct{ ID, Status string }
			b.want(200, "auditor", "GET /operator/v1/keys?organization="+org.ID+"&status=revoked", "", &keys)
			if len(keys) != 1 || keys[0].ID != key.ID {
				t.Errorf("revoked keys: %+v", keys)
			}

			b.want(200, "admin", "POST "+place+"/keys", `{"scopes":["stats:read"]}`, &key)
			customer.key = key.Key
			b.want(204, "admin", "PATCH "+place, `{"status":"suspended"}`, nil)
			if resp, _ := customer.get(t, "/gw/me"); resp.StatusCode != 401 {
				t.Errorf("right after the suspension: %d", resp.StatusCode)
			}
			b.want(204, "admin", "PATCH "+place, `{"status":"active"}`, nil)
			eventually(t, "the resumption", func() bool { // what was refused is remembered for a moment
				resp, _ := customer.get(t, "/gw/me")
				return resp.StatusCode == 200
			})
			var records []struct {
				Action string
				Actor  struct{ Operator string }
			}
			b.want(200, "auditor", "GET /operator/v1/audit?organization="+org.ID, "", &records)
			if len(records) < 6 || records[0].Action != "client.resume" || records[1].Action != "client.suspend" || !strings.HasPrefix(records[0].Actor.Operator, "token ") {
				t.Errorf("records %+v", records)
			}
		})
	}
}

// TestOperatorRoles holds every route against every role and everything that is
// no operator token.
func TestOperatorRoles(t *testing.T) {
	t.Parallel()
	b := newOperatorBench(t, "")
	client := b.NewClient("acme")
	secret, key := b.NewKey(client)
	org := "/operator/v1/organizations/" + string(client)
	for _, c := range []struct {
		request, body string
		may           string // roles beside admin
		status        int    // for those who may
	}{
		{"GET /operator/v1/organizations", "", "finance support auditor", 200},
		{"POST /operator/v1/organizations", `{}`, "", 400},
		{"GET " + org, "", "finance support auditor", 200},
		{"PATCH " + org, `{"status":"gone"}`, "", 400},
		{"GET " + org + "/ceiling", "", "finance support auditor", 200},
		{"PUT " + org + "/ceiling", `{}`, "", 400},
		{"GET " + org + "/subaccounts", "", "finance support auditor", 200},
		{"PATCH " + org + "/subaccounts/019a0000-0000-7000-8000-000000000001", `{"status":"suspended"}`, "support", 404},
		{"GET " + org + "/balance", "", "finance support auditor", 200},
		{"POST " + org + "/balance/entries", `{"amount_usd":1,"note":"x"}`, "finance", 400},
		{"POST " + org + "/keys", `{}`, "", 400},
		{"GET /operator/v1/keys", "", "finance support auditor", 200},
		{"POST /operator/v1/keys/find", `{}`, "finance support auditor", 400},
		{"DELETE /operator/v1/keys/019a0000-0000-7000-8000-000000000001", "", "support", 404},
		{"PUT /operator/v1/keys/" + string(key) + "/limits", `{"burst":-1}`, "", 400},
		{"GET /operator/v1/calls", "", "finance support auditor", 200},
		{"GET /operator/v1/report", "", "finance support auditor", 200},
		{"GET /operator/v1/providers", "", "finance support auditor", 200},
		{"GET /operator/v1/providers/nobody/errors", "", "finance support auditor", 404},
		{"POST /operator/v1/providers/nobody/test", "", "support", 404},
		{"GET /operator/v1/jobs", "", "finance support auditor", 200},
		{"POST /operator/v1/jobs/" + string(client) + "/openai/nothing/poll", "", "support", 404},
		{"GET /operator/v1/events", "", "finance support auditor", 200},
		{"POST /operator/v1/events/019a0000-0000-7000-8000-000000000001/resend", "", "finance", 404},
		{"GET " + org + "/people", "", "finance support auditor", 200},
		{"GET " + org + "/budgets", "", "finance support auditor", 200},
		{"PUT " + org + "/budgets", `{}`, "finance", 400},
		{"DELETE " + org + "/budgets?scope=client&period=day", "", "finance", 404},
		{"GET /operator/v1/health", "", "finance support auditor", 200},
		{"GET /operator/v1/audit", "", "finance support auditor", 200},
		{"GET /operator/v1/tokens", "", "", 200},
		{"POST /operator/v1/tokens", `{}`, "", 400},
		{"DELETE /operator/v1/tokens/019a0000-0000-7000-8000-000000000001", "", "", 404},
		{"GET /operator/v1/sessions", "", "", 200},
		{"DELETE /operator/v1/sessions/019a0000-0000-7000-8000-000000000001", "", "", 404},
	} {
		for _, role := range []string{"admin", "finance", "support", "auditor"} {
			want := 403
			if role == "admin" || strings.Contains(c.may, role) {
				want = c.status
			}
			if resp, text := b.do(role, c.request, c.body); resp.StatusCode != want {
				t.Errorf("%s as %s = %d, want %d: %s", c.request, role, resp.StatusCode, want, text)
			}
		}
		for _, as := range []string{"", secret, b.tokens["admin"][:len(b.tokens["admin"])-1] + "g", "gw_op_" + strings.Repeat("0", 48)} {
			b.want(401, as, c.request, c.body, nil)
		}
	}
	b.want(404, "auditor", "GET /operator/v1/nothing", "", nil)
	b.want(401, "", "GET /operator/v1/nothing", "", nil)
	if resp, _ := b.do("auditor", "DELETE /operator/v1/organizations", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE of the list: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	b.want(400, "auditor", "GET /operator/v1/organizations?stauts=active", "", nil)
	if text := b.want(400, "admin", "POST /operator/v1/organizations", `{"name":"x","biling":"manual"}`, nil); !strings.Contains(text, "did you mean") {
		t.Errorf("a misspelt member: %s", text)
	}
	// The operator's token opens nothing else, and the API is on no other listener.
	mine := &bench{b.Gateway, b.tokens["admin"]}
	if resp, _ := mine.get(t, "/gw/me"); resp.StatusCode != 401 {
		t.Errorf("an operator token at /gw/me: %d", resp.StatusCode)
	}
	if resp, _ := mine.get(t, "/operator/v1/organizations"); resp.StatusCode != 404 && resp.StatusCode != 401 {
		t.Errorf("/operator on the main listener: %d", resp.StatusCode)
	}
	// A revoked token ends at once.
	var made struct{ ID, Token string }
	b.want(200, "admin", "POST /operator/v1/tokens", `{"name":"laptop","role":"auditor","expires_in_seconds":600}`, &made)
	b.want(200, made.Token, "GET /operator/v1/organizations", "", nil)
	b.want(204, "admin", "DELETE /operator/v1/tokens/"+made.ID, "", nil)
	b.want(401, made.Token, "GET /operator/v1/organizations", "", nil)
	// One token asks 20 times a second, and no other suffers.
	var refused atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			r, _ := http.NewRequest("GET", b.url+"/operator/v1/audit?limit=1", nil)
			r.Header.Set("Authorization", "Bearer "+b.tokens["finance"])
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusTooManyRequests {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	if refused.Load() == 0 {
		t.Error("100 requests at once: none was refused")
	}
	if resp, _ := b.once("support", "GET /operator/v1/tokens", ""); resp.StatusCode != 403 {
		t.Errorf("another token meanwhile: %d", resp.StatusCode)
	}
}

// browser is what holds one cookie.
type operatorBrowser struct {
	b      *operatorBench
	client *http.Client
}

func (b *operatorBench) browser() *operatorBrowser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return &operatorBrowser{b, &http.Client{Jar: jar}}
}

// want sends a request of the console's page, with headers in pairs.
func (o *operatorBrowser) want(status int, request, body string, headers ...string) (text string, answer *http.Response) {
	o.b.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequest(method, o.b.url+path, strings.NewReader(body))
	if err != nil {
		o.b.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err = o.client.Do(r)
	if err != nil {
		o.b.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		o.b.t.Fatal(err)
	}
	if answer.StatusCode != status {
		o.b.t.Fatalf("%s %s = %d, want %d: %s", request, body, answer.StatusCode, status, raw)
	}
	return string(raw), answer
}

// TestOperatorSessions signs in to the console with a link, which is good once, and
// with tokens, whose roles and ends sessions share.
func TestOperatorSessions(t *testing.T) {
	t.Parallel()
	b := newOperatorBench(t, "")
	var made struct{ URL string }
	b.Admin(&made, "operator", "link")
	place, secret, found := strings.Cut(made.URL, "#")
	if !found || place != b.url+"/operator/link" {
		t.Fatalf("the link is %q", made.URL)
	}
	mine := b.browser()
	mine.want(401, "GET /operator/session", "")
	mine.want(401, "GET /operator/v1/organizations", "")
	b.want(401, secret, "GET /operator/v1/organizations", "", nil) // it is no token
	mine.want(403, "POST /operator/session", `{"token":"x"}`, "Sec-Fetch-Site", "cross-site")
	mine.want(400, "POST /operator/session", `{"tokne":"x"}`)
	mine.want(401, "POST /operator/session", `{"token":"gw_op_x"}`)
	text, answer := mine.want(200, "POST /operator/session", fmt.Sprintf(`{"token":%q}`, secret))
	if cookie := answer.Header.Get("Set-Cookie"); !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || !strings.Contains(cookie, "Max-Age=3600") {
		t.Errorf("the cookie is %q", cookie)
	}
	if !strings.Contains(text, `"role":"admin"`) || strings.Contains(text, "gw_op_") {
		t.Errorf("the session is %s", text)
	}
	b.browser().want(401, "POST /operator/session", fmt.Sprintf(`{"token":%q}`, secret)) // once
	mine.want(200, "GET /operator/v1/organizations", "")
	mine.want(403, "POST /operator/v1/organizations", `{"name":"x"}`, "Sec-Fetch-Site", "cross-site")
	mine.want(200, "POST /operator/v1/organizations", `{"name":"x"}`, "Sec-Fetch-Site", "same-origin")
	if text := string(fetch(t, b.URL+"/metrics")); !strings.Contains(text, "modelgate_break_glass_total 1") {
		t.Error("the metric does not count the link")
	}
	if text, _ := mine.want(200, "GET /operator/v1/audit?action=operator.break_glass", ""); strings.Count(text, `"id"`) != 2 { // the record's and the session's
		t.Errorf("records %s", text)
	}

	// A session of a token has its role, and ends with it.
	var token struct{ ID, Token string }
	b.want(200, "admin", "POST /operator/v1/tokens", `{"name":"eve","role":"auditor","expires_in_seconds":600}`, &token)
	eve := b.browser()
	eve.want(200, "POST /operator/session", fmt.Sprintf(`{"token":%q}`, token.Token))
	eve.want(200, "GET /operator/v1/organizations", "")
	eve.want(403, "POST /operator/v1/organizations", `{"name":"y"}`)
	var sessions []struct{ ID, Name string }
	b.want(200, "admin", "GET /operator/v1/sessions", "", &sessions)
	if len(sessions) != 2 || sessions[0].Name != "eve" || sessions[1].Name != "break glass" {
		t.Fatalf("sessions %+v", sessions)
	}
	b.want(404, "admin", "DELETE /operator/v1/tokens/"+sessions[1].ID, "", nil) // it is no token
	b.want(204, "admin", "DELETE /operator/v1/tokens/"+token.ID, "", nil)
	eve.want(401, "GET /operator/v1/organizations", "")
	b.want(204, "admin", "DELETE /operator/v1/sessions/"+sessions[1].ID, "", nil)
	mine.want(401, "GET /operator/session", "")

	mine.want(200, "POST /operator/session", fmt.Sprintf(`{"token":%q}`, b.tokens["admin"]))
	mine.want(204, "DELETE /operator/session", "")
	mine.want(401, "GET /operator/session", "")
	mine.want(204, "DELETE /operator/session", "") // again
	mine.want(405, "PUT /operator/session", "{}")
}
