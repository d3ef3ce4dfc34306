package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// prepaid is a reseller whose end customers pay into wallets.
type prepaid struct {
	*world
	processor *testkit.Processor
}

// newPrepaid starts a gateway with an empty database, and sets a reseller up whose
// customers can pay.
func newPrepaid(t *testing.T, o testkit.GatewayOptions) *prepaid {
	t.Helper()
	p := testkit.NewProcessor(t, sellerKey)
	o.More += p.Config(operatorKey)
	s := &prepaid{newWorld(t, o), p}
	s.want(200, "PUT /gw/branding", `{"portal_slug":"shop","product_name":"Shop","allow_self_issue":true}`)
	s.want(204, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, sellerKey))
	s.want(204, "PUT /gw/processor/webhook", fmt.Sprintf(`{"secret":%q}`, p.Secret))
	return s
}

// customer is an end customer with a wallet and a key that the reseller issued.
func (s *prepaid) customer(name, markup, settings string) (sub, key string) {
	s.t.Helper()
	sub = s.want(200, "POST /gw/subaccounts", fmt.Sprintf(`{"name":%q,"slug":%q}`, name, name))["id"].(string)
	s.want(204, "PATCH /gw/subaccounts/"+sub, `{"markup_pct":`+markup+`}`)
	s.want(204, "PUT /gw/wallets/"+sub, `{"enabled":true,"checkout":{"enabled":true}`+settings+`}`)
	key = s.want(200, "POST /gw/keys", fmt.Sprintf(`{"scopes":["inference:use","stats:read","keys:manage"],"sub_account_id":%q}`, sub))["key"].(string)
	return sub, key
}

// webhook is the path to which the reseller's processor delivers.
func (s *prepaid) webhook() string { return "/webhooks/processor/" + string(s.client) }

// sessionIn is the id of the processor's session that a checkout answered.
func sessionIn(t *testing.T, answer string) string {
	t.Helper()
	var o struct {
		URL string `json:"checkout_url"`
	}
	if err := json.Unmarshal([]byte(answer), &o); err != nil || o.URL == "" {
		t.Fatalf("checkout: %s, %v", answer, err)
	}
	return o.URL[strings.LastIndex(o.URL, "/")+1:]
}

// postNotice delivers to a webhook as a processor does.
func postNotice(ctx context.Context, url string, body []byte, signature string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if signature != "" {
		r.Header.Set("Stripe-Signature", signature)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// visit makes a request of a signed-in page, which must be answered so.
func visit(t *testing.T, b *http.Client, status int, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != status {
		t.Fatalf("%s %s: %d %s, want %d", method, url, resp.StatusCode, text, status)
	}
	return string(text)
}

// TestBillingPrepaidFromNothing goes the way of the guide prepay.md, from an empty
// folder to the first call that an end customer has paid for through the portal:
// start the gateway, set up organization, customer, wallet and processor; the
// customer signs in to the portal, pays, issues a key, calls, and sees what is left.
func TestBillingPrepaidFromNothing(t *testing.T) {
	t.Parallel()
	testkit.Binary(t) // a user has it
	began := time.Now()
	s := newPrepaid(t, testkit.GatewayOptions{})
	_, key := s.customer("brightside", "20", "")
	ready := time.Since(began)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, portal := &http.Client{Jar: jar}, s.URL+"/p/shop"
	visit(t, browser, 200, "POST", portal+"/session", fmt.Sprintf(`{"key":%q}`, key))
	var issued struct{ Key string }
	if err := json.Unmarshal([]byte(visit(t, browser, 200, "POST", portal+"/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":3600}`)), &issued); err != nil {
		t.Fatal(err)
	}
	if status, text := s.ask(issued.Key, "POST /v1/chat/completions", chat); status != 402 || !strings.Contains(text, "insufficient_balance") {
		t.Errorf("before the payment: %d %s", status, text)
	}
	session := sessionIn(t, visit(t, browser, 200, "POST", portal+"/gw/wallet/checkout", `{"amount_usd":25}`))
	paid := s.processor.Pay(session) // on the processor's page
	if !strings.HasPrefix(paid.SuccessURL, "http") || !strings.Contains(paid.SuccessURL, "/p/shop/wallet") {
		t.Errorf("the processor sends the customer back to %q", paid.SuccessURL)
	}
	body, signature := s.processor.Notice(completed, paid)
	if status, err := postNotice(t.Context(), s.URL+s.webhook(), body, signature); status != 204 || err != nil {
		t.Errorf("delivery: %d, %v", status, err)
	}
	s.eventually("the payment lets calls pass", time.Minute, func() bool {
		status, _ := s.ask(issued.Key, "POST /v1/chat/completions", chat)
		return status == 200
	})
	var left struct {
		Balance json.Number `json:"balance_usd"`
	}
	s.eventually("the portal shows what is left", time.Minute, func() bool {
		text := visit(t, browser, 200, "GET", portal+"/gw/wallet", "")
		if err := json.Unmarshal([]byte(text), &left); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		balance, err := left.Balance.Float64()
		return err == nil && balance > 0 && balance < 25
	})
	took := time.Since(began)
	if took > time.Minute {
		t.Errorf("it took %v, want at most a minute", took)
	}
	fmt.Fprintf(t.Output(), "from an empty folder to a customer's first paid call through the portal: %.1f s, of them %.1f until everything was set up; $%s of 25 are left\n",
		took.Seconds(), ready.Seconds(), left.Balance)
}
