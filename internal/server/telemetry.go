package server

import (
	"modelgate/internal/config"
	"modelgate/internal/gateway"
	"modelgate/internal/tracing"
)

// openTracing makes the exporter of traces, unless there is nowhere to send
// them.
func (s *Server) openTracing(cfg *config.Config) *gateway.Tracing {
	t := cfg.Telemetry
	if t.OTLPEndpoint == "" {
		return nil
	}
	s.traces = tracing.NewExporter(tracing.Options{
		Endpoint: t.OTLPEndpoint, Version: s.Version, Instance: s.spool.Instance(), Log: s.log,
	})
	s.metrics.counter("modelgate_trace_spans_sent_total", "Spans that the collector took.", func() int64 { n, _ := s.traces.Stats(); return n })
	s.metrics.counter("modelgate_trace_spans_dropped_total", "Spans that it did not take in time.", func() int64 { _, n := s.traces.Stats(); return n })
	return &gateway.Tracing{Sampler: tracing.NewSampler(t.SamplePercent), Add: s.traces.Add}
}
