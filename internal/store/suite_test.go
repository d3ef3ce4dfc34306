package store

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
	"modelgate/internal/yield"
	"modelgate/test/testkit"
)

// engines are the databases that every test runs on.
var engines = []string{"sqlite", "postgres"}

// full is the flag for tests at full size.
var full = flag.Bool("full", false, "run at the size that the documentation states")

// pooled adds PostgreSQL behind PgBouncer, which gives connections out by the
// transaction, to every test; without it, eachAndPooler's alone run there.
var pooled = flag.Bool("pooler", false, "run every test behind PgBouncer too")

// each runs a test on an empty database of each engine.
func each(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	on(t, test, engines)
	if *pooled {
		on(t, test, []string{"pooler"})
	}
}

// eachAndPooler is each for a test of what a pooler could break: transactions
// side by side, leases, batches of statements.
func eachAndPooler(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	on(t, test, append(slices.Clone(engines), "pooler"))
}

func on(t *testing.T, test func(t *testing.T, db *DB), engines []string) {
	t.Helper()
	for _, name := range engines {
		if testing.Short() && name != "sqlite" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, options(t, name)))
		})
	}
}

// options name a fresh database.
func options(t testing.TB, engine string) Options {
	t.Helper()
	o := Options{URL: "sqlite:test.db", DataDir: t.TempDir(), Now: func() time.Time { return noon }, Yielder: yield.New()}
	t.Cleanup(func() {
		if err := o.Yielder.Close(); err != nil {
			t.Error(err)
		}
	})
	switch engine {
	case "postgres":
		o.URL = testkit.Postgres(t)
	case "pooler":
		o.URL, o.Pooled = testkit.Pooler(t, testkit.Postgres(t)), true
	}
	return o
}

func open(t testing.TB, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v", o.URL, err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

// noon is the clock of all tests.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// id is a readable UUID that sorts by n.
// id names the n-th thing: a UUIDv7 of n seconds after midnight.
func id(n int) string { return uuid(n).String() }

func uuid(n int) modelgate.UUID {
	u := modelgate.UUID{6: 0x70, 8: 0x80}
	at := noon.Truncate(24 * time.Hour).Add(time.Duration(n) * time.Second)
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(u[:6], ms[2:])
	binary.BigEndian.PutUint32(u[12:], uint32(n))
	return u
}

var auditIDs = modelgate.NewIDs(time.Now)

func audit(action string) modelgate.Audit {
	return modelgate.Audit{
		ID: auditIDs.New().String(), At: noon, Action: action, Actor: modelgate.Actor{Operator: "test"},
		TargetType: "thing", TargetID: "t", RequestID: "r",
	}
}

func newClient(n int) modelgate.Client {
	return modelgate.Client{
		Status: modelgate.ClientActive,
		ID:     modelgate.ClientID(id(n)), Name: fmt.Sprint("client ", n), RoutingPolicy: modelgate.RouteAny,
		Billing: modelgate.Invoiced, MaxKeys: 1000, MaxRules: 1000, Ceiling: modelgate.OpenCeiling(), CreatedAt: noon,
	}
}

func createClient(t testing.TB, db *DB, n int) modelgate.ClientID {
	t.Helper()
	c := newClient(n)
	must(t, db.CreateClient(t.Context(), c, audit("client.create")))
	return c.ID
}

func createSubAccount(t testing.TB, db *DB, client modelgate.ClientID, n int) modelgate.SubAccount {
	t.Helper()
	s := modelgate.SubAccount{
		ID: modelgate.SubAccountID(id(n)), ClientID: client, Name: fmt.Sprint("sub ", n), Slug: fmt.Sprint("sub-", n),
		Status: modelgate.SubAccountActive, CreatedAt: noon,
	}
	must(t, db.CreateSubAccount(t.Context(), s, audit("sub_account.create")))
	return s
}

// admit makes the n-th key; its digest is that of its id.
func admit(n int) func(modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
	return func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
		k := modelgate.Key{
			ID: modelgate.KeyID(id(n)), Prefix: "gw_live_01234567", Scopes: []modelgate.Scope{modelgate.InferenceUse},
			Entitlements: c.Ceiling.Entitlements, CreatedAt: noon.Add(time.Duration(n) * time.Second),
		}
		return k, digest(n), nil
	}
}

func digest(n int) modelgate.Digest { return modelgate.DigestOf(id(n)) }

func issue(t testing.TB, db *DB, client modelgate.ClientID, sub modelgate.SubAccountID, n int) modelgate.Key {
	t.Helper()
	k, err := db.IssueKey(t.Context(), client, access.IssueRequest{SubAccountID: sub, Admit: admit(n)}, audit("key.issue"))
	must(t, err)
	return k
}

// row is the n-th call of a client: one micro-USD, n seconds after midnight.
func row(client modelgate.ClientID, n int) modelgate.UsageRow {
	return modelgate.UsageRow{
		CallBegin: modelgate.CallBegin{
			ID: uuid(n), At: uuid(n).Time(), ClientID: client,
			KeyID: modelgate.KeyID(id(1)), Provider: "openai", Model: "gpt-5", Slug: "openai/gpt-5", Author: "openai",
			Kind: modelgate.LLM, Region: "us", Door: "/v1/chat/completions", Attribution: map[string]string{"team": "search"},
		},
		CallEnd: modelgate.CallEnd{
			StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 10, Output: 5},
			Cost: 1000, PriceLabel: "input=0.25 output=2", LatencyMS: 120, FirstByteMS: 40,
		},
	}
}

// book records rows as the next batch of an instance.
func book(t testing.TB, db *DB, instance string, rows ...modelgate.UsageRow) int {
	t.Helper()
	p, _, err := db.SpoolProgress(t.Context(), instance)
	must(t, err)
	p.Offset++
	n, err := db.Record(t.Context(), Batch{Instance: instance, Rows: rows, Progress: p})
	must(t, err)
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantKind checks the kind of an error.
func wantKind(t testing.TB, what string, err error, want modelgate.Kind) {
	t.Helper()
	if got := modelgate.KindOf(err); got != want {
		t.Errorf("%s = %v (%q), want kind %q", what, err, got, want)
	}
}

// number reads one number with a query of the test's own.
func number(t testing.TB, db *DB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	must(t, db.read.QueryRowContext(context.Background(), query, args...).Scan(&n))
	return n
}
