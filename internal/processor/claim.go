package processor

import (
	"context"
	"net/http"

	"github.com/stripe/stripe-go/v85"
)

// Claim is a refund or a dispute of a payment, as the processor knows it.
type Claim struct {
	ID        string
	PaymentID string // "" where it is not of a payment of ours
	Currency  string
	Cents     int64
	// Void: it takes nothing, since it is a warning or was prevented. Reversed: what
	// it took came back.
	Void, Reversed bool
}

// Refund reads a refund.
func (c *Client) Refund(ctx context.Context, key, id string) (out Claim, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		r, err := s.V1Refunds.Retrieve(ctx, id, nil)
		if err == nil {
			out = claim(r.ID, r.PaymentIntent, r.Currency, r.Amount)
			out.Reversed = r.Status == stripe.RefundStatusFailed || r.Status == stripe.RefundStatusCanceled
		}
		return err
	})
	return out, same(out.ID, id, err)
}

// Dispute reads a dispute.
func (c *Client) Dispute(ctx context.Context, key, id string) (out Claim, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		d, err := s.V1Disputes.Retrieve(ctx, id, nil)
		if err != nil {
			return err
		}
		out = claim(d.ID, d.PaymentIntent, d.Currency, d.Amount)
		switch d.Status {
		case stripe.DisputeStatusWon:
			out.Reversed = true
		case stripe.DisputeStatusWarningNeedsResponse, stripe.DisputeStatusWarningUnderReview, stripe.DisputeStatusWarningClosed, stripe.DisputeStatusPrevented:
			out.Void = true
		}
		return nil
	})
	return out, same(out.ID, id, err)
}

func claim(id string, payment *stripe.PaymentIntent, currency stripe.Currency, cents int64) Claim {
	c := Claim{ID: id, Currency: string(currency), Cents: cents}
	if payment != nil {
		c.PaymentID = payment.ID
	}
	return c
}

// same refuses an answer that is about something else.
func same(got, asked string, err error) error {
	if err == nil && got != asked {
		err = &Error{Outcome: Unsure, Status: http.StatusOK, text: "the processor's answer is not what was asked for"}
	}
	return err
}

// SessionOf finds the session that a payment has paid; false where it is of none.
func (c *Client) SessionOf(ctx context.Context, key, payment string) (out Session, found bool, err error) {
	err = c.call(ctx, key, func(ctx context.Context, s *stripe.Client) error {
		p := &stripe.CheckoutSessionListParams{PaymentIntent: &payment}
		p.Limit = stripe.Int64(1)
		for one, err := range s.V1CheckoutSessions.List(ctx, p).All(ctx) {
			if err != nil {
				return err
			}
			out, found = session(one), true
			break
		}
		return nil
	})
	return out, found && out.PaymentID == payment, err
}
