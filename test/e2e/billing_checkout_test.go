package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// payer is an organization with a prepaid balance.
type payer struct {
	*world
	processor *testkit.Processor
}

func newPayer(t *testing.T, o testkit.GatewayOptions) *payer {
	t.Helper()
	p := testkit.NewProcessor(t, operatorKey)
	o.More += p.Config(operatorKey)
	w := newWorld(t, o)
	w.Admin(nil, "client", "set", string(w.client), "--billing", "manual")
	return &payer{w, p}
}

// order begins a payment and returns the order's id and the session's.
func (p *payer) order(usd string) (order, session string) {
	p.t.Helper()
	answer := p.want(200, "POST /gw/billing/checkout", `{"amount_usd":`+usd+`}`)
	url := answer["checkout_url"].(string)
	return answer["order_id"].(string), url[strings.LastIndex(url, "/")+1:]
}

// deliver sends a delivery of the webhook.
func (p *payer) deliver(body []byte, signature string) int {
	p.t.Helper()
	status, err := postNotice(p.t.Context(), p.URL+"/webhooks/processor", body, signature)
	if err != nil {
		p.t.Fatal(err)
	}
	return status
}

// balance is what was credited, in USD, and in how many entries.
func (p *payer) balance() string {
	p.t.Helper()
	var b struct {
		Credit  json.Number   `json:"credited_usd"`
		Entries []interface{} `json:"entries"`
	}
	p.Admin(&b, "balance", "show", "--client", string(p.client))
	return fmt.Sprint(b.Credit, " in ", len(b.Entries))
}

const (
	completed = "checkout.session.completed"
	later     = "checkout.session.async_payment_succeeded"
)

// TestBillingWebhook credits a payment once, whatever is delivered how often,
// and nothing for anything else.
func TestBillingWebhook(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		p := newPayer(t, testkit.GatewayOptions{Database: database})
		if status, text := p.ask(p.key, "POST /v1/chat/completions", chat); status != 402 {
			t.Errorf("without a balance: %d %s", status, text)
		}
		for _, c := range forgeries() {
			t.Run(c.name, func(t *testing.T) { p.on(t).refused(c) })
		}
		for _, c := range mismatches() {
			t.Run(c.name, func(t *testing.T) { p.on(t).mismatched(c) })
		}
		t.Run("invented", func(t *testing.T) { p.on(t).invented() })
		wantBalance(p, "0 in 0")
		t.Run("genuine", func(t *testing.T) { p.on(t).credited() })
		t.Run("foreign payment", func(t *testing.T) { p.on(t).paidTwice() })
		p.eventually("calls are paid for", time.Minute, func() bool {
			status, _ := p.ask(p.key, "POST /v1/chat/completions", chat)
			return status == 200
		})
		p.settle()
		if stdout, _, code := p.Run("reconcile", "--config", p.ConfigFile); code != 0 {
			t.Errorf("reconcile: exit %d\n%s", code, stdout)
		}
	})
}

// on is the same payer on behalf of a subtest.
func (p *payer) on(t *testing.T) *payer {
	w := *p.world
	w.t, w.Gateway = t, w.For(t)
	return &payer{&w, p.processor}
}

// credited pays, and delivers that in every order and a hundred times.
func (p *payer) credited() {
	_, session := p.order("25")
	look := func() testkit.PaySession { return p.processor.Alter(session, func(*testkit.PaySession) {}) }
	// The bank takes its time: completed and not paid yet.
	if got := p.deliver(p.processor.Notice(completed, look())); got != 204 {
		p.t.Errorf("completed and unpaid: %d", got)
	}
	// A notice that says paid, and a session that is not.
	lie := look()
	lie.PaymentStatus = "paid"
	p.deliver(p.processor.Notice(completed, lie))
	wantBalance(p, "0 in 0")
	body, signature := p.processor.Notice(later, p.processor.Pay(session))
	for range 100 { // replayed
		if got := p.deliver(body, signature); got != 204 {
			p.t.Fatalf("delivery: %d", got)
		}
	}
	p.deliver(p.processor.Notice(completed, look())) // late, and out of order
	wantBalance(p, "25 in 1")
}

// paidTwice delivers the payment of a credited order as that of another.
func (p *payer) paidTwice() {
	before := p.balance()
	_, first := p.order("25")
	paid := p.processor.Pay(first)
	p.deliver(p.processor.Notice(completed, paid))
	_, second := p.order("25")
	p.processor.Pay(second)
	altered := p.processor.Alter(second, func(s *testkit.PaySession) { s.PaymentIntent = paid.PaymentIntent })
	if got := p.deliver(p.processor.Notice(completed, altered)); got != 204 {
		p.t.Errorf("answered %d, want 204", got)
	}
	if before != "25 in 1" {
		p.t.Errorf("balance %s before", before)
	}
	wantBalance(p, "50 in 2")
}

func wantBalance(p *payer, want string) {
	p.t.Helper()
	if got := p.balance(); got != want {
		p.t.Errorf("balance %s, want %s", got, want)
	}
}

// forgery is a delivery that must not be believed, made of a genuine one.
type forgery struct {
	name string
	make func(body []byte, secret string) (altered []byte, signature string)
}

func forgeries() []forgery {
	now := time.Now
	signed := func(secret string, at time.Duration) func([]byte, string) ([]byte, string) {
		return func(body []byte, own string) ([]byte, string) {
			if secret == "its own" {
				secret = own
			}
			return body, testkit.SignNotice(secret, body, now().Add(at))
		}
	}
	return []forgery{
		{"unsigned", func(body []byte, _ string) ([]byte, string) { return body, "" }},
		{"forged with an empty secret", signed("", 0)},
		{"forged with another secret", signed("whsec_another_secret_here", 0)},
		{"stale", signed("its own", -6*time.Minute)},
		{"of the future", signed("its own", 6*time.Minute)},
		{"altered amount in the delivery", func(body []byte, secret string) ([]byte, string) {
			return []byte(strings.Replace(string(body), "2500", "9900", 1)), testkit.SignNotice(secret, body, now())
		}},
		{"replayed under another time", func(body []byte, secret string) ([]byte, string) {
			good := testkit.SignNotice(secret, body, now())
			return body, "t=" + fmt.Sprint(now().Unix()+1) + good[strings.Index(good, ","):]
		}},
	}
}

// refused delivers about a payment that is really in.
func (p *payer) refused(c forgery) {
	before := p.balance()
	_, session := p.order("25")
	genuine, _ := p.processor.Notice(completed, p.processor.Pay(session))
	body, signature := c.make(genuine, p.processor.Secret)
	if got := p.deliver(body, signature); got != 400 {
		p.t.Errorf("answered %d, want 400", got)
	}
	wantBalance(p, before)
}

// mismatch is a payment that is not its order's; the delivery is genuine.
type mismatch struct {
	name  string
	alter func(s *testkit.PaySession, other testkit.PaySession)
}

func mismatches() []mismatch {
	type payment = testkit.PaySession
	return []mismatch{
		{"altered amount", func(s *payment, _ payment) { s.AmountTotal++ }},
		{"altered currency", func(s *payment, _ payment) { s.Currency = "jpy" }},
		{"altered mode", func(s *payment, _ payment) { s.Mode = "subscription" }},
		{"altered from test to real money", func(s *payment, _ payment) { s.Livemode = true }},
		{"foreign order, unknown", func(s *payment, _ payment) { s.ClientReferenceID = "00000000-0000-7000-8000-000000000000" }},
		{"foreign order, a shop's", func(s *payment, _ payment) { s.ClientReferenceID = "order-of-a-shop" }},
		{"foreign order, another payment's", func(s *payment, other payment) { s.ClientReferenceID = other.ClientReferenceID }},
		{"foreign order, none", func(s *payment, _ payment) { s.ClientReferenceID = "" }},
		{"paid without a payment", func(s *payment, _ payment) { s.PaymentIntent = nil }},
		{"paid with nothing", func(s *payment, _ payment) { s.PaymentStatus = "no_payment_required" }},
	}
}

func (p *payer) mismatched(c mismatch) {
	before := p.balance()
	_, other := p.order("10")
	_, session := p.order("10")
	paidOther := p.processor.Pay(other)
	p.processor.Pay(session)
	altered := p.processor.Alter(session, func(s *testkit.PaySession) { c.alter(s, paidOther) })
	if got := p.deliver(p.processor.Notice(completed, altered)); got != 204 {
		p.t.Errorf("answered %d, want 204", got)
	}
	wantBalance(p, before)
}

// invented is a session that claims to be a real order's and is not at the
// processor.
func (p *payer) invented() {
	before := p.balance()
	order, _ := p.order("10")
	forged := testkit.PaySession{ID: "cs_forged", Object: "checkout.session", ClientReferenceID: order}
	if got := p.deliver(p.processor.Notice(completed, forged)); got != 204 {
		p.t.Errorf("answered %d, want 204", got)
	}
	wantBalance(p, before)
}

// TestBillingWebhookNeedsASecret finds no route where none is configured.
func TestBillingWebhookNeedsASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.GatewayOptions{More: fmt.Sprintf("processor: {api_key: %q}\n", operatorKey)})
	p := &payer{w, nil}
	body := []byte(`{"id":"evt","type":"checkout.session.completed"}`)
	if got := p.deliver(body, testkit.SignNotice("", body, time.Now())); got != 404 {
		t.Errorf("a delivery: %d, want 404", got)
	}
	w.Admin(nil, "client", "set", string(w.client), "--billing", "manual")
	if status, text := w.ask(w.key, "POST /gw/billing/checkout", `{"amount_usd":10}`); status != 503 || !strings.Contains(text, `"unavailable"`) {
		t.Errorf("checkout: %d %s", status, text)
	}
	// Nor a master key: a processor key is not kept in clear instead.
	if status, text := w.ask(w.key, "PUT /gw/processor/config", `{"enabled":true,"api_key":"`+sellerKey+`"}`); status != 503 || !strings.Contains(text, `"unavailable"`) {
		t.Errorf("api_key without a master key: %d %s", status, text)
	}
}
