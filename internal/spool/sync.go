package spool

import (
	"fmt"
	"sync"
	"time"
)

// syncer lets one goroutine sync for all who wait. Amounts are bytes appended
// in this life.
type syncer struct {
	mu      sync.Mutex
	done    sync.Cond // synced, failed or stopped has changed
	asked   sync.Cond // wanted, spare or closing has changed
	wanted  int64
	synced  int64
	spare   bool // a spare segment is asked for
	failed  error
	closing bool
	stopped bool
}

func (y *syncer) init() { y.done.L, y.asked.L = &y.mu, &y.mu }

// wait returns once a sync has covered the target.
func (y *syncer) wait(target int64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if target > y.wanted {
		y.wanted = target
		y.asked.Signal()
	}
	for y.synced < target && y.failed == nil && !y.stopped {
		y.done.Wait()
	}
	if y.synced >= target {
		return nil
	}
	if y.failed != nil {
		return y.failed
	}
	return fmt.Errorf("spool: closed before the entry was synced")
}

func (y *syncer) requestSpare() {
	y.mu.Lock()
	y.spare = true
	y.mu.Unlock()
	y.asked.Signal()
}

// stop ends the loop after a last sync and returns that one's error.
func (y *syncer) stop() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.closing = true
	y.asked.Signal()
	for !y.stopped {
		y.done.Wait()
	}
	return y.failed
}

// next waits for work. It reports whether a sync is due, whether a spare
// segment is asked for, and whether this is the last round.
func (y *syncer) next() (spare, last bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.wanted <= y.synced && !y.spare && !y.closing {
		y.asked.Wait()
	}
	spare, y.spare = y.spare, false
	return spare, y.closing
}

// finish tells those who wait how a round came out.
func (y *syncer) finish(synced int64, err error, last bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err == nil {
		y.synced = max(y.synced, synced)
	} else if y.failed == nil {
		y.failed = err
	}
	y.stopped = y.stopped || last || err != nil
	y.done.Broadcast()
}

// syncLoop is the one goroutine that syncs. It ends with Close or with the
// first sync that fails.
func (s *Spool) syncLoop() {
	// With Always too: nobody waits for the BEGIN of a long call, and it should
	// not have to wait for another call's END.
	time.AfterFunc(syncInterval, s.tick)
	for {
		spare, last := s.syncs.next()
		if spare {
			s.mu.Lock()
			if err := s.allocateSpare(); err != nil {
				s.Log.Warn("no spare spool segment", "error", err)
			}
			s.mu.Unlock()
		}
		synced, err := s.syncDirty()
		if err != nil {
			err = fmt.Errorf("spool: sync: %w", err)
			s.mu.Lock()
			s.failed = err
			s.mu.Unlock()
		}
		s.syncs.finish(synced, err, last)
		if err != nil && s.Fatal != nil {
			s.Fatal(err)
		}
		if err != nil || last {
			return
		}
	}
}

// tick asks for a sync of whatever has been appended, and for the next tick.
func (s *Spool) tick() {
	s.mu.Lock()
	appended := s.appended
	s.mu.Unlock()
	s.syncs.mu.Lock()
	stopped := s.syncs.stopped
	if appended > s.syncs.wanted {
		s.syncs.wanted = appended
		s.syncs.asked.Signal()
	}
	s.syncs.mu.Unlock()
	if !stopped {
		time.AfterFunc(syncInterval, s.tick)
	}
}

// synced closes what was released during a sync.
func (s *Spool) synced() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncing = false
	for _, file := range s.released {
		if err := file.Close(); err != nil {
			s.Log.Warn("released spool segment could not be closed", "error", err)
		}
	}
	s.released = nil
}

// syncDirty syncs every segment written to since its last sync and returns
// how many bytes of this life are then durable.
func (s *Spool) syncDirty() (int64, error) {
	s.mu.Lock()
	covered := s.appended
	var dirty []*segment
	for _, seg := range s.segments {
		if seg.dirty {
			seg.dirty = false
			dirty = append(dirty, seg)
		}
	}
	s.syncing = true
	s.mu.Unlock()
	defer s.synced()
	begin := time.Now()
	for _, seg := range dirty {
		if err := seg.file.Sync(); err != nil {
			return 0, err
		}
		s.stats.fsyncs.Add(1)
	}
	if len(dirty) > 0 {
		s.stats.lastSync.Store(int64(time.Since(begin)))
	}
	return covered, nil
}
