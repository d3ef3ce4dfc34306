package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/httpx"
)

// paused is a body that keeps the gateway waiting once.
type paused struct {
	io.Reader
	pause time.Duration
}

func (p *paused) Read(b []byte) (int, error) {
	time.Sleep(p.pause) // a client's, which no signal can stand for
	p.pause = 0
	return p.Reader.Read(b)
}

// sum is all that a histogram has seen, in seconds.
func sum(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	found, err := reg.Gather()
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0].GetMetric()[0].GetHistogram().GetSampleSum()
}

// TestSlowUploadsAreNotTheGateways: what a client takes to send its body is
// no latency that the gateway adds.
func TestSlowUploadsAreNotTheGateways(t *testing.T) {
	t.Parallel()
	g := open(t, rawUpstream(t, sends(sized("application/json", chatReply))).URL, plan{})
	const pause = 100 * time.Millisecond
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", &paused{strings.NewReader(chatBody), pause})
	r.Header.Set("Authorization", "Bearer gw_live_any")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	g.Config.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get(httpx.RequestIDHeader) == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	added, all := sum(t, g.gateway.Metrics.added), sum(t, g.gateway.Metrics.latency)
	if all-added < pause.Seconds() {
		t.Errorf("of %.3f s the gateway is said to have added %.3f, although its client took %v", all, added, pause)
	}
}
