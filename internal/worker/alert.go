package worker

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

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
)

// AlertLedger is where alerts are noted; *store.DB is one.
type AlertLedger interface {
	ClaimAlerts(ctx context.Context, most int, lease time.Duration) ([]spend.Alert, error)
	FinishAlert(context.Context, spend.Alert) error
}

// Alerter tells about budgets of which a percentage is used up: a
// line in the log, a count, and a webhook where there is an address. Several
// instances share the work; each alert is one's.
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
}

// Run delivers alerts until the context ends.
func (a *Alerter) Run(ctx context.Context) {
	l := loop{first: alertPause, pause: alertPause, log: a.Log, trouble: "budget alerts wait for the database"}
	l.run(ctx, a.deliver)
}

// deliver takes the alerts that are due.
func (a *Alerter) deliver(ctx context.Context) error {
	for {
		due, err := a.Ledger.ClaimAlerts(ctx, alertBatch, alertLease)
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
		if alert.Tries == 1 {
			a.Count(alert.Percent)
			a.Log.Warn("budget used up", "percent", alert.Percent, "client_id", alert.ClientID, "scope", alert.Level, "id", alert.ID,
				"period", alert.Period, "period_start", alert.Start.Format(time.DateOnly), "match", alert.Match, "limit_usd", alert.Limit.String(), "spend_usd", alert.Spend.String())
		}
	}
	for _, alert := range due {
		if err := a.send(ctx, &alert); err != nil {
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

// alertBody is what the webhook gets.
type alertBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      alertData `json:"data"`
}

type alertData struct {
	ClientID modelgate.ClientID `json:"client_id"`
	Scope    modelgate.Level    `json:"scope"`
	ID       string             `json:"id,omitempty"`
	Period   modelgate.Period   `json:"period,omitempty"`
	Window   string             `json:"window,omitempty"`
	Start    *time.Time         `json:"period_start,omitempty"`
	Match    string             `json:"match,omitempty"`
	Value    string             `json:"value,omitempty"`
	Percent  int                `json:"percent"`
	Limit    modelgate.Nano     `json:"limit_usd"`
	Spend    modelgate.Nano     `json:"spend_usd"`
}

// send posts an alert; anything but a 2xx is a failure.
func (a *Alerter) send(ctx context.Context, alert *spend.Alert) error {
	if a.URL == "" {
		return nil
	}
	data := alertData{ClientID: alert.ClientID, Scope: alert.Level, ID: alert.ID, Period: alert.Period, Match: alert.Match, Value: alert.Value,
		Percent: alert.Percent, Limit: alert.Limit, Spend: alert.Spend}
	if data.Window = alert.Period.Window(); data.Window != "" {
		data.Period = ""
	}
	if !alert.Start.IsZero() {
		data.Start = &alert.Start
	}
	if alert.Level == modelgate.LevelClient {
		data.ID = "" // spec: omitted for scope client
	}
	body, err := json.Marshal(alertBody{"budget.alert", alert.At, data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	id, at := alertID(alert), strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+sign(a.Secret, id+"."+at+".", body))
	resp, err := a.client().Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // for the connection to be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %d", resp.StatusCode)
	}
	return nil
}

func (a *Alerter) client() *http.Client {
	if a.Client != nil {
		return a.Client
	}
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// alertID is the same for every try.
func alertID(a *spend.Alert) string {
	name := fmt.Appendf(nil, "%s/%s/%s/%s/%d/%d", a.ClientID, a.Level, a.ID, a.Period, a.Start.Unix(), a.Percent)
	if a.Rule != 0 {
		name = fmt.Appendf(name, "/%d/%s", a.Rule, a.Value)
	}
	sum := sha256.Sum256(name)
	return "alert_" + hex.EncodeToString(sum[:16])
}

// sign is the base64 of an HMAC-SHA256. A secret that begins with whsec_ holds
// its key in base64.
func sign(secret, head string, body []byte) string {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			key = raw
		}
	}
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, head) // a hash never fails
	_, _ = mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
