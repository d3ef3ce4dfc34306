package relay

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
)

// Metrics counts calls. Its labels are bounded: doors and provider names come
// from tables and the configuration, never from a client.
type Metrics struct {
	calls     *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	fallbacks *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	cost      *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	firstByte *prometheus.HistogramVec
	added     prometheus.Histogram
	inFlight  prometheus.Gauge
	drains    prometheus.Gauge
}

// NewMetrics registers the metrics of a relay.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	seconds := prometheus.ExponentialBuckets(0.005, 2.5, 12)
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "modelgate_calls_total", Help: "Calls sent towards a provider, by how they were answered.",
		}, []string{"surface", "provider", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "modelgate_refusals_total", Help: "Calls the gateway itself turned down, by type of error.",
		}, []string{"type"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "modelgate_fallbacks_total", Help: "Attempts that failed and were followed by one on another route.",
		}, []string{"provider"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "modelgate_tokens_total", Help: "Tokens booked.",
		}, []string{"provider", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "modelgate_cost_usd_total", Help: "Cost booked, in USD.",
		}, []string{"provider"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "modelgate_call_seconds", Help: "Admission to the last byte.", Buckets: seconds,
		}, []string{"provider"}),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "modelgate_first_byte_seconds", Help: "Admission to the provider's first byte.", Buckets: seconds,
		}, []string{"provider"}),
		added: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "modelgate_added_seconds", Help: "What the gateway itself took of a call, apart from its provider: before the request left and while the books were closed.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "modelgate_calls_in_flight", Help: "Calls under way towards providers.",
		}),
		drains: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "modelgate_drains", Help: "Replies read on for the books after their client has left.",
		}),
	}
	reg.MustRegister(m.calls, m.refusals, m.fallbacks, m.tokens, m.cost, m.latency, m.firstByte, m.added, m.inFlight, m.drains)
	return m
}

func (m *Metrics) refused(kind modelgate.Kind) { m.refusals.WithLabelValues(kind.Type()).Inc() }

func (m *Metrics) fellBack(provider string) { m.fallbacks.WithLabelValues(provider).Inc() }

// done counts a call whose books are closed.
func (m *Metrics) done(c *call, end *modelgate.CallEnd) {
	name := c.attempts[c.tried].provider.Name()
	m.calls.WithLabelValues(c.surface, name, strconv.Itoa(end.StatusCode)).Inc()
	m.tokens.WithLabelValues(name, "in").Add(float64(end.Usage.PromptTokens()))
	m.tokens.WithLabelValues(name, "out").Add(float64(end.Usage.Output + end.Usage.AudioOutput))
	m.cost.WithLabelValues(name).Add(float64(end.Cost) / float64(modelgate.USD))
	now := time.Now()
	m.latency.WithLabelValues(name).Observe(now.Sub(c.start).Seconds())
	m.added.Observe((c.leaves.Sub(c.start) + now.Sub(c.closing)).Seconds())
	if !c.firstByte.IsZero() {
		m.firstByte.WithLabelValues(name).Observe(c.firstByte.Sub(c.start).Seconds())
	}
}
