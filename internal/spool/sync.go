package spool

import (
	"fmt"
	"runtime"
	"time"
)

// batch is the entries that one sync makes durable.
type batch struct {
	done chan struct{} // the batons, once they are, or once err says why not
	err  error
}

func newBatch() *batch { return &batch{done: make(chan struct{}, runtime.GOMAXPROCS(0))} }

// finish has those who wait go on one after the other, on each processor:
// who is woken by the one before runs next there, ahead of calls that have not
// come as far. Woken all at once, they would run behind those. It is called once
// for each batch: by sync for the one that it took, else by die for the last. err
// is set before the first baton, so that who has one reads it without a lock.
func (b *batch) finish(err error) {
	b.err = err
	for range cap(b.done) {
		b.done <- struct{}{}
	}
}

// wait returns once everything in the batch is durable.
func (s *Spool) wait(b *batch) error {
	s.ask()
	s.poll()
	<-b.done
	b.done <- struct{}{}
	return b.err
}

// poll checks whether the sync that is under way has ended.
func (s *Spool) poll() {
	if fs, ok := s.FS.(poller); ok {
		fs.Poll()
	}
}

// ask has syncLoop sync what is appended by now.
func (s *Spool) ask() {
	select {
	case s.asked <- struct{}{}:
	default:
		// A token that is still there has not been taken. syncLoop takes it before
		// sync takes the lock, so that this sync covers what was appended before
		// this call.
	}
}

// syncLoop is the one goroutine that syncs. What is appended while it does is
// the next batch. It ends with the spool.
func (s *Spool) syncLoop() {
	for closed := false; !closed; {
		select {
		case <-s.asked:
		case <-s.closed:
			closed = true // with what was appended last, and the clean end
		}
		if !s.sync() {
			return
		}
	}
}

// wrote notes that a segment has to be synced, within the interval at the
// latest. With Always too: nobody waits for the BEGIN of a long call, and it
// should not have to wait for another call's END. The lock is held.
func (s *Spool) wrote(seg *segment) {
	seg.dirty = true
	switch {
	case s.due:
	case s.tick == nil:
		s.tick = time.AfterFunc(syncInterval, s.ask)
	default:
		s.tick.Reset(syncInterval)
	}
	s.due = true
}

// die makes a failure final: nothing is accepted any more, everybody who
// waits gets the error, and Fatal is called, once. A sync that failed is not tried
// again: Linux marks the pages that it could not write as clean, and the next
// fsync succeeds without them (https://wiki.postgresql.org/wiki/Fsync_Errors).
func (s *Spool) die(err error) {
	s.mu.Lock()
	again := s.dead
	s.dead = true
	if !again {
		s.failed = err
		s.next.finish(err)
	}
	s.roomAsked.Broadcast()
	s.roomMade.Broadcast()
	s.mu.Unlock()
	if !again && s.Fatal != nil {
		s.Fatal(err)
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

// sync makes the next batch durable. It is false once there is nothing to
// sync any more: after a failure what the disk holds is unknown.
func (s *Spool) sync() bool {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		return false
	}
	// The batch and the segments that are dirty are taken under one lock, which
	// End holds from its write until it has read next. The END of whoever waits
	// for b is therefore in a segment of dirty, or in one that was released, whose
	// entries the database has. What is written later is of the next batch and
	// makes its segment dirty again.
	b := s.next
	s.next = newBatch()
	s.due = false
	var dirty []*segment
	for _, seg := range s.segments {
		if seg.dirty {
			seg.dirty = false
			dirty = append(dirty, seg)
		}
	}
	s.syncing = true
	s.mu.Unlock()
	err := s.syncAll(dirty)
	s.synced()
	b.finish(err)
	if err != nil {
		s.die(err)
	}
	return err == nil
}

func (s *Spool) syncAll(dirty []*segment) error {
	begin := time.Now()
	for _, seg := range dirty {
		if err := seg.file.Sync(); err != nil {
			return fmt.Errorf("spool: sync: %w", err)
		}
		s.stats.fsyncs.Add(1)
	}
	if len(dirty) > 0 {
		s.stats.lastSync.Store(int64(time.Since(begin)))
	}
	return nil
}
