package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// product is what somebody else offers for the same work.
type product struct {
	name, version string // the version that is pinned, empty: the one that the system's packages have
	source        source
	ways          []way
}

// way is how a product is set up. Each is as its maker documents it.
type way struct {
	name string // of the target
	set  string // what is on, for readers
	// books: it writes what it has to write about a call after its answer.
	books bool
	start func(f *fleet, p program) (*target, error)
	// of is filled in when the product is ready.
	of program
}

// products are in the order of the report.
func products() []product {
	return []product{
		{name: nameNginx, source: debianPackage{command: "nginx", packages: []string{"nginx"}}, ways: []way{
			{name: nameNginx, set: "plain proxy: no keys, no log", start: func(f *fleet, p program) (*target, error) { return startNginx(p, f.dir, f.providers) }},
		}},
		{name: "HAProxy", source: debianPackage{command: "haproxy", packages: []string{"haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"}}, ways: []way{
			{name: "HAProxy", set: "plain proxy: no keys, no log", start: startHAProxy},
		}},
		{name: "Envoy", source: debianPackage{command: "envoy", packages: []string{"envoy"}}, ways: []way{
			{name: "Envoy", set: "plain proxy: no keys, no log", start: startEnvoy},
		}},
		{name: "Bifrost", version: "v1.6.7", source: goModule{path: "github.com/maximhq/bifrost/transports", command: "bifrost-http", stub: "bifrost-http/ui/index.html"}, ways: []way{
			{name: "Bifrost, everything off", set: "no keys, no log", start: startBifrost(false)},
			{name: "Bifrost, keys and logs", set: "virtual key with a budget and a limit, log with contents in SQLite", books: true, start: startBifrost(true)},
		}},
		{name: "GoModel", version: "v0.1.66", source: goModule{path: "github.com/enterpilot/gomodel", command: "cmd/gomodel"}, ways: []way{
			{name: "GoModel, everything off", set: "no keys, no log, no retries", start: startGoModel(false)},
			{name: "GoModel, keys and logs", set: "master key, usage and audit log in SQLite", books: true, start: startGoModel(true)},
		}},
		{name: "Portkey", version: "1.15.2", source: npmPackage{name: "@portkey-ai/gateway", script: "build/start-server.js",
			// With the versions that npm chooses today, every stream ends in "TypeError: immutable".
			overrides: map[string]string{"hono": "4.9.7", "@hono/node-server": "1.13.8"}}, ways: []way{
			{name: "Portkey", set: "no keys, no log (the open gateway has none)", start: startPortkey},
		}},
		{name: "LiteLLM", version: "1.108.2", source: pythonPackage{name: "litellm[proxy]", command: "litellm"}, ways: []way{
			{name: "LiteLLM", set: "master key, one worker, no database", start: startLiteLLM},
		}},
	}
}

// absent is what could not be measured. The reason is empty for what could not be
// obtained: what it was is this machine's affair, and has been printed.
type absent struct{ name, reason string }

// peersDir is where products are kept, outside every repository.
func peersDir() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "modelgate-peers"), err
}

// obtainPeers makes all products ready that can be had.
func obtainPeers(o *options) (ways []way, missing []absent, err error) {
	dir, err := peersDir()
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	for _, p := range products() {
		var wanted []way
		for _, w := range p.ways {
			if o.targets.MatchString(w.name) {
				wanted = append(wanted, w)
			}
		}
		if len(wanted) == 0 {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: obtaining %s in %s\n", p.title(), dir)
		ready, err := p.obtain(dir)
		if err != nil {
			missing = append(missing, absent{name: p.title()})
			fmt.Fprintf(os.Stderr, "bench: %s cannot be had: %v\n", p.title(), err)
			continue
		}
		for _, w := range wanted {
			w.of = ready
			ways = append(ways, w)
		}
	}
	return ways, missing, nil
}

// title is the product's name and, if it is pinned, its version.
func (p *product) title() string { return strings.TrimSpace(p.name + " " + p.version) }

// obtain makes the product ready in a folder of its own, unless it is there.
func (p *product) obtain(dir string) (program, error) {
	dir = filepath.Join(dir, strings.ReplaceAll(strings.ToLower(p.title()), " ", "-"))
	if _, err := os.Stat(dir); err != nil {
		tmp, err := os.MkdirTemp(filepath.Dir(dir), "new-")
		if err != nil {
			return program{}, err
		}
		defer os.RemoveAll(tmp)
		if err := p.source.fetch(tmp, p.version); err != nil {
			return program{}, err
		}
		if err := os.Rename(tmp, dir); err != nil {
			return program{}, err
		}
	}
	return p.source.program(dir, p.version)
}

// startPeers starts all products that were obtained, in all their ways. Those
// that do not start are missing too.
func (f *fleet) startPeers(ways []way) []absent {
	var missing []absent
	for _, w := range ways {
		t, err := w.start(f, w.of)
		if err != nil {
			missing = append(missing, absent{w.name + " " + w.of.version, "does not start: " + err.Error()})
			continue
		}
		t.name, t.peer, t.onlyHTTP1 = w.name, &w, true
		f.targets = append(f.targets, t)
	}
	return missing
}

// startPeer starts a product's program in a folder and waits until it answers a
// path with 200. What it says is in the folder's file named log.
func startPeer(t *target, dir, path string) (*target, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	t.process.Dir, t.process.Stdout, t.process.Stderr = dir, log, log
	if t.keys == nil {
		t.keys = []string{"sk-bench"}
	}
	if err := startMeasured(t.process); err != nil {
		return nil, err
	}
	const patience = time.Minute
	if err := awaitOK(t.address, path, patience); err != nil {
		t.end()
		said, _ := os.ReadFile(log.Name()) // without it the error says less
		return nil, fmt.Errorf("%w; %s", err, said[max(0, len(said)-300):])
	}
	return t, nil
}

// awaitRest waits until a product that writes about calls after its answers uses
// next to no processor time.
func (t *target) awaitRest() error {
	const pause, idle, patience = 500 * time.Millisecond, 10 * time.Millisecond, time.Minute
	before, err := t.cpu()
	for deadline := time.Now().Add(patience); err == nil && time.Now().Before(deadline); {
		time.Sleep(pause)
		var now time.Duration
		if now, err = t.cpu(); now-before < idle {
			return err
		}
		before = now
	}
	return errors.Join(err, fmt.Errorf("%s does not come to rest", t.name))
}

// command is how a program is called, with more variables in its environment.
func (p program) command(args []string, environment ...string) *exec.Cmd {
	cmd := exec.Command(p.path, append(p.args, args...)...)
	cmd.Env = append(append(os.Environ(), p.environment...), environment...)
	return cmd
}
