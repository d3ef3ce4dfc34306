package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/jobs"
)

// lag is how long another instance may take to book what it has answered.
func (s *Server) lag() time.Duration {
	if s.db.Shared() {
		return 2 * time.Second
	}
	return 0
}

// newPoller makes the loop that follows asynchronous jobs.
func (s *Server) newPoller() *jobs.Poller {
	polls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_job_polls_total", Help: "Polls of asynchronous jobs that nobody asked for, by outcome.",
	}, []string{"provider", "outcome"})
	p := &jobs.Poller{
		Ledger: s.db, Now: time.Now, Log: s.log, Ended: s.gateway.JobEnded,
		Polled: func(provider, outcome string) { polls.WithLabelValues(provider, outcome).Inc() },
		Provider: func(name string) jobs.Prober {
			if p := s.snapshot.Load().Providers[name]; p != nil {
				return jobs.Client{Provider: p}
			}
			return nil
		},
	}
	s.metrics.MustRegister(polls)
	s.metrics.gauge("modelgate_jobs_pending", "Asynchronous jobs of all instances that have not ended.", func() float64 { return float64(p.Stats().Pending) })
	s.metrics.gauge("modelgate_jobs_oldest_seconds", "Age of the oldest job that has not ended.", func() float64 { return p.Stats().Oldest.Seconds() })
	s.metrics.counter("modelgate_job_claims_total", "Transactions that took jobs to poll, many at once.", func() int64 { return p.Stats().Claims })
	return p
}
