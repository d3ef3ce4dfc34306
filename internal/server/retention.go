package server

import (
	"sync/atomic"
	"time"

	"modelgate/internal/config"
	"modelgate/internal/worker"
)

// newPruner makes the loop that deletes usage past its retention.
func (s *Server) newPruner(cfg *config.Config) *worker.RetentionPruner {
	var pruned, last atomic.Int64
	s.metrics.counter("modelgate_rows_pruned_total", "Usage rows that this process deleted because they were too old.", pruned.Load)
	s.metrics.gauge("modelgate_retention_last_success_timestamp_seconds", "When this process last found nothing left to prune.",
		func() float64 { return float64(last.Load()) })
	return &worker.RetentionPruner{
		Ledger: s.db, Log: s.log, Now: time.Now, Keep: time.Duration(cfg.Metering.RetentionDays) * 24 * time.Hour,
		First:  []worker.PruneFirst{s.pruneEvidence},
		Pruned: func(n int64) { pruned.Add(n) },
		Done:   func() { last.Store(time.Now().Unix()) },
	}
}
