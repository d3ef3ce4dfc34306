package processor

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"
)

// NewCheckout is a payment of one amount.
type NewCheckout struct {
	OrderID   string
	Cents     int64
	Product   string // what the payer reads
	ReturnURL string // where who has paid is sent
	CancelURL string // where who leaves without paying is sent; "" is ReturnURL
	ExpiresAt time.Time
}

// Session is a payment under way, as the processor knows it.
type Session struct {
	ID        string
	URL       string // where the payer is sent
	OrderID   string
	Mode      string // payment
	Currency  string // usd
	Cents     int64
	Paid      bool
	Live      bool   // real money
	PaymentID string // "" until it is paid
	ExpiresAt time.Time
}

func session(s *stripe.CheckoutSession) Session {
	out := Session{
		ID: s.ID, URL: s.URL, OrderID: s.ClientReferenceID, Mode: string(s.Mode), Currency: string(s.Currency), Cents: s.AmountTotal,
		Paid: s.PaymentStatus == stripe.CheckoutSessionPaymentStatusPaid, Live: s.Livemode,
	}
	if s.ExpiresAt > 0 {
		out.ExpiresAt = time.Unix(s.ExpiresAt, 0).UTC()
	}
	if s.PaymentIntent != nil {
		out.PaymentID = s.PaymentIntent.ID
	}
	return out
}

// CreateCheckout begins a payment in US dollars.
func (c *Client) CreateCheckout(ctx context.Context, key string, n NewCheckout) (out Session, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		metadata := map[string]string{"order_id": n.OrderID}
		p := &stripe.CheckoutSessionCreateParams{
			Mode:              stripe.String(string(stripe.CheckoutSessionModePayment)),
			ClientReferenceID: &n.OrderID,
			Metadata:          metadata,
			SuccessURL:        &n.ReturnURL,
			CancelURL:         stripe.String(cmp.Or(n.CancelURL, n.ReturnURL)),
			ExpiresAt:         stripe.Int64(n.ExpiresAt.Unix()),
			PaymentIntentData: &stripe.CheckoutSessionCreatePaymentIntentDataParams{Metadata: metadata},
			LineItems: []*stripe.CheckoutSessionCreateLineItemParams{{
				Quantity: stripe.Int64(1),
				PriceData: &stripe.CheckoutSessionCreateLineItemPriceDataParams{
					Currency:    stripe.String(string(stripe.CurrencyUSD)),
					UnitAmount:  &n.Cents,
					ProductData: &stripe.CheckoutSessionCreateLineItemPriceDataProductDataParams{Name: &n.Product},
				},
			}},
		}
		p.SetIdempotencyKey("gw-order-" + n.OrderID)
		made, err := s.V1CheckoutSessions.Create(ctx, p)
		if err == nil {
			out = session(made)
		}
		return err
	})
	if err == nil && (out.ID == "" || !strings.HasPrefix(out.URL, "http")) {
		err = &Error{Outcome: Unsure, Status: http.StatusOK, text: "the processor's answer names no page to pay on"}
	}
	return out, err
}

// Session reads a payment.
func (c *Client) Session(ctx context.Context, key, id string) (out Session, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		found, err := s.V1CheckoutSessions.Retrieve(ctx, id, nil)
		if err == nil {
			out = session(found)
		}
		return err
	})
	if err == nil && out.ID != id {
		err = &Error{Outcome: Unsure, Status: http.StatusOK, text: "the processor's answer is not the payment that was asked for"}
	}
	return out, err
}

// Live reports whether a key moves real money, and whether its spelling says
// so at all.
func Live(key string) (live, known bool) {
	for _, prefix := range []string{"sk_", "rk_"} {
		switch rest, ok := strings.CutPrefix(key, prefix); {
		case ok && strings.HasPrefix(rest, "live_"):
			return true, true
		case ok && strings.HasPrefix(rest, "test_"):
			return false, true
		}
	}
	return false, false
}
