package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/test/testkit"
)

// goSDKs is a flag because their compilation alone takes a minute of a core.
var goSDKs = flag.Bool("go-sdks", false, "call with the SDKs for Go too; make test-full does")

// tokenPrices are USD per million tokens in and out, by the native model that
// the clients call.
var tokenPrices = map[string][2]float64{"gpt-5-mini": {0.25, 2}, "claude-haiku-4-5": {1, 5}, "gemini-2.5-flash": {0.3, 2.5}, "command-a-03-2025": {2.5, 10}}

// TestSDKsInEveryWay has each SDK ask, stream, and call a tool, whole and streamed,
// and fail with a wrong key. The gateway has booked what the providers served, at
// its price.
func TestSDKsInEveryWay(t *testing.T) {
	t.Parallel()
	type suite struct {
		dir     func(*testing.T) string
		command []string
		clients int
	}
	suites := map[string]suite{
		"JavaScript": {nodeModules, []string{"node", "--test", "clients.test.mjs"}, 14},
	}
	if *goSDKs {
		suites["Go"] = suite{func(*testing.T) string { return filepath.Join(sdks, "go") }, []string{"go", "test", "-count=1", "-run", "TestClients", "."}, 4}
	}
	for name, c := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, testkit.GatewayOptions{More: `prices:
  - {provider: gemini, model: gemini-2.5-flash, price: {input: 0.3, output: 2.5}}
  - {provider: cohere, model: command-a-03-2025, price: {input: 2.5, output: 10}}
`})
			cmd := exec.Command(c.command[0], c.command[1:]...)
			cmd.Dir = c.dir(t)
			cmd.Env = append(os.Environ(), "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+b.key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			// A question is one call, and a tool two: the order and its result.
			b.wantBooked(t, c.clients*(2*1+2*2))
		})
	}
}

// wantBooked compares the usage rows with what the providers served, of which
// there are n calls.
func (b *bench) wantBooked(t *testing.T, n int) {
	t.Helper()
	var want, got []string
	for _, s := range b.Upstream.Ledger.All() {
		price, known := tokenPrices[s.Model]
		if !known || s.Status != 200 || !s.Complete || s.InputTokens == 0 || s.OutputTokens == 0 {
			t.Errorf("the provider served %+v", s)
		}
		cost := modelgate.Nano(float64(s.InputTokens)*price[0]*1000 + float64(s.OutputTokens)*price[1]*1000)
		want = append(want, fmt.Sprintf("%s: %d tokens, %s USD, ok", s.Model, s.InputTokens+s.OutputTokens, cost))
	}
	var rows []struct {
		Model  string
		Tokens int64          `json:"total_tokens"`
		Cost   modelgate.Nano `json:"cost_usd"`
		Parsed string         `json:"parse_status"`
	}
	_, body := b.get(t, "/gw/usage?limit=1000")
	if err := json.Unmarshal([]byte(body), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s: %d tokens, %s USD, %s", r.Model, r.Tokens, r.Cost, r.Parsed))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(got) != n {
		t.Errorf("%d rows, want %d; what the providers served (-) and what was booked (+):\n%s", len(got), n, diff)
	}
}
