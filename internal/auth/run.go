package auth

import (
	"context"
	"sync"
	"time"
)

// pollEvery is how often the control version is read and last uses are
// stored.
const pollEvery = time.Second

// aheadWorkers is how many refreshes beside calls run at once; the rest of
// the server is left to calls that wait.
const aheadWorkers = laneWidth / 2

// run keeps the cache up to date until ctx ends, then stores the last uses
// that are left; what names these uses.
func (c *cache[T]) run(ctx context.Context, what string, flush func(context.Context) error) {
	var running sync.WaitGroup
	defer running.Wait()
	for range aheadWorkers {
		running.Go(func() { c.refreshAhead(ctx) })
	}
	running.Go(func() { c.every(ctx, "read the control version", c.poll()) })
	running.Go(func() {
		c.every(ctx, "store "+what, flush)
		if err := flush(context.WithoutCancel(ctx)); err != nil {
			c.log.Warn(what+" are lost", "error", err)
		}
	})
}

// refreshAhead renews what is known before a call would have to wait for it.
func (c *cache[T]) refreshAhead(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-c.ahead:
			s := c.shard(d)
			if _, err := c.lookup(ctx, s, d, s.get(d), Origin{}); err != nil {
				c.log.Debug("a refresh failed", "error", err)
			}
		}
	}
}

// every repeats a step once a second, at once the first time, and logs when
// it begins to fail and when it works again.
func (c *cache[T]) every(ctx context.Context, what string, step func(context.Context) error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			c.log.Warn("cannot "+what, "error", err)
		case err == nil && failing:
			c.log.Info("can " + what + " again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// poll makes the step that reads the control version. A new version makes
// everything known stale: the next use asks the database, and only while that
// does not answer does age decide, as before. A failed read changes nothing.
func (c *cache[T]) poll() func(context.Context) error {
	var last int64
	seen := false
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		began := c.now()
		version, err := c.source.version(ctx)
		if err != nil {
			return err
		}
		c.noteRead(began)
		if !seen || version != last {
			c.epoch.Add(1)
		}
		last, seen = version, true
		return nil
	}
}
