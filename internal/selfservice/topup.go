package selfservice

import (
	"context"
	"strings"

	"modelgate"
	"modelgate/internal/topup"
)

// topUp begins a payment into the customer's wallet.
func (a *API) topUp(ctx context.Context, by actor, in newTopUp) (topup.Begun, error) {
	if by.SubAccountID == "" {
		return topup.Begun{}, errUnbound
	}
	begun, err := a.TopUps.Begin(ctx, by.walletOf(by.SubAccountID), in.Amount, func(order string) modelgate.Audit {
		return a.audit(by, "wallet.checkout", "order", order, in)
	})
	return begun, shown(err)
}

// newTopUp is the body of POST /gw/wallet/checkout.
type newTopUp struct {
	Amount modelgate.Nano `json:"amount_usd"`
}

func (n *newTopUp) read(x *exchange) error { return x.body(n) }

// webhookView is GET /gw/processor/webhook.
type webhookView struct {
	URL        string `json:"url"`
	Configured bool   `json:"configured"`
}

func (a *API) processorWebhook(ctx context.Context, by actor, _ nothing) (webhookView, error) {
	there, err := a.TopUps.Configured(ctx, by.ClientID)
	return webhookView{a.TopUps.WebhookURL(by.ClientID), there}, err
}

// newWebhook is the body of PUT /gw/processor/webhook.
type newWebhook struct {
	Secret *string `json:"secret"`
}

// The lengths of a secret that signs deliveries, in bytes.
const minWebhookSecret, maxWebhookSecret = 16, 512

func (n *newWebhook) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.Secret == nil || *n.Secret != "" && (len(*n.Secret) < minWebhookSecret || len(*n.Secret) > maxWebhookSecret || strings.TrimSpace(*n.Secret) != *n.Secret) {
		return modelgate.Errorf(modelgate.BadRequest, "secret must be what the processor shows for its webhook endpoint, at least %d bytes, or empty to remove it", minWebhookSecret)
	}
	return nil
}

// putProcessorWebhook stores what signs the deliveries of the organization's
// processor. The audit record says nothing about it.
func (a *API) putProcessorWebhook(ctx context.Context, by actor, in newWebhook) error {
	record := a.audit(by, "processor.webhook.put", "processor", string(by.ClientID), map[string]bool{"secret_set": *in.Secret != ""})
	return a.TopUps.PutSecret(ctx, by.ClientID, *in.Secret, record)
}
