package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

const gatewayConfig = `server: {listen: "127.0.0.1:0", admin_listen: %q, data_dir: %q%s}
database: {url: %q}
limits: {requests_per_second: 0, concurrency: 0}
enforcement: {budgets: true, balance: true}
metering: {fsync: %s}
log: {format: text}
providers:
  - {name: openai, format: openai, base_url: "http://%s", credential: sk-bench%[7]s}
  - {name: openai-tls, format: openai, base_url: "https://%[8]s", credential: sk-bench%[7]s}
  - {name: anthropic, format: anthropic, base_url: "http://%[6]s", credential: sk-bench%[7]s}
  - {name: openai-h2, format: openai, base_url: "https://%[9]s", credential: sk-bench, http2: true%[7]s}
catalog:
%[10]s`

// gateway is how a Modelgate is to be started.
type gateway struct {
	name, binary, fsync string
	dir                 string
	database            string // URL, empty for SQLite
	providers           [len(links)]*target
	server, provider    string // more of the configuration of the server and of each provider
	front               bool   // clients call it over TLS
	environment         []string
	scale               scale
}

// start makes a database and serves it.
func (g *gateway) start() (*target, error) {
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return nil, err
	}
	if g.database == "" {
		g.database = "sqlite:modelgate.db"
	}
	keys, err := seed(g.database, g.dir, g.scale)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	t, err := g.serve()
	if err == nil {
		t.keys = keys
	}
	return t, err
}

// serve starts the process on the database that is there.
func (g *gateway) serve() (*target, error) {
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(g.dir, "modelgate.yaml")
	text := fmt.Sprintf(gatewayConfig, admin, g.dir, g.server, g.database, g.fsync, g.providers[overPlain].address, g.provider,
		g.providers[overTLS].address, g.providers[overHTTP2].address, catalogOf(g.scale.models))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(g.binary, "serve", "--config", file)
	cmd.Env = append(os.Environ(), g.environment...)
	return started(&target{name: g.name, gateway: true, model: ours, admin: admin, process: cmd})
}

// ours is where a gateway has a scenario's API, and the slug of its model there.
func ours(sc *scenario) (path, model string) {
	model = slugOf(sc.Link, sc.Model)
	if sc.API == apiMessages {
		model = anthropicSlug(sc.Model)
	}
	return apiPaths[sc.API], model
}

// anthropicSlug is the catalog's slug of a model behind Anthropic's API.
func anthropicSlug(model string) string { return "bench/anthropic-" + model }

// unfinished are the metrics of a gateway that are above 0 while calls that
// have ended are not yet booked or not yet in the chain of evidence.
var unfinished = regexp.MustCompile(`(?m)^modelgate_(spool_backlog_bytes|evidence_lag_seconds) [^0\n]`)

// A look whether a gateway is at rest costs it processor time, which counts, and
// one that carries rows on gathers them for a second: the first look comes after
// that. It comes as late at those without rows: where in that second a turn
// begins decides how many batches fall into it, so all begin alike.
const (
	settleFirst = 1100 * time.Millisecond
	settlePause = 500 * time.Millisecond
)

// settle waits until a gateway has booked everything, evidence included.
func (t *target) settle() error {
	if t.peer != nil && t.peer.books {
		return t.awaitRest()
	}
	if !t.gateway {
		return nil
	}
	look, err := http.NewRequest(http.MethodGet, "http://"+t.admin+"/metrics", nil)
	if err != nil {
		return err
	}
	look.Header.Set("Accept-Encoding", "identity") // compressing them would count too
	time.Sleep(settleFirst)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(settlePause) {
		resp, err := http.DefaultClient.Do(look)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		left := unfinished.Find(text)
		if left == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not come to rest: %s", t.name, left)
		}
	}
}
