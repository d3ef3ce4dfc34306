package selfservice

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"modelgate"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/internal/store/spend"
)

const (
	maxWebhookURL = 500 // bytes
	// The lengths of a key that Standard Webhooks recommends, in bytes.
	minWebhookKey, maxWebhookKey = 24, 64
)

// alertsView is GET /gw/alerts.
type alertsView struct {
	WebhookURL string `json:"webhook_url"`
}

// alerts is where the organization wants its alerts, null for nowhere.
func (a *API) alerts(ctx context.Context, by actor, _ nothing) (*alertsView, error) {
	t, err := a.Store.AlertTarget(ctx, by.ClientID)
	if modelgate.KindOf(err) == modelgate.NotFound {
		return nil, nil
	}
	return &alertsView{t.URL}, err
}

// newAlerts is the body of PUT /gw/alerts.
type newAlerts struct {
	WebhookURL string `json:"webhook_url"`
	Secret     string `json:"secret"`
}

func (n *newAlerts) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	u, err := url.Parse(n.WebhookURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Contains(n.WebhookURL, "#") || len(n.WebhookURL) > maxWebhookURL {
		return modelgate.Errorf(modelgate.BadRequest, "webhook_url must be an https address of at most %d bytes, without a user and a fragment", maxWebhookURL)
	}
	text, ok := strings.CutPrefix(n.Secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minWebhookKey || len(key) > maxWebhookKey {
		return modelgate.Errorf(modelgate.BadRequest, "secret must be whsec_ and the base64 of %d to %d bytes; make one with: echo whsec_$(openssl rand -base64 32)", minWebhookKey, maxWebhookKey)
	}
	return nil
}

// putAlerts sets where alerts go. The address is judged when it is connected
// to, not here: what a name resolves to may change. The audit record says
// nothing about it, since addresses of webhooks are often secret.
func (a *API) putAlerts(ctx context.Context, by actor, in newAlerts) error {
	sealed, err := a.Master.Seal(AlertsPlace(by.ClientID), []byte(in.Secret))
	if err != nil {
		return err
	}
	t := spend.AlertTarget{URL: in.WebhookURL, KeyID: a.Master.Primary(), Secret: sealed}
	return a.Store.PutAlertTarget(ctx, by.ClientID, t, a.audit(by, "alerts.put", "client", string(by.ClientID), nil))
}

func (a *API) deleteAlerts(ctx context.Context, by actor, _ nothing) error {
	return a.Store.DeleteAlertTarget(ctx, by.ClientID, a.audit(by, "alerts.delete", "client", string(by.ClientID), nil))
}

// AlertsPlace is where the key of an organization's alerts is stored.
func AlertsPlace(client modelgate.ClientID) secrets.Place {
	return secrets.Place{Table: store.SecretTable, Row: spend.AlertSecret(client), Column: store.SecretColumn}
}
