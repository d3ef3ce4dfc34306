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
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

// alertBody is what the webhook gets.
type alertBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      any       `json:"data"` // alertData, walletData, or what Tell is given
}

// walletData is about a wallet, in billed dollars.
type walletData struct {
	ClientID     modelgate.ClientID `json:"client_id"`
	SubAccountID string             `json:"sub_account_id"`
	Balance      modelgate.Nano     `json:"balance_usd"`
	// Amount is the bound that the balance has fallen below, what was credited, or
	// what a chargeback took.
	Amount modelgate.Nano `json:"amount_usd"`
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

// webhook is where alerts are posted.
type webhook struct {
	url    string // "" for nowhere
	secret string
	client *http.Client // nil: one that follows no redirects
}

// send posts an alert; anything but a 2xx is a failure.
func (w *webhook) send(ctx context.Context, alert *spend.Alert) error {
	if w.url == "" {
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
		data.ID = "" // left out for the scope client
	}
	told := alertBody{"budget.alert", alert.At, data}
	if kind := alert.Wallet(); kind != "" {
		told.Type, told.Data = string(kind), walletData{alert.ClientID, alert.ID, alert.Spend, alert.Limit}
	}
	return w.post(ctx, alertID(alert), told)
}

// post sends a webhook under an id that is the same for each try.
func (w *webhook) post(ctx context.Context, id string, told alertBody) error {
	body, err := json.Marshal(told)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", at)
	r.Header.Set("Webhook-Signature", "v1,"+sign(w.secret, id+"."+at+".", body))
	client := w.client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	resp, err := client.Do(r)
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

// Tell sends the operator an alert that is about no budget; name is what no other
// alert has.
func (a *Alerter) Tell(ctx context.Context, kind, name string, data any) error {
	operator := webhook{a.URL, a.Secret, a.Client}
	if a.URL == "" {
		return nil
	}
	return operator.post(ctx, webhookID([]byte(kind+"/"+name)), alertBody{kind, time.Now().UTC(), data})
}

// alertID is the same for every try.
func alertID(a *spend.Alert) string {
	name := fmt.Appendf(nil, "%s/%s/%s/%s/%d/%d", a.ClientID, a.Level, a.ID, a.Period, a.Start.Unix(), a.Percent)
	if kind := a.Wallet(); kind != "" {
		name = fmt.Appendf(name, "/%d/%s", a.Start.UnixMicro(), kind)
	}
	if a.Rule != 0 {
		name = fmt.Appendf(name, "/%d/%s", a.Rule, a.Value)
	}
	return webhookID(name)
}

func webhookID(name []byte) string {
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
