package processor

import (
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"modelgate"
)

// SignatureHeader is where a webhook's signature is.
const SignatureHeader = "Stripe-Signature"

const (
	// tolerance is how far a delivery's time may be from now, either way.
	tolerance = 5 * time.Minute
	// maxSignatures bounds the work that one header can ask for.
	maxSignatures = 16
	minSecret     = 16
)

// Notice is a delivery of the processor's webhook: what happened, and to
// what.
type Notice struct {
	ID   string
	Type string // such as checkout.session.completed
	Live bool
	// SessionID and OrderID are those of a payment; "" for anything else.
	SessionID, OrderID string
	// Object is what it happened to, such as refund, and ObjectID its id.
	Object, ObjectID string
}

// ReadNotice checks a delivery's signature and age and reads it. Any of the
// secrets may have signed it; one shorter than 16 bytes signs nothing. Errors
// are bad_request.
// (https://docs.stripe.com/webhooks#verify-manually)
func ReadNotice(body []byte, signature string, secrets []string, now time.Time) (Notice, error) {
	forged := modelgate.Errorf(modelgate.BadRequest, "the signature is missing or wrong")
	at, given := readSignature(signature)
	if at.IsZero() || !signed(body, at, given, secrets) {
		return Notice{}, forged
	}
	if age := now.Sub(at); age > tolerance || age < -tolerance {
		return Notice{}, modelgate.Errorf(modelgate.BadRequest, "the delivery is too old")
	}
	var event struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Livemode bool   `json:"livemode"`
		Data     struct {
			Object struct {
				ID                string `json:"id"`
				Object            string `json:"object"`
				ClientReferenceID string `json:"client_reference_id"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil || event.Type == "" {
		return Notice{}, modelgate.Errorf(modelgate.BadRequest, "the delivery is not understood")
	}
	n := Notice{ID: event.ID, Type: event.Type, Live: event.Livemode, Object: event.Data.Object.Object, ObjectID: event.Data.Object.ID}
	if event.Data.Object.Object == "checkout.session" {
		n.SessionID, n.OrderID = event.Data.Object.ID, event.Data.Object.ClientReferenceID
	}
	return n, nil
}

// Paid reports whether a notice says that a payment has come in: at once, or
// later where the bank takes its time.
func (n Notice) Paid() bool {
	return n.SessionID != "" && n.OrderID != "" &&
		(n.Type == "checkout.session.completed" || n.Type == "checkout.session.async_payment_succeeded")
}

// readSignature takes a header of the form t=1790000000,v1=hex,v1=hex apart;
// other schemes are ignored. A second time makes it void, like none: the time
// is zero.
func readSignature(header string) (at time.Time, given [][]byte) {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil || !at.IsZero() {
				return time.Time{}, nil
			}
			at = time.Unix(seconds, 0)
		case "v1":
			if mac, err := hex.DecodeString(value); err == nil && len(given) < maxSignatures {
				given = append(given, mac)
			}
		}
	}
	return at, given
}

// signed reports whether one of the secrets has made one of the signatures.
func signed(body []byte, at time.Time, given [][]byte, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(secret string) bool {
		if len(secret) < minSecret {
			return false
		}
		want := webhook.ComputeSignature(at, body, secret)
		return slices.ContainsFunc(given, func(g []byte) bool { return hmac.Equal(g, want) })
	})
}
