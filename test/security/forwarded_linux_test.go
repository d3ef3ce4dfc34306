package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

const attacker, victim = "127.0.0.2", "127.0.0.3"

// passer calls from an address of its own: all of 127.0.0.0/8 is this machine.
type passer struct {
	*testing.T
	client *http.Client
	url    string
}

func newPasser(t *testing.T, address, url string) *passer {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext,
		MaxIdleConnsPerHost: 128,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &passer{t, &http.Client{Transport: transport}, url}
}

// ask asks who a secret stands for, with lines of X-Forwarded-For.
func (v *passer) ask(secret string, forged ...string) (status int, text string) {
	r, err := http.NewRequestWithContext(v.Context(), http.MethodGet, v.url+"/gw/me", nil)
	if err != nil {
		v.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header["X-Forwarded-For"] = forged
	resp, err := v.client.Do(r)
	if err != nil {
		v.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all)
}

// forgeries are lines of X-Forwarded-For that claim to be somebody else, a new one
// each time.
func forgeries(n int, victim string) [][]string {
	other := fmt.Sprintf("203.0.113.%d", n%250)
	return [][]string{
		{other}, {victim}, {victim, other}, {other + ", " + victim}, {"127.0.0.1"}, {victim + ", 127.0.0.1"}, {"unknown, " + victim},
		{fmt.Sprintf("2001:db8:%x::1", n)}, {"x\"" + other}, {"", ","}, {fmt.Sprintf("[2001:db8::%x]:99", n), victim + ":1234"},
	}
}

// TestForgedForwardedAddress forges addresses through nginx and HAProxy, and through
// both: the limit of an address and the bound of failed look-ups see the true one,
// and nobody uses up what is another's.
func TestForgedForwardedAddress(t *testing.T) {
	t.Parallel()
	const perMinute = 30
	proxies := testkit.ReverseProxies()
	for name, chain := range map[string][]testkit.ReverseProxy{
		"nginx": proxies[:1], "haproxy": proxies[1:], "haproxy before nginx": {proxies[0], proxies[1]}, "nginx before haproxy": {proxies[1], proxies[0]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartGateway(t, testkit.GatewayOptions{Server: "trusted_proxies: [127.0.0.1]", Limits: fmt.Sprintf("address_requests_per_minute: %d", perMinute)})
			address := strings.TrimPrefix(g.URL, "http://")
			for _, p := range chain {
				address = p.Start(t, address)
			}
			bad, good := newPasser(t, attacker, "http://"+address), newPasser(t, victim, "http://"+address)
			key, _ := g.NewKey(g.NewClient("pages"))

			// The limit is that of a minute: however long this takes, the forger is
			// stopped after about as many as it lets an address have.
			began, passed := time.Now(), 0
			for n := 0; ; n++ {
				list := forgeries(n, victim)
				status, text := bad.ask(mint(t, g, key), list[n%len(list)]...)
				if status == http.StatusTooManyRequests {
					break
				}
				passed++
				if most := perMinute + int(time.Since(began).Minutes()*perMinute) + 1; status != http.StatusOK || passed > most {
					t.Fatalf("request %d of the forger: %d %s; at most %d should pass", n+1, status, text, most)
				}
			}
			for n := range perMinute / 2 { // who was named has what is his, and claims to be the forger in vain
				if status, text := good.ask(mint(t, g, key), forgeries(n, attacker)[n%11]...); status != http.StatusOK {
					t.Fatalf("request %d of the victim: %d %s", n+1, status, text)
				}
			}

			flood(t, g, bad, good, key)
		})
	}
}

// mint is a token, and issue a key, that nobody has shown yet.
func mint(t *testing.T, g *testkit.Gateway, key string) string {
	t.Helper()
	return postedSecret(t, g, key, "/gw/tokens", `{"end_user":"u","models":["*"]}`)
}

func issue(t *testing.T, g *testkit.Gateway, key string) string {
	t.Helper()
	return postedSecret(t, g, key, "/gw/keys", `{"scopes":["inference:use"]}`)
}

// postedSecret is the secret that a POST, past the proxies, is answered with.
func postedSecret(t *testing.T, g *testkit.Gateway, key, path, body string) string {
	t.Helper()
	a := ask(t, g.URL, key, http.MethodPost, path, body)
	var made struct{ Token, Key string }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || made.Token+made.Key == "" {
		t.Fatalf("POST %s: %s, %v", path, a, err)
	}
	return made.Token + made.Key
}

// flood has an address invent keys from more and more forged addresses, each of
// which may fail often, until it is slowed down: a key that nobody has shown yet is
// then refused without a look. Whom it names is not: what he shows is looked up.
func flood(t *testing.T, g *testkit.Gateway, bad, good *passer, key string) {
	t.Helper()
	const callers = 64
	done := make(chan struct{})
	var work sync.WaitGroup
	for c := range callers {
		work.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				list := forgeries(c*1000+n, victim)
				if status, text := bad.ask(sum(fmt.Sprintf("gw_live_%020x%020x", c, n)), list[n%len(list)]...); status != http.StatusUnauthorized {
					t.Errorf("an invented key: %d %s", status, text)
				}
			}
		})
	}
	slowed := false
	for began, n := time.Now(), 0; !slowed && time.Since(began) < 2*time.Minute; n++ {
		list := forgeries(n, attacker)
		if status, text := good.ask(issue(t, g, key), list[n%len(list)]...); status != http.StatusOK {
			t.Errorf("a good key of who was named: %d %s", status, text)
		}
		list = forgeries(n, victim)
		status, _ := bad.ask(issue(t, g, key), list[n%len(list)]...)
		slowed = status == http.StatusUnauthorized
	}
	close(done)
	work.Wait()
	if !slowed {
		t.Error("an address may invent as many keys as it likes if it forges where it comes from")
	}
	if status, text := bad.ask(key, victim); status != http.StatusOK {
		t.Errorf("a known key from the forger's address: %d %s", status, text)
	}
}
