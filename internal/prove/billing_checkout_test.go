package prove

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate/internal/gatetest"
)

// payer is an organization with a prepaid balance.
type payer struct {
	*world
	processor *gatetest.Processor
}

func newPayer(t *testing.T, o gatetest.GatewayOptions) *payer {
	t.Helper()
	p := gatetest.NewProcessor(t, operatorKey)
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
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.URL+"/webhooks/processor", strings.NewReader(string(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if signature != "" {
		r.Header.Set("Stripe-Signature", signature)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
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

// TestBillingWebhook credits a payment once, whatever is delivered how often,
// and nothing for anything else.
func TestBillingWebhook(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		p := newPayer(t, gatetest.GatewayOptions{Database: database})
		if status, text := p.ask(p.key, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`); status != 402 {
			t.Errorf("without a balance: %d %s", status, text)
		}
		const completed, later = "checkout.session.completed", "checkout.session.async_payment_succeeded"
		_, session := p.order("25")
		look := func() gatetest.PaySession { return p.processor.Alter(session, func(*gatetest.PaySession) {}) }
		// The bank takes its time: completed and not paid yet.
		if got := p.deliver(p.processor.Notice(completed, look())); got != 204 {
			t.Errorf("completed and unpaid: %d", got)
		}
		// A notice that says paid, and a session that is not.
		lie := look()
		lie.PaymentStatus = "paid"
		p.deliver(p.processor.Notice(completed, lie))
		wantBalance(p, "0 in 0")

		real := p.processor.Pay(session)
		body, signature := p.processor.Notice(later, real)
		p.refusals(body)
		wantBalance(p, "0 in 0")
		for range 100 {
			if got := p.deliver(body, signature); got != 204 {
				t.Fatalf("delivery: %d", got)
			}
		}
		p.deliver(p.processor.Notice(completed, real)) // late, and out of order
		wantBalance(p, "25 in 1")
		p.eventually("calls are paid for", 10*time.Second, func() bool {
			status, _ := p.ask(p.key, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`)
			return status == 200
		})
		p.mismatches()
		p.settle()
		if stdout, _, code := p.Run("reconcile", "--config", p.ConfigFile); code != 0 {
			t.Errorf("reconcile: exit %d\n%s", code, stdout)
		}
	})
}

func wantBalance(p *payer, want string) {
	p.t.Helper()
	if got := p.balance(); got != want {
		p.t.Errorf("balance %s, want %s", got, want)
	}
}

// refusals are deliveries that must not be believed.
func (p *payer) refusals(body []byte) {
	p.t.Helper()
	now := time.Now()
	good := gatetest.SignNotice(p.processor.Secret, body, now)
	altered := []byte(strings.Replace(string(body), "2500", "9900", 1))
	for name, c := range map[string]struct {
		body      []byte
		signature string
	}{
		"unsigned":                    {body, ""},
		"signed with an empty secret": {body, gatetest.SignNotice("", body, now)},
		"signed with another secret":  {body, gatetest.SignNotice("whsec_another_secret_here", body, now)},
		"stale":                       {body, gatetest.SignNotice(p.processor.Secret, body, now.Add(-6*time.Minute))},
		"of the future":               {body, gatetest.SignNotice(p.processor.Secret, body, now.Add(6*time.Minute))},
		"altered":                     {altered, good},
		"with another time":           {body, "t=" + fmt.Sprint(now.Unix()+1) + good[strings.Index(good, ","):]},
	} {
		if got := p.deliver(c.body, c.signature); got != 400 {
			p.t.Errorf("%s: %d, want 400", name, got)
		}
	}
}

// mismatches are signed deliveries about payments that are not their orders'.
func (p *payer) mismatches() {
	p.t.Helper()
	before := p.balance()
	_, other := p.order("5")
	paidOther := p.processor.Pay(other)
	for name, alter := range map[string]func(*gatetest.PaySession){
		"amount":       func(s *gatetest.PaySession) { s.AmountTotal++ },
		"currency":     func(s *gatetest.PaySession) { s.Currency = "jpy" },
		"mode":         func(s *gatetest.PaySession) { s.Mode = "subscription" },
		"real money":   func(s *gatetest.PaySession) { s.Livemode = true },
		"no such":      func(s *gatetest.PaySession) { s.ClientReferenceID = "00000000-0000-7000-8000-000000000000" },
		"no order":     func(s *gatetest.PaySession) { s.ClientReferenceID = "order-of-a-shop" },
		"another's":    func(s *gatetest.PaySession) { s.ClientReferenceID = paidOther.ClientReferenceID },
		"no payment":   func(s *gatetest.PaySession) { s.PaymentIntent = nil },
		"other status": func(s *gatetest.PaySession) { s.PaymentStatus = "no_payment_required" },
	} {
		_, session := p.order("10")
		p.processor.Pay(session)
		altered := p.processor.Alter(session, alter)
		if got := p.deliver(p.processor.Notice("checkout.session.completed", altered)); got != 204 {
			p.t.Errorf("%s: %d, want 204", name, got)
		}
		if got := p.balance(); got != before {
			p.t.Errorf("%s: balance %s, want %s", name, got, before)
		}
	}
	// A session that only claims to be an order's is not at the processor.
	forged := gatetest.PaySession{ID: "cs_forged", Object: "checkout.session", ClientReferenceID: paidOther.ClientReferenceID}
	p.deliver(p.processor.Notice("checkout.session.completed", forged))
	if got := p.balance(); got != before {
		p.t.Errorf("forged: balance %s, want %s", got, before)
	}
}

// TestBillingWebhookNeedsASecret finds no route where none is configured.
func TestBillingWebhookNeedsASecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gatetest.GatewayOptions{More: fmt.Sprintf("processor: {api_key: %q}\n", operatorKey)})
	p := &payer{w, nil}
	body := []byte(`{"id":"evt","type":"checkout.session.completed"}`)
	if got := p.deliver(body, gatetest.SignNotice("", body, time.Now())); got != 404 {
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
