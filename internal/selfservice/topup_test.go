package selfservice_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/selfservice"
	"modelgate/internal/store/wallet"
	"modelgate/internal/topup"
	"modelgate/test/testkit"
)

var full = flag.Bool("full", false, "run at the size that the documentation states")

// purse is a till whose customer has a wallet.
type purse struct {
	*till
	customerKey string
	outcomes    map[topup.Outcome]int
	random      *rand.Rand
}

func newPurse(g *gate) *purse {
	g.Helper()
	t := newTill(g)
	p := &purse{till: t, random: rand.New(rand.NewPCG(3, 4)), outcomes: map[topup.Outcome]int{}}
	g.remake(func(o *selfservice.Options) {
		o.TopUps = &topup.Service{Store: o.Store, Processor: o.Processor, Master: o.Master, IDs: o.IDs, Now: o.Now, Log: o.Log, Base: "http://gate.example",
			CountTopUp: func(o topup.Outcome) { p.outcomes[o]++ }}
	})
	p.customerKey = g.key(t.client, func(k *modelgate.Key) { k.SubAccountID = t.sub })
	return p
}

func (p *purse) setUp(more string) {
	p.Helper()
	p.configure()
	p.do(p.key, "PUT /gw/processor/webhook", fmt.Sprintf(`{"secret":%q}`, p.processor.Secret)).want(204, "")
	p.do(p.key, "PUT /gw/wallets/"+string(p.sub), `{"enabled":true`+more+`,"checkout":{"enabled":true}}`).want(204, "")
}

// begin begins a payment and returns the session's id.
func (p *purse) begin(usd int) string {
	p.Helper()
	var o struct {
		URL string `json:"checkout_url"`
	}
	p.do(p.customerKey, "POST /gw/wallet/checkout", fmt.Sprintf(`{"amount_usd":%d}`, usd)).into(&o)
	return o.URL[strings.LastIndex(o.URL, "/")+1:]
}

// post delivers to the organization's webhook.
func (p *purse) post(body []byte, signature string) *reply {
	p.Helper()
	r := httptest.NewRequestWithContext(p.Context(), http.MethodPost, "/webhooks/processor/"+string(p.client), strings.NewReader(string(body)))
	r.Header.Set(processor.SignatureHeader, signature)
	return p.send(r)
}

func (p *purse) balance(want modelgate.Nano) {
	p.Helper()
	w, err := p.db.Wallet(p.Context(), wallet.ID{ClientID: p.client, SubAccountID: p.sub})
	if err != nil || w.Balance != want {
		p.Errorf("balance %s, %v, want %s", w.Balance, err, want)
	}
	found, err := p.db.Reconcile(p.Context(), "")
	if err != nil || len(found) > 0 {
		p.Errorf("reconcile finds %v, %v", found, err)
	}
}

func TestTopUp(t *testing.T) {
	each(t, func(g *gate) {
		p := newPurse(g)
		p.post([]byte(`{}`), "t=1,v1=00").refused(404, "not_found", "secret not found")
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":25}`).refused(503, "unavailable", "payments are not set up: the processor's key or the secret of its webhook is missing")
		p.configure()
		p.do(p.key, "PUT /gw/processor/webhook", `{"secret":"short"}`).refused(400, "bad_request", "secret must be what the processor shows for its webhook endpoint, at least 16 bytes, or empty to remove it")
		p.do(p.key, "PUT /gw/processor/webhook", fmt.Sprintf(`{"secret":%q}`, p.processor.Secret)).want(204, "")
		p.do(p.key, "GET /gw/processor/webhook", "").want(200, fmt.Sprintf(`{"url":"http://gate.example/webhooks/processor/%s","configured":true}`, p.client))
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":25}`).refused(403, "forbidden", "payments are not offered to this customer")
		p.setUp("")
		p.do(p.key, "POST /gw/wallet/checkout", `{"amount_usd":25}`).refused(403, "forbidden", "only a key bound to a sub-account has a wallet")
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":1}`).refused(400, "bad_request", "amount_usd must be from 5 to 500 in whole cents")
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":25.001}`).refused(400, "bad_request", "amount_usd must be in whole cents")
		session := p.begin(25)
		paid := p.processor.Pay(session)
		body, _ := p.processor.Notice(completed, paid)
		p.post(body, testkit.SignNotice("whsec_of-somebody-else", body, p.at)).refused(400, "bad_request", "the signature is missing or wrong")
		p.balance(0)
		cheaper := p.processor.Alter(p.begin(30), func(s *testkit.PaySession) {
			intent := "pi_cheaper"
			s.Status, s.PaymentStatus, s.PaymentIntent, s.AmountTotal = "complete", "paid", &intent, 500
		})
		p.post(p.processor.Notice(completed, cheaper)).want(204, "") // a coupon: not the order's amount
		p.balance(0)
		p.post(p.processor.Notice(completed, paid)).want(204, "")
		p.post(p.processor.Notice(completed, paid)).want(204, "")
		p.balance(25 * modelgate.USD)
		expired := p.processor.Alter(p.begin(40), func(s *testkit.PaySession) { s.Status = "expired" })
		p.post(p.processor.Notice("checkout.session.expired", expired)).want(204, "")
		for range 9 {
			p.begin(5)
		}
		p.post(p.processor.Notice("checkout.session.expired", expired)).want(204, "")
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":5}`).refused(429, "rate_limited", "10 payments are open; complete one or wait until it expires")
		// A dispute blocks until the reseller lifts it; won, it comes back.
		d := p.processor.Claim(testkit.PayClaim{ID: "dp_1", Object: "dispute", PaymentIntent: *paid.PaymentIntent, Amount: 2500, Status: "needs_response"})
		p.post(p.processor.ClaimNotice("charge.dispute.created", d)).want(204, "")
		p.balance(0)
		d.Status = "won"
		p.processor.Claim(d)
		p.post(p.processor.ClaimNotice("charge.dispute.closed", d)).want(204, "")
		p.balance(25 * modelgate.USD)
		if w, err := p.db.Wallet(p.Context(), wallet.ID{ClientID: p.client, SubAccountID: p.sub}); err != nil || !w.Blocked {
			t.Errorf("blocked %v, %v, want until the reseller lifts it", w.Blocked, err)
		}
		if want := map[topup.Outcome]int{topup.Started: 12, topup.Paid: 1, topup.Closed: 1}; !maps.Equal(p.outcomes, want) {
			t.Errorf("counted %v, want %v", p.outcomes, want)
		}
	})
}

// A payment that the processor does not begin is counted as such.
func TestTopUpNotBegun(t *testing.T) {
	each(t, func(g *gate) {
		p := newPurse(g)
		p.setUp("")
		p.processor.Revoke(sellersKey)
		p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":5}`).refused(502, "bad_gateway", "the processor answered 401: invalid_request_error")
		if want := map[topup.Outcome]int{topup.Failed: 1}; !maps.Equal(p.outcomes, want) {
			t.Errorf("counted %v, want %v", p.outcomes, want)
		}
	})
}

// TestTopUpDeliveriesInAnyOrder pays orders, refunds and disputes parts of them, and
// delivers all of that three times and shuffled: what is booked is what the
// processor says in the end, at most what each order has paid.
func TestTopUpDeliveriesInAnyOrder(t *testing.T) {
	orders := 60
	if *full {
		orders = 5000
	}
	each(t, func(g *gate) {
		p := newPurse(g)
		p.setUp(`,"on_chargeback":"debit"`)
		var want modelgate.Nano
		for done := 0; done < orders; {
			var deliveries []func()
			for range min(6, orders-done) {
				done++
				cents := p.random.IntN(100)*100 + 500
				paid := p.processor.Pay(p.begin(cents / 100))
				deliveries = append(deliveries, func() { p.post(p.processor.Notice(completed, paid)).want(204, "") })
				open := 0
				for i := range p.random.IntN(4) {
					c := testkit.PayClaim{ID: fmt.Sprintf("re_%d_%d", done, i), Object: "refund", PaymentIntent: *paid.PaymentIntent, Amount: int64(1 + p.random.IntN(cents)), Status: "succeeded"}
					events := []string{"refund.created", "refund.updated"}
					switch p.random.IntN(4) {
					case 0:
						c.Status = "failed"
						events = append(events, "refund.failed")
					case 1:
						c.ID, c.Object, c.Status = fmt.Sprintf("dp_%d_%d", done, i), "dispute", "lost"
						events = []string{"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.closed"}
					case 2:
						c.ID, c.Object, c.Status = fmt.Sprintf("dp_%d_%d", done, i), "dispute", "won"
						events = []string{"charge.dispute.created", "charge.dispute.funds_reinstated", "charge.dispute.closed"}
					}
					if c.Status == "succeeded" || c.Status == "lost" {
						open += int(c.Amount)
					}
					last := c
					if p.random.IntN(2) == 0 { // booked first as it was at the beginning
						early := c
						if early.Status = "pending"; c.Object == "dispute" {
							early.Status = "under_review"
						}
						p.processor.Claim(early)
						first := events[0]
						p.post(p.processor.ClaimNotice(first, early)).want(204, "")
					}
					p.processor.Claim(last)
					for _, event := range events {
						deliveries = append(deliveries, func() { p.post(p.processor.ClaimNotice(event, last)).want(204, "") })
					}
				}
				want += modelgate.Nano(cents-min(open, cents)) * modelgate.USD / 100
			}
			deliveries = append(append(deliveries, deliveries...), deliveries...)
			p.random.Shuffle(len(deliveries), func(i, j int) { deliveries[i], deliveries[j] = deliveries[j], deliveries[i] })
			for _, deliver := range deliveries {
				deliver()
			}
		}
		p.balance(want)
	})
}

// The processor may state another amount when it closes a dispute than when it
// opened it. What comes back is what was taken.
func TestReversedClaimGivesBackWhatItTook(t *testing.T) {
	each(t, func(g *gate) {
		p := newPurse(g)
		p.setUp(`,"on_chargeback":"debit"`)
		var want modelgate.Nano
		for _, last := range []int64{400, 1600} { // cents
			paid := p.processor.Pay(p.begin(25))
			p.post(p.processor.Notice(completed, paid)).want(204, "")
			d := testkit.PayClaim{ID: fmt.Sprintf("dp_%d", last), Object: "dispute", PaymentIntent: *paid.PaymentIntent, Amount: 1000, Status: "needs_response"}
			p.processor.Claim(d)
			p.post(p.processor.ClaimNotice("charge.dispute.created", d)).want(204, "")
			p.balance(want + 15*modelgate.USD)
			d.Amount, d.Status = last, "won"
			p.processor.Claim(d)
			p.post(p.processor.ClaimNotice("charge.dispute.closed", d)).want(204, "")
			want += 25 * modelgate.USD
			p.balance(want)
		}
	})
}

// A payment that could not begin does not count as open: customers can pay as soon
// as the processor answers again.
func TestPaymentsThatCouldNotBeginAreNotOpen(t *testing.T) {
	each(t, func(g *gate) {
		p := newPurse(g)
		p.setUp("")
		p.do(p.key, "PUT /gw/processor/config", `{"enabled":true,"api_key":"sk_unknown"}`).want(204, "")
		for range 10 {
			if got := p.do(p.customerKey, "POST /gw/wallet/checkout", `{"amount_usd":5}`); got.status < 500 {
				t.Fatalf("answered %d without a processor", got.status)
			}
		}
		p.configure()
		p.begin(5)
	})
}
