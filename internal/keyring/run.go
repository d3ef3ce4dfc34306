package keyring

import (
	"context"
	"sync"
	"time"
)

// pollEvery is how often the control version is read and last uses are
// stored.
const pollEvery = time.Second

// aheadWorkers is how many refreshes beside calls run at once; the rest of
// the lane is left to calls that wait.
const aheadWorkers = laneWidth / 2

// Run keeps the keyring up to date until ctx ends, then stores the last uses
// that are left.
func (k *Keyring) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for range aheadWorkers {
		running.Go(func() { k.refreshAhead(ctx) })
	}
	running.Go(func() { k.every(ctx, "read the control version", k.poll()) })
	running.Go(func() {
		k.every(ctx, "store last uses of keys", k.touches.flush)
		if err := k.touches.flush(context.WithoutCancel(ctx)); err != nil {
			k.log.Warn("last uses of keys are lost", "error", err)
		}
	})
}

// refreshAhead renews callers before a call would have to wait for it.
func (k *Keyring) refreshAhead(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-k.ahead:
			s := k.shard(d)
			if _, err := k.lookup(ctx, s, d, s.get(d), Origin{}); err != nil {
				k.log.Debug("refresh of a key failed", "error", err)
			}
		}
	}
}

// every repeats a step once a second, at once the first time, and logs when
// it begins to fail and when it works again.
func (k *Keyring) every(ctx context.Context, what string, step func(context.Context) error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		err := step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			k.log.Warn("cannot "+what, "error", err)
		case err == nil && failing:
			k.log.Info("can " + what + " again")
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
// every caller stale: the next use asks the database, and only while that
// does not answer does age decide, as before. A failed read changes nothing.
func (k *Keyring) poll() func(context.Context) error {
	var last int64
	seen := false
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		began := k.now()
		version, err := k.source.ControlVersion(ctx)
		if err != nil {
			return err
		}
		k.noteRead(began)
		if !seen || version != last {
			k.epoch.Add(1)
		}
		last, seen = version, true
		return nil
	}
}
