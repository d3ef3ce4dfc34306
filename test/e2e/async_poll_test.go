package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestAsyncPolling has one instance follow many jobs that do not end, and
// counts what that costs: connections at the provider, statements at the
// database.
func TestAsyncPolling(t *testing.T) {
	t.Parallel()
	jobs := size(250, 5000)
	source := testkit.Postgres(t)
	asked, way := newValve(t, source)
	s := openStudio(t, 1, source, way)
	s.makeAll(jobs, func(n int) string {
		return fmt.Sprintf(`{"model":"openai/sora-2","prompt":"film %d [[polls=1000000]]","seconds":"4"}`, n)
	})
	w := &world{t: t}
	w.eventually("all jobs are in the ledger", patience, func() bool { return s.pending() == jobs })
	s.upstream.server.CloseClientConnections() // those that made the jobs, and those of the first polls
	w.eventually("connections are closed", patience, func() bool { return s.upstream.open.Load() <= 50 })
	s.upstream.accepted.Store(0)
	s.upstream.most.Store(s.upstream.open.Load())
	before, served := asked.all(), s.upstream.ledger.Len()
	lasts := w.eventually("each job is polled twice", 4*time.Minute, func() bool { return s.upstream.ledger.Len()-served >= 2*jobs })
	after, polls := asked.all(), s.upstream.ledger.Len()-served
	total := int64(0)
	for name, n := range after {
		if n -= before[name]; n > 0 {
			total += n
		}
	}
	did := func(name string) int64 { return after[name] - before[name] }
	claims, ticks := did("sqlClaimJobs"), did("sqlJobsDue")
	most, accepted := s.upstream.most.Load(), s.upstream.accepted.Load()
	if most > 50 || accepted > 50 || most == 0 {
		t.Errorf("%d connections at once, %d new ones, want at most 50", most, accepted)
	}
	if wanted := int64(2*lasts.Seconds()) + int64(polls/128); claims > wanted || ticks > wanted+10 {
		t.Errorf("%d claims and %d looks for %d polls in %v, want at most %d and %d", claims, ticks, polls, lasts, wanted, wanted+10)
	}
	if n := did("sqlFinishJob") + did("sqlJob") + did("sqlFinishUsage"); n != 0 {
		t.Errorf("%d statements about single jobs", n)
	}
	if wanted := 30*int64(lasts.Seconds()) + int64(polls/16); total > wanted {
		t.Errorf("%d statements in all, want at most %d", total, wanted)
	}
	for _, served := range s.upstream.ledger.All()[served:] {
		if served.Status != http.StatusOK {
			t.Fatalf("a poll was answered %d", served.Status)
		}
	}
	s.settle()
	t.Logf("%d pending jobs for %.1f s: %d polls over at most %d connections at once, %d of them new; %d claims, %d looks for jobs that are due, %d statements in all",
		jobs, lasts.Seconds(), polls, most, accepted, claims, ticks, total)
}

// makeAll makes so many jobs, of the body for each.
func (s *studio) makeAll(jobs int, body func(n int) string) (ids []string) {
	s.t.Helper()
	ids = make([]string, jobs)
	next := make(chan int)
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for n := range next {
				ids[n] = s.make(s.t.Context(), n%len(s.gateways), body(n))
			}
		})
	}
	for n := range jobs {
		next <- n
	}
	close(next)
	work.Wait()
	return ids
}

// settle stops the gateways and holds what they have kept against the rows.
func (s *studio) settle() {
	s.t.Helper()
	for _, g := range s.gateways {
		g.Stop()
	}
	g := s.gateways[0]
	if stdout, stderr, code := g.Run("reconcile", "--config", g.ConfigFile); code != 0 {
		s.t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
}
