// Package topup has end customers pay into their wallets: at the payment processor
// of their reseller, with the reseller's own key, whose deliveries say what became
// of the payments, of their refunds and of disputes about them.
package topup

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/wallet"
)

// Service begins payments and takes the processor's deliveries. Safe for concurrent
// use.
type Service struct {
	Store     *store.DB
	Processor *processor.Client
	Master    *secrets.Keys // nil is no master key
	IDs       *modelgate.IDs
	Now       func() time.Time
	Log       *slog.Logger
	Base      string // address of the gateway, without a path
	// Count is told what became of a delivery, by its type; nil for nobody.
	Count func(kind, outcome string)
	// CountTopUp is told what became of a payment; nil for nobody.
	CountTopUp func(Outcome)
}

// Outcome is what became of a payment of a customer.
type Outcome string

// The outcomes. What was begun ends as paid or closed, or stays open until it has
// expired.
const (
	Started Outcome = "begun"
	Failed  Outcome = "failed" // could not be begun: the processor refused it or did not answer
	Paid    Outcome = "paid"
	Closed  Outcome = "closed" // expired, or the customer's bank refused it
)

// Outcomes are all of them.
func Outcomes() []Outcome { return []Outcome{Started, Failed, Paid, Closed} }

func (s *Service) count(o Outcome) {
	if s.CountTopUp != nil {
		s.CountTopUp(o)
	}
}

const (
	cent modelgate.Nano = modelgate.USD / 100
	// life is how long a payment that was begun can be made.
	life = time.Hour
)

// errNotSetUp answers where the reseller's side is missing.
var errNotSetUp = &modelgate.Error{Kind: modelgate.Unavailable, Message: "payments are not set up: the processor's key or the secret of its webhook is missing"}

// Place is where the secret of an organization's webhook is stored.
func Place(client modelgate.ClientID) secrets.Place {
	return secrets.Place{Table: store.SecretTable, Row: billing.WebhookSecret(client), Column: store.SecretColumn}
}

// WebhookURL is where an organization has its processor deliver to.
func (s *Service) WebhookURL(client modelgate.ClientID) string {
	return s.Base + "/webhooks/processor/" + string(client)
}

// PutSecret stores the secret that signs the deliveries for an organization; ""
// removes it. Errors: unavailable without a master key.
func (s *Service) PutSecret(ctx context.Context, client modelgate.ClientID, secret string, a modelgate.Audit) error {
	if secret == "" {
		return s.Store.PutWebhookSecret(ctx, client, "", nil, a)
	}
	sealed, err := s.Master.Seal(Place(client), []byte(secret))
	if err != nil {
		return err
	}
	return s.Store.PutWebhookSecret(ctx, client, s.Master.Primary(), sealed, a)
}

// secret is what signs the deliveries for an organization. Errors: not_found.
func (s *Service) secret(ctx context.Context, client modelgate.ClientID) (string, error) {
	sealed, err := s.Store.Secret(ctx, billing.WebhookSecret(client))
	if err != nil {
		return "", err
	}
	text, err := s.Master.Open(Place(client), sealed.Value)
	return string(text), err
}

// Configured reports whether an organization has left a secret.
func (s *Service) Configured(ctx context.Context, client modelgate.ClientID) (bool, error) {
	_, err := s.Store.Secret(ctx, billing.WebhookSecret(client))
	if modelgate.KindOf(err) == modelgate.NotFound {
		return false, nil
	}
	return err == nil, err
}

// key opens the key that an organization has left for its processor.
func (s *Service) key(ctx context.Context, client modelgate.ClientID) (string, error) {
	sealed, err := s.Store.ProcessorKey(ctx, client)
	if modelgate.KindOf(err) == modelgate.BadRequest {
		return "", errNotSetUp
	}
	if err != nil {
		return "", err
	}
	text, err := s.Master.Open(secrets.Place{Table: store.SecretTable, Row: billing.ProcessorSecret(client), Column: store.SecretColumn}, sealed.Value)
	return string(text), err
}

// Begun is a payment that was begun.
type Begun struct {
	URL       string    `json:"checkout_url"`
	OrderID   string    `json:"order_id"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Begin begins a payment into a wallet. The order is stored first, so that a
// payment for it can be credited even if this process dies before the processor
// responds. Errors: bad_request for an amount out of bounds; forbidden where
// payments are not offered; rate_limited for too many that are open; unavailable
// where the reseller has not set up its processor.
func (s *Service) Begin(ctx context.Context, id wallet.ID, amount modelgate.Nano, audit func(order string) modelgate.Audit) (Begun, error) {
	if amount <= 0 || amount%cent != 0 {
		return Begun{}, modelgate.Errorf(modelgate.BadRequest, "amount_usd must be in whole cents")
	}
	key, err := s.key(ctx, id.ClientID)
	if err != nil {
		return Begun{}, err
	}
	if _, err := s.secret(ctx, id.ClientID); modelgate.KindOf(err) == modelgate.NotFound {
		return Begun{}, errNotSetUp
	} else if err != nil {
		return Begun{}, err
	}
	shop, err := s.Store.Branding(ctx, id.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return Begun{}, err
	}
	now := s.Now()
	o := wallet.Order{ID: s.IDs.New().String(), Wallet: id, Amount: amount, CreatedAt: now, ExpiresAt: now.Add(life)}
	if err := s.Store.CreateTopUp(ctx, o, audit(o.ID)); err != nil {
		return Begun{}, err
	}
	page := processor.NewCheckout{OrderID: o.ID, Cents: int64(amount / cent), Product: "Prepaid balance", ReturnURL: s.Base + "/", ExpiresAt: o.ExpiresAt}
	if shop.PortalSlug != "" {
		back := s.Base + "/p/" + shop.PortalSlug + "/wallet"
		page.Product, page.ReturnURL, page.CancelURL = "Balance at "+shop.ProductName, back+"?payment=made", back+"?payment=left"
	}
	made, err := s.Processor.CreateCheckout(ctx, key, page)
	if err != nil { // nobody learns where to pay; what is paid all the same is credited
		s.count(Failed)
		_, notClosed := s.Store.CloseTopUp(context.WithoutCancel(ctx), id.ClientID, o.ID)
		return Begun{}, cmp.Or(notClosed, err)
	}
	s.count(Started)
	if !made.ExpiresAt.IsZero() {
		o.ExpiresAt = made.ExpiresAt
	}
	return Begun{made.URL, o.ID, o.ExpiresAt.UTC()}, s.Store.SetTopUpSession(ctx, id.ClientID, o.ID, made.ID, o.ExpiresAt)
}

// audit makes the record of what a delivery has changed.
func (s *Service) audit(o *wallet.Order, action string, set map[string]any) modelgate.Audit {
	set["order_id"] = o.ID
	change, _ := json.Marshal(set) // plain values always marshal
	return modelgate.Audit{ID: s.IDs.New().String(), At: s.Now(), ClientID: o.Wallet.ClientID, Action: action, Actor: modelgate.Actor{System: true},
		TargetType: "sub_account", TargetID: string(o.Wallet.SubAccountID), Change: change}
}
