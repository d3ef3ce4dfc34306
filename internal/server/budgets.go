package server

import (
	"context"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/budget"
	"modelgate/internal/config"
	"modelgate/internal/provider"
	"modelgate/internal/selfservice"
	"modelgate/internal/store"
	"modelgate/internal/worker"
)

// openBudgets makes what enforces budgets, balances, the caps of browser tokens and
// rate limits over an hour or a day. What an earlier process had leased is free
// from here on: its calls are all booked.
func (s *Server) openBudgets(ctx context.Context, cfg *config.Config) error {
	if err := s.db.EndLeases(ctx, s.spool.Instance()); err != nil {
		return err
	}
	if err := s.putFileLimits(ctx, cfg); err != nil {
		return err
	}
	mode := budget.Estimate
	if cfg.Enforcement.Budgets == config.EnforceStrict {
		mode = budget.Strict
	}
	s.budgets = budget.New(budget.Options{
		Store: s.db, Instance: s.spool.Instance(), Mode: mode, Flushed: s.shipper.Flush, Unreachable: store.Unreachable, Now: time.Now, Log: s.log,
		Refused: func(b *modelgate.Budget) { s.limiter.rates.Refused(b.RateLimit()) },
	})
	m := s.metrics
	m.gauge("modelgate_slices", "Budgets of which this instance holds money.", func() float64 { n, _ := s.budgets.Leases(); return float64(n) })
	m.gauge("modelgate_slices_free_usd", "Money of these that no call has reserved, in USD.", func() float64 {
		_, free := s.budgets.Leases()
		return float64(free) / float64(modelgate.USD)
	})
	m.counter("modelgate_budget_asks_total", "Transactions that reserved money in the database.", func() int64 { return s.budgets.Stats().Asks })
	m.counter("modelgate_budget_returns_total", "Transactions that gave reserved money back.", func() int64 { return s.budgets.Stats().Returns })
	m.counter("modelgate_budget_refusals_total", "Calls refused for a budget or a balance.", func() int64 { return s.budgets.Stats().Refusals })
	m.counter("modelgate_budget_failures_total", "Transactions about budgets that the database did not answer.", func() int64 { return s.budgets.Stats().Failures })
	m.gauge("modelgate_rules", "Rate limits, and budgets with counters of their own, of all organizations.", s.ruleCount)
	return s.budgets.Start(ctx)
}

// putFileLimits has the database count the limits of a configuration by the hour
// and day.
func (s *Server) putFileLimits(ctx context.Context, cfg *config.Config) error {
	_, clock := cfg.Limits.RateLimits()
	return s.db.PutFileLimits(ctx, clock)
}

// changeFileLimits does so where another configuration has other limits, so that
// one without any such change is taken over while the database is away, too.
func (s *Server) changeFileLimits(old, cfg *config.Config) error {
	_, before := old.Limits.RateLimits()
	if _, clock := cfg.Limits.RateLimits(); reflect.DeepEqual(before, clock) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	return s.putFileLimits(ctx, cfg)
}

// ruleCount is asked for whenever metrics are; NaN while the database does not
// answer.
func (s *Server) ruleCount() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	n, err := s.db.RuleCount(ctx)
	if err != nil {
		return math.NaN()
	}
	return float64(n)
}

// callers are those of the database with the budgets that are enforced.
type callers struct {
	*store.DB
	enforced config.Enforcement
}

// Caller is store.DB.Caller without what binds nobody.
func (c callers) Caller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	return c.bind(c.DB.Caller(ctx, d, seen))
}

// TokenCaller is the same for browser tokens.
func (c callers) TokenCaller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	return c.bind(c.DB.TokenCaller(ctx, d, seen))
}

// bind leaves out the budgets that are not enforced. The cap of a token always is.
func (c callers) bind(caller modelgate.Caller, err error) (modelgate.Caller, error) {
	caller.Budgets = slices.DeleteFunc(caller.Budgets, func(b modelgate.Budget) bool {
		switch {
		case b.IsBalance():
			return !c.enforced.Balance
		case b.Level == modelgate.LevelToken:
			return false
		}
		return c.enforced.Budgets == config.EnforceOff
	})
	if c.enforced.Budgets == config.EnforceOff {
		var limits []*modelgate.Budget
		for _, b := range caller.Rules {
			if b.Unit != "" {
				limits = append(limits, b)
			}
		}
		caller.Rules = limits
	}
	return caller, err
}

// newAlerter makes the loop that sends alerts about budgets.
func (s *Server) newAlerter(cfg *config.Config) *worker.Alerter {
	alerts := s.metrics.outcomes("modelgate_budget_alerts_total", "Budgets of which a part was used up, once for each period.", "percent", "50", "80", "100")
	return &worker.Alerter{
		Ledger: s.db, Log: s.log, Count: func(percent int) { alerts.WithLabelValues(strconv.Itoa(percent)).Inc() },
		URL: cfg.Alerts.WebhookURL, Secret: cfg.Alerts.Secret.Reveal(), Public: newPublicClient(cfg),
		Unseal: func(of modelgate.ClientID, sealed []byte) ([]byte, error) {
			return s.master.Open(selfservice.AlertsPlace(of), sealed)
		},
	}
}

// newPublicClient posts to addresses that organizations choose. It asks no
// proxy, which would connect in its place.
func newPublicClient(cfg *config.Config) *http.Client {
	guard := provider.RefusePrivate
	if cfg.Alerts.AllowPrivate {
		guard = provider.RefuseMetadata
	}
	const dial = 5 * time.Second
	return &http.Client{
		Transport:     &http.Transport{DialContext: (&net.Dialer{Timeout: dial, Control: guard}).DialContext, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
