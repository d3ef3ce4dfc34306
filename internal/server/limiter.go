package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/httpx"
	"modelgate/internal/ratelimit"
)

// liveLimiter applies the configuration's limits of the moment to keys that
// have none of their own.
type liveLimiter struct {
	ratelimit.Limiter
	shared   *ratelimit.Shared // nil without Redis
	defaults atomic.Pointer[modelgate.Limits]
	rates    *ratelimit.Rates
}

func newLimiter(cfg *config.Config, ids *modelgate.IDs, log *slog.Logger) (*liveLimiter, error) {
	local := ratelimit.NewLocal(modelgate.Limits{}, time.Now)
	l := &liveLimiter{Limiter: local, rates: ratelimit.NewRates(local)}
	l.configure(cfg)
	if cfg.Redis.URL.Empty() {
		return l, nil
	}
	shared, err := ratelimit.NewShared(ratelimit.SharedOptions{URL: cfg.Redis.URL.Reveal(), Local: local, IDs: ids, Log: log})
	if err != nil {
		return nil, err
	}
	l.Limiter, l.shared, l.rates = shared, shared, ratelimit.NewRates(shared)
	l.configure(cfg)
	return l, nil
}

func (l *liveLimiter) configure(cfg *config.Config) {
	c := cfg.Limits
	l.defaults.Store(&modelgate.Limits{RequestsPerSecond: &c.RequestsPerSecond, Burst: &c.Burst, Concurrency: &c.Concurrency})
	kept, _ := c.RateLimits()
	l.rates.Configure(kept)
}

// Enter admits a request of a key or refuses it; see ratelimit.Limiter.
func (l *liveLimiter) Enter(key modelgate.KeyID, limits modelgate.Limits, kind ratelimit.Kind, above ...modelgate.Ancestor) (ratelimit.Pass, error) {
	defaults := l.defaults.Load()
	if len(above) > 0 { // a shared bucket has one size, whoever draws from it
		above = slices.Clone(above)
		for i := range above {
			above[i].Limits.Burst = above[i].Limits.Or(*defaults).Burst
		}
	}
	return l.Limiter.Enter(key, limits.Or(*defaults), kind, above...)
}

// State is how much of its own limits a key has used; see ratelimit.Limiter.
func (l *liveLimiter) State(key modelgate.KeyID, limits modelgate.Limits) []modelgate.LimitState {
	return l.Limiter.State(key, limits.Or(*l.defaults.Load()))
}

// fallbacks is how many requests were judged by this instance alone although
// there is a Redis.
func (l *liveLimiter) fallbacks() int64 {
	if l.shared == nil {
		return 0
	}
	return l.shared.Fallbacks()
}

// Run renews what is held in Redis until the context ends.
func (l *liveLimiter) Run(ctx context.Context) {
	if l.shared != nil {
		l.shared.Run(ctx)
		l.shared.Close() // leases run out by themselves
	}
}

// sharedRates is the bucket of an organization's tokens at one client address, as
// the configuration of the moment has it.
func (s *Server) sharedRates(proxies httpx.Proxies) func(*http.Request, *modelgate.Caller) []ratelimit.Bucket {
	return func(r *http.Request, c *modelgate.Caller) []ratelimit.Bucket {
		most := s.config.Load().Limits.AddressRequestsPerMinute
		if most == 0 {
			return nil
		}
		return []ratelimit.Bucket{{Name: "address:" + string(c.ClientID) + ":" + proxies.Network(r).String(), PerMinute: int64(most)}}
	}
}
