package dashboard

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/store/access"
	"modelgate/internal/store/spend"
)

// nobody has no keys and one portal.
type nobody struct{ brand modelgate.Branding }

func (nobody) Identify(context.Context, string, auth.Origin) (*modelgate.Caller, error) {
	return nil, modelgate.ErrUnauthorized
}

func (nobody) IdentifyDigest(context.Context, modelgate.Digest, auth.Origin) (*modelgate.Caller, error) {
	return nil, modelgate.ErrUnauthorized
}

func (n nobody) BrandingBySlug(_ context.Context, slug string) (modelgate.Branding, error) {
	if slug != n.brand.PortalSlug {
		return modelgate.Branding{}, modelgate.Errorf(modelgate.NotFound, "portal not found")
	}
	return n.brand, nil
}

func (nobody) Find(context.Context, modelgate.Digest, auth.Origin) (*modelgate.Session, error) {
	return nil, modelgate.ErrUnauthorized
}

func (nobody) Forget(modelgate.Digest) {}

func (nobody) ForgetKey(modelgate.KeyID) {}

func (nobody) StartSession(context.Context, modelgate.Session, modelgate.Digest) error { return nil }

func (nobody) EndSession(context.Context, modelgate.Digest, string) error { return nil }

func (nobody) EndSessionsOfKey(context.Context, modelgate.KeyID) error { return nil }

func (nobody) Client(context.Context, modelgate.ClientID) (modelgate.Client, error) {
	return modelgate.Client{}, nil
}

func (nobody) Balance(context.Context, modelgate.ClientID, int) (spend.Balance, []spend.BalanceEntry, error) {
	return spend.Balance{}, nil, nil
}

func (nobody) SubAccount(context.Context, modelgate.ClientID, modelgate.SubAccountID) (modelgate.SubAccount, error) {
	return modelgate.SubAccount{}, nil
}

func (nobody) Person(context.Context, modelgate.PersonID) (modelgate.Person, error) {
	return modelgate.Person{}, nil
}

func (nobody) OrganizationsOf(context.Context, modelgate.PersonID) ([]access.Organization, error) {
	return nil, nil
}

// newTestPages are pages with a web app of one script.
func newTestPages(t *testing.T, brand modelgate.Branding, files fstest.MapFS) *Pages {
	t.Helper()
	p, err := New(Options{
		Keys: nobody{}, Sessions: nobody{}, Store: nobody{brand}, IDs: modelgate.NewIDs(time.Now), Now: time.Now,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.built, err = readBuilt(files); err != nil {
		t.Fatal(err)
	}
	return p
}

func app() fstest.MapFS {
	return fstest.MapFS{
		"dist/.keep":              {},
		"dist/dashboard.html":     {Data: []byte("<!doctype html><!--head--><body>dashboard")},
		"dist/portal.html":        {Data: []byte("<!doctype html><!--head--><body>portal")},
		"dist/assets/app-1234.js": {Data: []byte(strings.Repeat("console.log('hello');\n", 100))},
	}
}

func get(p *Pages, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func TestAssets(t *testing.T) {
	t.Parallel()
	p := newTestPages(t, modelgate.Branding{}, app())
	plain := get(p, "/dashboard/assets/app-1234.js")
	if plain.Code != 200 || plain.Header().Get("Content-Encoding") != "" || !strings.HasPrefix(plain.Body.String(), "console.log") {
		t.Errorf("%d %v", plain.Code, plain.Header())
	}
	if got := plain.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("Cache-Control %q", got)
	}
	zipped := get(p, "/dashboard/assets/app-1234.js", "Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != plain.Body.String() {
		t.Errorf("unpacked: %v", err)
	}
	for _, target := range []string{"/dashboard/assets/none.js", "/dashboard/assets/dashboard.html", "/dashboard/assets/.keep"} {
		if w := get(p, target); w.Code != 404 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestPagesAreGuarded(t *testing.T) {
	t.Parallel()
	p := newTestPages(t, modelgate.Branding{PortalSlug: "acme", ProductName: "Acme"}, app())
	for _, target := range []string{"/dashboard", "/dashboard/", "/dashboard/usage", "/p/acme", "/p/acme/keys"} {
		w := get(p, target)
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || !strings.Contains(csp, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %d %s", target, w.Code, csp)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s %q", target, name, got)
			}
		}
	}
	for _, target := range []string{"/p/", "/p", "/p/unknown", "/p/Acme", "/p/acme%00"} {
		if w := get(p, target); w.Code != 404 || !strings.Contains(w.Body.String(), "<h1>Not found</h1>") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	if w := get(p, "/dashboard/gw/keys"); w.Code != 401 || !strings.Contains(w.Header().Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("an answer of the API: %d %v", w.Code, w.Header())
	}
}

// A portal's head holds what its reseller typed, and only as text.
func TestHeadsAreText(t *testing.T) {
	t.Parallel()
	logo, colour := `https://x/?"><script>alert(1)</script>`, "#336699"
	brand := modelgate.Branding{
		PortalSlug: "acme", ProductName: `</title><script>alert(1)</script>"' &amp; <!--head-->`, LogoURL: &logo, AccentColor: &colour,
	}
	w := get(newTestPages(t, brand, app()), "/p/acme")
	text := w.Body.String()
	if strings.Contains(text, "<script>") || strings.Count(text, "</title>") != 1 {
		t.Errorf("markup in %s", text)
	}
	content := regexp.MustCompile(`<meta name="brand" content="([^"]*)">`).FindStringSubmatch(text)
	if content == nil {
		t.Fatalf("no brand in %s", text)
	}
	var got brandView
	if err := json.Unmarshal([]byte(html.UnescapeString(content[1])), &got); err != nil || got.ProductName != brand.ProductName || *got.LogoURL != logo {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWithoutABuild(t *testing.T) {
	t.Parallel()
	w := get(newTestPages(t, modelgate.Branding{}, fstest.MapFS{"dist/.keep": {}}), "/dashboard")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// away is a database that answers until it is cut off.
type away struct {
	nobody
	cut *bool
}

func (a away) BrandingBySlug(ctx context.Context, slug string) (modelgate.Branding, error) {
	if *a.cut {
		return modelgate.Branding{}, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return a.nobody.BrandingBySlug(ctx, slug)
}

// While the database is away a portal that was seen keeps its brand, and one
// that was not says so in a page, for a person reads it.
func TestPortalsWithoutADatabase(t *testing.T) {
	t.Parallel()
	p := newTestPages(t, modelgate.Branding{PortalSlug: "acme", ProductName: "Acme"}, app())
	now, cut := time.Now(), false
	p.Now = func() time.Time { return now }
	p.Store = away{nobody{modelgate.Branding{PortalSlug: "acme", ProductName: "Acme"}}, &cut}
	if w := get(p, "/p/acme"); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := get(p, "/p/unknown"); w.Code != 404 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	now, cut = now.Add(time.Hour), true
	if w := get(p, "/p/acme"); w.Code != 200 || !strings.Contains(w.Body.String(), "<title>Acme</title>") {
		t.Errorf("a portal seen before: %d %s", w.Code, w.Body)
	}
	for _, target := range []string{"/p/other", "/p/unknown"} {
		asked := []string{"Sec-Fetch-Mode", "navigate", "Accept", "text/html,*/*;q=0.8"}
		w := get(p, target, asked...)
		text := w.Body.String()
		if w.Code != 503 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(text, "the database does not answer") {
			t.Errorf("%s in a browser: %d %v %s", target, w.Code, w.Header(), text)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "sandbox") {
			t.Errorf("%s: policy %q", target, csp)
		}
		if w := get(p, target, "Accept", "application/json"); w.Code != 503 || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s in a script: %d %v", target, w.Code, w.Header())
		}
	}
	now, cut = now.Add(time.Second), false
	if w := get(p, "/p/unknown"); w.Code != 404 {
		t.Errorf("when it is back: %d", w.Code)
	}
}

// What an error says is text on its page.
func TestFaultPagesAreText(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/p/acme", nil)
	w := httptest.NewRecorder()
	w.Header().Set("X-Gateway-Request-Id", "01890a5d-ac96-774b-bcce-b302099a8057")
	writeFault(w, r, modelgate.Errorf(modelgate.Forbidden, "<script>alert(1)</script>"))
	text := w.Body.String()
	if w.Code != 403 || strings.Contains(text, "<script>") || !strings.Contains(text, "Request <code>01890a5d-ac96-774b-bcce-b302099a8057</code>") {
		t.Errorf("%d %s", w.Code, text)
	}
	w = httptest.NewRecorder()
	writeFault(w, r, errors.New("secret of the store"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A person who leaves while a page is read is no fault to log.
func TestLeavingIsNotLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	p := newTestPages(t, modelgate.Branding{}, app())
	p.Log = slog.New(slog.NewTextHandler(&log, nil))
	p.fail(httptest.NewRecorder(), httptest.NewRequest("GET", "/dashboard/session", nil), fmt.Errorf("reading: %w", context.Canceled))
	if log.Len() > 0 {
		t.Error(log.String())
	}
	p.fail(httptest.NewRecorder(), httptest.NewRequest("GET", "/dashboard/session", nil), errors.New("a fault"))
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Error("a fault is not logged")
	}
}
