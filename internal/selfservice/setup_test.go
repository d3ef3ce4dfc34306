package selfservice_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/evidence"
	"modelgate/internal/httpx"
	"modelgate/internal/people"
	"modelgate/internal/processor"
	"modelgate/internal/ratelimit"
	"modelgate/internal/selfservice"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
	"modelgate/test/testkit"
)

// gate is a management API over a real database.
type gate struct {
	*testing.T
	handler http.Handler
	options selfservice.Options // what the handler was made of
	db      *store.DB
	keys    *auth.Authenticator
	raw     *sql.DB // the same database, for what no API shows
	ids     *modelgate.IDs
	catalog *modelgate.Catalog
	flushed atomic.Pointer[func(context.Context) error]
	log     strings.Builder
}

// each runs a test over either engine.
func each(t *testing.T, test func(g *gate)) {
	t.Helper()
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			test(setup(t, engine))
		})
	}
}

func setup(t *testing.T, engine string) *gate {
	t.Helper()
	if engine == "postgres" {
		url := testkit.Postgres(t)
		return open(t, store.Options{URL: url}, "pgx", url)
	}
	dir := t.TempDir()
	return open(t, store.Options{URL: "sqlite:test.db", DataDir: dir}, "sqlite", dir+"/test.db")
}

// open makes a gate over a database, which driver and source name once more.
func open(t *testing.T, o store.Options, driver, source string) *gate {
	t.Helper()
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	raw, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })

	g := &gate{T: t, db: db, raw: raw, ids: modelgate.NewIDs(time.Now), catalog: newCatalog(t)}
	log := slog.New(slog.NewTextHandler(&g.log, nil))
	g.keys = auth.New(auth.Options{Source: db, Unreachable: store.Unreachable, Touch: db.TouchKeys, Now: time.Now, Log: log})
	g.setFlushed(func(context.Context) error { return nil })
	standing := time.Now() // no token comes in while a test runs, however slow
	limiter := ratelimit.NewLocal(modelgate.Limits{}, func() time.Time { return standing })
	g.options = selfservice.Options{
		Store:   db,
		Keys:    g.keys,
		Limiter: limiter,
		Rates:   ratelimit.NewRates(limiter),
		Catalog: func() *modelgate.Catalog { return g.catalog },
		Flushed: func(ctx context.Context) error { return (*g.flushed.Load())(ctx) },
		Cursors: httpx.NewCursors([]byte("test")),
		Signer: func(context.Context) (*evidence.Signer, error) {
			return &evidence.Signer{Key: testkit.EvidenceKey(t, 1)}, nil
		},
		IDs:       g.ids,
		Now:       time.Now,
		Log:       log,
		MaxBody:   10 << 20,
		Processor: processor.New(processor.Options{BaseURL: "http://127.0.0.1:1", Meter: "m"}),
	}
	g.options.People, err = people.New(people.Options{
		Root: "/dashboard", Secret: []byte("test"), Store: db, Keys: g.keys, IDs: g.ids, Now: time.Now, Log: log, Metrics: prometheus.NewRegistry(),
		Sessions: auth.NewSessions(auth.SessionOptions{Source: db, Unreachable: store.Unreachable, Now: time.Now, Log: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.remake(func(*selfservice.Options) {})
	return g
}

// remake makes the handler anew of changed options, the webhook with it.
func (g *gate) remake(change func(*selfservice.Options)) {
	change(&g.options)
	api := selfservice.New(g.options)
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // a ServeMux would redirect what is to be refused
		if r.URL.Path == "/webhooks/processor" || strings.HasPrefix(r.URL.Path, "/webhooks/processor/") {
			api.ServeWebhook(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
	g.handler = httpx.Wrap(httpx.Options{IDs: g.ids, Log: g.options.Log, MaxBody: 10 << 20}, front)
}

func (g *gate) setFlushed(f func(context.Context) error) { g.flushed.Store(&f) }

func newCatalog(t *testing.T) *modelgate.Catalog {
	t.Helper()
	model := func(slug string, kind modelgate.ModelKind, provider, native string) *modelgate.Model {
		return &modelgate.Model{Slug: slug, DisplayName: strings.ToUpper(slug), Kind: kind, ContextLength: 1000,
			Routes: []modelgate.Route{{Provider: provider, Model: native}}}
	}
	chat := model("openai/gpt-5-mini", modelgate.LLM, "azure-eu", "deployment-7")
	chat.Created = time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC)
	c, err := modelgate.NewCatalog([]*modelgate.Model{
		chat,
		model("black-forest/flux", modelgate.Image, "fal", "fal-ai/flux"),
		model("meta/llama/big", modelgate.LLM, "together", "llama-big"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operator is the audit of what tests do behind the API.
func (g *gate) operator(action string) modelgate.Audit {
	return modelgate.Audit{ID: g.ids.New().String(), Action: action, Actor: modelgate.Actor{Operator: "test"}}
}

// client creates an organization.
func (g *gate) client(change func(*modelgate.Client)) modelgate.ClientID {
	g.Helper()
	c := modelgate.Client{ID: modelgate.ClientID(g.ids.New().String()), Name: "Acme", RoutingPolicy: modelgate.RouteAny,
		Billing: modelgate.Invoiced, MaxKeys: modelgate.DefaultMaxKeys, Ceiling: modelgate.OpenCeiling(), CreatedAt: time.Now()}
	change(&c)
	if err := g.db.CreateClient(g.Context(), c, g.operator("client.create")); err != nil {
		g.Fatal(err)
	}
	return c.ID
}

func unchanged(*modelgate.Client) {}

// key issues a key behind the API, past its rules.
func (g *gate) key(client modelgate.ClientID, change func(*modelgate.Key)) string {
	g.Helper()
	secret := modelgate.NewSecret()
	k := modelgate.Key{ID: modelgate.KeyID(g.ids.New().String()), Prefix: secret.Prefix(), Scopes: modelgate.AllScopes(),
		Entitlements: modelgate.OpenEntitlements(), CreatedAt: time.Now()}
	change(&k)
	_, err := g.db.IssueKey(g.Context(), client, access.IssueRequest{
		SubAccountID: k.SubAccountID,
		Admit: func(modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			return k, secret.Digest(), nil
		},
	}, g.operator("key.issue"))
	if err != nil {
		g.Fatal(err)
	}
	return secret.Reveal()
}

func (g *gate) rootKey(client modelgate.ClientID) string {
	return g.key(client, func(*modelgate.Key) {})
}

// subAccount creates a sub-account behind the API.
func (g *gate) subAccount(client modelgate.ClientID, slug string) modelgate.SubAccountID {
	g.Helper()
	s := modelgate.SubAccount{ID: modelgate.SubAccountID(g.ids.New().String()), ClientID: client, Name: slug, Slug: slug,
		Status: modelgate.SubAccountActive, CreatedAt: time.Now()}
	if err := g.db.CreateSubAccount(g.Context(), s, g.operator("sub_account.create")); err != nil {
		g.Fatal(err)
	}
	return s.ID
}

// book stores usage rows.
func (g *gate) book(rows ...modelgate.UsageRow) {
	g.Helper()
	if n, err := g.db.Record(g.Context(), store.Batch{Instance: "test", Rows: rows}); err != nil || n != len(rows) {
		g.Fatalf("Record = %d, %v, want %d", n, err, len(rows))
	}
}

// reply is an answer of the API.
type reply struct {
	g      *gate
	what   string
	status int
	header http.Header
	body   string
}

// do sends a request. Target is "METHOD /path"; body "" sends none.
func (g *gate) do(key, target, body string) *reply {
	g.Helper()
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequestWithContext(g.Context(), method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return g.send(r)
}

func (g *gate) send(r *http.Request) *reply {
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, r)
	a := &reply{g, r.Method + " " + r.RequestURI, w.Code, w.Result().Header, strings.TrimSuffix(w.Body.String(), "\n")}
	if a.header.Get("X-Gateway-Request-Id") == "" {
		g.Errorf("%s: no request id", a.what)
	}
	return a
}

// want checks the status and, unless body is empty, the whole body.
func (a *reply) want(status int, body string) *reply {
	a.g.Helper()
	if a.status != status || body != "" && a.body != body {
		a.g.Errorf("%s = %d %s, want %d %s", a.what, a.status, a.body, status, body)
	}
	return a
}

// refused checks the error envelope; message "" accepts any.
func (a *reply) refused(status int, kind, message string) *reply {
	a.g.Helper()
	var got struct {
		Error struct{ Type, Message string }
	}
	err := json.Unmarshal([]byte(a.body), &got)
	if err != nil || a.status != status || got.Error.Type != kind || got.Error.Message == "" || message != "" && got.Error.Message != message {
		a.g.Errorf("%s = %d %s, want %d %s %q", a.what, a.status, a.body, status, kind, message)
	}
	return a
}

// into decodes a successful answer.
func (a *reply) into(v any) *reply {
	a.g.Helper()
	if a.status != 200 {
		a.g.Fatalf("%s = %d %s, want 200", a.what, a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		a.g.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return a
}

type object = map[string]any

// field is a member of a JSON object as text.
func (a *reply) field(name string) string {
	a.g.Helper()
	var o object
	a.into(&o)
	return fmt.Sprint(o[name])
}

// count is a number read behind the API.
func (g *gate) count(query string) int {
	g.Helper()
	var n int
	if err := g.raw.QueryRowContext(g.Context(), query).Scan(&n); err != nil {
		g.Fatal(errors.Join(err, errors.New(query)))
	}
	return n
}
