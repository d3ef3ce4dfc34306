package selfservice_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/secrets"
	"modelgate/internal/selfservice"
	"modelgate/test/testkit"
)

const (
	sellersKey   = "sk_test_seller"
	operatorsKey = "sk_test_operator"
	// nobody is an address that no other test takes meanwhile.
	nobody = "http://127.0.0.1:1"
)

// till is a management API with a payment processor behind it, at a time that
// the test sets.
type till struct {
	*gate
	processor *testkit.Processor
	at        time.Time
	client    modelgate.ClientID
	key       string
	sub       modelgate.SubAccountID
}

func newTill(g *gate) *till {
	g.Helper()
	t := &till{gate: g, processor: testkit.NewProcessor(g, sellersKey, operatorsKey), at: time.Now()}
	now := func() time.Time { return t.at }
	t.processor.SetNow(now)
	g.remake(func(o *selfservice.Options) {
		o.Now = now
		o.Master = t.master('m')
		o.Processor = processor.New(processor.Options{BaseURL: t.processor.URL, Meter: "modelgate_usage_usd"})
		o.Checkout = selfservice.Checkout{Key: operatorsKey, Secrets: []string{t.processor.Secret}, ReturnURL: "http://gate.example/dashboard"}
	})
	t.client = g.client(unchanged)
	t.key = g.rootKey(t.client)
	t.sub = g.subAccount(t.client, "globex")
	return t
}

// master is a master key of 32 equal bytes.
func (t *till) master(b byte) *secrets.Keys {
	t.Helper()
	keys, err := secrets.New(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(b), 32))))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (t *till) configure() {
	t.Helper()
	t.do(t.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, sellersKey)).want(204, "")
}

func (t *till) customer(name string) *reply {
	t.Helper()
	return t.do(t.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q%s}`, t.sub, name))
}

func TestCustomerIsMade(t *testing.T) {
	each(t, func(g *gate) {
		t := newTill(g)
		t.customer("").refused(400, "bad_request", "no processor key is configured")
		t.configure()
		t.customer("").want(200, `{"stripe_customer_id":"cus_1"}`)
		t.customer(`,"name":" Globex GmbH "`).want(200, `{"stripe_customer_id":"cus_2"}`)
		t.configure()                                              // seals the same key anew
		t.customer("").want(200, `{"stripe_customer_id":"cus_1"}`) // the first request again
		var names []string
		for _, form := range t.processor.Customers() {
			names = append(names, form.Get("name")+" of "+form.Get("metadata[sub_account_id]"))
		}
		if want := []string{"globex of " + string(t.sub), "Globex GmbH of " + string(t.sub)}; !slices.Equal(names, want) {
			t.Errorf("customers %q, want %q", names, want)
		}
		t.do(t.key, "GET /gw/processor/config", "").want(200, fmt.Sprintf(
			`{"enabled":true,"configured":true,"mappings":[{"sub_account_id":%q,"stripe_customer_id":"cus_1"}]}`, t.sub))
		if n := g.count("SELECT COUNT(*) FROM audit WHERE action = 'processor.customer.create'"); n != 3 {
			t.Errorf("%d audit records", n)
		}
	})
}

// Whatever goes wrong, nothing is mapped.
func TestCustomerIsNotMade(t *testing.T) {
	each(t, func(g *gate) {
		t := newTill(g)
		t.configure()
		t.customer(`,"name":"refuse me"`).refused(502, "bad_gateway", "the processor answered 402: invalid_request_error (name)")
		t.customer(`,"name":""`).refused(400, "bad_request", "")
		t.customer(`,"name":7`).refused(400, "bad_request", "")
		for _, id := range []string{"00000000-0000-7000-8000-000000000000", "globex", string(g.subAccount(g.client(unchanged), "other"))} {
			t.do(t.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q}`, id)).refused(404, "not_found", "sub-account not found")
		}
		g.remake(func(o *selfservice.Options) { o.Master = t.master('x') })
		t.customer("").refused(503, "unavailable", secrets.ErrOtherKey.Message)
		g.remake(func(o *selfservice.Options) { o.Master = nil })
		t.customer("").refused(503, "unavailable", secrets.ErrNoMasterKey.Message)
		t.do(t.key, "PUT /gw/processor/config", `{"enabled":true,"api_key":"sk_test_new"}`).refused(503, "unavailable", secrets.ErrNoMasterKey.Message)
		t.do(t.key, "PUT /gw/processor/config", `{"enabled":false}`).want(204, "") // needs no key
		g.remake(func(o *selfservice.Options) {
			o.Master = t.master('m')
			o.Processor = processor.New(processor.Options{BaseURL: nobody, Meter: "m"})
		})
		t.customer("").refused(503, "unavailable", "the payment processor does not answer; retry shortly")
		suspended := modelgate.SubAccountSuspended
		if err := g.db.PatchSubAccount(t.Context(), t.client, t.sub, modelgate.SubAccountPatch{Status: &suspended}, g.operator("x")); err != nil {
			t.Fatal(err)
		}
		t.customer("").refused(400, "bad_request", "the sub-account is not active")
		t.do(t.key, "GET /gw/processor/config", "").want(200, `{"enabled":false,"configured":true,"mappings":[]}`)
	})
}

// An answer that is lost leaves the customer at the processor: the next request
// finds it instead of making another.
func TestCustomerIsMadeOnce(t *testing.T) {
	each(t, func(g *gate) {
		t := newTill(g)
		t.configure()
		there, err := url.Parse(t.processor.URL)
		if err != nil {
			t.Fatal(err)
		}
		forward := httputil.NewSingleHostReverseProxy(there)
		cut := new(atomic.Int64)
		lossy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if cut.Add(1) > 1 {
				forward.ServeHTTP(w, r)
				return
			}
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}))
		defer lossy.Close()
		g.remake(func(o *selfservice.Options) {
			o.Processor = processor.New(processor.Options{BaseURL: lossy.URL, Meter: "m"})
		})
		t.customer("").refused(503, "unavailable", "the payment processor does not answer; retry shortly")
		t.do(t.key, "GET /gw/processor/config", "").want(200, `{"enabled":true,"configured":true,"mappings":[]}`)
		t.customer("").want(200, `{"stripe_customer_id":"cus_1"}`)
		if n := len(t.processor.Customers()); n != 1 || cut.Load() != 2 {
			t.Errorf("%d customers after %d requests, want 1 after 2", n, cut.Load())
		}
	})
}

// The same key once more is no other key: what was tried with it may be tried
// again.
func TestTheSameKeyAgain(t *testing.T) {
	each(t, func(g *gate) {
		t := newTill(g)
		put := func(key string, want int64) (sealed string) {
			t.Helper()
			t.do(t.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, key)).want(204, "")
			k, err := g.db.ProcessorKey(t.Context(), t.client)
			if err != nil || k.Generation != want {
				t.Errorf("%s: generation %d, %v, want %d", key, k.Generation, err, want)
			}
			return string(k.Value)
		}
		if first := put(sellersKey, 1); put(sellersKey, 1) == first {
			t.Error("the key was not sealed anew")
		}
		put(sellersKey+"x", 2)
		put(sellersKey, 3)
		g.remake(func(o *selfservice.Options) { o.Master = t.master('x') })
		put(sellersKey, 4) // nobody can tell any more
		put(sellersKey, 4)
	})
}

func TestEventsAreListed(t *testing.T) {
	each(t, func(g *gate) {
		t := newTill(g)
		t.configure()
		t.do(t.key, "PUT /gw/processor/mappings/"+string(t.sub), `{"stripe_customer_id":"cus_9"}`).want(204, "")
		var rows []modelgate.UsageRow
		for i := range 250 {
			id := g.ids.New()
			rows = append(rows, modelgate.UsageRow{
				CallBegin: modelgate.CallBegin{ID: id, At: id.Time(), ClientID: t.client, KeyID: "k", SubAccountID: t.sub, Provider: "p", Model: "m"},
				CallEnd:   modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: modelgate.Nano(1000 * (i + 1))},
			})
		}
		g.book(rows...)
		for query, want := range map[string]int{"": 50, "?limit=1": 1, "?limit=200": 200, "?status=pending&limit=200": 200, "?status=sent": 0, "?status=failed": 0} {
			var got struct {
				Counts struct {
					Pending, Failed int
					Sent            int `json:"sent_24h"`
				}
				Events []struct {
					ID     string `json:"usage_record_id"`
					Amount any    `json:"amount_usd"`
				}
			}
			t.do(t.key, "GET /gw/processor/events"+query, "").into(&got)
			if len(got.Events) != want || got.Counts.Pending != 250 || got.Counts.Sent+got.Counts.Failed != 0 {
				t.Errorf("%s: %d events, %+v; want %d", query, len(got.Events), got.Counts, want)
			}
			if want > 0 && (got.Events[0].ID != rows[249].ID.String() || fmt.Sprint(got.Events[0].Amount) != "0.00025") {
				t.Errorf("%s: the first is %+v", query, got.Events[0])
			}
		}
		for _, query := range []string{"limit=0", "limit=201", "limit=-1", "limit=x", "limit=", "status=", "status=carried", "status=Sent", "status=sent&status=failed"} {
			t.do(t.key, "GET /gw/processor/events?"+query, "").refused(400, "bad_request", "")
		}
		// Another organization sees none of it.
		t.do(g.rootKey(g.client(unchanged)), "GET /gw/processor/events", "").
			want(200, `{"counts":{"pending":0,"sent_24h":0,"failed":0},"oldest_pending_age_seconds":0,"events":[]}`)
		var age struct {
			Seconds int `json:"oldest_pending_age_seconds"`
		}
		if _, err := g.raw.Exec("UPDATE processor_event SET queued_at = queued_at - 90000000 WHERE value = 1"); err != nil {
			t.Fatal(err)
		}
		if t.do(t.key, "GET /gw/processor/events", "").into(&age); age.Seconds < 90 || age.Seconds > 600 {
			t.Errorf("the oldest is %d seconds old", age.Seconds)
		}
	})
}
