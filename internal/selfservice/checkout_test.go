package selfservice_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/selfservice"
	"modelgate/test/testkit"
)

const completed = "checkout.session.completed"

// order begins a payment and returns the order's id and the session's.
func (t *till) order(usd string) (id, session string) {
	t.Helper()
	var o struct {
		URL string `json:"checkout_url"`
		ID  string `json:"order_id"`
	}
	t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":`+usd+`}`).into(&o)
	return o.ID, o.URL[strings.LastIndex(o.URL, "/")+1:]
}

func (t *till) deliver(body []byte, signature string) *reply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/processor", strings.NewReader(string(body)))
	r.Header.Set(processor.SignatureHeader, signature)
	return t.send(r)
}

// credited is what a balance has been credited with, and in how many entries.
func (t *till) credited(want string) {
	t.Helper()
	b, entries, err := t.db.Balance(t.Context(), t.client, 100)
	if got := fmt.Sprint(b.Credited, " in ", len(entries)); err != nil || got != want {
		t.Errorf("balance %s, %v, want %s", got, err, want)
	}
}

func prepaid(g *gate) *till {
	g.Helper()
	t := newTill(g)
	t.client = g.client(func(c *modelgate.Client) { c.Billing = modelgate.Manual })
	t.key = g.rootKey(t.client)
	return t
}

// Deliveries come late, again and out of order; the processor signs each try
// anew for three days.
func TestDeliveriesOverTime(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		_, session := t.order("25")
		paid := t.processor.Pay(session)
		body, signature := t.processor.Notice(completed, paid)
		t.at = t.at.Add(5*time.Minute + time.Second)
		t.deliver(body, signature).refused(400, "bad_request", "the delivery is too old")
		t.credited("0 in 0")
		t.at = t.at.Add(72 * time.Hour)
		t.deliver(t.processor.Notice("checkout.session.expired", paid)).want(204, "")
		t.credited("0 in 0")
		body, signature = t.processor.Notice(completed, paid)
		t.deliver(body, signature).want(204, "")
		t.credited("25 in 1")
		t.at = t.at.Add(4 * time.Minute)
		t.deliver(body, signature).want(204, "") // replayed while its signature holds
		t.at = t.at.Add(2 * time.Minute)
		t.deliver(body, signature).refused(400, "bad_request", "the delivery is too old")
		t.deliver(t.processor.Notice("checkout.session.async_payment_succeeded", paid)).want(204, "")
		t.credited("25 in 1")
	})
}

// While the processor cannot be asked, a delivery has to come again.
func TestDeliveryWhileTheProcessorIsAway(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		_, session := t.order("25")
		paid := t.processor.Pay(session)
		there := g.options.Processor
		g.remake(func(o *selfservice.Options) {
			o.Processor = processor.New(processor.Options{BaseURL: nobody, Meter: "m"})
		})
		t.deliver(t.processor.Notice(completed, paid)).refused(503, "unavailable", "the payment cannot be looked at; deliver again")
		t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":10}`).refused(503, "unavailable", "the payment processor does not answer; retry shortly")
		t.credited("0 in 0")
		g.remake(func(o *selfservice.Options) { o.Processor = there })
		t.deliver(t.processor.Notice(completed, paid)).want(204, "")
		t.credited("25 in 1")
		t.processor.Revoke(operatorsKey)
		t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":10}`).refused(502, "bad_gateway", "the processor answered 401: invalid_request_error")
	})
}

// A payment of ours that cannot be looked at is not lost: the operator's key was
// revoked, or is of another account, and a delivery that is taken does not come
// again.
func TestDeliveryUnderAWrongKey(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		order, session := t.order("25")
		paid := t.processor.Pay(session)
		invented := testkit.PaySession{ID: "cs_invented", Object: "checkout.session", ClientReferenceID: order}
		const deliverAgain = "the payment cannot be looked at; deliver again"
		right, there := g.options.Checkout, g.options.Processor
		g.remake(func(o *selfservice.Options) { o.Checkout.Key = "sk_test_revoked" }) // 401
		t.deliver(t.processor.Notice(completed, paid)).refused(503, "unavailable", deliverAgain)
		t.deliver(t.processor.Notice(completed, invented)).want(204, "")
		g.remake(func(o *selfservice.Options) {
			o.Checkout = right
			o.Processor = processor.New(processor.Options{BaseURL: testkit.NewProcessor(t, operatorsKey).URL, Meter: "m"})
		})
		t.deliver(t.processor.Notice(completed, paid)).refused(503, "unavailable", deliverAgain)
		t.deliver(t.processor.Notice(completed, invented)).want(204, "")
		t.credited("0 in 0")
		g.remake(func(o *selfservice.Options) { o.Processor = there })
		t.deliver(t.processor.Notice(completed, invented)).want(204, "")
		t.deliver(t.processor.Notice(completed, paid)).want(204, "")
		t.credited("25 in 1")
	})
}

// Test money is no money, whichever of delivery, payment and key says so.
func TestDeliveryOfAnotherMode(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		_, session := t.order("25")
		paid := t.processor.Pay(session)
		lie := paid
		lie.Livemode = true
		t.deliver(t.processor.Notice(completed, lie)).want(204, "")
		live := t.processor.Alter(session, func(s *testkit.PaySession) { s.Livemode = true })
		t.deliver(t.processor.Notice(completed, paid)).want(204, "")
		t.deliver(t.processor.Notice(completed, live)).want(204, "") // of a key that says test
		t.credited("0 in 0")
		t.processor.Alter(session, func(s *testkit.PaySession) { s.Livemode = false })
		t.deliver(t.processor.Notice(completed, paid)).want(204, "")
		t.credited("25 in 1")
	})
}

// The secrets of before and of now both sign while they change.
func TestDeliveryUnderTwoSecrets(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		const fresh = "whsec_the_secret_of_now"
		g.remake(func(o *selfservice.Options) { o.Checkout.Secrets = []string{fresh, t.processor.Secret} })
		for i, secret := range []string{t.processor.Secret, fresh} {
			_, session := t.order("10")
			body, _ := t.processor.Notice(completed, t.processor.Pay(session))
			t.deliver(body, testkit.SignNotice(secret, body, t.at)).want(204, "")
			t.credited(fmt.Sprint(10*(i+1), " in ", i+1))
		}
		g.remake(func(o *selfservice.Options) { o.Checkout.Secrets = []string{fresh} })
		_, session := t.order("10")
		t.deliver(t.processor.Notice(completed, t.processor.Pay(session))).refused(400, "bad_request", "the signature is missing or wrong")
		t.credited("20 in 2")
	})
}

func TestCheckoutAnswers(t *testing.T) {
	each(t, func(g *gate) {
		t := prepaid(g)
		a := t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":10000}`)
		var o map[string]any
		if a.into(&o); len(o) != 3 || o["checkout_url"] == "" || o["order_id"] == "" || o["expires_at"] == "" {
			t.Errorf("answer %s", a.body)
		}
		for _, amount := range []string{"4.99", "10000.01", "5.001", "0", "-5", `"25"`, "null", "1e400", "true"} {
			t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":`+amount+`}`).refused(400, "bad_request", "")
		}
		invoiced := g.rootKey(g.client(unchanged))
		t.do(invoiced, "POST /gw/billing/checkout", `{"amount_usd":25}`).refused(400, "bad_request", "")
		g.remake(func(o *selfservice.Options) { o.Checkout = selfservice.Checkout{} })
		t.do(t.key, "POST /gw/billing/checkout", `{"amount_usd":25}`).refused(503, "unavailable", "this gateway takes no payments; ask its operator")
		orders := t.count("SELECT COUNT(*) FROM checkout_order")
		if audits := t.count("SELECT COUNT(*) FROM audit WHERE action = 'checkout.create'"); orders != 1 || audits != 1 {
			t.Errorf("%d orders, %d audit records, want 1", orders, audits)
		}
		if raw, err := json.Marshal(o); err != nil || strings.Contains(string(raw), operatorsKey) {
			t.Errorf("the answer holds the operator's key: %s, %v", raw, err)
		}
	})
}
