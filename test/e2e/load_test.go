package e2e

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// target is where callers find the gateway, whose address changes with every
// life of it.
type target struct {
	mu      sync.Mutex
	address string
	moved   chan struct{} // closed when the address changes
}

func newTarget() *target { return &target{moved: make(chan struct{})} }

// set names the address of a new life.
func (t *target) set(url string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.address = strings.TrimPrefix(url, "http://")
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *target) get() (address string, moved <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.address, t.moved
}

// load is a number of callers that make calls one after the other.
type load struct {
	target  *target
	key     string
	callers int
	calls   int // how many in all; 0: until the context ends
	first   int // the mark of the first call
	mix     mix
	// rate is how many calls a second are begun in all; 0: as many as can.
	rate float64
	// waits says that a caller who finds nobody listening waits for the next
	// life of the gateway; else the call has failed.
	waits bool

	next atomic.Int64 // of calls begun
	done atomic.Int64 // of calls that have ended
	last atomic.Int64 // status of the one that ended last; 0 for none
	// reached gets how many have ended, whenever that grows and somebody
	// receives.
	reached chan int64
}

// run makes the calls and returns them in the order of their marks.
func (l *load) run(ctx context.Context) []*call {
	if l.reached == nil {
		l.reached = make(chan int64)
	}
	byCaller := make([][]*call, l.callers)
	var callers sync.WaitGroup
	began := time.Now()
	for i := range l.callers {
		callers.Go(func() {
			s := session{load: l}
			defer s.hangUp()
			for {
				n := int(l.next.Add(1)) - 1
				if l.calls > 0 && n >= l.calls || !l.await(ctx, began, n) {
					return
				}
				c := newCall(l.first+n, l.mix)
				s.make(ctx, c)
				byCaller[i] = append(byCaller[i], c)
				l.last.Store(int64(c.status))
				select {
				case l.reached <- l.done.Add(1):
				default:
				}
			}
		})
	}
	callers.Wait()
	var all []*call
	for _, calls := range byCaller {
		all = append(all, calls...)
	}
	return all
}

// await waits until the n-th call is due. It is false when the context has
// ended.
func (l *load) await(ctx context.Context, began time.Time, n int) bool {
	if ctx.Err() != nil {
		return false
	}
	if l.rate == 0 {
		return true
	}
	timer := time.NewTimer(time.Until(began.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// until waits until so many calls have ended, or the context has.
func (l *load) until(ctx context.Context, n int64) {
	for l.done.Load() < n {
		select {
		case <-l.reached:
		case <-ctx.Done():
			return
		}
	}
}

// session is a caller's connection.
type session struct {
	load *load
	conn net.Conn
	r    *bufio.Reader
}

// make makes a call, on a new connection where there is none. A call of which
// a byte has been sent is never made again.
func (s *session) make(ctx context.Context, c *call) {
	for s.conn == nil {
		address, moved := s.load.target.get()
		conn, err := net.Dial("tcp", address)
		if err == nil {
			s.conn, s.r = conn, bufio.NewReader(conn)
			break
		}
		c.err = err
		if !s.load.waits {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
	if !c.do(s.conn, s.r, s.load.key) {
		s.hangUp()
	}
}

func (s *session) hangUp() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
