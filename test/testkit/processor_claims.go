package testkit

import (
	"encoding/json"
	"net/http"
	"path"
)

// PayClaim is a refund or a dispute as the processor keeps it; its members are
// Stripe's.
type PayClaim struct {
	ID            string `json:"id"`
	Object        string `json:"object"` // refund or dispute
	PaymentIntent string `json:"payment_intent"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Status        string `json:"status"`
}

// Claim makes or changes a refund or a dispute.
func (p *Processor) Claim(c PayClaim) PayClaim {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Currency == "" {
		c.Currency = "usd"
	}
	p.claims[c.ID] = c
	return c
}

// ClaimNotice is a delivery about a refund or a dispute: its body and its
// signature.
func (p *Processor) ClaimNotice(kind string, c PayClaim) (body []byte, signature string) {
	p.mu.Lock()
	now := p.now()
	p.mu.Unlock()
	body, _ = json.Marshal(map[string]any{ // plain values
		"id": "evt_" + c.ID + "_" + kind, "object": "event", "type": kind, "livemode": false, "data": map[string]any{"object": c},
	})
	return body, SignNotice(p.Secret, body, now)
}

// claimed answers reads of refunds and disputes, and the list of the sessions that
// a payment has paid.
func (p *Processor) claimed(key string, r *http.Request) (int, any) {
	folder, id := path.Split(r.URL.Path)
	c, known := p.claims[id]
	switch {
	case r.URL.Path == "/v1/checkout/sessions":
		found := []PaySession{}
		for _, s := range p.sessions {
			if s.PaymentIntent != nil && *s.PaymentIntent == r.Form.Get("payment_intent") && s.key == key {
				found = append(found, *s)
			}
		}
		return 200, map[string]any{"object": "list", "data": found, "has_more": false, "url": "/v1/checkout/sessions"}
	case known && folder == "/v1/"+c.Object+"s/":
		return 200, c
	}
	return 404, refusal("invalid_request_error", "resource_missing", "No such "+id, "id")
}
