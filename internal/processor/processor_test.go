package processor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/test/testkit"
)

const key = "sk_test_4eC39HqLyjWDarjtT1zdp7dc"

func newClient(url string) *processor.Client {
	return processor.New(processor.Options{BaseURL: url, Meter: "modelgate_usage_usd"})
}

func event(n int) processor.Event {
	return processor.Event{ID: fmt.Sprint("usage-", n), Customer: "cus_1", Value: 42, At: time.Now(), Try: "1"}
}

// The shapes are Stripe's, by Stripe's own description of them.
func TestShapes(t *testing.T) {
	t.Parallel()
	c := newClient(testkit.StripeMock(t))
	if err := c.Report(t.Context(), key, event(1)); err != nil {
		t.Errorf("Report = %v", err)
	}
	if id, err := c.CreateCustomer(t.Context(), key, processor.NewCustomer{Name: "Acme", SubAccountID: "s", Once: "o"}); err != nil || !strings.HasPrefix(id, "cus_") {
		t.Errorf("CreateCustomer = %q, %v", id, err)
	}
	made, err := c.CreateCheckout(t.Context(), key, processor.NewCheckout{
		OrderID: "o1", Cents: 2500, Product: "Top-up", ReturnURL: "https://gate.example/dashboard", ExpiresAt: time.Now().Add(time.Hour),
	})
	if err != nil || made.ID == "" || made.URL == "" || made.ExpiresAt.IsZero() {
		t.Errorf("CreateCheckout = %+v, %v", made, err)
	}
	if found, err := c.Session(t.Context(), key, made.ID); err != nil || found.ID != made.ID || found.Mode == "" {
		t.Errorf("Session = %+v, %v", found, err)
	}
}

// Refunds and disputes have Stripe's shapes: on the wire, in deliveries, and in the
// test kit's processor, which has no member and no type that Stripe's have not.
func TestClaimShapes(t *testing.T) {
	t.Parallel()
	mock := testkit.StripeMock(t)
	c := newClient(mock)
	for _, kind := range []struct {
		object, id string
		read       func(context.Context, string, string) (processor.Claim, error)
	}{{"refund", "re_1PgafmB7WZ01zgkW6dKueIc5", c.Refund}, {"dispute", "du_1Pgc71B7WZ01zgkWMevJiAUx", c.Dispute}} {
		got, err := kind.read(t.Context(), key, kind.id)
		if err != nil || got.ID != kind.id || got.Currency != "usd" || got.Cents <= 0 {
			t.Errorf("%s: %+v, %v", kind.object, got, err)
		}
		raw := fetchAs(t, mock+"/v1/"+kind.object+"s/"+kind.id)
		body := []byte(fmt.Sprintf(`{"id":"evt_1","object":"event","type":"x","livemode":false,"data":{"object":%s}}`, raw))
		signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: "whsec_0123456789abcdef"})
		n, err := processor.ReadNotice(signed.Payload, signed.Header, []string{signed.Secret}, time.Now())
		if err != nil || n.Object != kind.object || n.ObjectID != kind.id || n.SessionID != "" {
			t.Errorf("a delivery about a %s: %+v, %v", kind.object, n, err)
		}
		var stripes, kits map[string]any
		ours, _ := json.Marshal(testkit.PayClaim{ID: kind.id, Object: kind.object, PaymentIntent: "pi_1", Amount: 1, Currency: "usd", Status: "x"})
		if err := errors.Join(json.Unmarshal(raw, &stripes), json.Unmarshal(ours, &kits)); err != nil {
			t.Fatal(err)
		}
		for name, value := range kits {
			theirs, there := stripes[name]
			if !there || theirs != nil && fmt.Sprintf("%T", theirs) != fmt.Sprintf("%T", value) {
				t.Errorf("%s of the test kit's %s is %T, Stripe's %T", name, kind.object, value, theirs)
			}
		}
	}
	if _, _, err := c.SessionOf(t.Context(), key, "pi_1"); err != nil {
		t.Errorf("SessionOf = %v", err)
	}
}

// fetchAs reads an address with the processor's key.
func fetchAs(t *testing.T, url string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, resp.StatusCode, body, err)
	}
	return body
}

func TestReport(t *testing.T) {
	t.Parallel()
	p := testkit.NewProcessor(t, key)
	c := newClient(p.URL)
	for range 2 { // the second is the same try, the third another one
		if err := c.Report(t.Context(), key, event(1)); err != nil {
			t.Errorf("Report = %v", err)
		}
	}
	again := event(1)
	again.Try = "2"
	if err := c.Report(t.Context(), key, again); err != nil {
		t.Errorf("a duplicate: %v", err)
	}
	ledger := p.Ledger()
	if len(ledger) != 1 || ledger[0].Value != 42 || ledger[0].Customer != "cus_1" || ledger[0].Identifier != "usage-1" {
		t.Errorf("ledger %+v", ledger)
	}
	if s := p.Stats(); s.Duplicates != 1 {
		t.Errorf("%+v", s)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:1"
	if err := newClient(nobody).Report(t.Context(), key, event(1)); processor.OutcomeOf(err) != processor.Away || shown(err) != modelgate.Unavailable {
		t.Errorf("nobody there: %v", err)
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		want   processor.Outcome
		shown  modelgate.Kind
		text   string
	}{
		{"cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, processor.Unsure, modelgate.Unavailable, "the processor did not answer"},
		{"500", says(500, `{"error":{"type":"api_error","message":"`+key+`"}}`), processor.Unsure, modelgate.BadGateway, "the processor answered 500: api_error"},
		{"503 of a proxy", says(503, "<html>"), processor.Unsure, modelgate.BadGateway, "the processor answered 503"},
		{"429", says(429, `{"error":{"type":"invalid_request_error","code":"rate_limit"}}`), processor.Again, modelgate.BadGateway, "the processor answered 429: rate_limit"},
		{"409", says(409, `{"error":{"type":"idempotency_error"}}`), processor.Again, modelgate.BadGateway, "the processor answered 409: idempotency_error"},
		{"400", says(400, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"payload[stripe_customer_id]"}}`), processor.Refused, modelgate.BadGateway,
			"the processor answered 400: resource_missing (payload[stripe_customer_id])"},
		{"401", says(401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: ****dp7dc"}}`), processor.Refused, modelgate.BadGateway,
			"the processor answered 401: invalid_request_error"},
		{"a key for a code", says(403, `{"error":{"type":"sk_test_","code":"`+key+`","param":"zdp"}}`), processor.Refused, modelgate.BadGateway, "the processor answered 403"},
		{"302", says(302, ""), processor.Refused, modelgate.BadGateway, "the processor answered 302"},
		{"a duplicate by its code", says(400, `{"error":{"code":"duplicate_meter_event"}}`), processor.Done, "", ""},
		{"a duplicate by its text", says(400, `{"error":{"message":"An event already exists with identifier usage-1."}}`), processor.Done, "", ""},
		{"200 and no JSON", says(200, "ok"), processor.Done, "", ""},
		{"200 and cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, processor.Done, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			defer server.Close()
			err := newClient(server.URL).Report(t.Context(), key, event(1))
			if got := processor.OutcomeOf(err); got != c.want {
				t.Fatalf("%v is %q, want %q", err, got, c.want)
			}
			if err != nil && (shown(err) != c.shown || err.Error() != c.text) {
				t.Errorf("%q shown as %q, want %q as %q", err, shown(err), c.text, c.shown)
			}
		})
	}
}

// An address that is refused is never spoken to.
func TestControl(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a call came in") }))
	defer server.Close()
	refuse := func(string, string, syscall.RawConn) error { return errors.New("not there") }
	client := processor.New(processor.Options{BaseURL: server.URL, Meter: "m", Control: refuse})
	if err := client.Report(t.Context(), key, event(1)); processor.OutcomeOf(err) != processor.Away {
		t.Errorf("%v", err)
	}
}

// A call ends with its time-out. One that is over before the request has left
// has not reached the processor; longer ones follow until one has.
func TestTimeout(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	var err error
	for timeout := 100 * time.Millisecond; ; timeout *= 2 {
		client := processor.New(processor.Options{BaseURL: server.URL, Meter: "m", Timeout: timeout})
		if err = client.Report(t.Context(), key, event(1)); processor.OutcomeOf(err) != processor.Away {
			break
		}
	}
	if processor.OutcomeOf(err) != processor.Unsure || shown(err) != modelgate.Unavailable || err.Error() != "the processor did not answer" {
		t.Errorf("%v is %q", err, processor.OutcomeOf(err))
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if status == 302 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// shown is the kind of error that a client is shown.
func shown(err error) modelgate.Kind {
	e, ok := errors.AsType[*processor.Error](err)
	if !ok {
		return ""
	}
	return e.Shown().Kind
}

// A request whose connection ends is not sent again behind one's back: what
// the second is answered says nothing about the first.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch calls.Add(1) {
		case 1: // so that the connection is used again
			_, _ = io.WriteString(w, "{}")
		case 2:
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	c := newClient(server.URL)
	if err := c.Report(t.Context(), key, event(1)); err != nil {
		t.Fatal(err)
	}
	err := c.Report(t.Context(), key, event(2))
	if processor.OutcomeOf(err) != processor.Unsure || calls.Load() != 2 {
		t.Errorf("%v after %d requests, want unsure after 2", err, calls.Load())
	}
}

// What leaves is the key in its place, and nothing about this machine.
func TestRequest(t *testing.T) {
	t.Parallel()
	var got http.Header
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		got, body = r.Header.Clone(), string(raw)
		_, _ = io.WriteString(w, `{"object":"billing.meter_event"}`)
	}))
	defer server.Close()
	e := processor.Event{ID: "u", Customer: "cus_1", Value: 7, At: time.Unix(1790000000, 0), Try: "3"}
	if err := newClient(server.URL).Report(t.Context(), key, e); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer "+key || got.Get("Idempotency-Key") != "u-3" || got.Get("X-Stripe-Client-User-Agent") != "" {
		t.Errorf("header %v", got)
	}
	const want = "event_name=modelgate_usage_usd&identifier=u&payload[stripe_customer_id]=cus_1&payload[value]=7&timestamp=1790000000"
	if body != want {
		t.Errorf("body %s, want %s", body, want)
	}
}

func TestCustomers(t *testing.T) {
	t.Parallel()
	p := testkit.NewProcessor(t, key)
	c := newClient(p.URL)
	for range 2 {
		id, err := c.CreateCustomer(t.Context(), key, processor.NewCustomer{Name: "Acme", SubAccountID: "sub", Once: "once"})
		if err != nil || id != "cus_1" {
			t.Errorf("CreateCustomer = %q, %v", id, err)
		}
	}
	made := p.Customers()
	if len(made) != 1 || made[0].Get("name") != "Acme" || made[0].Get("metadata[sub_account_id]") != "sub" {
		t.Errorf("customers %v", made)
	}
	if _, err := c.CreateCustomer(t.Context(), key, processor.NewCustomer{Name: "refuse", Once: "x"}); shown(err) != modelgate.BadGateway {
		t.Errorf("refused: %v", err)
	}
}

// An answer of success that lacks what it is for is an answer: 502, not 503.
// A payment that is another's than was asked for is none.
func TestAnswersWithoutMeaning(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(says(200, `{"id":"","url":""}`))
	defer server.Close()
	c := newClient(server.URL)
	_, customer := c.CreateCustomer(t.Context(), key, processor.NewCustomer{Name: "Acme", Once: "o"})
	_, checkout := c.CreateCheckout(t.Context(), key, processor.NewCheckout{OrderID: "o", Cents: 500, Product: "p", ReturnURL: "https://x", ExpiresAt: time.Now()})
	_, session := c.Session(t.Context(), key, "cs_1")
	for name, err := range map[string]error{"customer": customer, "checkout": checkout, "session": session} {
		if processor.OutcomeOf(err) != processor.Unsure || shown(err) != modelgate.BadGateway {
			t.Errorf("%s: %v is %q and shown as %q", name, err, processor.OutcomeOf(err), shown(err))
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"sk_live_1": "true true", "rk_live_1": "true true", "sk_test_1": "false true", "rk_test_1": "false true", "key": "false false", "": "false false",
	} {
		live, known := processor.Live(key)
		if got := fmt.Sprint(live, known); got != want {
			t.Errorf("Live(%q) = %s, want %s", key, got, want)
		}
	}
}
