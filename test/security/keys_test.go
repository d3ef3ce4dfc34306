package security

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// sum completes 48 characters of a key by their check sum.
func sum(head string) string {
	return fmt.Sprintf("%s%08x", head, crc32.ChecksumIEEE([]byte(head)))
}

// TestGuessedKeys guesses keys while the database is away: one that could
// be a key cannot be judged then, and every other is refused all the same,
// because no look-up is made for it.
func TestGuessedKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100_000 {
		secret := modelgate.NewSecret().Reveal()
		if seen[secret] || sum(secret[:48]) != secret || !strings.HasPrefix(secret, "gw_live_") || len(secret) != 56 {
			t.Fatalf("drew %s", secret)
		}
		seen[secret] = true
	}
	cluster := testkit.NewPostgresCluster(t)
	g := testkit.StartGateway(t, testkit.GatewayOptions{Database: cluster.Database(t)})
	key, _ := g.NewKey(g.NewClient("guessed"))
	cluster.Stop(t)
	if a := ask(t, g.URL, sum("gw_live_"+strings.Repeat("0", 40)), "GET", "/gw/me", ""); a.StatusCode != 503 {
		t.Fatalf("a guess that could be a key: %s, want 503: nothing is proved", a)
	}
	guesses := make(chan string, 100)
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() {
			for guess := range guesses {
				if a := ask(t, g.URL, guess, "GET", "/gw/me", ""); a.StatusCode != 401 || !strings.Contains(a.body, `"message":"invalid gateway key"`) {
					t.Errorf("%q: %s", guess, a)
				}
			}
		})
	}
	for i := range 20_000 {
		secret := modelgate.NewSecret().Reveal()
		at := 8 + i%48
		wrong := secret[:at] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", secret[at])+1+i%15)%16]) + secret[at+1:]
		switch i % 10 {
		case 0:
			wrong = strings.ToUpper(secret)
		case 1:
			wrong = "gw_test_" + secret[8:]
		case 2:
			wrong = secret[:55]
		case 3:
			wrong = key[:48] + secret[48:]
		}
		if wrong != secret && wrong != key {
			guesses <- wrong
		}
	}
	close(guesses)
	workers.Wait()
}

// TestKeysThatShareABeginning crosses two organizations' keys whose first 40
// random characters are one of the other's: nothing may be remembered by less
// than the whole.
func TestKeysThatShareABeginning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Dir: dir})
	one, other := g.NewClient("one"), g.NewClient("other")
	first, _ := g.NewKey(one)
	_, id := g.NewKey(other, "--scopes", "stats:read")
	twin := first[:40] + strings.Repeat("7", 8)
	twin = sum(twin)
	db := testkit.OpenSQLite(t, filepath.Join(dir, "modelgate.db"))
	digest := sha256.Sum256([]byte(twin))
	if _, err := db.Exec("UPDATE api_key SET digest = $1 WHERE id = $2", digest[:], string(id)); err != nil {
		t.Fatal(err)
	}
	stranger := sum(first[:40] + strings.Repeat("8", 8))
	for round := range 20 {
		for key, want := range map[string]int{first: 200, twin: 403, stranger: 401} {
			if a := ask(t, g.URL, key, "GET", "/gw/keys", ""); a.StatusCode != want {
				t.Errorf("round %d, %s…%s: %s, want %d", round, key[:12], key[44:], a, want)
			}
		}
	}
}

// injections are texts that end a statement, a string or a pattern somewhere.
var injections = []string{
	"'", "''", `"`, "`", "' OR '1'='1", "' OR 1=1 --", "'; DROP TABLE api_key; --", "' UNION SELECT digest FROM api_key --", "1; SELECT pg_sleep(10)", "1' AND SLEEP(5)#", "\\", "\\'", "%", "_", "%'--", "$1", "$$", "?", ":id", "@x",
	"x' || (SELECT digest FROM api_key) || '", "0x27", "\u02bc", "\u2019", "\uff07", "\u0000", "a\u0000b", "';waitfor delay '0:0:5'--", "1 OR sqlite_version()", "{\"$gt\":\"\"}", "[]", "NULL", "null", "true", "-1", "1e9", "../../etc/passwd", "${jndi:ldap://x}", "{{7*7}}", "%s%n", "\r\n", "\x1b",
}

// TestInjection puts them into every parameter, path, header and member.
func TestInjection(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	before := len(l.Log())
	count := 0
	try := func(method, target, body string, headers ...string) {
		count++
		req, err := http.NewRequest(method, l.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = target
		req.Header.Set("Authorization", "Bearer "+l.key)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header[headers[i]] = []string{headers[i+1]}
		}
		resp, err := client.Do(req)
		if err != nil {
			return // no header may hold this
		}
		resp.Body.Close()
		if resp.StatusCode >= 500 {
			t.Errorf("%s %s %s %q: %s", method, target, body, headers, resp.Status)
		}
	}
	for _, text := range injections {
		escaped, quoted := url.QueryEscape(text), quote(text)
		for _, target := range []string{
			"/gw/usage?provider=", "/gw/usage?parse_status=", "/gw/usage?since=", "/gw/usage?limit=", "/gw/usage?cursor=", "/gw/usage?id=", "/gw/keys?limit=", "/gw/keys?cursor=",
			"/gw/stats?group_by=", "/gw/stats?since=", "/gw/stats?provider=", "/gw/async?status=", "/gw/async?kind=", "/gw/async?scope=", "/gw/async?cursor=", "/gw/async?created_after=", "/gw/evidence?from_seq=", "/gw/processor/events?status=",
			"/gw/budgets?scope=", "/gw/budgets?scope=key&period=day&id=",
		} {
			try("GET", target+escaped, "")
		}
		for _, target := range []string{"DELETE /gw/keys/", "PATCH /gw/subaccounts/", "DELETE /gw/budgets?scope=key&period=day&id=", "DELETE /gw/processor/mappings/", "POST /gw/processor/events/"} {
			method, path, _ := strings.Cut(target, " ")
			try(method, path+url.PathEscape(text), "{}")
		}
		try("POST", "/gw/subaccounts", fmt.Sprintf(`{"name":%s,"slug":%s}`, quoted, quoted))
		try("POST", "/gw/keys", fmt.Sprintf(`{"scopes":["stats:read"],"entitlements":[{"axis":"vendor","provider":%s,"model_pattern":%s,"effect":"deny"}]}`, quoted, quoted))
		try("POST", "/gw/keys", fmt.Sprintf(`{"scopes":[%s],"sub_account_id":%s}`, quoted, quoted))
		try("PUT", "/gw/branding", fmt.Sprintf(`{"portal_slug":%s,"product_name":%s,"allow_self_issue":false}`, quoted, quoted))
		try("PUT", "/gw/budgets", fmt.Sprintf(`{"scope":"key","id":%s,"period":%s,"limit_usd":1}`, quoted, quoted))
		try("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":%s,"messages":[]}`, quoted))
		try("POST", "/s34/v1/chat/completions", fmt.Sprintf(`{"model":%s,"messages":[]}`, quoted))
		try("POST", "/s34/v1/chat/completions", chat("m"), "X-Gateway-Attribution", "team="+url.PathEscape(text), "User-Agent", text)
		try("GET", "/gw/me", "", "Authorization", "Bearer "+text)
		try("GET", "/gw/me", "", "Authorization", "Bearer gw_live_"+text)
	}
	for _, mark := range []string{"syntax error", "SQL logic error", "SQLSTATE", "unrecognized token", "level=ERROR"} {
		if log := l.Log()[before:]; strings.Contains(log, mark) {
			t.Errorf("the log has %q", mark)
		}
	}
	if a := l.call(t, l.key, "GET", "/gw/keys", ""); a.StatusCode != 200 || count < 1000 {
		t.Errorf("after %d attempts: %s", count, a)
	}
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be written
	return string(quoted)
}

// TestAttributionAbuse sends labels without number, measure or shape.
func TestAttributionAbuse(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	pairs := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d=v,", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for value, good := range map[string]bool{
		"team=search": true, pairs(16): true, pairs(17): false, "k=" + strings.Repeat("v", 256): true, "k=" + strings.Repeat("v", 257): false, strings.Repeat("k", 64) + "=v": true, strings.Repeat("k", 65) + "=v": false,
		"k=" + strings.Repeat("%C3%A9", 128): true, "k=" + strings.Repeat("%C3%A9", 129): false, "key_id=x": false, "sub_account_id=x": false, "__proto__=x": true, "constructor=x": true, "a=1,a=2": false, "=v": false, "k": false, "k=%zz": false, "k=%ff": false, "k=%00": false,
		"a b=c": false, "k\u00e9=v": false, "k[]=v": false, "k/=v": false, `{"a":"b"}`: true, `{"a":1}`: false, `{"a":{"b":"c"}}`: false, `{"a":"b","a":"c"}`: false, `{"a":"b"}x`: false, `{"a":null}`: false, `{"key_id":"x"}`: false, `["a"]`: false, `{"a":"` + strings.Repeat("v", 257) + `"}`: false,
		`{"\u0061":"b"}`: true, `{"a\u0000":"b"}`: false, "k=" + strings.Repeat("v", 20_000): false, strings.Repeat("k=v,", 5000): false, "provider=x": true, "day=x": true, "": true,
	} {
		for _, path := range []string{"/v1/chat/completions", "/s35/v1/chat/completions"} {
			a := l.raw(t, l.request("POST", path, chat("lab/s35"), "X-Gateway-Attribution: "+value))
			if a == nil || (a.StatusCode == 200) != good || !good && a.StatusCode != 400 {
				t.Errorf("%.80q: %v", value, a)
			}
		}
	}
	for _, s := range l.provider.corner("s35").take() {
		if s.Header.Get("X-Gateway-Attribution") != "" {
			t.Error("the labels reached the provider")
		}
	}
}

// TestHostileGlobs gives a key a thousand rules of the worst kind and looks
// at what a call costs with them; a deny among them still holds.
func TestHostileGlobs(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	l := &lab{Gateway: g}
	tenant := g.NewClient("globs")
	plain, _ := g.NewKey(tenant)
	rules := []modelgate.Entitlement{{Axis: "provider", Provider: "*", ModelPattern: "*", Effect: "allow"}}
	for i := range 998 {
		worst := "*" + strings.Repeat("a", 100+i%100) + strings.Repeat("*a", 20) + "b"
		rules = append(rules, modelgate.Entitlement{Axis: "vendor", Provider: strings.Repeat("*", 200) + "x", ModelPattern: worst, Effect: "deny"})
	}
	rules = append(rules, modelgate.Entitlement{Axis: "vendor", Provider: "openai", ModelPattern: "*mini", Effect: "deny"})
	file := filepath.Join(t.TempDir(), "ceiling.json")
	ceiling, _ := json.Marshal(map[string]any{"max_scopes": []string{"inference:use"}, "entitlements": rules})
	if err := os.WriteFile(file, ceiling, 0o600); err != nil {
		t.Fatal(err)
	}
	g.Admin(nil, "ceiling", "set", "--client", string(tenant), "--file", file)
	heavy, _ := g.NewKey(tenant)
	model := strings.Repeat("a", 255)
	fastest := func(key, body string, want int) time.Duration {
		best := time.Hour
		for range 30 {
			began := time.Now()
			if a := l.call(t, key, "POST", "/openai/v1/chat/completions", body); a.StatusCode != want {
				t.Fatalf("%s %.40q: %s %s", key[:12], body, a, a.body)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	without, with := fastest(plain, chat(model), 200), fastest(heavy, chat(model), 200)
	t.Logf("a call takes %v without rules, %v with a thousand", without, with)
	if with > without+20*time.Millisecond {
		t.Errorf("a thousand rules cost %v a call", with-without)
	}
	fastest(heavy, chat("gpt-5-mini"), 403)
	rules[1].ModelPattern = strings.Repeat("*", 257)
	ceiling, _ = json.Marshal(map[string]any{"max_scopes": []string{"inference:use"}, "entitlements": rules})
	for name, text := range map[string][]byte{"a pattern too long": ceiling, "rules too many": []byte(`{"max_scopes":[],"entitlements":[` + strings.Repeat(`{"provider":"a","model_pattern":"b","effect":"deny"},`, 1000) + `{"provider":"a","model_pattern":"b","effect":"deny"}]}`)} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, errs, code := g.Run("ceiling", "set", "--client", string(tenant), "--file", file, "--config", g.ConfigFile); code == 0 {
			t.Errorf("%s: %s%s", name, out, errs)
		}
	}
}

// TestHostileDurations overflows every duration and number there is.
func TestHostileDurations(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	bad := []string{"9999999999d", "99999999999999999999d", "1e309h", "1e9h", "-1d", "-1h", "0d", "0s", "0", "", "d", "h", "NaN", "NaNh", "infh", "+1d", "1d1h", "0x10h", "1_000h", "\u0663d", "\uff11d", "1\u00a0d", " 1d", "1d ", "2562048h", "3651d", "87601h", "9223372036854775807ns", "1w", "1y", "1", "1.d.d", "1..5h"}
	for _, text := range bad {
		for _, target := range []string{"/gw/usage?since=", "/gw/stats?since="} {
			if a := l.call(t, l.key, "GET", target+url.QueryEscape(text), ""); a.StatusCode != 400 && a.StatusCode != 404 {
				t.Errorf("%s%q: %s", target, text, a)
			}
		}
	}
	for _, number := range []string{"0", "-1", "315360001", "9223372036854775807", "9223372036854775808", "1e9", "1e400", "1.5", `"60"`, "true", "[]", "-9223372036854775809", "18446744073709551617", "0x10", "01", "1e-1"} {
		if a := l.call(t, l.key, "POST", "/gw/keys", `{"scopes":[],"expires_in_seconds":`+number+`}`); a.StatusCode != 400 {
			t.Errorf("expires_in_seconds %s: %s", number, a)
		}
	}
	for _, number := range []string{"0", "-1", "1001", "1e3", "9223372036854775808", "+1", "0x1", "1.0", " 1", "\u0661", "", "NaN"} {
		for _, target := range []string{"/gw/usage?limit=", "/gw/keys?limit="} {
			if a := l.call(t, l.key, "GET", target+url.QueryEscape(number), ""); a.StatusCode != 400 {
				t.Errorf("%s%q: %s", target, number, a)
			}
		}
	}
	for _, amount := range []string{"0", "-1", "1e10", "1e400", "1e-10", "0.0000000001", `"1"`, "null", "NaN", "1000000001"} {
		if a := l.call(t, l.key, "PUT", "/gw/budgets", `{"scope":"client","period":"day","limit_usd":`+amount+`}`); a.StatusCode != 400 && a.StatusCode != 404 {
			t.Errorf("limit_usd %s: %s", amount, a)
		}
	}
}
