package people_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/people"
	"modelgate/internal/store/access"
	"modelgate/test/testkit/openid"
)

const acme modelgate.ClientID = "0192f000-0000-7000-8000-000000000001"

// books stands for the store.
type books struct {
	people.Store // what is not asked for
	mu           sync.Mutex
	people       []modelgate.Person
	want         [][]access.Membership
	sessions     []modelgate.Session
	logouts      []access.Logout
}

func (b *books) SignIn(_ context.Context, p modelgate.Person, want []access.Membership, _ func() modelgate.Audit) (in access.SignedIn, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.people, b.want = append(b.people, p), append(b.want, want)
	for _, m := range want {
		in.Members = append(in.Members, modelgate.Member{ClientID: m.ClientID, PersonID: p.ID, Role: m.Role, KeyID: "k"})
	}
	return in, nil
}

func (b *books) StartSession(_ context.Context, s modelgate.Session, _ modelgate.Digest) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions = append(b.sessions, s)
	return nil
}

func (b *books) EndSessionsOfProvider(_ context.Context, l access.Logout) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logouts = append(b.logouts, l)
	return nil
}

func (b *books) OrganizationsOf(context.Context, modelgate.PersonID) ([]access.Organization, error) {
	return []access.Organization{{ID: acme, Name: "Acme", Role: modelgate.RoleViewer, KeyID: "k"}}, nil
}

type caches struct{}

func (caches) ForgetClient(modelgate.ClientID)   {}
func (caches) ForgetPeople()                     {}
func (caches) ForgetSession(modelgate.SessionID) {}

type bench struct {
	*people.Service
	op    *openid.Provider
	books *books
	log   *bytes.Buffer
	time  time.Time
}

func (b *bench) now() time.Time { return b.time }

func setup(t *testing.T, change func(*people.Provider)) *bench {
	t.Helper()
	b := &bench{books: &books{}, log: new(bytes.Buffer), time: time.Now()}
	b.op = openid.New(t, b.now)
	var err error
	b.Service, err = people.New(people.Options{
		BaseURL: "https://gw.test", Root: "/dashboard", Secret: []byte("shared"), Store: b.books, Keys: caches{}, Sessions: caches{},
		IDs: modelgate.NewIDs(b.now), Now: b.now, Log: slog.New(slog.NewTextHandler(b.log, nil)), Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := people.Provider{
		Name: "corp", Label: "Acme SSO", Issuer: b.op.URL, ClientID: openid.ClientID, ClientSecret: "s3cret", Scopes: []string{"email"},
		Claims: people.Claims{Email: "email", EmailVerified: "email_verified", Name: "name", Groups: "groups"},
		Rules:  []people.Rule{{acme, "ops", modelgate.RoleAdmin}, {acme, "*", modelgate.RoleViewer}},
	}
	if change != nil {
		change(&p)
	}
	b.Configure(people.Config{Providers: []people.Provider{p}, Idle: time.Hour, Absolute: 8 * time.Hour})
	return b
}

// signIn goes the whole way.
func (b *bench) signIn(t *testing.T, change func(url.Values)) (*people.Opened, error) {
	t.Helper()
	address, cookie, err := b.Begin(t.Context(), "corp", "/dashboard/usage?range=7d", netip.Addr{})
	if err != nil {
		return nil, err
	}
	answer := b.op.Visit(address)
	if change != nil {
		change(answer)
	}
	return b.Finish(t.Context(), cookie, answer, people.Visitor{UserAgent: "test"})
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	o, err := b.signIn(t, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.log)
	}
	s := o.Session
	if o.ReturnTo != "/dashboard/usage?range=7d" || s.Kind != modelgate.PersonSession || s.ClientID != acme || s.Provider != "corp" ||
		s.ProviderSession != "sid-1" || s.Role != modelgate.RoleAdmin || s.Idle != time.Hour || s.UserAgent != "test" || len(o.Token) != 43 {
		t.Errorf("opened %+v", o)
	}
	p := b.books.people[0]
	if p.Issuer != b.op.URL || p.Subject != "anna" || p.Email != "anna@example.com" || p.Name != "Anna" {
		t.Errorf("the person is %+v", p)
	}
	if len(b.books.want[0]) != 1 || b.op.Times("/userinfo") != 0 {
		t.Errorf("%d memberships, userinfo was asked %d times", len(b.books.want[0]), b.op.Times("/userinfo"))
	}
	if strings.Contains(b.log.String(), "s3cret") {
		t.Error("the log has the client's secret")
	}
	// Another algorithm with a key of the provider's is as good.
	b.op.Sign = func(p []byte) string { return openid.Sign(t, jose.ES256, b.op.EC, "ec", p) }
	if _, err := b.signIn(t, nil); err != nil {
		t.Errorf("ES256: %v", err)
	}
	// The provider's key changes while the gateway runs: it is fetched again.
	b.op.Sign = nil
	b.op.Key, b.op.Old = b.op.Old, b.op.Key
	if _, err := b.signIn(t, nil); err != nil || b.op.Times("/keys") != 2 {
		t.Errorf("under a new key: %v; the keys were asked for %d times", err, b.op.Times("/keys"))
	}
}

// TestDetails: where the details of an account come from, and what they open.
func TestDetails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider func(*people.Provider)
		claims   map[string]any
		info     map[string]any
		kind     modelgate.Kind
		text     string
		email    string
		role     modelgate.Role
	}{
		"all in the token":                       {email: "anna@example.com", role: modelgate.RoleAdmin},
		"groups from userinfo":                   {claims: map[string]any{"groups": nil}, info: map[string]any{"groups": []string{"ops"}}, email: "anna@example.com", role: modelgate.RoleAdmin},
		"no groups at all":                       {claims: map[string]any{"groups": nil}, email: "anna@example.com", role: modelgate.RoleViewer},
		"one group as a text":                    {claims: map[string]any{"groups": "ops"}, email: "anna@example.com", role: modelgate.RoleAdmin},
		"groups that are no texts":               {claims: map[string]any{"groups": []any{1, nil, map[string]any{"ops": 1}}}, email: "anna@example.com", role: modelgate.RoleViewer},
		"groups behind a pointer":                {provider: func(p *people.Provider) { p.Claims.Groups = "/realm_access/0/the~1roles" }, claims: map[string]any{"realm_access": []any{map[string]any{"the/roles": []string{"ops"}}}}, email: "anna@example.com", role: modelgate.RoleAdmin},
		"address not verified":                   {claims: map[string]any{"email_verified": false}, email: "", role: modelgate.RoleAdmin},
		"address not said verified":              {claims: map[string]any{"email_verified": nil}, email: "", role: modelgate.RoleAdmin},
		"address trusted":                        {provider: func(p *people.Provider) { p.TrustEmail = true }, claims: map[string]any{"email_verified": nil}, email: "anna@example.com", role: modelgate.RoleAdmin},
		"address trusted, yet said not verified": {provider: func(p *people.Provider) { p.TrustEmail = true }, claims: map[string]any{"email_verified": false}, email: "", role: modelgate.RoleAdmin},
		"domain":                                 {provider: func(p *people.Provider) { p.Domains = []string{"Example.com"} }, email: "anna@example.com", role: modelgate.RoleAdmin},
		"another domain":                         {provider: func(p *people.Provider) { p.Domains = []string{"example.org"} }, kind: modelgate.Forbidden, text: "your account at Acme SSO has no access here"},
		"domain, not verified":                   {provider: func(p *people.Provider) { p.Domains = []string{"example.com"} }, claims: map[string]any{"email_verified": nil}, kind: modelgate.Forbidden, text: "Acme SSO has not confirmed your e-mail address"},
		"a domain in front":                      {provider: func(p *people.Provider) { p.Domains = []string{"example.com"} }, claims: map[string]any{"email": "x@example.com@evil.test"}, kind: modelgate.Forbidden, text: "has no access"},
		"no rule fits":                           {provider: func(p *people.Provider) { p.Rules = p.Rules[:1] }, claims: map[string]any{"groups": []string{"staff"}}, kind: modelgate.Forbidden, text: "has no access"},
		"a group by another case":                {provider: func(p *people.Provider) { p.Rules = p.Rules[:1] }, claims: map[string]any{"groups": []string{"OPS"}}, kind: modelgate.Forbidden, text: "has no access"},
		"too many groups":                        {claims: map[string]any{"groups": make([]string, 1001)}, kind: modelgate.Forbidden, text: "sent too many groups"},
		"groups elsewhere (Entra)": {claims: map[string]any{"groups": nil, "_claim_names": map[string]string{"groups": "s"}, "_claim_sources": map[string]any{"s": map[string]string{"endpoint": "https://graph.test"}}},
			kind: modelgate.Forbidden, text: "sent too many groups"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.provider)
			b.op.Claims, b.op.Info = c.claims, c.info
			o, err := b.signIn(t, nil)
			if modelgate.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Fatalf("%v, want %q %s\n%s", err, c.kind, c.text, b.log)
			}
			if err == nil && (b.books.people[0].Email != c.email || o.Session.Role != c.role) {
				t.Errorf("%+v, %s, want %q and %s", b.books.people[0], o.Session.Role, c.email, c.role)
			}
			if err != nil && len(b.books.sessions) > 0 {
				t.Error("a session was opened")
			}
		})
	}
}

// TestHostileProvider: none of what a provider, or somebody in its place, can
// answer opens a session.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*bench) {
		return func(b *bench) { b.op.Claims = map[string]any{name: value} }
	}
	signed := func(f func(b *bench, payload []byte) string) func(*bench) {
		return func(b *bench) { b.op.Sign = func(p []byte) string { return f(b, p) } }
	}
	answers := func(path string, f http.HandlerFunc) func(*bench) {
		return func(b *bench) { b.op.Answer[path] = f }
	}
	said := func(f func(map[string]any)) func(*bench) { return func(b *bench) { b.op.Discover = f } }
	status := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); io.WriteString(w, text) }
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/other"+r.URL.Path, http.StatusTemporaryRedirect)
	}
	huge := func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"access_token":"access","token_type":"Bearer","id_token":"`+strings.Repeat("a", 2<<20)+`"}`)
	}
	publicKey := func(b *bench) []byte {
		der, _ := x509.MarshalPKIXPublicKey(b.op.Key.Public())
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	}
	for name, lie := range map[string]func(*bench){
		"alg none": signed(func(_ *bench, p []byte) string { return openid.Handmade(`{"alg":"none"}`, p, nil) }),
		"alg None": signed(func(_ *bench, p []byte) string { return openid.Handmade(`{"alg":"None","kid":"now"}`, p, []byte("x")) }),
		"no alg":   signed(func(_ *bench, p []byte) string { return openid.Handmade(`{"kid":"now"}`, p, []byte("x")) }),
		"HS256 with the secret": signed(func(b *bench, p []byte) string {
			return openid.Sign(t, jose.HS256, []byte(strings.Repeat("s3cret", 6)), "now", p)
		}),
		"HS256 with the public key":   signed(func(b *bench, p []byte) string { return openid.Sign(t, jose.HS256, publicKey(b), "now", p) }),
		"an old key":                  signed(func(b *bench, p []byte) string { return openid.Sign(t, jose.RS256, b.op.Old, "old", p) }),
		"an old key under the new id": signed(func(b *bench, p []byte) string { return openid.Sign(t, jose.RS256, b.op.Old, "now", p) }),
		"a key of its own in the head": signed(func(b *bench, p []byte) string {
			jwk, _ := json.Marshal(jose.JSONWebKey{Key: b.op.Old.Public(), KeyID: "mine"})
			return openid.RS256(t, b.op.Old, `{"alg":"RS256","kid":"mine","jwk":`+string(jwk)+`}`, p)
		}),
		"a jku in the head": signed(func(b *bench, p []byte) string {
			return openid.RS256(t, b.op.Old, `{"alg":"RS256","kid":"x","jku":"`+b.op.URL+`/mine"}`, p)
		}),
		"a critical extension": signed(func(b *bench, p []byte) string {
			return openid.RS256(t, b.op.Key, `{"alg":"RS256","kid":"now","crit":["x"],"x":1}`, p)
		}),
		"signature of another text": signed(func(b *bench, p []byte) string {
			parts := strings.Split(openid.Sign(t, jose.RS256, b.op.Key, "now", []byte(`{}`)), ".")
			return strings.Split(openid.Sign(t, jose.RS256, b.op.Key, "now", p), ".")[0] + "." + strings.Split(openid.Handmade("", p, nil), ".")[1] + "." + parts[2]
		}),
		"no signature":            signed(func(b *bench, p []byte) string { return openid.Handmade(`{"alg":"RS256","kid":"now"}`, p, nil) }),
		"claims that are a list":  signed(func(b *bench, _ []byte) string { return openid.Sign(t, jose.RS256, b.op.Key, "now", []byte(`[]`)) }),
		"claims that are no JSON": signed(func(b *bench, _ []byte) string { return openid.Sign(t, jose.RS256, b.op.Key, "now", []byte(`{"iss":`)) }),
		"no token":                signed(func(*bench, []byte) string { return "" }),
		"a token that is none":    signed(func(*bench, []byte) string { return "a.b.c" }),
		"a logout token":          signed(func(b *bench, _ []byte) string { return b.op.LogoutToken(nil) }),

		"another aud":               claim("aud", "another"),
		"no aud":                    claim("aud", nil),
		"an empty aud":              claim("aud", []string{}),
		"aud of other case":         claim("aud", "Modelgate"),
		"two aud without azp":       claim("aud", []string{openid.ClientID, "another"}),
		"another azp":               claim("azp", "another"),
		"an empty azp":              claim("azp", ""),
		"another iss":               claim("iss", "https://evil.test"),
		"iss with a slash more":     func(b *bench) { b.op.Claims = map[string]any{"iss": b.op.URL + "/"} },
		"no iss":                    claim("iss", nil),
		"another nonce":             claim("nonce", "guessed"),
		"no nonce":                  claim("nonce", nil),
		"an empty nonce":            claim("nonce", ""),
		"expired":                   claim("exp", time.Now().Add(-time.Second).Unix()),
		"no exp":                    claim("exp", nil),
		"an exp that is a text":     claim("exp", "tomorrow"),
		"not good yet":              claim("nbf", time.Now().Add(time.Hour).Unix()),
		"no iat":                    claim("iat", nil),
		"issued in the future":      claim("iat", time.Now().Add(time.Hour).Unix()),
		"no sub":                    claim("sub", nil),
		"an empty sub":              claim("sub", ""),
		"a sub of 256":              claim("sub", strings.Repeat("s", 256)),
		"a sub that is a number":    claim("sub", 7),
		"at_hash of another token":  claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
		"claims from nowhere":       claim("_claim_names", map[string]string{"groups": "gone"}),
		"userinfo of somebody else": func(b *bench) { b.op.Claims, b.op.Info = map[string]any{"name": nil}, map[string]any{"sub": "bob"} },
		"userinfo that fails": func(b *bench) {
			b.op.Claims = map[string]any{"name": nil}
			b.op.Answer["/userinfo"] = status(500, "no")
		},
		"userinfo that redirects":    func(b *bench) { b.op.Claims = map[string]any{"name": nil}; b.op.Answer["/userinfo"] = redirect },
		"userinfo that is huge":      func(b *bench) { b.op.Claims = map[string]any{"name": nil}; b.op.Answer["/userinfo"] = huge },
		"token endpoint fails":       answers("/token", status(500, "no")),
		"token endpoint refuses":     answers("/token", status(400, `{"error":"invalid_grant"}`)),
		"token endpoint redirects":   answers("/token", redirect),
		"token endpoint is huge":     answers("/token", huge),
		"token endpoint sends HTML":  answers("/token", status(200, "<html>")),
		"token endpoint sends no id": answers("/token", status(200, `{"access_token":"access","token_type":"Bearer"}`)),
		"keys fail":                  answers("/keys", status(500, "no")),
		"keys redirect":              answers("/keys", redirect),
		"keys are none":              answers("/keys", status(200, `{"keys":[]}`)),
		"keys are symmetric":         answers("/keys", status(200, `{"keys":[{"kty":"oct","kid":"now","k":"czNjcmV0"}]}`)),
		"keys are huge":              answers("/keys", huge),
		"discovery of another":       said(func(m map[string]any) { m["issuer"] = "https://evil.test" }),
		"discovery with a slash":     said(func(m map[string]any) { m["issuer"] = m["issuer"].(string) + "/" }),
		"discovery without issuer":   said(func(m map[string]any) { delete(m, "issuer") }),
		"discovery without keys":     said(func(m map[string]any) { delete(m, "jwks_uri") }),
		"discovery of a file":        said(func(m map[string]any) { m["token_endpoint"] = "file:///etc/passwd" }),
		"discovery of a script":      said(func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }),
		"discovery redirects":        answers("/.well-known/openid-configuration", redirect),
		"discovery is huge":          answers("/.well-known/openid-configuration", huge),
		"discovery is HTML":          answers("/.well-known/openid-configuration", status(200, "<html>")),
		"discovery fails":            answers("/.well-known/openid-configuration", status(404, "no")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			lie(b)
			o, err := b.signIn(t, nil)
			shown := modelgate.KindOf(err)
			if err == nil || o != nil && o.Token != "" || len(b.books.people)+len(b.books.sessions) > 0 {
				t.Fatalf("a session was opened: %+v", o)
			}
			if shown != modelgate.Forbidden && shown != modelgate.BadGateway && shown != modelgate.BadRequest {
				t.Errorf("%v is not for a browser", err)
			}
		})
	}
}

// TestBadCallbacks are those that the provider has no part in.
func TestBadCallbacks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(url.Values)
		kind   modelgate.Kind
	}{
		"another state": {func(v url.Values) { v.Set("state", "guessed") }, modelgate.BadRequest},
		"no state":      {func(v url.Values) { v.Del("state") }, modelgate.BadRequest},
		"two states":    {func(v url.Values) { v.Add("state", "x") }, modelgate.BadRequest},
		"no code":       {func(v url.Values) { v.Del("code") }, modelgate.BadRequest},
		"two codes":     {func(v url.Values) { v.Add("code", "x") }, modelgate.BadRequest},
		"another code":  {func(v url.Values) { v.Set("code", "stolen") }, modelgate.BadRequest},
		"another iss":   {func(v url.Values) { v.Set("iss", "https://evil.test") }, modelgate.Forbidden},
		"refused":       {func(v url.Values) { v.Set("error", "access_denied"); v.Del("code") }, modelgate.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, nil)
			if o, err := b.signIn(t, c.change); modelgate.KindOf(err) != c.kind || len(b.books.sessions) > 0 {
				t.Errorf("%v, %v, want %s", o, err, c.kind)
			}
		})
	}
	t.Run("cookies", func(t *testing.T) {
		t.Parallel()
		b := setup(t, nil)
		address, cookie, err := b.Begin(t.Context(), "corp", "", netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		answer := b.op.Visit(address)
		_, elsewhere, _ := b.Begin(t.Context(), "corp", "", netip.Addr{})
		for what, held := range map[string]string{"none": "", "garbage": "!!", "short": "AAAA", "cut": cookie[:len(cookie)-4], "of another browser": elsewhere} {
			if _, err := b.Finish(t.Context(), held, answer, people.Visitor{}); modelgate.KindOf(err) != modelgate.BadRequest {
				t.Errorf("%s: %v", what, err)
			}
		}
		began := b.time
		b.time = began.Add(people.AttemptLife + time.Second)
		if _, err := b.Finish(t.Context(), cookie, answer, people.Visitor{}); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("too late: %v", err)
		}
		b.time = began
		if _, err := b.Finish(t.Context(), cookie, answer, people.Visitor{}); err != nil {
			t.Errorf("in time: %v", err)
		}
		b.Configure(people.Config{})
		if _, err := b.Finish(t.Context(), cookie, answer, people.Visitor{}); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("the provider is gone: %v", err)
		}
	})
	t.Run("an announced iss is missing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, nil)
		b.op.Discover = func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
		if _, err := b.signIn(t, nil); modelgate.KindOf(err) != modelgate.Forbidden {
			t.Errorf("%v", err)
		}
		if _, err := b.signIn(t, func(v url.Values) { v.Set("iss", b.op.URL) }); err != nil {
			t.Errorf("with it: %v", err)
		}
	})
}

func TestMaxAge(t *testing.T) {
	t.Parallel()
	b := setup(t, func(p *people.Provider) { p.MaxAge = time.Hour })
	for _, c := range []struct {
		at   any
		kind modelgate.Kind
	}{
		{nil, modelgate.Forbidden}, {b.time.Add(-2 * time.Hour).Unix(), modelgate.Forbidden}, {b.time.Add(-30 * time.Minute).Unix(), ""},
	} {
		b.op.Claims = map[string]any{"auth_time": c.at}
		if _, err := b.signIn(t, nil); modelgate.KindOf(err) != c.kind {
			t.Errorf("auth_time %v: %v", c.at, err)
		}
	}
}

// TestReturnTo: nobody is sent anywhere but to a page of the dashboard.
func TestReturnTo(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	for path, good := range map[string]bool{
		"/dashboard": true, "/dashboard/keys": true, "/dashboard/usage?from=2026-01-01&to=x": true, "/dashboard?x": true,
		"": false, "/": false, "/dashboards": false, "//evil.test": false, "/dashboard//evil.test": false, "https://evil.test/dashboard": false,
		`/dashboard\evil.test`: false, "/dashboard/\r\nSet-Cookie: x": false, "/dashboard/\u00e9": false, "/dashboard/" + strings.Repeat("x", 1000): false,
		"/p/acme": false, "javascript:alert(1)": false, "/dashboard/ x": false,
	} {
		address, cookie, err := b.Begin(t.Context(), "corp", path, netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		want := "/dashboard"
		if good {
			want = path
		}
		if o, err := b.Finish(t.Context(), cookie, b.op.Visit(address), people.Visitor{}); err != nil || o.ReturnTo != want {
			t.Errorf("%q: %v, %v", path, o, err)
		}
		b.time = b.time.Add(time.Minute) // the limit of starts is another test's
	}
}

func TestStartsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.time = b.time.Truncate(time.Minute)
	begin := func(from string) error {
		_, _, err := b.Begin(t.Context(), "corp", "", netip.MustParseAddr(from))
		return err
	}
	for range 20 {
		if err := begin("192.0.2.1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin("192.0.2.1"); modelgate.KindOf(err) != modelgate.RateLimited {
		t.Errorf("the 21st: %v", err)
	}
	if err := begin("192.0.2.2"); err != nil {
		t.Errorf("another address: %v", err)
	}
	b.time = b.time.Add(time.Minute)
	if err := begin("192.0.2.1"); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	if n := b.op.Times("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the provider was asked for its configuration %d times", n)
	}
	if _, _, err := b.Begin(t.Context(), "other", "", netip.Addr{}); modelgate.KindOf(err) != modelgate.NotFound {
		t.Errorf("another provider: %v", err)
	}
}

// TestLogoutTokens: what ends sessions, and what does not.
func TestLogoutTokens(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	logout := func(token string) error { return b.Logout(t.Context(), "corp", token, netip.Addr{}) }
	if err := logout(b.op.LogoutToken(nil)); err != nil || len(b.books.logouts) != 1 {
		t.Fatalf("%v\n%s", err, b.log)
	}
	if l := b.books.logouts[0]; l.Issuer != b.op.URL || l.Session != "sid-1" || l.Subject != "anna" || l.TokenID == "" {
		t.Errorf("%+v", l)
	}
	now := b.time
	for name, token := range map[string]string{
		"nothing": "", "garbage": "a.b.c", "huge": strings.Repeat("a", 20<<10), "alg none": openid.Handmade(`{"alg":"none"}`, []byte(`{}`), nil),
		"another aud": b.op.LogoutToken(map[string]any{"aud": "another"}), "another iss": b.op.LogoutToken(map[string]any{"iss": "https://evil.test"}),
		"expired": b.op.LogoutToken(map[string]any{"exp": now.Add(-time.Minute).Unix()}), "no exp": b.op.LogoutToken(map[string]any{"exp": nil}),
		"good for a year": b.op.LogoutToken(map[string]any{"exp": now.Add(8760 * time.Hour).Unix()}), "no iat": b.op.LogoutToken(map[string]any{"iat": nil}),
		"no jti": b.op.LogoutToken(map[string]any{"jti": nil}), "a nonce": b.op.LogoutToken(map[string]any{"nonce": "n"}),
		"no event": b.op.LogoutToken(map[string]any{"events": nil}), "another event": b.op.LogoutToken(map[string]any{"events": map[string]any{"x": map[string]any{}}}),
		"neither sid nor sub": b.op.LogoutToken(map[string]any{"sid": nil, "sub": nil}), "a long sid": b.op.LogoutToken(map[string]any{"sid": strings.Repeat("s", 300)}),
		"an old key": openid.Sign(t, jose.RS256, b.op.Old, "old", []byte(`{}`)),
	} {
		if err := logout(token); modelgate.KindOf(err) != modelgate.BadRequest || len(b.books.logouts) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Logout(t.Context(), "other", "", netip.Addr{}); modelgate.KindOf(err) != modelgate.NotFound {
		t.Errorf("another provider: %v", err)
	}
	leave, err := url.Parse(b.LeaveURL(t.Context(), "corp"))
	if err != nil || !strings.HasPrefix(leave.String(), b.op.URL+"/end?") || leave.Query().Get("post_logout_redirect_uri") != "https://gw.test/dashboard" {
		t.Errorf("%s, %v", leave, err)
	}
}

// TestSlowProvider is given up on, and does not make others wait for it one after
// the other.
func TestSlowProvider(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	hang := make(chan struct{})
	defer close(hang)
	b.op.Answer["/.well-known/openid-configuration"] = func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}
	var all sync.WaitGroup
	began := time.Now()
	for range 10 {
		all.Go(func() {
			if _, _, err := b.Begin(t.Context(), "corp", "", netip.Addr{}); modelgate.KindOf(err) != modelgate.BadGateway {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 15*time.Second || b.op.Times("/.well-known/openid-configuration") > 2 {
		t.Errorf("given up after %s and %d requests", took, b.op.Times("/.well-known/openid-configuration"))
	}
}

func TestSwitchAndRemoval(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	o, err := b.signIn(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Switch(t.Context(), &o.Session, acme, people.Visitor{})
	if err != nil || other.Token == o.Token || other.Session.Role != modelgate.RoleViewer || !other.Session.ExpiresAt.Equal(o.Session.ExpiresAt) {
		t.Errorf("%+v, %v", other, err)
	}
	if _, err := b.Switch(t.Context(), &o.Session, "another", people.Visitor{}); modelgate.KindOf(err) != modelgate.NotFound {
		t.Errorf("no membership: %v", err)
	}
	key := modelgate.Session{Kind: modelgate.KeySession}
	if _, err := b.Switch(t.Context(), &key, acme, people.Visitor{}); modelgate.KindOf(err) != modelgate.NotFound {
		t.Errorf("a key's session: %v", err)
	}
	if !b.Good(&o.Session) || !b.Good(&key) {
		t.Error("sessions are not good")
	}
	b.Configure(people.Config{})
	if b.Good(&o.Session) || !b.Good(&key) || len(b.Offers()) != 0 {
		t.Error("the session of a provider that is gone is good, or a key's is not")
	}
}
