package bill_test

import (
	"context"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/bill"
	"modelgate/internal/invoice"
	"modelgate/internal/store"
	"modelgate/internal/store/evidence"
	"modelgate/test/testkit"
)

// now is 00:31 on a day, so that with a lag of 24 hours the day before yesterday is
// the newest that is read.
var now = time.Date(2026, 11, 20, 0, 31, 0, 0, time.UTC)

const admin = "sk-admin-secret"

// desk is a service on a database of its own, with a provider whose bill an API
// has.
type desk struct {
	*bill.Service
	db     *store.DB
	billed *testkit.Bill
	alerts []string
	seen   []bill.Status
	failed atomic.Bool // the API fails
	ids    *modelgate.IDs
	client modelgate.Client
}

func newDesk(t *testing.T, database string) *desk {
	t.Helper()
	d := &desk{billed: &testkit.Bill{PageSize: 3}}
	db, err := store.Open(t.Context(), store.Options{URL: database, DataDir: t.TempDir(), Now: func() time.Time { return d.Now() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	handler := d.billed.OpenAI(admin)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.failed.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	one := big.NewRat(1, 1)
	provider := bill.Provider{Name: "openai", API: bill.OpenAI, BaseURL: api.URL, Credential: admin, Daily: true, Lag: 24 * time.Hour, Amount: "EffectiveCost",
		Factor: func(string) *big.Rat { return one }}
	at := now
	d.db = db
	d.Service = &bill.Service{
		Ledger: db, Providers: func() []bill.Provider { return []bill.Provider{provider} }, Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
		Sleep: func(ctx context.Context, by time.Duration) error { at = at.Add(by); return ctx.Err() },
		Audit: func(action string) modelgate.Audit { return audit(d, action) }, AlertPercent: func() float64 { return 0.01 },
		Alert: func(_ context.Context, kind, id string, _ any) error {
			d.alerts = append(d.alerts, kind+" "+id)
			return nil
		},
		Observe: func(list []bill.Status) { d.seen = list },
	}
	d.ids = modelgate.NewIDs(func() time.Time { return now.AddDate(0, 0, -40) })
	d.client = modelgate.Client{ID: modelgate.ClientID(d.ids.New().String()), Name: "acme", Status: modelgate.ClientActive, RoutingPolicy: modelgate.RouteAny,
		Billing: modelgate.Invoiced, MaxKeys: 10, Ceiling: modelgate.OpenCeiling(), CreatedAt: now}
	if err := db.CreateClient(t.Context(), d.client, audit(d, "client.create")); err != nil {
		t.Fatal(err)
	}
	return d
}

func audit(d *desk, action string) modelgate.Audit {
	return modelgate.Audit{ID: modelgate.NewIDs(d.Now).New().String(), At: d.Now(), Action: action, Actor: modelgate.Actor{System: true}}
}

// call books a call of 1,000 input tokens on a day, and bills it at a rate per
// million.
func (d *desk) call(t *testing.T, daysAgo int, usd int64) {
	t.Helper()
	at := now.AddDate(0, 0, -daysAgo).Truncate(24 * time.Hour).Add(13 * time.Hour)
	ids := modelgate.NewIDs(func() time.Time { return at })
	row := modelgate.UsageRow{
		CallBegin: modelgate.CallBegin{ID: ids.New(), At: at, ClientID: d.client.ID, KeyID: "k", Model: "gpt-5", Provider: "openai"},
		CallEnd:   modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, PriceLabel: "input=1", Cost: 1_000_000},
	}
	row.Usage.Input = 1000
	if _, err := d.db.Record(t.Context(), store.Batch{Instance: "i", Rows: []modelgate.UsageRow{row}}); err != nil {
		t.Fatal(err)
	}
	d.billed.Add(testkit.BillKey{Day: at.Format(time.DateOnly), Model: "gpt-5", Unit: "input"}, 1000, big.NewRat(usd, 1000))
}

// differences are those that reconcile finds about bills. The key of these rows is
// nowhere, which it says too.
func (d *desk) differences(t *testing.T) []store.Difference {
	t.Helper()
	found, err := d.db.Reconcile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(f store.Difference) bool { return !strings.HasPrefix(f.What, "invoice_") })
}

// Every day the bill is read with the days before it and compared; what is wrong is
// told once a day, by one instance.
func TestSchedule(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:bills.db" },
		"postgres": func() string { return testkit.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "sqlite" {
				t.Skip("needs a database server")
			}
			schedule(t, newDesk(t, database()))
		})
	}
}

func schedule(t *testing.T, d *desk) {
	ctx := t.Context()
	for day := 2; day < 12; day++ {
		d.call(t, day, 1)
	}
	d.Round(ctx)
	if len(d.seen) != 1 || d.seen[0].Outcome == nil || d.seen[0].LastDay != "2026-11-18" || !d.seen[0].Final || d.seen[0].Failure != "" {
		t.Fatalf("%+v", d.seen)
	}
	// At 00:31 less half an hour and 24 hours the 18th was over, and with it eight days.
	if o := d.seen[0].Outcome; o.Days != 8 || o.Invoiced != 8_000_000 || o.Own != o.Invoiced || o.ExplainedPercent != 100 || o.WrongPrice {
		t.Errorf("%+v", o)
	}
	if len(d.alerts) != 0 {
		t.Error(d.alerts)
	}
	first := *d.seen[0].SucceededAt
	d.Round(ctx) // not due
	if !d.seen[0].SucceededAt.Equal(first) {
		t.Error("read again before it is due")
	}
	if found := d.differences(t); len(found) != 0 {
		t.Errorf("%v", found)
	}
	// A correction of a final day, with another price, is stored, audited and told.
	d.billed.Add(testkit.BillKey{Day: "2026-11-16", Model: "gpt-5", Unit: "input"}, 0, big.NewRat(1, 1000))
	_ = d.Sleep(ctx, 24*time.Hour)
	d.Round(ctx)
	if o := d.seen[0].Outcome; !o.WrongPrice || o.ExplainedPercent != 100 || o.Days != 9 {
		t.Errorf("%+v", o)
	}
	if want := "invoice.unexplained openai 2026-11-21 invoice.unexplained"; len(d.alerts) != 1 || d.alerts[0] != want {
		t.Errorf("told %q", d.alerts)
	}
	records, _, err := d.db.Audits(ctx, evidence.AuditList{Limit: 1})
	if err != nil || len(records) != 1 || records[0].Action != "invoice.fetch" || !strings.Contains(string(records[0].Change), `"changed":["2026-11-16"]`) {
		t.Errorf("%+v, %v", records, err)
	}
	d.Round(ctx)
	if len(d.alerts) != 1 {
		t.Errorf("told twice: %q", d.alerts)
	}
	r, err := d.Check(ctx, "openai", now.AddDate(0, 0, -5).Truncate(24*time.Hour), now.AddDate(0, 0, -2).Truncate(24*time.Hour), bill.ByDay)
	if err != nil || r.Cause(invoice.Price) != 1_000_000 || len(r.Groups) != 3 || !r.Final {
		t.Errorf("%+v, %v", r, err)
	}
	// An API that fails leaves the days that are there, and is told when it is late.
	d.failed.Store(true)
	for range 4 {
		_ = d.Sleep(ctx, 24*time.Hour)
		d.Round(ctx)
	}
	if st := d.seen[0]; !strings.Contains(st.Failure, "403") || strings.Contains(st.Failure, admin) || st.LastDay != "2026-11-19" {
		t.Errorf("%+v", st)
	}
	if last := d.alerts[len(d.alerts)-1]; last != "invoice.stale openai 2026-11-25 invoice.stale" {
		t.Errorf("told %q", d.alerts)
	}
}

// Only one reads a bill at a time; a range is bounded; names are known.
func TestFetchIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "sqlite:bills.db")
	ctx := t.Context()
	from := now.AddDate(0, 0, -3).Truncate(24 * time.Hour)
	if claimed, err := d.db.ClaimReading(ctx, "openai", time.Hour, true); !claimed || err != nil {
		t.Fatal(claimed, err)
	}
	if _, err := d.Fetch(ctx, "openai", from, from.AddDate(0, 0, 1), audit(d, "invoice.fetch")); err != bill.ErrRunning {
		t.Error(err)
	}
	if _, err := d.Fetch(ctx, "openai", from, from.AddDate(0, 0, 93), audit(d, "invoice.fetch")); err != bill.ErrRange {
		t.Error(err)
	}
	if _, err := d.Check(ctx, "openai", from, from, ""); err != bill.ErrRange {
		t.Error(err)
	}
	if _, err := d.Fetch(ctx, "nobody", from, from.AddDate(0, 0, 1), audit(d, "invoice.fetch")); modelgate.KindOf(err) != modelgate.NotFound {
		t.Error(err)
	}
	_ = d.Sleep(ctx, 2*time.Hour) // the other has died
	read, err := d.Fetch(ctx, "openai", from, from.AddDate(0, 0, 2), audit(d, "invoice.fetch"))
	if err != nil || read.Days != 2 || len(read.Changed) != 0 {
		t.Errorf("%+v, %v", read, err)
	}
}

// Rows that come after the sums were made are found by reconcile.
func TestLateRowsAreFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "sqlite:bills.db")
	d.call(t, 5, 1)
	d.Round(t.Context())
	d.call(t, 5, 1)
	found := d.differences(t)
	if len(found) != 2 || found[0].What != "invoice_cost" || found[0].Want != 2_000_000 || found[0].Have != 1_000_000 {
		t.Errorf("%+v", found)
	}
	_ = d.Sleep(t.Context(), 24*time.Hour)
	d.Round(t.Context())
	if found := d.differences(t); len(found) != 0 {
		t.Errorf("after the next round: %+v", found)
	}
}
