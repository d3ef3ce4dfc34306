package worker

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

// alerts is a ledger in which time passes by hand.
type alerts struct {
	mu       sync.Mutex
	open     []spend.Alert
	finished []spend.Alert
	lost     error                         // what FinishAlert fails with
	targets  map[modelgate.ClientID]string // where organizations want theirs
}

func (a *alerts) ClaimAlerts(_ context.Context, to spend.Audience, most, mostOfClient int, _ time.Duration) ([]spend.Alert, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []spend.Alert
	of := map[modelgate.ClientID]int{}
	for i := range a.open {
		o := &a.open[i]
		if o.Audience != to || len(out) == most || of[o.ClientID] == mostOfClient {
			continue
		}
		o.Tries++
		of[o.ClientID]++
		out = append(out, *o)
	}
	return out, nil
}

func (a *alerts) AlertTarget(_ context.Context, client modelgate.ClientID) (spend.AlertTarget, error) {
	if url, ok := a.targets[client]; ok {
		return spend.AlertTarget{URL: url, Secret: []byte("sealed " + client)}, nil
	}
	return spend.AlertTarget{}, modelgate.Errorf(modelgate.NotFound, "no webhook is set for alerts")
}

func (a *alerts) FinishAlert(_ context.Context, done spend.Alert) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost != nil {
		return a.lost
	}
	a.finished = append(a.finished, done)
	a.open = slices.DeleteFunc(a.open, func(o spend.Alert) bool { return o.Audience == done.Audience && alertID(&o) == alertID(&done) })
	return nil
}

// delivery is a webhook that came in.
type delivery struct {
	header http.Header
	body   string
}

// receiver answers webhooks with one status after the other, the last for
// good.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []delivery
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, delivery{req.Header, string(body)})
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(statuses[min(len(r.got), len(statuses))-1])
	}))
	t.Cleanup(r.Close)
	return r
}

var alertDay = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func alertOf(percent int) spend.Alert {
	return spend.Alert{
		Audience: spend.Operator, ClientID: "c", Level: modelgate.LevelKey, ID: "k", Period: modelgate.Day, Start: alertDay, Percent: percent,
		Limit: 10 * modelgate.USD, Spend: modelgate.Nano(percent) * modelgate.USD / 10, At: alertDay.Add(12 * time.Hour),
	}
}

// newAlerter writes its log into a text and counts by percent.
func newAlerter(ledger AlertLedger, url string) (*Alerter, *bytes.Buffer, map[int]int) {
	log, counts := new(bytes.Buffer), map[int]int{}
	return &Alerter{
		Ledger: ledger, Log: slog.New(slog.NewTextHandler(log, nil)), Count: func(p int) { counts[p]++ }, URL: url,
		Secret: "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef")),
	}, log, counts
}

func TestAlertsAreToldOnce(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 204)
	ledger := &alerts{open: []spend.Alert{alertOf(50), alertOf(80), alertOf(100)}}
	a, log, counts := newAlerter(ledger, r.URL)
	for range 3 {
		if err := a.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.got) != 3 || len(ledger.finished) != 3 || strings.Count(log.String(), "budget used up") != 3 || fmt.Sprint(counts) != "map[50:1 80:1 100:1]" {
		t.Errorf("%d webhooks, %d finished, counts %v, log:\n%s", len(r.got), len(ledger.finished), counts, log)
	}
	for i, percent := range []int{50, 80, 100} {
		got := r.got[i]
		want := fmt.Sprintf(`{"type":"budget.alert","timestamp":"2026-11-30T12:00:00Z","data":{"client_id":"c","scope":"key","id":"k","period":"day","period_start":"2026-11-30T00:00:00Z","percent":%d,"limit_usd":10,"spend_usd":%d}}`, percent, percent/10)
		if got.body != want {
			t.Errorf("body %s, want %s", got.body, want)
		}
		id, at := got.header.Get("Webhook-Id"), got.header.Get("Webhook-Timestamp")
		if !strings.HasPrefix(id, "alert_") || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", got.header)
		}
		// The signature as a receiver checks it, without the program's own code.
		if want := "v1," + hmacOf("0123456789abcdef", id+"."+at+"."+got.body); got.header.Get("Webhook-Signature") != want {
			t.Errorf("signature %s, want %s", got.header.Get("Webhook-Signature"), want)
		}
		if line := fmt.Sprintf("percent=%d client_id=c scope=key id=k period=day period_start=2026-11-30 limit_usd=10", percent); !strings.Contains(log.String(), line) {
			t.Errorf("the log has no %q:\n%s", line, log)
		}
	}
}

// queue hands each alert out once.
type queue struct{ alerts }

func (q *queue) ClaimAlerts(_ context.Context, _ spend.Audience, most, _ int, _ time.Duration) ([]spend.Alert, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := slices.Clone(q.open[:min(most, len(q.open))])
	q.open = q.open[len(out):]
	for i := range out {
		out[i].Tries++
	}
	return out, nil
}

// Many alerts at once do not wait for the next look, and those that were
// claimed are told of before a receiver can take its time.
func TestManyAlertsAtOnce(t *testing.T) {
	t.Parallel()
	var told, atFirst atomic.Int64
	r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { atFirst.CompareAndSwap(0, told.Load()) }))
	t.Cleanup(r.Close)
	var all []spend.Alert
	for i := range 3*alertBatch + 1 {
		all = append(all, alertOf(50))
		all[i].ID = fmt.Sprint(i)
	}
	q := &queue{alerts{open: all}}
	a, _, _ := newAlerter(q, r.URL)
	a.Count = func(int) { told.Add(1) }
	if err := a.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(q.finished); n != len(all) || told.Load() != int64(n) || atFirst.Load() != int64(alertBatch) {
		t.Errorf("%d of %d alerts are delivered and %d told of, %d of them before the first webhook", n, len(all), told.Load(), atFirst.Load())
	}
}

// One that was not delivered is tried again under its id, by this life or the
// next, and told in the log and counted once.
func TestAlertsAreTriedAgain(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 500, 302, 200)
	ledger := &alerts{open: []spend.Alert{alertOf(80)}}
	log, counted := "", 0
	for range 5 {
		a, said, counts := newAlerter(ledger, r.URL) // a restart each time
		if err := a.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		log += said.String()
		counted += counts[80]
	}
	if len(r.got) != 3 || counted != 1 || strings.Count(log, "budget used up") != 1 || strings.Count(log, "was not delivered") != 2 {
		t.Errorf("%d webhooks, counted %d times, log:\n%s", len(r.got), counted, log)
	}
	for _, d := range r.got {
		if d.header.Get("Webhook-Id") != r.got[0].header.Get("Webhook-Id") || d.body != r.got[0].body {
			t.Errorf("a second try differs: %v %s", d.header, d.body)
		}
	}
}

func TestAlertsEnd(t *testing.T) {
	t.Parallel()
	given := alertOf(100)
	given.Tries = alertTries - 2
	ledger := &alerts{open: []spend.Alert{given}}
	a, log, _ := newAlerter(ledger, "http://127.0.0.1:1")
	for range 4 {
		if err := a.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "was not delivered"); n != 2 || len(ledger.finished) != 1 {
		t.Errorf("%d tries, %d finished, want 2 and 1", n, len(ledger.finished))
	}

	ledger = &alerts{open: []spend.Alert{alertOf(50)}, lost: errors.New("away")}
	a, _, counts := newAlerter(ledger, "") // no address: the log and the count are all
	if err := a.deliver(t.Context()); err == nil || counts[50] != 1 {
		t.Errorf("with the database away: %v, %v", err, counts)
	}
	ledger.lost = nil
	if err := a.deliver(t.Context()); err != nil || counts[50] != 1 || len(ledger.finished) != 1 {
		t.Errorf("with the database back: %v, %v, %d finished", err, counts, len(ledger.finished))
	}
}

// The client's own budget is shown without an id, as everywhere.
func TestAlertOfAClient(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 200)
	of := alertOf(50)
	of.Level, of.ID, of.Period = modelgate.LevelClient, "c", modelgate.Month
	a, _, _ := newAlerter(&alerts{open: []spend.Alert{of}}, r.URL)
	a.Secret = "plain"
	if err := a.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	var body struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(r.got[0].body), &body); err != nil || body.Data["id"] != nil || body.Data["scope"] != "client" {
		t.Errorf("body %s, %v", r.got[0].body, err)
	}
	d := r.got[0]
	if want := "v1," + hmacOf("plain", d.header.Get("Webhook-Id")+"."+d.header.Get("Webhook-Timestamp")+"."+d.body); d.header.Get("Webhook-Signature") != want {
		t.Errorf("signature %s, want %s", d.header.Get("Webhook-Signature"), want)
	}
}

// Organizations are told at their own addresses with their own secrets, side by
// side: one that does not answer holds up nobody else, and its other alerts
// wait. The operator's log does not repeat what it says of its own.
func TestAlertsOfOrganizations(t *testing.T) {
	t.Parallel()
	good, bad := newReceiver(t, 204), newReceiver(t, 503)
	ledger := &alerts{targets: map[modelgate.ClientID]string{"good": good.URL, "bad": bad.URL}}
	for _, client := range []modelgate.ClientID{"good", "bad", "none"} {
		for i := range organizationShare + 1 {
			alert := alertOf(50)
			alert.Audience, alert.ClientID, alert.ID = spend.Organization, client, fmt.Sprint(i)
			ledger.open = append(ledger.open, alert)
		}
	}
	a, log, counts := newAlerter(ledger, "http://127.0.0.1:1")
	a.Unseal = func(of modelgate.ClientID, sealed []byte) ([]byte, error) {
		if string(sealed) != "sealed "+string(of) {
			return nil, fmt.Errorf("unsealing %q of %s", sealed, of)
		}
		return []byte("key of " + of), nil
	}
	for range 2 {
		if err := a.deliverToOrganizations(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(good.got) != organizationShare+1 || len(bad.got) != 2 || len(ledger.finished) != 2*(organizationShare+1) || len(counts) != 0 || log.Len() != 0 {
		t.Errorf("%d and %d webhooks, %d finished, counts %v, log:\n%s", len(good.got), len(bad.got), len(ledger.finished), counts, log)
	}
	d := good.got[0]
	if want := "v1," + hmacOf("key of good", d.header.Get("Webhook-Id")+"."+d.header.Get("Webhook-Timestamp")+"."+d.body); d.header.Get("Webhook-Signature") != want {
		t.Errorf("signature %s, want %s", d.header.Get("Webhook-Signature"), want)
	}
	for i := range ledger.open {
		ledger.open[i].Tries = alertTries - 1
	}
	if err := a.deliverToOrganizations(t.Context()); err != nil || !strings.Contains(log.String(), "the alert of an organization is given up") {
		t.Errorf("after the last try: %v, log:\n%s", err, log)
	}
}

// hmacOf is the base64 of an HMAC-SHA256.
func hmacOf(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
