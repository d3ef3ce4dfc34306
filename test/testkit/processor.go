package testkit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the processor remembers, and the bounds it sets, as Stripe's
// documentation has them.
const (
	processorWindow = 24 * time.Hour
	processorPast   = 35 * 24 * time.Hour
	processorFuture = 5 * time.Minute
	// processorMeter is the meter of the usual configuration.
	processorMeter = "modelgate_usage_usd"
)

// ProcessorFaults are the shares of calls, 0 to 1, that go wrong. A lost
// answer and a 500 come before or after the event was counted, as often the
// one as the other.
type ProcessorFaults struct {
	Lost, Failed, Throttled float64
}

// Counted is an event in the processor's ledger.
type Counted struct {
	Key, Customer, Identifier string
	Value                     int64
	At                        time.Time // when it was counted
	Timestamp                 time.Time // as it claims
}

// Processor is a payment processor that is strict where Stripe is, keeps a
// ledger of what it has counted, forgets after a day, and fails as it is told.
// Safe for concurrent use.
type Processor struct {
	URL string
	// Secret signs its webhooks.
	Secret string

	mu        sync.Mutex
	now       func() time.Time
	faults    ProcessorFaults
	random    *rand.Rand
	keys      map[string]bool
	counted   []Counted
	seen      map[string]time.Time // key/identifier → last counted
	answers   map[string]processorAnswer
	sessions  map[string]*PaySession
	claims    map[string]PayClaim
	busy      map[string]int // calls under way, by customer
	stats     ProcessorStats
	customers []url.Values
}

// ProcessorStats are what has come in.
type ProcessorStats struct {
	Calls, Throttled, Lost, Failed, Refused, Duplicates int
	// MostAtOnce is how many calls for one customer were ever under way at the
	// same time.
	MostAtOnce int
}

// processorAnswer is what the processor replays to an idempotency key.
type processorAnswer struct {
	form   string
	at     time.Time
	status int
	body   any
}

// PaySession is a payment as the processor keeps it; its members are Stripe's.
type PaySession struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	URL               string            `json:"url"`
	ClientReferenceID string            `json:"client_reference_id"`
	Metadata          map[string]string `json:"metadata"`
	Mode              string            `json:"mode"`
	Currency          string            `json:"currency"`
	AmountTotal       int64             `json:"amount_total"`
	Status            string            `json:"status"`
	PaymentStatus     string            `json:"payment_status"`
	PaymentIntent     *string           `json:"payment_intent"`
	Livemode          bool              `json:"livemode"`
	ExpiresAt         int64             `json:"expires_at"`
	SuccessURL        string            `json:"success_url"`
	CancelURL         string            `json:"cancel_url"`
	key               string
}

// NewProcessor starts a processor that knows these keys and ends with the
// test.
func NewProcessor(t testing.TB, keys ...string) *Processor {
	t.Helper()
	p := &Processor{
		Secret: "whsec_0123456789abcdef", now: time.Now, random: rand.New(rand.NewPCG(1, 2)), keys: map[string]bool{},
		seen: map[string]time.Time{}, answers: map[string]processorAnswer{}, sessions: map[string]*PaySession{}, claims: map[string]PayClaim{}, busy: map[string]int{},
	}
	for _, k := range keys {
		p.keys[k] = true
	}
	server := listen(t, p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.URL = server.URL
	return p
}

// Config is the part of a gateway's configuration that makes this its
// processor, with a master key and the operator's own key; YAML for
// GatewayOptions.More.
func (p *Processor) Config(operator string) string {
	return fmt.Sprintf("master_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=\n"+
		"processor: {base_url: %q, api_key: %q, webhook_secret: %q}\n", p.URL, operator, p.Secret)
}

// SetNow sets the processor's clock.
func (p *Processor) SetNow(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// SetFaults makes later calls go wrong.
func (p *Processor) SetFaults(f ProcessorFaults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
}

// Revoke makes a key unknown.
func (p *Processor) Revoke(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

// Ledger is what has been counted, in order.
func (p *Processor) Ledger() []Counted {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.counted)
}

// Customers are the forms of the customers that were made.
func (p *Processor) Customers() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.customers)
}

// Stats are the figures so far.
func (p *Processor) Stats() ProcessorStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Pay marks a payment as made and returns it.
func (p *Processor) Pay(id string) PaySession {
	return p.Alter(id, func(s *PaySession) {
		intent := "pi_" + strings.TrimPrefix(s.ID, "cs_")
		s.Status, s.PaymentStatus, s.PaymentIntent = "complete", "paid", &intent
	})
}

// Alter changes a payment behind everybody's back and returns it.
func (p *Processor) Alter(id string, change func(*PaySession)) PaySession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[id]
	if s == nil {
		s = &PaySession{ID: id, Object: "checkout.session"}
		p.sessions[id] = s
	}
	change(s)
	return *s
}

// Notice is a delivery about a payment: its body and its signature.
func (p *Processor) Notice(kind string, s PaySession) (body []byte, signature string) {
	p.mu.Lock()
	now := p.now()
	p.mu.Unlock()
	body, _ = json.Marshal(map[string]any{ // plain values
		"id": "evt_" + s.ID + "_" + kind, "object": "event", "type": kind, "api_version": "2027-01-01.future",
		"livemode": s.Livemode, "data": map[string]any{"object": s},
	})
	return body, SignNotice(p.Secret, body, now)
}

// SignNotice is the signature of a delivery at an instant.
func SignNotice(secret string, body []byte, at time.Time) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(stamp + "." + string(body))) // a hash never fails
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// ServeHTTP implements http.Handler.
func (p *Processor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	malformed := r.ParseForm()
	if customer := r.PostForm.Get("payload[stripe_customer_id]"); customer != "" {
		p.underWay(key+"/"+customer, 1)
		defer p.underWay(key+"/"+customer, -1)
	}
	status, body := p.serve(key, r, malformed)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the caller is gone: nobody is left to tell
}

// underWay counts the calls for a customer at this moment.
func (p *Processor) underWay(customer string, change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[customer] += change
	p.stats.MostAtOnce = max(p.stats.MostAtOnce, p.busy[customer])
}

// serve is the answer to a call; a status of 0 closes its connection.
func (p *Processor) serve(key string, r *http.Request, malformed error) (int, any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	session, one := strings.CutPrefix(r.URL.Path, "/v1/checkout/sessions/")
	switch {
	case malformed != nil:
		return 400, refusal("invalid_request_error", "", "malformed form", "")
	case !p.keys[key]:
		p.stats.Refused++
		tail := key[max(0, len(key)-4):]
		return 401, refusal("invalid_request_error", "", "Invalid API Key provided: "+strings.Repeat("*", 8)+tail, "")
	case r.Method == http.MethodGet && one:
		return p.session(key, session)
	case r.Method == http.MethodGet:
		return p.claimed(key, r)
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/billing/meter_events":
		return p.report(key, r)
	case "POST /v1/customers":
		return p.once(key, r, p.createCustomer)
	case "POST /v1/checkout/sessions":
		return p.once(key, r, p.createSession)
	}
	return 404, refusal("invalid_request_error", "", "Unrecognized request URL", "")
}

// fault is what becomes of a report.
type fault int

const (
	fine fault = iota
	throttled
	failed
	lost
)

// draw is the fault of a report, and whether it comes after the event was
// counted.
func (p *Processor) draw() (what fault, after bool) {
	p.stats.Calls++
	x := p.random.Float64()
	after = p.random.IntN(2) == 1
	switch f := p.faults; {
	case x < f.Throttled:
		p.stats.Throttled++
		return throttled, after
	case x < f.Throttled+f.Failed:
		p.stats.Failed++
		return failed, after
	case x < f.Throttled+f.Failed+f.Lost:
		p.stats.Lost++
		return lost, after
	}
	return fine, after
}

// report takes an event, or fails to.
func (p *Processor) report(key string, r *http.Request) (int, any) {
	what, after := p.draw()
	switch {
	case what == throttled:
		return 429, refusal("invalid_request_error", "rate_limit", "Too many requests", "")
	case what == lost && !after:
		return 0, nil
	}
	status, body := p.once(key, r, func(key string, form url.Values) (status int, body any) {
		if what != failed || after {
			status, body = p.count(key, form)
		}
		if what == failed {
			return 500, refusal("api_error", "", "An error occurred", "")
		}
		return status, body
	})
	if what == lost {
		return 0, nil
	}
	return status, body
}

// count judges an event and counts it.
func (p *Processor) count(key string, form url.Values) (int, any) {
	now := p.now()
	value, err := strconv.ParseInt(form.Get("payload[value]"), 10, 64)
	stamp, noStamp := strconv.ParseInt(form.Get("timestamp"), 10, 64)
	at, id := time.Unix(stamp, 0), form.Get("identifier")
	refuse := func(code, message, param string) (int, any) {
		p.stats.Refused++
		return 400, refusal("invalid_request_error", code, message, param)
	}
	switch customer := form.Get("payload[stripe_customer_id]"); {
	case form.Get("event_name") != processorMeter:
		return refuse("resource_missing", "No active meter", "event_name")
	case customer == "" || strings.HasPrefix(customer, "cus_gone"):
		return refuse("resource_missing", "No such customer: "+customer, "payload[stripe_customer_id]")
	case err != nil || value < 0:
		return refuse("parameter_invalid_integer", "not a whole number", "payload[value]")
	case id == "" || len(id) > 100:
		return refuse("parameter_invalid", "identifier", "identifier")
	case noStamp != nil || now.Sub(at) > processorPast || at.Sub(now) > processorFuture:
		return refuse("timestamp_invalid", "The timestamp is out of range", "timestamp")
	}
	if last, ok := p.seen[key+"/"+id]; ok && now.Sub(last) < processorWindow {
		p.stats.Duplicates++
		return 400, refusal("invalid_request_error", "", "An event already exists with identifier "+id+".", "identifier")
	}
	p.seen[key+"/"+id] = now
	p.counted = append(p.counted, Counted{key, form.Get("payload[stripe_customer_id]"), id, value, now, at})
	return 200, map[string]any{"object": "billing.meter_event", "identifier": id, "created": now.Unix(), "livemode": false,
		"event_name": processorMeter, "timestamp": stamp, "payload": map[string]string{"value": form.Get("payload[value]")}}
}

// once replays the first answer to an idempotency key, and refuses a call that
// differs from the first. What was turned away is not kept.
func (p *Processor) once(key string, r *http.Request, handle func(string, url.Values) (int, any)) (int, any) {
	name := r.Header.Get("Idempotency-Key")
	if name == "" || len(name) > 255 {
		return 400, refusal("invalid_request_error", "", "Idempotency-Key", "")
	}
	name = key + "/" + r.URL.Path + "/" + name
	form := r.PostForm.Encode()
	if a, ok := p.answers[name]; ok && p.now().Sub(a.at) < processorWindow {
		if a.form != form {
			return 400, refusal("idempotency_error", "", "Keys for idempotent requests can only be used with the same parameters", "")
		}
		return a.status, a.body
	}
	a := processorAnswer{form: form, at: p.now()}
	a.status, a.body = handle(key, r.PostForm)
	if a.status != 400 {
		p.answers[name] = a
	}
	return a.status, a.body
}

func (p *Processor) createCustomer(key string, form url.Values) (int, any) {
	if strings.Contains(form.Get("name"), "refuse") {
		return 402, refusal("invalid_request_error", "", "refused for "+key, "name")
	}
	p.customers = append(p.customers, maps.Clone(form))
	return 200, map[string]any{"id": fmt.Sprintf("cus_%d", len(p.customers)), "object": "customer", "name": form.Get("name")}
}

func (p *Processor) createSession(key string, form url.Values) (int, any) {
	cents, err := strconv.ParseInt(form.Get("line_items[0][price_data][unit_amount]"), 10, 64)
	expires, noExpiry := strconv.ParseInt(form.Get("expires_at"), 10, 64)
	life := time.Unix(expires, 0).Sub(p.now())
	if err != nil || form.Get("line_items[0][quantity]") != "1" || form.Get("success_url") == "" || noExpiry != nil ||
		life < 29*time.Minute || life > 24*time.Hour {
		p.stats.Refused++
		return 400, refusal("invalid_request_error", "parameter_missing", "bad session", "line_items")
	}
	id := fmt.Sprintf("cs_%d", len(p.sessions)+1)
	s := &PaySession{
		ID: id, Object: "checkout.session", URL: p.URL + "/pay/" + id, ClientReferenceID: form.Get("client_reference_id"),
		Metadata: map[string]string{"order_id": form.Get("metadata[order_id]")}, Mode: form.Get("mode"), AmountTotal: cents,
		Currency: form.Get("line_items[0][price_data][currency]"), Status: "open", PaymentStatus: "unpaid",
		Livemode: strings.HasPrefix(key, "sk_live_"), ExpiresAt: expires, SuccessURL: form.Get("success_url"), CancelURL: form.Get("cancel_url"), key: key,
	}
	p.sessions[id] = s
	return 200, *s
}

func (p *Processor) session(key, id string) (int, any) {
	s := p.sessions[id]
	if s == nil || s.key != "" && s.key != key {
		return 404, refusal("invalid_request_error", "resource_missing", "No such session", "session")
	}
	return 200, *s
}

func refusal(kind, code, message, param string) any {
	detail := map[string]string{"type": kind, "message": message}
	for name, value := range map[string]string{"code": code, "param": param} {
		if value != "" {
			detail[name] = value
		}
	}
	return map[string]any{"error": detail}
}
