package e2e

import (
	"bufio"
	"flag"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

var full = flag.Bool("full", false, "run at the size that the documentation states")

// size is a figure for the suite and one for -full.
func size[T any](small, large T) T {
	if *full {
		return large
	}
	return small
}

// world is a gateway, the provider behind it and a key.
type world struct {
	*testkit.Gateway
	t        *testing.T
	upstream *upstream
	target   *target
	key      string
	client   modelgate.ClientID
	driver   string
	source   string // of the database, for the driver
}

// engines are the databases that a proof is made on.
func engines(t *testing.T, prove func(t *testing.T, database string)) {
	for _, engine := range []struct {
		name string
		open func(testing.TB) string
	}{
		{"sqlite", func(testing.TB) string { return "" }},
		{"postgres", testkit.Postgres},
	} {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			prove(t, engine.open(t))
		})
	}
}

func newWorld(t *testing.T, o testkit.GatewayOptions) *world {
	t.Helper()
	w := &world{t: t, upstream: newUpstream(t), target: newTarget(), driver: "pgx", source: o.Database}
	o.Upstream = w.upstream.URL
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Database == "" {
		w.driver, w.source = "sqlite", filepath.Join(o.Dir, "modelgate.db")
	}
	w.Gateway = testkit.StartGateway(t, o)
	w.client = w.NewClient("proof")
	w.key, _ = w.NewKey(w.client)
	w.target.set(w.URL)
	return w
}

// restart starts the gateway again and tells the callers where it is.
func (w *world) restart() {
	w.t.Helper()
	w.Start()
	w.target.set(w.URL)
}

// load points a load at the gateway; the usual number of callers is 64.
func (w *world) load(l *load) *load {
	l.target, l.key = w.target, w.key
	if l.callers == 0 {
		l.callers = 64
	}
	return l
}

// settle stops the gateway, the books closed, and the provider.
func (w *world) settle() {
	w.t.Helper()
	w.Stop()
	w.upstream.close()
}

// verdict judges what callers saw and checks the counters. The gateway must
// have ended, and have answered something, or nothing is proved.
func (w *world) verdict(calls []*call) *verdict {
	w.t.Helper()
	v := w.verdictOfCut(calls)
	if v.answered == 0 {
		w.t.Error("no call was answered, so nothing is proved; the log below should say why")
	}
	return v
}

// verdictOfCut is verdict where all calls were cut on purpose.
func (w *world) verdictOfCut(calls []*call) *verdict {
	w.t.Helper()
	v := judge(w.t, calls, w.upstream.ledger.All(), readRows(w.t, w.driver, w.source))
	v.check(w.t)
	stdout, stderr, code := w.Run("reconcile", "--config", w.ConfigFile)
	v.reconciled = "no difference"
	if code != 0 {
		v.reconciled = "DIFFERENCES"
		w.t.Errorf("`modelgate reconcile` found that counters differ from the usage rows (exit %d):\n%s%s", code, stdout, stderr)
	}
	if w.t.Failed() {
		w.t.Logf("the gateway's log ends with\n%s", tail(w.Log(), 4000))
	}
	return v
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// metrics reads the gateway's figures by name, labels included.
func (w *world) metrics() map[string]float64 {
	w.t.Helper()
	resp, err := http.Get(w.URL + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("/metrics: %s\n%s", resp.Status, said)
	}
	values := map[string]float64{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = n
		}
	}
	return values
}

// eventually looks again and again, every 20 ms, until what it waits for in
// another process is so, and returns how long that took.
func (w *world) eventually(what string, within time.Duration, so func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for range time.Tick(20 * time.Millisecond) {
		if so() {
			break
		}
		if time.Since(began) > within {
			w.t.Errorf("waited %v in vain until: %s; the gateway's log ends with\n%s", within, what, tail(w.Log(), 2000))
			break
		}
	}
	return time.Since(began)
}
