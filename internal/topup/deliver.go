package topup

import (
	"context"
	"strings"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/store/wallet"
)

// errAgain has the processor deliver again.
var errAgain = &modelgate.Error{Kind: modelgate.Unavailable, Message: "the payment cannot be looked at; deliver again"}

// The outcomes of a delivery.
const (
	booked  = "booked"
	again   = "again" // it says what is booked already
	ignored = "ignored"
	refused = "refused" // it is of ours, and does not fit
	failed  = "failed"
)

// Deliver takes a delivery for an organization. Its content changes nothing: it
// makes the gateway ask the processor, with the organization's key, and book what
// that says. Without an error it need not be delivered again. Errors: not_found for
// an organization without a secret; bad_request for a signature that is wrong or too
// old; unavailable where the processor or the database does not answer.
func (s *Service) Deliver(ctx context.Context, client modelgate.ClientID, body []byte, signature string) error {
	secret, err := s.secret(ctx, client)
	if err != nil {
		return err
	}
	n, err := processor.ReadNotice(body, signature, []string{secret}, s.Now())
	if err != nil {
		return err
	}
	outcome, err := s.book(ctx, client, &n)
	if err != nil {
		outcome = failed
	}
	if outcome == refused || err != nil {
		s.Log.Warn("a delivery of a reseller's processor is not booked", "client_id", client, "type", n.Type, "event_id", n.ID, "object_id", n.ObjectID, "error", err)
	}
	if s.Count != nil {
		s.Count(kindOf(&n), outcome)
	}
	return err
}

// kindOf is the kind of thing that a delivery is about.
func kindOf(n *processor.Notice) string {
	switch {
	case n.SessionID != "" && strings.HasPrefix(n.Type, "checkout.session."):
		return "payment"
	case n.Object == "refund" && strings.HasPrefix(n.Type, "refund."):
		return "refund"
	case n.Object == "dispute" && strings.HasPrefix(n.Type, "charge.dispute."):
		return "dispute"
	}
	return "other"
}

func (s *Service) book(ctx context.Context, client modelgate.ClientID, n *processor.Notice) (outcome string, err error) {
	kind := kindOf(n)
	if kind == "other" {
		return ignored, nil
	}
	if kind == "payment" {
		if outcome, err := s.known(ctx, client, n.OrderID); outcome != "" || err != nil {
			return outcome, err
		}
	}
	key, err := s.key(ctx, client)
	if err != nil {
		return "", err
	}
	if live, says := processor.Live(key); says && live != n.Live {
		return refused, nil
	}
	switch kind {
	case "payment":
		paid, err := s.Processor.Session(ctx, key, n.SessionID)
		if err != nil {
			return "", errAgain
		}
		return s.pay(ctx, client, key, &paid, n.Type)
	case "refund":
		c, err := s.Processor.Refund(ctx, key, n.ObjectID)
		return s.claim(ctx, client, key, c, wallet.Claim{}, err)
	}
	c, err := s.Processor.Dispute(ctx, key, n.ObjectID)
	back := n.Type == "charge.dispute.funds_reinstated"
	c.Reversed = c.Reversed || back
	return s.claim(ctx, client, key, c, wallet.Claim{Dispute: true, Reinstated: back}, err)
}

// known is the outcome where an order decides it without the processor.
func (s *Service) known(ctx context.Context, client modelgate.ClientID, id string) (string, error) {
	if u, ok := modelgate.ParseUUID(id); !ok || u.String() != id {
		return ignored, nil
	}
	o, err := s.Store.TopUp(ctx, client, id)
	switch {
	case modelgate.KindOf(err) == modelgate.NotFound:
		return ignored, nil
	case err == nil && o.Status == wallet.OrderPaid:
		return again, nil
	}
	return "", err
}

// pay credits a session's order if it is paid, and closes it if it never will be.
func (s *Service) pay(ctx context.Context, client modelgate.ClientID, key string, paid *processor.Session, event string) (string, error) {
	if outcome, err := s.known(ctx, client, paid.OrderID); outcome != "" || err != nil {
		return outcome, err
	}
	o, err := s.Store.TopUp(ctx, client, paid.OrderID)
	if err != nil {
		return "", err
	}
	live, says := processor.Live(key)
	if o.SessionID != "" && o.SessionID != paid.ID || paid.Mode != "payment" || paid.Currency != "usd" || paid.Cents != int64(o.Amount/cent) ||
		says && live != paid.Live || paid.Paid && paid.PaymentID == "" {
		return refused, nil
	}
	if !paid.Paid {
		if event == "checkout.session.expired" || event == "checkout.session.async_payment_failed" {
			closed, err := s.Store.CloseTopUp(ctx, client, o.ID)
			if closed {
				s.count(Closed)
			}
			return booked, err
		}
		return ignored, nil // it will be, and there will be another delivery
	}
	did, err := s.Store.PayTopUp(ctx, o, paid.ID, paid.PaymentID, s.audit(&o, "wallet.topup", map[string]any{"payment_id": paid.PaymentID, "amount_usd": o.Amount}))
	switch {
	case modelgate.KindOf(err) == modelgate.Conflict:
		return refused, nil
	case err != nil:
		return "", err
	case did:
		s.count(Paid)
		return booked, nil
	}
	return again, nil
}

// claim books a refund or a dispute. It may be delivered before the payment is: then
// the payment is booked first.
func (s *Service) claim(ctx context.Context, client modelgate.ClientID, key string, c processor.Claim, to wallet.Claim, err error) (string, error) {
	if err != nil {
		return "", errAgain
	}
	if c.PaymentID == "" || c.Void {
		return ignored, nil
	}
	o, err := s.Store.TopUpByPayment(ctx, client, c.PaymentID)
	if modelgate.KindOf(err) == modelgate.NotFound {
		paid, found, err := s.Processor.SessionOf(ctx, key, c.PaymentID)
		if err != nil {
			return "", errAgain
		}
		if !found {
			return ignored, nil
		}
		if outcome, err := s.pay(ctx, client, key, &paid, ""); err != nil || outcome != booked && outcome != again {
			return outcome, err
		}
		if o, err = s.Store.TopUpByPayment(ctx, client, c.PaymentID); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	if c.Currency != "usd" || c.Cents <= 0 {
		return refused, nil
	}
	to.ID, to.Amount, to.Reversed = c.ID, modelgate.Nano(c.Cents)*cent, c.Reversed
	changed, err := s.Store.Apply(ctx, o, to, func(action string) modelgate.Audit {
		return s.audit(&o, action, map[string]any{"processor_id": c.ID, "amount_usd": to.Amount})
	})
	if err != nil || changed {
		return booked, err
	}
	return again, nil
}
