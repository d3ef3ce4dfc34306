package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/test/testkit"
)

const paid = `{"id":"evt_1","type":"checkout.session.completed","livemode":true,"data":{"object":{"id":"cs_1","object":"checkout.session","client_reference_id":"order-1"}}}`

func TestReadNotice(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	const secret, old = "whsec_0123456789abcdef", "whsec_fedcba9876543210"
	sign := func(s string, at time.Time) string { return testkit.SignNotice(s, []byte(paid), at) }
	good := sign(secret, now)
	mac := good[strings.Index(good, "v1="):]
	for _, c := range []struct {
		name, body, header string
		secrets            []string
		ok                 bool
	}{
		{"good", paid, good, []string{secret}, true},
		{"signed with the secret of before", paid, sign(old, now), []string{secret, old}, true},
		{"one of several", paid, strings.Replace(good, ",", ",v1="+strings.Repeat("00", 32)+",v0=ff,", 1), []string{secret}, true},
		{"five minutes old", paid, sign(secret, now.Add(-5*time.Minute)), []string{secret}, true},
		{"older", paid, sign(secret, now.Add(-5*time.Minute-time.Second)), []string{secret}, false},
		{"from the future", paid, sign(secret, now.Add(6*time.Minute)), []string{secret}, false},
		{"another secret", paid, sign("whsec_xxxxxxxxxxxxxxxx", now), []string{secret}, false},
		{"altered", strings.Replace(paid, "cs_1", "cs_2", 1), good, []string{secret}, false},
		{"no secret", paid, sign("", now), nil, false},
		{"empty secret", paid, sign("", now), []string{""}, false},
		{"short secret", paid, sign("short", now), []string{"short"}, false},
		{"no header", paid, "", []string{secret}, false},
		{"no time", paid, mac, []string{secret}, false},
		{"two times", paid, good + ",t=1790000001", []string{secret}, false},
		{"no signature", paid, "t=1790000000", []string{secret}, false},
		{"the old scheme", paid, strings.Replace(good, "v1=", "v0=", 1), []string{secret}, false},
		{"no JSON", "x", testkit.SignNotice(secret, []byte("x"), now), []string{secret}, false},
		{"no event", "{}", testkit.SignNotice(secret, []byte("{}"), now), []string{secret}, false},
	} {
		n, err := processor.ReadNotice([]byte(c.body), c.header, c.secrets, now)
		if (err == nil) != c.ok || err != nil && modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.ok && (n != processor.Notice{ID: "evt_1", Type: "checkout.session.completed", Live: true, SessionID: "cs_1", OrderID: "order-1", Object: "checkout.session", ObjectID: "cs_1"} || !n.Paid()) {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}

// Stripe's own signer is understood.
func TestStripesSignature(t *testing.T) {
	t.Parallel()
	now := time.Now()
	signed := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(paid), Secret: "whsec_0123456789abcdef", Timestamp: now})
	if _, err := processor.ReadNotice(signed.Payload, signed.Header, []string{"whsec_0123456789abcdef"}, now); err != nil {
		t.Error(err)
	}
}

func TestNoticePaid(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"checkout.session.completed": true, "checkout.session.async_payment_succeeded": true,
		"checkout.session.expired": false, "checkout.session.async_payment_failed": false, "charge.succeeded": false,
	} {
		if got := (processor.Notice{Type: kind, SessionID: "cs", OrderID: "o"}).Paid(); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
	if (processor.Notice{Type: "checkout.session.completed", SessionID: "cs"}).Paid() {
		t.Error("a payment of no order")
	}
}

func FuzzReadNotice(f *testing.F) {
	const secret = "whsec_0123456789abcdef"
	now := time.Unix(1_790_000_000, 0)
	good := testkit.SignNotice(secret, []byte(paid), now)
	f.Add([]byte(paid), good)
	f.Add([]byte("{}"), "t=,v1=,v1")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		_, err := processor.ReadNotice(body, header, []string{secret}, now)
		if err == nil && string(body) != paid {
			t.Errorf("a forged delivery is believed: %q, %q", body, header)
		}
	})
}
