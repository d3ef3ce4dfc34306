package prove

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/internal/gatetest"
)

// TestBillingKeyStaysInside looks for an organization's processor key, and for
// its end, in everything that comes out of a gateway whose processor repeats
// it.
func TestBillingKeyStaysInside(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		dir := t.TempDir()
		s := newSeller(t, gatetest.GatewayOptions{Database: database, Dir: dir}, 2)
		s.mapTo(s.customers[1], "cus_gone")
		var said strings.Builder
		note := func(key, target, body string) {
			status, text := s.ask(key, target, body)
			fmt.Fprintln(&said, target, status, text)
		}
		for _, e := range s.customers {
			s.call(e.key)
		}
		s.eventually("all is tried", time.Minute, func() bool { return s.pending() == 0 })
		note(s.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q,"name":"refuse"}`, s.customers[0].sub))
		s.processor.Revoke(sellerKey) // now it answers with the end of the key
		s.call(s.customers[0].key)
		s.eventually("the key is refused", time.Minute, func() bool { return s.pending() == 0 })
		note(s.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q}`, s.customers[0].sub))
		note(s.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":7,"api_key":%q}`, sellerKey))
		note(s.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":"%s `, sellerKey))
		for _, target := range []string{"GET /gw/processor/config", "GET /gw/processor/events", "GET /gw/usage", "GET /gw/evidence", "GET /gw/subaccounts", "GET /metrics"} {
			note(s.key, target, "")
		}
		stdout, stderr, _ := s.Run("reconcile", "--config", s.ConfigFile, "--json")
		s.settle()
		places := map[string]string{
			"answers": said.String(), "log": s.Log(), "operator's command": stdout + stderr, "database": dump(t, s.driver, s.source),
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if raw, err := os.ReadFile(file); err == nil {
				places[filepath.Base(file)] = string(raw)
			}
		}
		for place, text := range places {
			for _, part := range []string{sellerKey, sellerKey[len(sellerKey)-8:], sellerKey[len(sellerKey)-4:], base64.StdEncoding.EncodeToString([]byte(sellerKey))} {
				if i := strings.Index(text, part); i >= 0 {
					t.Errorf("%s: %q in …%q…", place, part, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
		if !strings.Contains(places["answers"], "401") || !strings.Contains(places["database"], "processor/") {
			t.Errorf("the processor has refused nothing, or the dump is empty:\n%s", places["answers"])
		}
	})
}
