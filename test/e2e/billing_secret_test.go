package e2e

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBillingKeyStaysInside looks for an organization's processor key, the
// operator's, the ends of both and the secret of the webhook in everything that
// comes out of a gateway whose processor repeats them.
func TestBillingKeyStaysInside(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		dir := t.TempDir()
		s := newSeller(t, testkit.GatewayOptions{Database: database, Dir: dir}, 2)
		answers := s.provoke()
		stdout, stderr, _ := s.Run("reconcile", "--config", s.ConfigFile, "--json")
		places := map[string]string{"answers": answers, "reconcile": stdout + stderr}
		for _, command := range [][]string{{"master-key", "rotate"}, {"config", "check"}, {"client", "list"}, {"export", "resend", s.failedEvent()}} {
			stdout, stderr, _ := s.Run(append(command, "--config", s.ConfigFile)...)
			places[strings.Join(command, " ")] = stdout + stderr
		}
		s.settle()
		places["log"], places["database"] = s.Log(), dump(t, s.driver, s.source)
		filesBelow(t, dir, s.ConfigFile, places)
		for place, text := range places {
			for _, part := range s.secrets() {
				if i := strings.Index(text, part); i >= 0 {
					t.Errorf("%s: %q in …%q…", place, part, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
		if n := strings.Count(answers, "401: invalid_request_error"); n < 3 || !strings.Contains(places["database"], "processor/") ||
			!strings.Contains(places["log"], "a payment is not credited") || !strings.Contains(answers, `"action":"processor.config.put"`) ||
			!strings.Contains(answers, "modelgate_export_tries_total") || len(places) < 8 {
			t.Errorf("%d refusals of a key, %d places: too little to prove anything\n%s", n, len(places), answers)
		}
	})
}

// provoke makes the processor refuse and repeat every key wherever it can, and
// returns all answers.
func (s *seller) provoke() string {
	s.t.Helper()
	var said strings.Builder
	note := func(target, body string) {
		status, text := s.ask(s.key, target, body)
		fmt.Fprintln(&said, target, status, text)
	}
	customer := fmt.Sprintf(`{"sub_account_id":%q}`, s.customers[0].sub)
	s.mapTo(s.customers[1], "cus_gone")
	for _, e := range s.customers {
		s.call(e.key)
	}
	s.eventually("all is tried", time.Minute, func() bool { return s.pending() == 0 })
	note("POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q,"name":"refuse"}`, s.customers[0].sub))
	s.Admin(nil, "balance", "credit", "--client", string(s.client), "--usd", "10")
	s.Admin(nil, "client", "set", string(s.client), "--billing", "manual")
	p := &payer{s.world, s.processor}
	_, session := p.order("25")
	notice, signature := s.processor.Notice(completed, s.processor.Pay(session))
	s.processor.Revoke(sellerKey) // now they are answered with the end of the key
	s.processor.Revoke(operatorKey)
	s.call(s.customers[0].key)
	s.eventually("the key is refused", time.Minute, func() bool { return s.pending() == 0 })
	fmt.Fprintln(&said, "deliveries", p.deliver(notice, signature), p.deliver(notice, "t=1,v1="+s.processor.Secret))
	note("POST /gw/billing/checkout", `{"amount_usd":25}`)
	note("POST /gw/processor/customers", customer)
	for _, body := range []string{`{"enabled":7,"api_key":%q}`, `{"enabled":true,"api_key":%q `, `{"enabled":true,"api_key":[%q]}`, `{"enabled":true,"api_key":%q,"api_key":1}`} {
		note("PUT /gw/processor/config", fmt.Sprintf(body, sellerKey))
	}
	for _, target := range []string{"GET /gw/processor/config", "GET /gw/processor/events", "GET /gw/usage", "GET /gw/evidence", "GET /gw/subaccounts",
		"GET /gw/stats", "GET /gw/me", "GET /metrics", "GET /openapi.json", "GET /readyz"} {
		note(target, "")
	}
	return said.String()
}

// failedEvent is the id of an event that has failed.
func (s *seller) failedEvent() string {
	s.t.Helper()
	for _, e := range readOutbox(s.t, s.driver, s.source) {
		if e.status == "failed" {
			return e.usage
		}
	}
	s.t.Fatal("no event has failed")
	return ""
}

// secrets are what must not be found anywhere.
func (s *seller) secrets() (all []string) {
	for _, key := range []string{sellerKey, operatorKey} {
		all = append(all, key, key[len(key)-8:], key[len(key)-4:], base64.StdEncoding.EncodeToString([]byte(key)))
	}
	return append(all, s.processor.Secret, base64.StdEncoding.EncodeToString([]byte(s.processor.Secret)))
}

// filesBelow reads every file of a directory but one.
func filesBelow(t *testing.T, dir, but string, into map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == but {
			return err
		}
		text, err := os.ReadFile(path)
		into["file "+d.Name()] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
