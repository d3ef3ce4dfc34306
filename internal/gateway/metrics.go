package gateway

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/jobs"
)

// Metrics counts calls. Its labels are bounded: doors and provider names come
// from tables and the configuration, never from a client.
type Metrics struct {
	calls     *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	failures  *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	cost      *prometheus.CounterVec
	stated    *prometheus.CounterVec
	computed  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	added     prometheus.Histogram
	jobs      *jobs.Metrics
	inFlight  prometheus.Gauge
	drains    prometheus.Gauge

	mu      sync.RWMutex
	tallies map[string]*tally // of each provider that has been called
}

// tally is a provider's part of the metrics, so that a call need not look its
// labels up one by one.
type tally struct {
	answers            map[answer]prometheus.Counter // guarded by Metrics.mu
	input, output      prometheus.Counter
	cost               prometheus.Counter
	stated, computed   prometheus.Counter
	latency, firstByte prometheus.Observer
}

// answer is what calls are counted by, beside the provider.
type answer struct {
	surface string
	status  int
}

// NewMetrics registers the metrics of a gateway.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "modelgate_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	seconds := func(name, help string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(0.005, 2.5, 12)
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "modelgate_" + name, Help: help, Buckets: buckets}, []string{"provider"})
		reg.MustRegister(h)
		return h
	}
	m := &Metrics{
		calls:     counters("calls_total", "Calls sent towards a provider, by how they were answered.", "surface", "provider", "status"),
		refusals:  counters("refusals_total", "Calls the gateway itself turned down, by type of error.", "type"),
		fallbacks: counters("fallbacks_total", "Attempts that failed and were followed by one on another route.", "provider"),
		failures:  counters("provider_failures_total", "Requests to a provider that got no reply, by cause.", "provider", "cause"),
		tokens:    counters("tokens_total", "Tokens booked.", "provider", "direction"),
		cost:      counters("cost_usd_total", "Cost booked, in USD.", "provider"),
		stated:    counters("stated_cost_usd_total", "Cost that replies state, in USD, of calls whose cost the catalog says too.", "provider"),
		computed:  counters("computed_cost_usd_total", "Cost of the same calls by the catalog, in USD.", "provider"),
		latency:   seconds("call_seconds", "Admission to the last byte."),
		firstByte: seconds("first_byte_seconds", "Admission to the provider's first byte."),
		added: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "modelgate_added_seconds", Help: "What the gateway itself took of a call, apart from its provider and its client: before the request left and while the books were closed.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
		jobs:     jobs.NewMetrics(reg),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "modelgate_calls_in_flight", Help: "Calls under way towards providers."}),
		drains:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "modelgate_drains", Help: "Replies read on for the books after their client has left."}),
		tallies:  make(map[string]*tally),
	}
	reg.MustRegister(m.added, m.inFlight, m.drains)
	for _, kind := range []modelgate.Kind{modelgate.Unavailable, modelgate.Internal} {
		m.refusals.WithLabelValues(kind.Type()) // an alert wants to see the first
	}
	return m
}

func (m *Metrics) refused(kind modelgate.Kind) { m.refusals.WithLabelValues(kind.Type()).Inc() }

func (m *Metrics) fellBack(provider string) { m.fallbacks.WithLabelValues(provider).Inc() }

func (m *Metrics) unreached(provider, cause string) {
	m.failures.WithLabelValues(provider, cause).Inc()
}

// done counts a call whose books are closed.
func (m *Metrics) done(c *call, end *modelgate.CallEnd) {
	t, calls := m.tally(c.attempts[c.tried].provider.Name(), answer{c.surface, end.StatusCode})
	calls.Inc()
	t.input.Add(float64(end.Usage.InputTokens()))
	t.output.Add(float64(end.Usage.OutputTokens()))
	t.cost.Add(float64(end.Cost) / float64(modelgate.USD))
	if c.computed != nil && end.StatedCost != nil {
		t.stated.Add(float64(*end.StatedCost) / float64(modelgate.USD))
		t.computed.Add(float64(*c.computed) / float64(modelgate.USD))
	}
	now := time.Now()
	t.latency.Observe(now.Sub(c.start).Seconds())
	m.added.Observe((c.readyAt.Sub(c.start) - c.upload + now.Sub(c.closingAt)).Seconds())
	if !c.firstByte.IsZero() {
		t.firstByte.Observe(c.firstByte.Sub(c.start).Seconds())
	}
}

// tally is a provider's, and in it the counter of the calls that were answered
// so.
func (m *Metrics) tally(provider string, a answer) (*tally, prometheus.Counter) {
	m.mu.RLock()
	t := m.tallies[provider]
	if t != nil {
		if calls := t.answers[a]; calls != nil {
			m.mu.RUnlock()
			return t, calls
		}
	}
	m.mu.RUnlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if t = m.tallies[provider]; t == nil {
		t = &tally{
			answers: make(map[answer]prometheus.Counter), cost: m.cost.WithLabelValues(provider),
			input: m.tokens.WithLabelValues(provider, "in"), output: m.tokens.WithLabelValues(provider, "out"),
			stated: m.stated.WithLabelValues(provider), computed: m.computed.WithLabelValues(provider),
			latency: m.latency.WithLabelValues(provider), firstByte: m.firstByte.WithLabelValues(provider),
		}
		m.tallies[provider] = t
	}
	calls := t.answers[a]
	if calls == nil {
		calls = m.calls.WithLabelValues(a.surface, provider, strconv.Itoa(a.status))
		t.answers[a] = calls
	}
	return t, calls
}
