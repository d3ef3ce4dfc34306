package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/config"
	"modelgate/internal/worker"
)

// newKeeper makes the loop that deletes usage which is too old.
func (s *server) newKeeper(cfg *config.Config) *worker.RetentionPruner {
	rows := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "modelgate_rows_pruned_total", Help: "Usage rows that this process deleted because they were too old.",
	})
	last := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "modelgate_retention_last_success_timestamp_seconds", Help: "When this process last found nothing left to prune.",
	})
	s.metrics.MustRegister(rows, last)
	return &worker.RetentionPruner{
		Ledger: s.db, Log: s.log, Now: time.Now, Keep: time.Duration(cfg.Metering.RetentionDays) * 24 * time.Hour,
		First:  []worker.PruneFirst{s.pruneEvidence},
		Pruned: func(n int64) { rows.Add(float64(n)) },
		Done:   last.SetToCurrentTime,
	}
}
