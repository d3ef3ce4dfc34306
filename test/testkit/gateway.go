//go:build unix

package testkit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/simulator"
)

// GatewayOptions say how to start a gateway; the zero value is one on SQLite
// with a simulated provider behind it.
type GatewayOptions struct {
	// Upstream is the address of the simulated provider behind the usual
	// providers and catalog; "" starts one. See Gateway.Upstream.
	Upstream string
	// Database is a URL; "" is SQLite in the data directory.
	Database string
	// Pooled says that Database is that of a Pooler.
	Pooled bool
	// Server, Metering, Limits and More are YAML: the first three are the
	// fields of their sections, without braces, More is appended as it is.
	Server, Metering, Limits, More string
	// Providers and Catalog, YAML lists, replace the usual ones.
	Providers, Catalog string
	// Credential is what Upstream takes; "" is that of the usual one.
	Credential string
	Env        []string
	// Binary is the path of what to run; "" is that of Binary.
	Binary string
	// Dir is the data directory and the place of the configuration; "" is a
	// fresh one.
	Dir string
}

// usualProviders are four formats on the simulated provider, one of them
// outside the EU and one with another name, for routes.
const usualProviders = `
  - {name: openai, format: openai, base_url: "$UPSTREAM", region: us, credential: sk-upstream}
  - {name: eu, format: openai, base_url: "$UPSTREAM", region: eu-west, credential: sk-upstream}
  - {name: anthropic, format: anthropic, base_url: "$UPSTREAM", region: us, credential: sk-upstream}
  - {name: gemini, format: gemini, base_url: "$UPSTREAM", region: us, credential: sk-upstream}
  - {name: cohere, format: cohere, base_url: "$UPSTREAM", region: us, credential: sk-upstream}`

const usualCatalog = `
  - {slug: openai/gpt-5-mini, display_name: GPT-5 mini, kind: llm, context_length: 400000, max_output: 128000, created: 2026-01-15,
     routes: [{provider: openai, model: gpt-5-mini}], price: {input: 0.25, cached_input: 0.025, output: 2.00}}
  - {slug: anthropic/claude-haiku-4.5, kind: llm, context_length: 200000,
     routes: [{provider: anthropic, model: claude-haiku-4-5}], price: {input: 1, cached_input: 0.1, cache_write: 1.25, cache_write_1h: 2, output: 5}}
  - {slug: openai/text-embedding-3-small, kind: embedding, routes: [{provider: openai, model: text-embedding-3-small}], price: {input: 0.02}}
  - {slug: openai/gpt-image-1, kind: image, routes: [{provider: openai, model: gpt-image-1}], price: {input: 5, output: 40}}
  - {slug: openai/tts-1, kind: audio, routes: [{provider: openai, model: tts-1}], price: {characters: 15}}
  - {slug: openai/whisper-1, kind: audio, routes: [{provider: openai, model: whisper-1}], price: {second: 0.0001, input: 2.5, audio_input: 6, output: 10}}
  - {slug: openai/sora-2, kind: video, routes: [{provider: openai, model: sora-2}], price: {second: 0.1}}
  - {slug: cohere/rerank-v3.5, kind: rerank, routes: [{provider: cohere, model: rerank-v3.5}], price: {search: 2}}
  - {slug: acme/both, kind: llm, routes: [{provider: openai, model: both-us}, {provider: eu, model: both-eu}], price: {input: 1, output: 1}}
  - {slug: acme/nowhere, kind: llm, routes: [{provider: missing, model: x}], price: {input: 1, output: 1}}
  - {slug: acme/unpriced, kind: llm, routes: [{provider: openai, model: unpriced}]}`

// Gateway is a running binary. Its process is killed with the test.
type Gateway struct {
	*instance
	t testing.TB
}

// For is the same gateway on behalf of a subtest, which its failures then
// end.
func (g *Gateway) For(t testing.TB) *Gateway { return &Gateway{g.instance, t} }

// instance is what all views of a gateway share.
type instance struct {
	// URL is where it listens: http://127.0.0.1:port. A restart may change it.
	URL string
	// Upstream is the simulated provider behind it; nil where the options
	// brought an address.
	Upstream *UpstreamServer
	// ConfigFile is what it was started with.
	ConfigFile string

	env     []string
	binary  string
	process *exec.Cmd
	exited  chan struct{} // closed when the process is gone
	log     gatewayLog
}

// StartGateway builds the binary, once per test process, writes a
// configuration and starts it.
func StartGateway(t testing.TB, o GatewayOptions) *Gateway {
	t.Helper()
	notShort(t)
	if o.Binary == "" {
		o.Binary = Binary(t)
	}
	g := &Gateway{&instance{env: append(os.Environ(), o.Env...), binary: o.Binary}, t}
	if o.Upstream == "" {
		g.Upstream = Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream", KeepRequests: true})
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	g.ConfigFile = filepath.Join(o.Dir, "modelgate.yaml")
	g.Configure(o)
	g.Start()
	t.Cleanup(g.Kill)
	return g
}

// Configure writes the configuration file; a running gateway sees it on
// SIGHUP.
func (g *Gateway) Configure(o GatewayOptions) {
	g.t.Helper()
	if o.Upstream == "" && g.Upstream != nil {
		o.Upstream = g.Upstream.URL
	}
	if o.Server != "" {
		o.Server = ", " + o.Server
	}
	pooler := ""
	if o.Pooled {
		pooler = ", pooler: transaction"
	}
	text := fmt.Sprintf("server: {listen: \"127.0.0.1:0\", data_dir: ., drain_delay: 0s%s}\n", o.Server) +
		fmt.Sprintf("database: {url: %q%s}\n", cmp.Or(o.Database, "sqlite:modelgate.db"), pooler) +
		fmt.Sprintf("metering: {%s}\n", cmp.Or(o.Metering, "fsync: always")) +
		fmt.Sprintf("limits: {%s}\n", cmp.Or(o.Limits, "requests_per_second: 0, concurrency: 0")) +
		"log: {level: debug, format: text}\n" +
		"providers:" + cmp.Or(o.Providers, usualProviders) + "\n" +
		"catalog:" + cmp.Or(o.Catalog, usualCatalog) + "\n" + o.More
	text = strings.ReplaceAll(text, "$UPSTREAM", o.Upstream)
	text = strings.ReplaceAll(text, "sk-upstream", cmp.Or(o.Credential, "sk-upstream"))
	if err := os.WriteFile(g.ConfigFile, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

var listening = regexp.MustCompile(`msg=listening.* addr=(127\.0\.0\.1:\d+)\s`)

// gatewayLog takes what a process and its predecessors write, and finds the
// address on which the present one listens.
type gatewayLog struct {
	mu      sync.Mutex
	text    bytes.Buffer
	began   int         // where the text of the present process begins
	address chan string // nil once the address has been found
}

// begin waits for the address of another process.
func (l *gatewayLog) begin() <-chan string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.address = l.text.Len(), make(chan string, 1)
	return l.address
}

// Write implements io.Writer.
func (l *gatewayLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.address != nil {
		if m := listening.FindSubmatch(l.text.Bytes()[l.began:]); m != nil {
			l.address <- string(m[1])
			l.address = nil
		}
	}
	return len(b), nil
}

// listenTimeout leaves time for a long spool to be booked on a busy machine.
const listenTimeout = 3 * time.Minute

// Start starts the process on what is there, and waits until it listens.
func (g *Gateway) Start() {
	g.t.Helper()
	process, exited, address := exec.Command(g.binary, "serve", "--config", g.ConfigFile), make(chan struct{}), g.log.begin()
	process.Env, process.Stdout, process.Stderr = g.env, &g.log, &g.log
	g.process, g.exited = process, exited
	if err := process.Start(); err != nil {
		g.t.Fatalf("start gateway: %v", err)
	}
	go func() {
		_ = process.Wait() // Stop and Kill read the outcome from ProcessState
		close(exited)
	}()
	select {
	case a := <-address:
		g.URL = "http://" + a
	case <-exited:
		g.t.Fatalf("the gateway exited with %d before it listened; its log:\n%s", g.ExitCode(), g.Log())
	case <-time.After(listenTimeout):
		g.Kill()
		g.t.Fatalf("the gateway did not listen within %v; its log:\n%s", listenTimeout, g.Log())
	}
}

// Log is what the process and its predecessors have written to standard
// output and error. What is written about a call may be here a moment after
// its answer; after Stop and Kill all is here, and after Start all that comes
// before listening.
func (g *Gateway) Log() string {
	g.log.mu.Lock()
	defer g.log.mu.Unlock()
	return g.log.text.String()
}

// Signal sends a signal to the process.
func (g *Gateway) Signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.process.Process.Signal(s); err != nil {
		g.t.Fatalf("signal gateway: %v", err)
	}
}

// Stop ends the process with SIGTERM and fails the test unless it ends well.
func (g *Gateway) Stop() {
	g.t.Helper()
	g.Signal(syscall.SIGTERM)
	select {
	case <-g.exited:
	case <-time.After(time.Minute):
		g.Kill()
		g.t.Fatalf("the gateway did not end within a minute of SIGTERM; its log:\n%s", g.Log())
	}
	if code := g.ExitCode(); code != 0 {
		g.t.Fatalf("the gateway exited with %d on SIGTERM, want 0; its log:\n%s", code, g.Log())
	}
}

// Kill ends the process with SIGKILL; one that has ended stays so.
func (g *Gateway) Kill() {
	_ = g.process.Process.Kill() // it may have ended by itself
	<-g.exited
}

// Exited is closed when the process is gone.
func (g *Gateway) Exited() <-chan struct{} { return g.exited }

// ExitCode is how the process ended, -1 by a signal. It must be gone.
func (g *Gateway) ExitCode() int { return g.process.ProcessState.ExitCode() }

// Pid is the process's id.
func (g *Gateway) Pid() int { return g.process.Process.Pid }

// Admin runs an operator's command on the gateway's configuration and decodes
// its JSON into the result, unless that is nil. It fails the test when the
// command fails.
func (g *Gateway) Admin(result any, args ...string) {
	g.t.Helper()
	stdout, stderr, code := g.Run(append(args, "--config", g.ConfigFile, "--json")...)
	if code != 0 {
		g.t.Fatalf("modelgate %s exited with %d, want 0:\n%s", strings.Join(args, " "), code, stderr)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal([]byte(stdout), result); err != nil {
		g.t.Fatalf("modelgate %s: %v\n%s", strings.Join(args, " "), err, stdout)
	}
}

// Run runs the gateway's binary with any arguments.
func (g *Gateway) Run(args ...string) (stdout, stderr string, code int) {
	g.t.Helper()
	return run(g.t, g.binary, g.env, args...)
}

// Upgrade has the next Start and Run use another binary.
func (g *Gateway) Upgrade(binary string) { g.binary = binary }

// RunBinary runs the binary with an environment, nil for that of the test.
func RunBinary(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	notShort(t)
	return run(t, Binary(t), env, args...)
}

func run(t testing.TB, binary string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	// A busy machine's database takes longer to begin a connection than a
	// command waits by itself.
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(slices.Clone(env), "PGCONNECT_TIMEOUT=60")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("modelgate %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// NewClient creates an organization; flags are those of `client create`.
func (g *Gateway) NewClient(name string, flags ...string) modelgate.ClientID {
	g.t.Helper()
	var client modelgate.Client
	g.Admin(&client, append([]string{"client", "create", "--name", name}, flags...)...)
	return client.ID
}

// NewKey issues a key and returns its secret and id; flags are those of
// `key issue`.
func (g *Gateway) NewKey(client modelgate.ClientID, flags ...string) (secret string, id modelgate.KeyID) {
	g.t.Helper()
	var issued modelgate.IssuedKey
	g.Admin(&issued, append([]string{"key", "issue", "--client", string(client)}, flags...)...)
	return issued.Key, issued.APIKeyID
}

// build is a binary of this test process.
type build struct {
	path  string
	guard *watchdog // removes it when this process ends
}

var (
	binary  = sync.OnceValues(func() (build, error) { return buildCheckout("") })
	failing = sync.OnceValues(func() (build, error) { return buildCheckout("failpoint") })
)

// Binary is the path of the modelgate binary, built from this checkout once
// per test process.
func Binary(t testing.TB) string { return builtPath(t, binary) }

// FailpointBinary is Binary built with the tag failpoint: one that a test can
// have killed at a chosen place.
func FailpointBinary(t testing.TB) string { return builtPath(t, failing) }

func builtPath(t testing.TB, made func() (build, error)) string {
	t.Helper()
	notShort(t)
	b, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return b.path
}

// buildCheckout builds this checkout with its pages.
func buildCheckout(tags string) (build, error) {
	root, err := moduleRoot()
	if err != nil {
		return build{}, err
	}
	pages := exec.Command("scripts/pages")
	pages.Dir = root
	if out, err := pages.CombinedOutput(); err != nil {
		return build{}, fmt.Errorf("build pages: %w\n%s", err, out)
	}
	b, err := place()
	if err != nil {
		return b, err
	}
	return b, b.compile(root, tags)
}

func moduleRoot() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// place makes a folder for a binary that a watchdog removes when the test
// process ends.
func place() (build, error) {
	dir, err := os.MkdirTemp("", "modelgate-binary-")
	if err != nil {
		return build{}, err
	}
	guard, err := watch(`cat >/dev/null; rm -rf "$0"`, dir, nil)
	return build{filepath.Join(dir, "modelgate"), guard}, err
}

func (b build) compile(source, tags string) error {
	cmd := exec.Command("go", "build", "-pgo=off", "-tags", tags, "-o", b.path, "./cmd/modelgate")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build modelgate: %w\n%s", err, out)
	}
	return nil
}
