package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// place is where a build with failpoints can die.
type place struct {
	name string
	// first is the least count that is not reached before the gateway
	// listens; spread is how much more it may be.
	first, spread int
}

// places are in the order in which a call comes to them.
var places = []place{
	{"begin.before", 1, 30}, {"write.before", 10, 30}, {"write.torn", 10, 30}, {"write.after", 10, 30}, {"begin.after", 1, 30},
	{"upstream", 1, 30}, {"reply.first", 1, 30}, {"mark.after", 1, 10}, {"end.before", 1, 30},
	{"sync.before", 3, 10}, {"sync.after", 3, 10}, {"end.after", 1, 30}, {"reply.before-last", 1, 30}, {"reply.last", 1, 30},
	{"ship.before", 6, 3}, {"ship.after", 6, 3}, {"create.after", 3, 1}, {"delete.before", 8, 3}, {"delete.after", 8, 3},
}

// early are the places of a start that has something to recover.
var early = []string{"create.before", "create.after", "write.before", "write.after", "ship.before", "ship.after", "delete.before", "delete.after"}

// TestBooksFailpoints has the gateway die at each place, with whole answers
// and with streams, and at each place of its recovery.
func TestBooksFailpoints(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		f := newFailing(t, database)
		began := time.Now()
		for round := range size(1, 25) {
			for i, p := range places {
				count := p.first + (7*i+13*round)%p.spread
				if p.name != "mark.after" { // only streams are marked
					f.die(p.name, count, whole)
				}
				f.die(p.name, count, streamed)
			}
			for _, name := range early {
				f.dieRecovering(name)
			}
		}
		f.settle()
		v := f.verdict(f.calls)
		v.table(t.Output(), fmt.Sprintf("kill -9 at failpoints, %s", t.Name()), "places", fmt.Sprint(len(places)+len(early)),
			"deaths", fmt.Sprint(f.deaths), "seconds", fmt.Sprintf("%.1f", time.Since(began).Seconds()))
	})
}

// TestBooksSyncFails has a sync of the spool fail under load: the process
// ends by itself.
func TestBooksSyncFails(t *testing.T) {
	t.Parallel()
	f := newFailing(t, "")
	for i := range size(3, 50) {
		f.arm("sync.fail", 3+i)
		f.restart()
		f.lives(mix{leaving: 0.05})
		if code := f.ExitCode(); code != 1 {
			t.Errorf("after a failed sync the gateway ended with %d, want 1", code)
		}
	}
	f.restart()
	f.settle()
	v := f.verdict(f.calls)
	v.table(t.Output(), "failed syncs", "failures", fmt.Sprint(f.deaths))
}

// TestBooksAnswerOfCommitLost has the database book a batch and its answer
// get lost, so that the batch is sent again.
func TestBooksAnswerOfCommitLost(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		f := newFailing(t, database)
		for i := range size(3, 50) {
			f.arm("ship.lost", 1+i%3)
			f.restart()
			f.eventually("the answer is lost", patience, func() bool {
				l := f.load(&load{callers: 16, first: f.marks, calls: 250, rate: 250})
				f.calls = append(f.calls, l.run(t.Context())...)
				f.marks += l.calls
				return f.fired()
			})
		}
		f.settle()
		v := f.verdict(f.calls)
		if v.exact != len(f.calls) {
			t.Errorf("%d exact rows of %d calls", v.exact, len(f.calls))
		}
		v.table(t.Output(), fmt.Sprintf("answers of commits lost, %s", t.Name()))
	})
}

// failing is a gateway that is made to die again and again.
type failing struct {
	*world
	armed  string // the file that says where
	calls  []*call
	marks  int // used so far
	deaths int
}

func newFailing(t *testing.T, database string) *failing {
	t.Helper()
	f := &failing{armed: filepath.Join(t.TempDir(), "armed")}
	f.world = newWorld(t, testkit.GatewayOptions{Database: database, Binary: testkit.FailpointBinary(t), Env: f.env()})
	return f
}

func (f *failing) env() []string {
	return []string{"MODELGATE_FAILPOINT=" + f.armed, "MODELGATE_FAILPOINT_SEGMENT=65536"}
}

// arm chooses the place for the next life.
func (f *failing) arm(name string, count int) {
	f.t.Helper()
	f.Kill()
	if err := os.WriteFile(f.armed, fmt.Appendf(nil, "%s:%d", name, count), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// fired reports whether the armed place was come to: the process removes the
// file just before it dies.
func (f *failing) fired() bool {
	_, err := os.Stat(f.armed)
	return os.IsNotExist(err)
}

// die lets the gateway come to a place for the count-th time under a small
// load. It starts it again afterwards.
func (f *failing) die(name string, count int, only shape) {
	f.t.Helper()
	if name == "upstream" {
		f.upstreamKills(count)
		defer f.upstream.arrived.Store(nil)
	} else {
		f.arm(name, count)
		f.restart()
	}
	f.lives(mix{leaving: 0.05, slow: 0.1, only: only})
	if name != "upstream" && !f.fired() {
		f.t.Fatalf("the gateway ended before %s\n%s", name, tail(f.Log(), 2000))
	}
	f.restart()
}

// upstreamKills kills the gateway when its count-th request has arrived.
func (f *failing) upstreamKills(count int) {
	var arrived atomic.Int64
	pid := f.Pid()
	fn := func() {
		if arrived.Add(1) == int64(count) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // that it died is checked where it is waited for
		}
	}
	f.upstream.arrived.Store(&fn)
}

// lives keeps the gateway under load until it has died.
func (f *failing) lives(m mix) {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.t.Context())
	defer stop()
	made := make(chan []*call, 1)
	l := f.load(&load{callers: 16, first: f.marks, mix: m, waits: true})
	go func() { made <- l.run(ctx) }()
	select {
	case <-f.Exited():
	case <-time.After(patience):
		f.t.Errorf("the gateway never came to the place where it was to die\n%s", tail(f.Log(), 2000))
	}
	stop()
	f.calls = append(f.calls, <-made...)
	f.marks += int(l.next.Load())
	f.deaths++
}

// dieRecovering kills the gateway under load and lets it die again at the
// first time that its start comes to a place.
func (f *failing) dieRecovering(name string) {
	f.t.Helper()
	f.upstreamKills(20)
	// Slow enough for calls to be open that have been marked: they cost.
	f.lives(mix{only: streamed, directives: " [[gap=5ms]]"})
	f.upstream.arrived.Store(nil)
	f.arm(name, 1)
	cmd := exec.CommandContext(f.t.Context(), testkit.FailpointBinary(f.t), "serve", "--config", f.ConfigFile)
	cmd.Env = append(os.Environ(), f.env()...)
	out, err := cmd.CombinedOutput()
	if err == nil || !f.fired() {
		f.t.Fatalf("the gateway did not die at %s: %v\n%s", name, err, out)
	}
	f.deaths++
	f.restart()
}
