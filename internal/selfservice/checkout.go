package selfservice

import (
	"context"
	"net/http"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/processor"
	"modelgate/internal/store/spend"
)

// Checkout is how organizations pay into their prepaid balance; the zero value
// offers no payments.
type Checkout struct {
	Key       string   // the operator's, at the processor
	Secrets   []string // that sign the webhook's deliveries
	ReturnURL string   // where a payer is sent afterwards
}

// Offered reports whether payments can be begun and would be credited.
func (c *Checkout) Offered() bool { return c.Key != "" && len(c.Secrets) > 0 }

const (
	cent        modelgate.Nano = 10_000_000
	minCheckout                = 5 * 100 * cent
	maxCheckout                = 10_000 * 100 * cent
	// checkoutLife is how long a payment that was begun can be made.
	checkoutLife = time.Hour
)

// newCheckout is the body of POST /gw/billing/checkout.
type newCheckout struct {
	Amount modelgate.Nano `json:"amount_usd"`
}

func (n *newCheckout) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.Amount < minCheckout || n.Amount > maxCheckout || n.Amount%cent != 0 {
		return modelgate.Errorf(modelgate.BadRequest, "amount_usd must be from 5 to 10000 in whole cents")
	}
	return nil
}

// checkoutView is the answer of POST /gw/billing/checkout.
type checkoutView struct {
	URL       string    `json:"checkout_url"`
	OrderID   string    `json:"order_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// checkout begins a payment. The order is stored first, so that a payment for it
// can be credited even if this process dies before the processor responds.
func (a *API) checkout(ctx context.Context, by actor, in newCheckout) (checkoutView, error) {
	client, err := a.Store.Client(ctx, by.ClientID)
	if err != nil {
		return checkoutView{}, err
	}
	if client.Billing != modelgate.Manual {
		return checkoutView{}, modelgate.Errorf(modelgate.BadRequest, "this organization is invoiced; only prepaid balances are topped up")
	}
	if !a.Checkout.Offered() {
		return checkoutView{}, modelgate.Errorf(modelgate.Unavailable, "this gateway takes no payments; ask its operator")
	}
	now := a.Now()
	o := spend.Order{ID: a.IDs.New().String(), ClientID: by.ClientID, Amount: in.Amount, CreatedAt: now}
	if err := a.Store.CreateOrder(ctx, o, a.audit(by, "checkout.create", "order", o.ID, in)); err != nil {
		return checkoutView{}, err
	}
	s, err := a.Processor.CreateCheckout(ctx, a.Checkout.Key, processor.NewCheckout{
		OrderID: o.ID, Cents: int64(in.Amount / cent), Product: "Balance of " + client.Name, ReturnURL: a.Checkout.ReturnURL,
		ExpiresAt: now.Add(checkoutLife),
	})
	if err != nil {
		return checkoutView{}, shown(err)
	}
	expires := s.ExpiresAt
	if expires.IsZero() {
		expires = now.Add(checkoutLife)
	}
	return checkoutView{s.URL, o.ID, expires.UTC()}, a.Store.SetOrderSession(ctx, o.ID, s.ID)
}

// ServeWebhook answers the processor's deliveries: to the operator
// (POST /webhooks/processor), and to a reseller with its id behind that.
// The content of a delivery credits nothing. It makes the gateway compare its own
// order with the payment as the processor's API returns it. After 204 the
// processor does not deliver again.
func (a *API) ServeWebhook(w http.ResponseWriter, r *http.Request) {
	if err := a.notice(w, r); err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *API) notice(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use POST")
	}
	memory := a.Memory.For("") // no owner: the organization is known once the body is read
	defer memory.Release()
	raw, err := httpx.ReadBody(r, a.MaxBody, &memory)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	signature := r.Header.Get(processor.SignatureHeader)
	if client, ofReseller := strings.CutPrefix(r.URL.Path, "/webhooks/processor/"); ofReseller {
		return a.TopUps.Deliver(ctx, modelgate.ClientID(client), raw, signature)
	}
	n, err := processor.ReadNotice(raw, signature, a.Checkout.Secrets, a.Now())
	if err != nil {
		return err
	}
	if !n.Paid() {
		return nil
	}
	reason, err := a.receive(ctx, n)
	if reason != "" {
		a.Log.Warn("a payment is not credited", "reason", reason, "order_id", n.OrderID, "session_id", n.SessionID, "event_id", n.ID)
	}
	return err
}

// receive credits the payment that a notice names, or returns the reason why
// not. With an error the processor must deliver again.
func (a *API) receive(ctx context.Context, n processor.Notice) (reason string, err error) {
	id, ok := modelgate.ParseUUID(n.OrderID)
	if !ok || id.String() != n.OrderID {
		return "not an order of this gateway", nil
	}
	o, err := a.Store.Order(ctx, n.OrderID)
	switch {
	case modelgate.KindOf(err) == modelgate.NotFound:
		return "no such order", nil
	case err != nil:
		return "", err
	case o.Status == spend.OrderPaid:
		return "", nil // delivered before
	case o.SessionID != "" && o.SessionID != n.SessionID:
		return anothers, nil
	}
	s, err := a.Processor.Session(ctx, a.Checkout.Key, n.SessionID)
	if err != nil {
		// The order may be paid, and the operator's key revoked or of another
		// account. A delivery that is accepted is not repeated.
		return "it cannot be looked at: " + err.Error(), modelgate.Errorf(modelgate.Unavailable, "the payment cannot be looked at; deliver again")
	}
	if reason := a.mismatch(&o, &s, &n); reason != "" {
		return reason, nil
	}
	if !s.Paid {
		return "", nil // it will be, and there will be another delivery
	}
	record := a.audit(actor{Caller: &modelgate.Caller{ClientID: o.ClientID}}, "balance.topup", "client", string(o.ClientID), map[string]any{
		"order_id": o.ID, "payment_id": s.PaymentID, "amount_usd": o.Amount,
	})
	record.Actor = modelgate.Actor{System: true}
	_, err = a.Store.PayOrder(ctx, spend.Payment{OrderID: o.ID, SessionID: s.ID, PaymentID: s.PaymentID}, record)
	if modelgate.KindOf(err) == modelgate.Conflict {
		return "the payment has paid another order", nil
	}
	return "", err
}

const anothers = "the payment is another order's"

// mismatch is how a payment differs from its order, "" where it does not.
func (a *API) mismatch(o *spend.Order, s *processor.Session, n *processor.Notice) string {
	live, known := processor.Live(a.Checkout.Key)
	switch {
	case s.ID != n.SessionID || s.OrderID != o.ID:
		return anothers
	case s.Mode != "payment":
		return "the session is no payment"
	case s.Currency != "usd" || s.Cents != int64(o.Amount/cent):
		return "the amount is not the order's"
	case s.Live != n.Live || known && s.Live != live:
		return "the payment is of another mode"
	case s.Paid && s.PaymentID == "":
		return "the payment has no id"
	}
	return ""
}
