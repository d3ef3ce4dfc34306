package wallet

import (
	"strings"
	"time"

	"modelgate"
)

const (
	cent = modelgate.USD / 100
	// The bounds of one payment, and the usual ones.
	minPayment, maxPayment           = modelgate.USD, 10_000 * modelgate.USD
	usualMinPayment, usualMaxPayment = 5 * modelgate.USD, 500 * modelgate.USD

	maxNote       = 500 // bytes
	maxExternalID = 128
	maxGrantYears = 10
)

// UsualCheckout are the bounds of payments where a reseller sets none.
func UsualCheckout() Checkout { return Checkout{Min: usualMinPayment, Max: usualMaxPayment} }

// Validate checks what a reseller can set. Errors are bad_request.
func (s *Settings) Validate() error {
	c := s.Checkout
	switch {
	case s.CreditLine < 0 || s.CreditLine > MaxAmount:
		return modelgate.Errorf(modelgate.BadRequest, "credit_line_usd must be from 0 to %s", MaxAmount)
	case s.LowBalance != nil && (*s.LowBalance < 0 || *s.LowBalance > MaxAmount):
		return modelgate.Errorf(modelgate.BadRequest, "low_balance_usd must be from 0 to %s, or null", MaxAmount)
	case s.OnChargeback != Block && s.OnChargeback != Debit:
		return modelgate.Errorf(modelgate.BadRequest, "on_chargeback must be block or debit")
	case c.Min < minPayment || c.Max > maxPayment || c.Min > c.Max || c.Min%cent != 0 || c.Max%cent != 0:
		return modelgate.Errorf(modelgate.BadRequest, "checkout.min_usd and checkout.max_usd must be from %s to %s in whole cents, the first no more than the second", minPayment, maxPayment)
	}
	return nil
}

// Validate checks an entry that a reseller adds at the instant now. That a grant
// expires later than that is checked where the entry is new. Errors are
// bad_request.
func (e *Entry) Validate(now time.Time) error {
	positive := e.Amount > 0 && e.Amount <= MaxAmount
	switch e.Kind {
	case Purchase, GrantKind:
		if !positive {
			return modelgate.Errorf(modelgate.BadRequest, "amount_usd must be more than 0 and at most %s", MaxAmount)
		}
	case Adjustment:
		if !positive && (e.Amount >= 0 || e.Amount < -MaxAmount) {
			return modelgate.Errorf(modelgate.BadRequest, "amount_usd must not be 0 and lie from -%s to %s", MaxAmount, MaxAmount)
		}
	default:
		return modelgate.Errorf(modelgate.BadRequest, "kind must be purchase, grant or adjustment")
	}
	named := len(e.ExternalID) > 0 && len(e.ExternalID) <= maxExternalID && !strings.ContainsFunc(e.ExternalID, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-", r)
	})
	switch {
	case e.ExpiresAt != nil && e.Kind != GrantKind:
		return modelgate.Errorf(modelgate.BadRequest, "only a grant can have expires_at")
	case e.ExpiresAt != nil && e.ExpiresAt.After(now.AddDate(maxGrantYears, 0, 0)):
		return modelgate.Errorf(modelgate.BadRequest, "expires_at must lie at most %d years ahead", maxGrantYears)
	case len(*e.Note) > maxNote:
		return modelgate.Errorf(modelgate.BadRequest, "note must have at most %d bytes", maxNote)
	case !named:
		return modelgate.Errorf(modelgate.BadRequest, "external_id must match [A-Za-z0-9_.:-]{1,%d}", maxExternalID)
	}
	return nil
}
