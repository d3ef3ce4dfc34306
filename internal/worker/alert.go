package worker

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"modelgate"
	"modelgate/internal/store/spend"
)

const (
	alertPause = 2 * time.Second // between two looks for alerts
	// alertLease is until an alert that was not delivered is tried again, and
	// alertTries how often.
	alertLease   = time.Minute
	alertTries   = 60
	alertTimeout = 10 * time.Second
	// alertBatch are taken at once: no more than a receiver that never answers
	// leaves time for, or another instance would take the last of them too.
	alertBatch = int(alertLease/alertTimeout) - 1
	// organizationBatch are taken at once for all organizations, which are told
	// side by side, and organizationShare of them for one.
	organizationBatch, organizationShare = 100, alertBatch
)

// AlertLedger is where alerts are noted; *store.DB is one.
type AlertLedger interface {
	ClaimAlerts(ctx context.Context, to spend.Audience, most, mostOfClient int, lease time.Duration) ([]spend.Alert, error)
	FinishAlert(context.Context, spend.Alert) error
	AlertTarget(context.Context, modelgate.ClientID) (spend.AlertTarget, error)
}

// Alerter tells about budgets of which a part is used up: the operator with a
// line in the log, a count, and a webhook where there is an address; the
// organization with a webhook of its own. Several instances share the work;
// each alert is one's.
type Alerter struct {
	Ledger AlertLedger
	Log    *slog.Logger
	Count  func(percent int)
	// URL gets a POST for each alert; "" means none. It is signed with Secret
	// as Standard Webhooks describes (https://www.standardwebhooks.com). One
	// that fails is tried again for an hour, so that a receiver may see it
	// twice, under the same webhook-id.
	URL, Secret string
	Client      *http.Client // nil: one that follows no redirects
	// Public posts to the addresses that organizations choose. It must refuse
	// connections that organizations must not make, and follow no redirects.
	Public *http.Client
	// Unseal opens the key with which an organization's alerts are signed.
	Unseal func(of modelgate.ClientID, sealed []byte) (secret []byte, err error)
}

// Run delivers alerts until the context ends.
func (a *Alerter) Run(ctx context.Context) {
	var audiences sync.WaitGroup
	for _, deliver := range []func(context.Context) error{a.deliver, a.deliverToOrganizations} {
		l := loop{first: alertPause, pause: alertPause, log: a.Log, trouble: "budget alerts wait for the database"}
		audiences.Go(func() { l.run(ctx, deliver) })
	}
	audiences.Wait()
}

// deliver takes the operator's alerts that are due.
func (a *Alerter) deliver(ctx context.Context) error {
	for {
		due, err := a.Ledger.ClaimAlerts(ctx, spend.Operator, alertBatch, alertBatch, alertLease)
		if err != nil {
			return err
		}
		if err := a.deliverBatch(ctx, due); err != nil || len(due) < alertBatch {
			return err
		}
	}
}

// deliverBatch tells of all the alerts before it sends the first: a claim is
// noted already, and nobody else would tell of it.
func (a *Alerter) deliverBatch(ctx context.Context, due []spend.Alert) error {
	for _, alert := range due {
		if kind := alert.Wallet(); kind != "" && alert.Tries == 1 {
			a.Log.Info("wallet", "alert", kind, "client_id", alert.ClientID, "sub_account_id", alert.ID, "amount_usd", alert.Limit.String(), "balance_usd", alert.Spend.String())
		} else if alert.Tries == 1 {
			a.Count(alert.Percent)
			a.Log.Warn("budget used up", "percent", alert.Percent, "client_id", alert.ClientID, "scope", alert.Level, "id", alert.ID,
				"period", alert.Period, "period_start", alert.Start.Format(time.DateOnly), "limit_usd", alert.Limit.String(), "spend_usd", alert.Spend.String(), "match", alert.Match)
		}
	}
	operator := webhook{a.URL, a.Secret, a.Client}
	for _, alert := range due {
		if err := operator.send(ctx, &alert); err != nil {
			a.Log.Warn("budget alert was not delivered", "try", alert.Tries, "client_id", alert.ClientID, "percent", alert.Percent, "error", err)
			if alert.Tries < alertTries {
				continue
			}
		}
		if err := a.Ledger.FinishAlert(ctx, alert); err != nil {
			return err
		}
	}
	return nil
}

// deliverToOrganizations takes the organizations' alerts that are due.
func (a *Alerter) deliverToOrganizations(ctx context.Context) error {
	for {
		due, err := a.Ledger.ClaimAlerts(ctx, spend.Organization, organizationBatch, organizationShare, alertLease)
		if err != nil {
			return err
		}
		of := make(map[modelgate.ClientID][]spend.Alert)
		for _, alert := range due {
			of[alert.ClientID] = append(of[alert.ClientID], alert)
		}
		var organizations errgroup.Group
		for client, alerts := range of {
			organizations.Go(func() error { return a.deliverTo(ctx, client, alerts) })
		}
		if err := organizations.Wait(); err != nil || len(due) < organizationBatch {
			return err
		}
	}
}

// deliverTo sends an organization its alerts. After one that fails, the others
// wait for their lease to end. The operator hears of one that is given up.
func (a *Alerter) deliverTo(ctx context.Context, client modelgate.ClientID, due []spend.Alert) error {
	target, err := a.Ledger.AlertTarget(ctx, client)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return err
	}
	var secret []byte
	if err == nil { // else there is no target any more, and nothing to send
		if secret, err = a.Unseal(client, target.Secret); err != nil {
			return err
		}
	}
	hook := webhook{target.URL, string(secret), a.Public}
	for _, alert := range due {
		err := hook.send(ctx, &alert)
		if err != nil && alert.Tries < alertTries {
			return nil
		}
		if err != nil {
			a.Log.Warn("the alert of an organization is given up", "client_id", client, "percent", alert.Percent, "error", err)
		}
		if err := a.Ledger.FinishAlert(ctx, alert); err != nil {
			return err
		}
	}
	return nil
}
