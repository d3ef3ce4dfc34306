package security

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// The canaries: each is a secret, or a text that nobody may keep.
const (
	providerCanary  = "sk-canary-of-the-provider-3b1f9a"
	promptCanary    = "canary-of-a-prompt-71c04e"
	webhookCanary   = "whsec_canary-of-the-webhook-55aa01"
	processorCanary = "sk_test_canary-of-the-processor-8d21"
)

var (
	masterCanary  = base64.StdEncoding.EncodeToString([]byte("canary-of-master-key-32-bytes!!!"))
	sessionCanary = base64.StdEncoding.EncodeToString([]byte("canary-of-session-key-32-bytes!!"))
)

// spellings are the forms in which a secret could be written.
func spellings(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))}
	if raw, err := base64.StdEncoding.DecodeString(secret); err == nil && len(raw) == 32 {
		forms = append(forms, string(raw), hex.EncodeToString(raw))
	}
	// The middle of base64 stays the same wherever the secret stands in a text.
	for shift := range 3 {
		padded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + secret))
		forms = append(forms, padded[4:len(padded)-4])
	}
	return forms
}

// answerTo begins the name of an answer's sink.
const answerTo = "the answer to "

// sink is a place where secrets could end up, by name.
type sink struct{ name, text string }

// witness is a client that writes its own secret into every call and keeps
// every answer.
type witness struct {
	mu      sync.Mutex
	answers []sink
	keys    map[string]bool // issued to it
	cookies map[string]bool // of its sessions
}

var keyForm = regexp.MustCompile(`gw_live_[0-9a-f]{48}`)

// RoundTrip adds a marked member to bodies, and a marked label to calls.
func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		signed := strings.HasPrefix(r.URL.Path, "/webhooks/") // what is signed is left as it is
		if bytes.HasPrefix(body, []byte(`{"`)) && !signed && !bytes.Contains(body, []byte(`"tenant":`)) {
			body = append([]byte(`{"tenant":"`+promptCanary+`",`), body[1:]...)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if key := keyForm.FindString(r.Header.Get("Authorization")); key != "" && !strings.HasSuffix(key, "abcdef") && strings.Trim(key[8:], "0") != "" {
		w.issued(key) // one of noughts only was never issued, and is found in any chain's beginning
	}
	r.Header.Set("X-Canary", promptCanary)
	// The list of sessions shows the browsers that they were opened with.
	if opens := strings.HasSuffix(r.URL.Path, "/session"); r.Header.Get("User-Agent") == "" && !opens {
		r.Header.Set("User-Agent", promptCanary)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, _ := io.ReadAll(resp.Body) // one that is cut counts as far as it came
	resp.Body.Close()
	w.note(r, resp, string(answer))
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, nil
}

// note keeps an answer, less the key of an issuance and the cookie of a
// session that begins: there they may be.
func (w *witness) note(r *http.Request, resp *http.Response, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/gw/keys") && resp.StatusCode == 200 {
		if key := keyForm.FindString(text); key != "" {
			w.keys[key] = true
			text = strings.Replace(text, key, "[the key]", 1)
		}
	}
	header := fmt.Sprint(resp.Header)
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/session") {
		for _, cookie := range resp.Cookies() {
			w.cookies[cookie.Value] = true
			header = strings.Replace(header, cookie.Value, "[the cookie]", 1)
		}
	}
	w.answers = append(w.answers, sink{answerTo + r.Method + " " + r.URL.Path, resp.Status + header + text})
}

func (w *witness) issued(key string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = true
	return key
}

// collector keeps what telemetry and alerts send.
type collector struct {
	mu   sync.Mutex
	text strings.Builder
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what came is what is searched
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprint(&c.text, r.URL, r.Header, string(body))
}

// TestCanaries plays every script in spec, and calls that
// fail in every way, with marked secrets and at the most talkative log level.
// Then it searches everything that is written or answered. A script that is
// added to spec/ is played here too.
func TestCanaries(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := newAviary(t, engine)
			t.Run("spec", a.playSpec)
			a.visitPages(t)
			a.failAll(t)
			a.reload(t)
			running := a.files(t)
			a.Stop()
			a.checkWays(t)
			a.search(t, running)
		})
	}
}

// aviary is a gateway whose every secret is a canary.
type aviary struct {
	*testkit.Gateway
	witness   *witness
	collector *collector
	processor *testkit.Processor
	dir       string
	database  string // "" is SQLite
	key       string
	evidence  string // the signing key's secret part
}

func newAviary(t *testing.T, engine string) *aviary {
	t.Helper()
	a := &aviary{witness: &witness{keys: map[string]bool{}, cookies: map[string]bool{}}, collector: &collector{}, dir: t.TempDir()}
	if engine == "postgres" {
		a.database = testkit.Postgres(t)
	}
	outside := httptest.NewServer(a.collector)
	t.Cleanup(outside.Close)
	a.processor = testkit.NewProcessor(t, processorCanary)
	a.processor.Secret = webhookCanary
	failpoint := filepath.Join(a.dir, "failpoint")
	if err := os.WriteFile(failpoint, []byte("begin.panic:1"), 0o600); err != nil {
		t.Fatal(err)
	}
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: providerCanary})
	printed, _, _ := testkit.RunBinary(t, nil, "evidence", "key", "new")
	signing := regexp.MustCompile(`PRIVATE\S+`).FindString(printed)
	parts := strings.SplitN(signing, "+", 5)
	if len(parts) != 5 {
		t.Fatal("no signing key is printed")
	}
	a.evidence = parts[4]
	a.Gateway = testkit.StartGateway(t, testkit.GatewayOptions{
		Dir: a.dir, Database: a.database, Upstream: upstream.URL, Credential: providerCanary, Binary: testkit.FailpointBinary(t),
		Env: []string{"MODELGATE_FAILPOINT=" + failpoint, "MODELGATE_MASTER_KEY=" + masterCanary, "MODELGATE_SESSION_KEY=" + sessionCanary, "MODELGATE_SIGNING_KEY=" + signing},
		More: fmt.Sprintf("master_key: ${MODELGATE_MASTER_KEY}\nsession_key: ${MODELGATE_SESSION_KEY}\nevidence: {signing_key: \"${MODELGATE_SIGNING_KEY}\"}\nprocessor: {base_url: %q, api_key: %q, webhook_secret: %q}\nalerts: {webhook_url: %q, secret: %q}\ntelemetry: {otlp_endpoint: %q}\n",
			a.processor.URL, processorCanary, webhookCanary, outside.URL, webhookCanary, outside.URL),
	})
	key, _ := a.NewKey(a.NewClient("canaries"))
	a.key = a.witness.issued(key)
	a.failAll(t) // the first call of all panics in its handler
	eventually(t, "a handler panics, for that way to be tried", patience, func() bool { return strings.Contains(a.Log(), "panic in a handler") })
	return a
}

// playSpec plays the scripts as the tests of the command do.
func (a *aviary) playSpec(t *testing.T) {
	spec := testkit.Spec{Gateway: a.For(t), Processor: a.processor, ProcessorKey: processorCanary, Glob: "../../spec/*.txt"}
	spec.Play(t, testkit.Script{Client: &http.Client{
		Transport: a.witness, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
}

// failAll makes calls that fail before, in and after the provider, with the
// prompt where prompts are and the key where it is not looked for.
func (a *aviary) failAll(t *testing.T) {
	t.Helper()
	through := &http.Client{Transport: a.witness, Timeout: patience}
	send := func(method, target, body string, headers ...string) {
		req, err := http.NewRequest(method, a.URL+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.key)
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		if resp, err := through.Do(req); err == nil {
			resp.Body.Close()
		}
	}
	for _, directive := range []string{"", "[[status=400]]", "[[status=401]]", "[[status=429]]", "[[status=500]]", "[[cut=1]]", "[[unknown]]", "[[redirect=http://127.0.0.1:1/]]", "[[usage=none]]"} {
		for _, stream := range []bool{false, true} {
			body := fmt.Sprintf(`{"model":"MODEL","stream":%v,"max_tokens":9,"messages":[{"role":"user","content":%s}]}`, stream, quote(promptCanary+" "+directive))
			send("POST", "/v1/chat/completions", strings.Replace(body, "MODEL", "openai/gpt-5-mini", 1), "X-Gateway-Attribution", "team=search")
			send("POST", "/v1/messages", strings.Replace(body, "MODEL", "anthropic/claude-haiku-4.5", 1))
			send("POST", "/openai/v1/chat/completions?other="+promptCanary, "{}") // refused by the parameter's name
			send("POST", "/openai/v1/chat/completions?key="+a.key, strings.Replace(body, "MODEL", "gpt-5-mini", 1))
			send("POST", "/anthropic/v1/messages", strings.Replace(body, "MODEL", "m", 1), "X-Api-Key", a.key)
		}
	}
	for _, body := range []string{`{"model":"` + promptCanary, `{"model":"` + promptCanary + `/x","messages":[]}`, promptCanary, `{"` + promptCanary + `":1,"` + promptCanary + `":2}`, `{"model":"openai/gpt-5-mini","` + promptCanary + `":\x}`} {
		send("POST", "/v1/chat/completions", body)
		if !strings.Contains(body, `/x"`) { // the name of a model is no prompt, and is booked
			send("POST", "/openai/v1/chat/completions", body)
		}
	}
	send("GET", "/"+promptCanary, "")
	send("GET", "/openai/v1/"+promptCanary, "")
	send("GET", "/openai/v1/models?key="+a.key, "")
	send("GET", "/openai/v1/models/"+a.key, "")
	send("GET", "/gw/usage?since="+promptCanary, "")
	send("GET", "/gw/me", "", "Authorization", "Bearer "+a.key[:50]+"abcdef")
	send("GET", "/gw/me", "", "Authorization", "Basic "+a.key)
	send("POST", "/v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[]}`, "X-Other", a.key, "Cookie", "k="+a.key, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "x="+promptCanary, "Baggage", "x="+promptCanary)
	for _, path := range []string{"/metrics", "/gw/usage?limit=1000", "/gw/keys", "/gw/stats", "/gw/stats?group_by=team", "/gw/me", "/gw/evidence", "/gw/ceiling", "/readyz"} {
		send("GET", path, "")
	}
}

// reload reads the configuration with its secrets again, when it is good and
// when it is not, and lets the operator's commands read it.
func (a *aviary) reload(t *testing.T) {
	t.Helper()
	a.Signal(syscall.SIGHUP)
	good, err := os.ReadFile(a.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{string(good) + "\nunknown: " + promptCanary + "\n", "providers: [" + providerCanary, strings.Replace(string(good), "format: openai", "format: "+promptCanary, 1)} {
		if err := os.WriteFile(a.ConfigFile, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(a.Log(), "not reloaded")
		a.Signal(syscall.SIGHUP)
		eventually(t, "a refused reload", patience, func() bool { return strings.Count(a.Log(), "not reloaded") > n })
	}
	if err := os.WriteFile(a.ConfigFile, good, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"client", "list"}, {"budget", "list"}, {"reconcile"}, {"config", "check"}, {"evidence", "key"}, {"key", "issue"}} {
		out, errs, _ := a.Run(append(command, "--config", a.ConfigFile)...)
		a.witness.answers = append(a.witness.answers, sink{strings.Join(command, " "), out + errs})
	}
}

// files are those of the data directory, the configuration left out. Some may
// go while they are read.
func (a *aviary) files(t *testing.T) (all []sink) {
	t.Helper()
	err := filepath.WalkDir(a.dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || path == a.ConfigFile {
			return err
		}
		if strings.HasPrefix(d.Name(), "core") {
			t.Errorf("a core file: %s", path)
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		all = append(all, sink{"the file " + d.Name(), string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// search looks for every canary everywhere; running are the files as they were
// before the end.
func (a *aviary) search(t *testing.T, running []sink) {
	t.Helper()
	sinks := append([]sink{{"the log", a.Log()}, {"traces and alerts", a.collector.text.String()}}, a.witness.answers...)
	ended := a.files(t)
	files := len(ended)
	sinks = append(append(sinks, running...), ended...)
	if a.database != "" {
		sinks = append(sinks, tables(t, a.database)...)
	}
	if files < 2 || len(a.witness.answers) < 200 || len(a.Log()) < 1000 || len(a.witness.keys) < 50 || len(a.witness.cookies) < 2 || a.collector.text.Len() == 0 {
		t.Errorf("%d files, %d answers, %d bytes of log, %d keys, %d bytes of traces: too little to prove anything", files, len(a.witness.answers), len(a.Log()), len(a.witness.keys), a.collector.text.Len())
	}
	secrets := map[string]string{"provider's credential": providerCanary, "master key": masterCanary, "webhook secret": webhookCanary, "processor key": processorCanary, "prompt": promptCanary,
		"session key": sessionCanary, "evidence key": a.evidence}
	for cookie := range a.witness.cookies {
		secrets["session "+cookie[:4]] = cookie
	}
	texts := new(needles)
	for what, secret := range secrets {
		for _, form := range spellings(secret) {
			texts.add(what, form)
		}
	}
	for key := range a.witness.keys {
		digest := sha256.Sum256([]byte(key))
		texts.add("key", key[20:44])
		texts.add("digest", string(digest[:]))
		texts.add("digest", hex.EncodeToString(digest[:]))
	}
	keyShown := regexp.MustCompile(`gw_live_[0-9a-f]{11,}`)
	for _, s := range sinks {
		said := map[string]bool{}
		texts.find(s.text, func(what string, at int) {
			stored := strings.Contains(s.name, "modelgate.db") || strings.HasPrefix(s.name, "the table")
			if said[what] || echo(what, s) || what == "digest" && stored {
				return
			}
			said[what] = true
			t.Errorf("a canary (%s) is in %s: …%q…", what, s.name, s.text[max(0, at-60):min(len(s.text), at+60)])
		})
		// A key may show its first 16 characters; a database writes "active"
		// right after them.
		if found := keyShown.FindString(s.text); found != "" {
			t.Errorf("a key is in %s: %s…", s.name, found[:12])
		}
	}
	t.Logf("%d sinks searched: %d answers, %d files, %d KiB of log, %d keys", len(sinks), len(a.witness.answers), files, len(a.Log())>>10, len(a.witness.keys))
}

// echo reports whether a sink may hold a text because its reader has just
// sent it: the answer to the very call.
func echo(what string, s sink) bool {
	return what == "prompt" && strings.HasPrefix(s.name, answerTo)
}

// tables are the rows of a PostgreSQL database, as text.
func tables(t *testing.T, source string) (all []sink) {
	t.Helper()
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names []string
	if err := db.QueryRow("SELECT json_agg(table_name) FROM information_schema.tables WHERE table_schema = 'public'").Scan((*jsonList)(&names)); err != nil || len(names) < 5 {
		t.Fatalf("tables %v, %v", names, err)
	}
	for _, name := range names {
		var text sql.NullString
		if err := db.QueryRow("SELECT string_agg(x::text, chr(10)) FROM " + name + " x").Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, sink{"the table " + name, text.String})
	}
	return all
}

type jsonList []string

// Scan reads a list.
func (l *jsonList) Scan(v any) error {
	switch text := v.(type) {
	case []byte:
		return json.Unmarshal(text, (*[]string)(l))
	case string:
		return json.Unmarshal([]byte(text), (*[]string)(l))
	}
	return fmt.Errorf("a list is a %T", v)
}
