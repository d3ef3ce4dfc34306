package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"modelgate"
)

// registry holds the metrics of an instance.
type registry struct{ *prometheus.Registry }

// gauge registers a figure that may fall. It is read whenever metrics are
// asked for.
func (r registry) gauge(name, help string, value func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// counter registers a figure that only rises.
func (r registry) counter(name, help string, value func() int64) {
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) }))
}

// outcomes registers counters that one label tells apart. Those of the values
// begin at 0, because rate() does not see a rise from nothing.
func (r registry) outcomes(name, help, label string, values ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, value := range values {
		v.WithLabelValues(value)
	}
	r.MustRegister(v)
	return v
}

func (s *Server) registerMetrics() {
	r := s.metrics
	s.reloads = r.outcomes("modelgate_config_reloads_total", "Reloads of the configuration, by outcome.", "outcome", "applied", "refused")
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.identities)
	r.gauge("modelgate_spool_bytes", "Bytes the spool has allocated.", func() float64 { return float64(s.spool.Stats().Bytes) })
	r.gauge("modelgate_spool_open_calls", "Calls begun and not ended.", func() float64 { return float64(s.spool.Stats().Open) })
	r.gauge("modelgate_spool_backlog_bytes", "Bytes of entries not yet booked in the database.", func() float64 { return float64(s.shipper.Backlog()) })
	r.gauge("modelgate_spool_oldest_seconds", "Age of the oldest finished call that is not booked; 0 while the database keeps up.",
		func() float64 { return s.shipper.Stats().FailingFor.Seconds() })
	r.gauge("modelgate_spool_last_fsync_seconds", "Duration of the last sync.", func() float64 { return s.spool.Stats().LastSync.Seconds() })
	r.counter("modelgate_spool_quarantined_total", "Damaged places and entries kept aside.",
		func() int64 { return s.spool.Stats().Quarantined + s.shipper.Stats().Quarantined })
	r.counter("modelgate_limiter_fallbacks_total", "Requests whose limits this instance judged alone, because Redis did not answer.", s.limiter.fallbacks)
	s.watchRates()
	for _, kind := range []modelgate.SessionKind{modelgate.KeySession, modelgate.PersonSession} {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "modelgate_sessions", Help: "Sessions of the pages that this instance has seen lately, by what opened them.", ConstLabels: prometheus.Labels{"kind": string(kind)},
		}, func() float64 { return float64(s.sessions.Count(kind)) }))
	}
	r.gauge("modelgate_evidence_lag_seconds", "Age of the oldest record of evidence that is in no chain yet.", func() float64 { return s.chains.Stats().Lag.Seconds() })
	r.counter("modelgate_evidence_records_total", "Records of evidence chained by this process.", func() int64 { return s.chains.Stats().Records })
	r.counter("modelgate_log_lines_withheld_total", "Lines that libraries wrote to the standard logger.", s.withheld.lines.Load)
	r.counter("modelgate_rows_booked_total", "Usage rows booked by this process.", func() int64 { return s.shipper.Stats().Rows })
}

// watchRates counts what rate limits refuse and how long they take. No label
// names a tenant.
func (s *Server) watchRates() {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_limit_refusals_total", Help: "Requests that a rate limit refused, by the limit's scope, unit and window.",
	}, []string{"kind", "scope", "unit", "window"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "modelgate_limiter_script_seconds", Help: "How long drawing from all rate limits of a step has taken.",
		Buckets: []float64{.00001, .00005, .0001, .0005, .001, .005, .01, .05},
	})
	s.metrics.MustRegister(refusals, took)
	// So that the metric is there before the first refusal.
	refusals.WithLabelValues(string(modelgate.LimitRate), string(modelgate.LevelClient), string(modelgate.UnitRequests), "minute")
	s.limiter.rates.Refused = func(r *modelgate.RateLimit) {
		refusals.WithLabelValues(string(modelgate.LimitRate), string(r.Level), string(r.Unit), r.Window).Inc()
	}
	s.limiter.rates.Took = func(d time.Duration) { took.Observe(d.Seconds()) }
}
