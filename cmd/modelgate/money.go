package main

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/budget"
	"modelgate/internal/config"
	"modelgate/internal/store"
	"modelgate/internal/worker"
)

// openPurse makes the purse, unless nothing is enforced. What an earlier life
// held is free from here on: its calls are all booked.
func (s *server) openPurse(cfg *config.Config) error {
	if err := s.db.EndSlices(s.env.ctx, s.spool.Instance()); err != nil {
		return err
	}
	e := cfg.Enforcement
	if e.Budgets == config.EnforceOff && !e.Balance {
		return nil
	}
	mode := budget.Estimate
	if e.Budgets == config.EnforceStrict {
		mode = budget.Strict
	}
	s.purse = budget.New(budget.Options{
		Store: s.db, Instance: s.spool.Instance(), Mode: mode, Flushed: s.shipper.Flush, Unreachable: store.Unreachable, Now: time.Now, Log: s.log,
	})
	figure := func(name, help string, value func(budget.Stats) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(s.purse.Stats())) })
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	s.metrics.MustRegister(
		gauge("modelgate_slices", "Budgets of which this instance holds money.", func() float64 { n, _ := s.purse.Slices(); return float64(n) }),
		gauge("modelgate_slices_free_usd", "Money of these that no call has reserved, in USD.", func() float64 {
			_, free := s.purse.Slices()
			return float64(free) / float64(modelgate.USD)
		}),
		figure("modelgate_budget_asks_total", "Transactions that reserved money in the database.", func(st budget.Stats) int64 { return st.Asks }),
		figure("modelgate_budget_returns_total", "Transactions that gave reserved money back.", func(st budget.Stats) int64 { return st.Returns }),
		figure("modelgate_budget_refusals_total", "Calls refused for a budget or a balance.", func(st budget.Stats) int64 { return st.Refusals }),
		figure("modelgate_budget_failures_total", "Transactions about budgets that the database did not answer.", func(st budget.Stats) int64 { return st.Failures }),
	)
	return s.purse.Start(s.env.ctx)
}

// callers are those of the database with the budgets that are enforced.
type callers struct {
	*store.DB
	enforced config.Enforcement
}

// Caller is store.DB.Caller without what binds nobody.
func (c callers) Caller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	caller, err := c.DB.Caller(ctx, d, seen)
	caller.Budgets = slices.DeleteFunc(caller.Budgets, func(b modelgate.Budget) bool {
		if b.IsBalance() {
			return !c.enforced.Balance
		}
		return c.enforced.Budgets == config.EnforceOff
	})
	return caller, err
}

// newAlerter makes the loop that tells about budgets.
func (s *server) newAlerter(cfg *config.Config) *worker.Alerter {
	alerts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_budget_alerts_total", Help: "Budgets of which a part was used up, once for each period.",
	}, []string{"percent"})
	for _, percent := range []string{"50", "80", "100"} {
		alerts.WithLabelValues(percent)
	}
	s.metrics.MustRegister(alerts)
	return &worker.Alerter{
		Ledger: s.db, Log: s.log, Count: func(percent int) { alerts.WithLabelValues(strconv.Itoa(percent)).Inc() },
		URL: cfg.Alerts.WebhookURL, Secret: cfg.Alerts.Secret.Reveal(),
	}
}
