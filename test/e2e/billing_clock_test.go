package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
	"modelgate/internal/store/billing"
	"modelgate/internal/worker"
	"modelgate/test/testkit"
)

// clock is a wall clock that the test sets.
type clock struct{ us atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMicro(c.us.Load()).UTC() }
func (c *clock) forward(d time.Duration) { c.us.Add(d.Microseconds()) }

// mortal is the outbox of a sender that may die between a batch's sending and
// the noting of what came of it. idle is told when nothing is
// due any more.
type mortal struct {
	*store.DB
	dies func() bool
	idle chan struct{}
	open *atomic.Int64 // queues that are being sent to
}

func (m mortal) ClaimQueues(ctx context.Context, holder string, most int, lease time.Duration) ([]billing.Queue, error) {
	queues, err := m.DB.ClaimQueues(ctx, holder, most, lease)
	if m.open.Add(int64(len(queues))) == 0 {
		select {
		case m.idle <- struct{}{}:
		default:
		}
	}
	return queues, err
}

func (m mortal) FinishSending(ctx context.Context, l billing.Queue, s []billing.Settled, rest time.Time) error {
	defer m.open.Add(-1)
	if m.dies() {
		return errors.New("the process died here")
	}
	return m.DB.FinishSending(ctx, l, s, rest)
}

// TestBillingClock sends events while senders die, answers are lost and the
// clock jumps by 25 hours, after which the processor has forgotten what it
// counted: nothing is counted twice, and what may have been is not sent again.
func TestBillingClock(t *testing.T) {
	t.Parallel()
	events := size(2_500, 50_000)
	const queues = 8
	batch := events / 50
	now := new(clock)
	now.us.Store(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	dir := t.TempDir()
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:clock.db", DataDir: dir, Now: now.now})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := testkit.NewProcessor(t, sellerKey)
	p.SetNow(now.now)
	p.SetFaults(testkit.ProcessorFaults{Lost: 0.10, Failed: 0.05, Throttled: 0.10})
	ids := modelgate.NewIDs(now.now)
	client, subs := fillSeller(t, db, ids, queues)
	random := rand.New(rand.NewPCG(3, 4))
	deaths := new(atomic.Int64)
	m := mortal{DB: db, idle: make(chan struct{}, 1), open: new(atomic.Int64), dies: func() bool {
		dead := rand.IntN(10) == 0
		if dead {
			deaths.Add(1)
		}
		return dead
	}}
	sender := processor.New(processor.Options{BaseURL: p.URL, Meter: "modelgate_usage_usd"})
	booked, jumps := 0, 0
	for step := 0; booked < events || backlog(t, db) > 0; step++ {
		if booked < events {
			bookCalls(t, db, ids, client, subs, booked, batch)
			booked += batch
		}
		ctx, die := context.WithCancel(t.Context())
		e := &worker.Exporter{
			Ledger: m, Report: sender.Report, Holder: "prove", Now: now.now, Log: slog.New(slog.DiscardHandler), Count: func(string) {}, Gap: time.Nanosecond,
			Key: func(context.Context, modelgate.ClientID) (worker.ExportKey, error) {
				return worker.ExportKey{Secret: sellerKey, Generation: 1}, nil
			},
		}
		ended := make(chan struct{})
		go func() { e.Run(ctx); close(ended) }()
		<-m.idle
		die()
		<-ended
		if random.IntN(4) == 0 && booked < events {
			now.forward(25 * time.Hour)
			jumps++
		} else {
			now.forward(time.Duration(1+random.IntN(20)) * time.Minute)
		}
	}
	st := compareBills(p.Ledger(), readOutbox(t, "sqlite", filepath.Join(dir, "clock.db")))
	st.right(t)
	if st.pending > 0 || st.failed != st.ambiguous || jumps == 0 || st.ambiguous == 0 || st.sent+st.failed != events {
		t.Errorf("%d jumps, %+v; want all events sent or ambiguous, and some of these", jumps, st)
	}
	if found, err := db.Reconcile(t.Context(), client); err != nil || len(found) > 0 {
		t.Errorf("Reconcile = %v, %v", found, err)
	}
	if s := p.Stats(); s.MostAtOnce != 1 {
		t.Errorf("%d calls for one customer at once", s.MostAtOnce)
	}
	fmt.Fprintf(t.Output(), "export under a jumping clock: %d events, %d jumps of 25 h, %d deaths before noting; sent %d, ambiguous %d (%d of them counted), twice %d; processor: %+v\n",
		events, jumps, deaths.Load(), st.sent, st.ambiguous, st.failedButCounted, st.twice, p.Stats())
}

// fillSeller makes an organization with mapped sub-accounts and a key of each.
func fillSeller(t *testing.T, db *store.DB, ids *modelgate.IDs, customers int) (modelgate.ClientID, []endCustomer) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	record := func() modelgate.Audit {
		return modelgate.Audit{ID: ids.New().String(), Action: "prove", Actor: modelgate.Actor{Operator: "prove"}}
	}
	client := modelgate.ClientID(ids.New().String())
	must(db.CreateClient(t.Context(), modelgate.Client{ID: client, Name: "seller", RoutingPolicy: modelgate.RouteAny,
		Billing: modelgate.Invoiced, MaxKeys: 1000, Ceiling: modelgate.OpenCeiling()}, record()))
	must(db.PutProcessorKey(t.Context(), client, billing.ProcessorKey{KeyID: "k", Value: []byte("sealed")}, billing.On, record()))
	var subs []endCustomer
	for i := range customers {
		e := endCustomer{sub: ids.New().String(), customer: fmt.Sprint("cus_", i)}
		id := modelgate.SubAccountID(e.sub)
		must(db.CreateSubAccount(t.Context(), modelgate.SubAccount{ID: id, ClientID: client, Name: e.customer, Slug: fmt.Sprint("s", i),
			Status: modelgate.SubAccountActive}, record()))
		must(db.PutMapping(t.Context(), client, modelgate.Mapping{SubAccountID: id, CustomerID: e.customer}, record()))
		key, err := db.IssueKey(t.Context(), client, access.IssueRequest{SubAccountID: id, Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			k := modelgate.Key{ID: modelgate.KeyID(ids.New().String()), Prefix: "gw_live_00000000", Scopes: []modelgate.Scope{modelgate.InferenceUse}, Entitlements: c.Ceiling.Entitlements}
			return k, modelgate.DigestOf(string(k.ID)), nil
		}}, record())
		must(err)
		e.key = string(key.ID)
		subs = append(subs, e)
	}
	return client, subs
}

// bookCalls books calls of all end customers in turn, the n-th for n micro-USD
// and a bit.
func bookCalls(t *testing.T, db *store.DB, ids *modelgate.IDs, client modelgate.ClientID, subs []endCustomer, first, count int) {
	t.Helper()
	b := store.Batch{Instance: "prove", Progress: store.Position{Offset: int64(first + 1)}}
	for i := range count {
		id, e := ids.New(), subs[(first+i)%len(subs)]
		b.Rows = append(b.Rows, modelgate.UsageRow{
			CallBegin: modelgate.CallBegin{ID: id, At: id.Time(), ClientID: client, KeyID: modelgate.KeyID(e.key), SubAccountID: modelgate.SubAccountID(e.sub), Provider: "p", Model: "m"},
			CallEnd:   modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: modelgate.Nano(1000*(1+(first+i)%500) + 77)},
		})
	}
	if _, err := db.Record(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func backlog(t *testing.T, db *store.DB) int64 {
	t.Helper()
	n, _, err := db.ExportBacklog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
