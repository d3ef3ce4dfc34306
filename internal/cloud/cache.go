package cloud

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
)

const (
	// maxWait is how long a request waits for a credential, and one fetch may
	// take.
	maxWait = 5 * time.Second
	// retryWaiting is the pause after a failed fetch while requests wait;
	// maxRetry bounds it while none does.
	retryWaiting = time.Second
	maxRetry     = time.Minute
	// retryStale is the pause after a fetch that brought what was known, as
	// metadata services that keep tokens themselves do.
	retryStale = time.Minute
	// retryRefused is how often a refused credential is fetched again at most.
	retryRefused = 30 * time.Second
)

// cache holds one credential. While it is fresh, requests take it without
// waiting; when it is due, it is still used while the next is fetched; once it
// has expired, requests wait for one shared fetch.
type cache struct {
	fetch   fetcher
	log     *slog.Logger
	current atomic.Pointer[credential]

	mu        sync.Mutex
	running   chan struct{} // closed at the end of the fetch under way; nil for none
	ended     time.Time     // when the last fetch ended
	failures  int           // fetches that failed since the last that did not
	down      bool          // requests have no credential
	err       error         // of the last fetch, described
	refusedAt time.Time     // when a refusal last led to a fetch
	timer     *time.Timer   // of the next fetch; nil for none
	closed    bool

	refreshed, failed, rejected, unavailable atomic.Int64
}

func newCache(fetch fetcher, log *slog.Logger) *cache { return &cache{fetch: fetch, log: log} }

// get is a credential that can be used. The error is modelgate.ErrCredential.
func (c *cache) get(ctx context.Context) (*credential, error) {
	if have := c.current.Load(); have.usable(time.Now()) {
		return have, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		fetched, pause := c.start()
		var again <-chan time.Time
		if fetched == nil {
			again = time.After(pause)
		}
		select {
		case <-fetched:
		case <-again:
		case <-ctx.Done():
		}
		if have := c.current.Load(); have.usable(time.Now()) {
			return have, nil
		}
		if ctx.Err() != nil {
			c.unavailable.Add(1)
			return nil, modelgate.ErrCredential
		}
	}
}

// start begins a fetch unless one is under way or has just failed. The channel is
// closed when it ends; nil, with the pause that is left, where there is none.
func (c *cache) start() (fetched <-chan struct{}, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return c.running, 0
	}
	if since := time.Since(c.ended); c.failures > 0 && since < retryWaiting {
		return nil, retryWaiting - since
	}
	c.running = make(chan struct{})
	go c.run(c.running)
	return c.running, 0
}

// run makes one fetch.
func (c *cache) run(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	got, err := c.fetch(ctx)
	now := time.Now()
	if err == nil {
		err = got.problem(now)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(done)
	c.running, c.ended = nil, now
	have := c.current.Load()
	switch {
	case err != nil:
		c.failed.Add(1)
		c.failures++
		c.report(describe(err), have.usable(now))
		c.schedule(backoff(c.failures))
	case have.usable(now) && !have.expires.IsZero() && !got.expires.After(have.expires):
		c.failed.Add(1)
		c.schedule(retryStale)
	default:
		got.plan(now)
		c.current.Store(got)
		c.refreshed.Add(1)
		c.failures = 0
		c.report(nil, true)
		c.schedule(got.due.Sub(now))
	}
}

// backoff is the pause after so many failures in a row, from one second to one
// minute, and up to a quarter of it more at random.
func backoff(failures int) time.Duration {
	d := min(retryWaiting<<min(failures-1, 6), maxRetry)
	return d + rand.N(d/4)
}

// report logs a change of state, and keeps the error of the last fetch.
func (c *cache) report(err error, usable bool) {
	wasFailing, wasDown := c.err != nil, c.down
	c.err, c.down = err, !usable
	switch {
	case err == nil && (wasFailing || wasDown):
		c.log.Info("credential fetched again")
	case err != nil && !usable && !wasDown:
		c.log.Error("credential cannot be fetched; calls fail with 500 until it can", "error", err)
	case err != nil && !wasFailing:
		c.log.Warn("credential cannot be fetched; the one at hand is used meanwhile", "error", err)
	}
}

// schedule fetches again after a time. The mutex is held.
func (c *cache) schedule(d time.Duration) {
	if c.timer != nil {
		c.timer.Stop()
	}
	if !c.closed {
		c.timer = time.AfterFunc(d, func() { c.start() })
	}
}

// refused notes that a provider did not accept the credential.
func (c *cache) refused() {
	c.rejected.Add(1)
	c.mu.Lock()
	due := c.refusedAt.IsZero() || time.Since(c.refusedAt) >= retryRefused
	if due {
		c.refusedAt = time.Now()
	}
	c.mu.Unlock()
	if due {
		c.start()
	}
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
}
