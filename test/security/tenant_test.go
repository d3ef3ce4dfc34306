package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// What a customer is not to learn: the names of the route, and what its
// reseller pays. A call costs 7 tokens at 911.3 USD a million.
const (
	routeCanary  = "canary-route"
	regionCanary = "canary-region"
	nativeCanary = "canary-native"
	priceCanary  = "911.3"
	nanosOfCall  = 6_379_100
)

// TestCustomersLearnNothing asks every route of the API, and every page's, as
// an end customer, in good ways and bad ones: no message, header or list of the
// gateway names the region, the route, the native model or the cost. The
// provider's replies are silent about all of these.
func TestCustomersLearnNothing(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(discreet))
	t.Cleanup(upstream.Close)
	var catalog strings.Builder
	for kind, slugs := range map[string]string{"llm": "chat", "image": "picture", "video": "film", "embedding": "vector", "rerank": "rank", "audio": "voice"} {
		fmt.Fprintf(&catalog, "\n  - {slug: acme/%s, kind: %s, context_length: 1000, routes: [{provider: %s, model: %s-%s}, {provider: %s-two, model: %s-%s}], price: {input: %s, output: %s, second: %s, characters: %s, image: %s}}",
			slugs, kind, routeCanary, nativeCanary, slugs, routeCanary, nativeCanary, slugs, priceCanary, priceCanary, priceCanary, priceCanary, priceCanary)
	}
	fmt.Fprintf(&catalog, "\n  - {slug: acme/nowhere, kind: llm, routes: [{provider: %s-gone, model: %s-x}], price: {input: %s, output: %s}}", routeCanary, nativeCanary, priceCanary, priceCanary)
	g := testkit.StartGateway(t, testkit.GatewayOptions{
		Upstream: upstream.URL, Catalog: catalog.String(),
		Providers: fmt.Sprintf("\n  - {name: %s, format: openai, base_url: \"$UPSTREAM\", region: %s, credential: sk-upstream}\n  - {name: %s-two, format: openai, base_url: \"$UPSTREAM\", region: %s, credential: sk-upstream}", routeCanary, regionCanary, routeCanary, regionCanary),
	})
	for _, policy := range []string{"any", "eu_only"} {
		c := newCustomer(t, g, policy)
		answered := c.everything()
		if policy == "any" && answered < 20 {
			t.Errorf("%d calls were answered well: too little to prove anything", answered)
		}
		c.search()
	}
	// The reseller itself reads what it pays, and where: the canaries are there.
	own, _ := g.NewKey(g.NewClient("direct"))
	tell(t, g, own, "POST /v1/chat/completions", `{"model":"acme/chat","messages":[]}`)
	for target, want := range map[string]string{
		"GET /gw/usage": routeCanary, "GET /gw/stats?group_by=region": regionCanary, "GET /gw/stats?group_by=model": nativeCanary, "GET /gw/prices": priceCanary, "GET /gw/stats": modelgate.Nano(nanosOfCall).String(),
	} {
		if _, text := tell(t, g, own, target, ""); !strings.Contains(text, want) {
			t.Errorf("%s of the organization does not show %s: %s", target, want, text)
		}
	}
}

// discreet answers as a provider that names nothing, and leads to itself where
// the body or the path asks for a redirect.
func discreet(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.Contains(string(body), "[[redirect]]"), strings.HasSuffix(r.URL.Path, "/content"):
		w.Header().Set("Location", "http://"+r.Host+"/v1/files/elsewhere")
		w.WriteHeader(http.StatusTemporaryRedirect)
	case strings.Contains(string(body), "[[fail]]"):
		w.WriteHeader(http.StatusInternalServerError)
	case strings.Contains(string(body), "[[cut]]"):
		panic(http.ErrAbortHandler)
	case strings.HasSuffix(r.URL.Path, "/videos"):
		io.WriteString(w, `{"id":"task-1","object":"video","status":"queued","seconds":"4"}`)
	case strings.Contains(r.URL.Path, "/videos/"):
		io.WriteString(w, `{"id":"task-1","object":"video","status":"completed","seconds":"4"}`)
	default:
		io.WriteString(w, plainReply)
	}
}

// customer is an end customer: a bound key with every scope, and its session in
// the reseller's portal.
type customer struct {
	*testkit.Gateway
	t       *testing.T
	key     string
	keyID   modelgate.KeyID
	session visitor
	portal  string
	answers []sink
	calls   int64 // that may have been charged
}

func newCustomer(t *testing.T, g *testkit.Gateway, policy string) *customer {
	t.Helper()
	client := g.NewClient("reseller "+policy, "--routing-policy", policy)
	manager, _ := g.NewKey(client)
	_, text := tell(t, g, manager, "POST /gw/subaccounts", `{"name":"customer","slug":"customer"}`)
	var sub struct{ ID string }
	if err := json.Unmarshal([]byte(text), &sub); err != nil || sub.ID == "" {
		t.Fatalf("no sub-account: %s", text)
	}
	tell(t, g, manager, "PATCH /gw/subaccounts/"+sub.ID, `{"markup_pct":37}`)
	portal := "portal-" + strings.ReplaceAll(policy, "_", "-")
	tell(t, g, manager, "PUT /gw/branding", fmt.Sprintf(`{"portal_slug":%q,"product_name":"Portal","allow_self_issue":true}`, portal))
	c := &customer{Gateway: g, t: t, portal: "/p/" + portal}
	// Its tuples are on the axis of vendors, as the guide has it for customers:
	// a key is shown its own.
	var tuples []string
	for _, model := range []string{"chat", "picture", "film", "vector", "rank", "voice", "nowhere"} {
		tuples = append(tuples, fmt.Sprintf(`{"axis":"vendor","provider":"acme","model_pattern":%q,"effect":"allow"}`, model))
	}
	c.key, c.keyID = g.NewKey(client, "--sub-account", sub.ID, "--entitlements", "["+strings.Join(tuples, ",")+"]")
	tell(t, g, manager, "PUT /gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":%s}`, sub.ID, priceCanary))
	a := &aviary{Gateway: g, witness: &witness{keys: map[string]bool{}, cookies: map[string]bool{}}}
	c.session = a.signIn(t, c.portal, c.key)
	return c
}

// tell makes a call and returns the answer, all of it as text, and its body.
func tell(t *testing.T, g *testkit.Gateway, key, target, body string, headers ...string) (all, text string) {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	req, err := http.NewRequest(method, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	once := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + fmt.Sprint(resp.Header) + string(answer), string(answer)
}

// bodies are what a door or a route of the API may be sent, besides nothing.
var bodies = []string{
	"", "{}", `{"model":"acme/chat","messages":[]}`, `{"model":"acme/chat","messages":[],"stream":true}`, `{"model":"acme/chat","input":"[[redirect]]","messages":[]}`, `{"model":"acme/chat","messages":["[[fail]]"]}`,
	`{"model":"acme/chat","messages":["[[cut]]"]}`, `{"model":"acme/picture","prompt":"x"}`, `{"model":"acme/film","prompt":"x","seconds":"4"}`, `{"model":"acme/vector","input":"x"}`, `{"model":"acme/rank","query":"x","documents":["x"]}`,
	`{"model":"acme/voice","input":"x","voice":"alloy"}`, `{"model":"acme/nowhere","messages":[]}`, `{"model":"acme/none","messages":[]}`, `{"model":"bare"}`,
	`{"scopes":["inference:use"],"expires_in_seconds":600}`, `{"scopes":["inference:use"],"entitlements":[{"axis":"vendor","provider":"acme","model_pattern":"*","effect":"allow"},{"provider":"x","model_pattern":"*","effect":"allow"}]}`,
	`{"scope":"key","id":"KEY","period":"day","limit_usd":500}`, `{"name":"x","slug":"x"}`, `{"enabled":true}`,
}

// everything asks every route that the description of the API has, with every
// body, as the key and below the portal, and returns how many calls were
// answered well.
func (c *customer) everything() (answered int) {
	c.t.Helper()
	_, text := tell(c.t, c.Gateway, "", "GET /openapi.json", "")
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || len(document.Paths) < 30 {
		c.t.Fatalf("%d paths, %v", len(document.Paths), err)
	}
	fill := strings.NewReplacer("{provider}", routeCanary, "{path}", "v1/chat/completions", "{author}", "acme", "{model}", "chat", "{slug}", "acme/chat", "{id}", "task-1")
	for _, queries := range []string{"", "?group_by=region", "?group_by=provider", "?group_by=model", "?group_by=model_slug", "?scope=client", "?since=24h&limit=1", "?everywhere=no"} {
		for path, methods := range document.Paths {
			for method := range methods {
				if path == "/metrics" || method != "get" && queries != "" {
					continue // the first is the operator's: this machine's alone
				}
				answered += c.tryAll(strings.ToUpper(method), fill.Replace(path)+queries, queries == "")
			}
		}
		// What the route's own name opens is no secret of the gateway's, but the
		// row of such a call is.
		c.note("POST /"+routeCanary+"/v1/chat/completions", `{"model":"`+nativeCanary+`-chat","messages":[]}`)
	}
	c.note("GET /v1/videos/task-1/content", "")
	c.note("GET /gw/usage?limit=1000", "")
	return answered
}

// tryAll asks one route with all bodies, or with none where it takes none.
func (c *customer) tryAll(method, target string, everyBody bool) (answered int) {
	for i, body := range bodies {
		if i > 0 && (method == "GET" || method == "DELETE" || !everyBody) {
			break
		}
		body = strings.ReplaceAll(body, "KEY", string(c.keyID))
		if c.note(method+" "+target, body) {
			answered++
		}
		if strings.HasPrefix(target, "/gw/") {
			resp, text := c.session.do(method, c.portal+target, body)
			c.answers = append(c.answers, sink{method + " " + c.portal + target + " " + body, resp.Status + fmt.Sprint(resp.Header) + text})
		}
	}
	return answered
}

// note asks as the key, keeps the answer, and reports whether it was a good
// one.
func (c *customer) note(target, body string) bool {
	c.calls++
	all, _ := tell(c.t, c.Gateway, c.key, target, body)
	c.answers = append(c.answers, sink{target + " " + body, all})
	return all[0] == '2'
}

// search looks for every canary in every answer. What comes through the proxy
// is the provider's own, and what a customer said itself it may be told.
func (c *customer) search() {
	c.t.Helper()
	secrets := []string{routeCanary, regionCanary, nativeCanary, priceCanary}
	for n := int64(1); n <= c.calls; n++ {
		secrets = append(secrets, `usd":`+modelgate.Nano(n*nanosOfCall).String()+`,`, `usd":`+modelgate.Nano(n*nanosOfCall).String()+`}`)
	}
	said := map[string]bool{}
	for _, s := range c.answers {
		for _, secret := range secrets {
			at := strings.Index(s.text, secret)
			if at < 0 || said[s.name+secret] {
				continue
			}
			said[s.name+secret] = true
			c.t.Errorf("%s tells %q: …%s…", s.name, secret, s.text[max(0, at-80):min(len(s.text), at+80)])
		}
	}
	c.t.Logf("%d answers searched for %d secrets", len(c.answers), len(secrets))
}
