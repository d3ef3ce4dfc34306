package auth

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
)

// What failed look-ups of one address are allowed, and what is left to an
// address that has used that up. Keys that this instance knows are not
// concerned, nor are look-ups that find a key.
const (
	failureInterval = time.Second / 20 // between failures at the steady rate
	failureBurst    = 50
	paceInterval    = time.Second / 100      // between look-ups of all suspect addresses together
	paceQueue       = 160 * time.Millisecond // how long one of these may have to wait
	maxAddresses    = 4096
)

// Origin is where a presented secret came from; the zero value is one
// address, nobody's in particular.
type Origin struct {
	peer      string   // address and port
	forwarded []string // the lines of X-Forwarded-For
}

// OriginOf is the origin of a request.
func OriginOf(r *http.Request) Origin {
	return Origin{peer: r.RemoteAddr, forwarded: r.Header["X-Forwarded-For"]}
}

// network is what failures are counted by: an IPv4 address or an IPv6 /64,
// which one customer usually holds. The client finds the address behind proxies;
// nil trusts none.
func (o Origin) network(client func(peer netip.Addr, forwarded []string) netip.Addr) netip.Prefix {
	peer, _ := netip.ParseAddrPort(o.peer) // what cannot be read counts together
	address := peer.Addr().Unmap()
	if client != nil {
		address = client(address, o.forwarded)
	}
	bits := 32
	if address.Is6() {
		bits = 64
	}
	network, _ := address.WithZone("").Prefix(bits) // the zero prefix for the zero address
	return network
}

// LookupLimiter slows down addresses that present many secrets that nothing
// stands for, where each secret is looked up in the database. Safe for concurrent
// use; make one with NewLookupLimiter.
type LookupLimiter struct {
	now     func() time.Time
	start   time.Time
	strange failedLookupLimiter
}

// NewLookupLimiter makes a limiter.
func NewLookupLimiter(now func() time.Time) *LookupLimiter {
	return &LookupLimiter{now: now, start: now(), strange: failedLookupLimiter{failures: make(map[netip.Prefix]time.Duration)}}
}

// Enter waits for the turn of an address that has used up what it may fail.
// Errors: rate_limited where too many wait already, or ctx has ended.
func (l *LookupLimiter) Enter(ctx context.Context, from Origin) error {
	now := l.now().Sub(l.start)
	if l.strange.trusts(from.network(nil), now) {
		return nil
	}
	if wait, ok := l.strange.pace(now); ok && cancelctx.Sleep(ctx, wait) == nil {
		return nil
	}
	return &modelgate.RetryError{Err: modelgate.ErrRateLimited, After: time.Second}
}

// Failed counts a secret that nothing stands for.
func (l *LookupLimiter) Failed(from Origin) {
	l.strange.failed(from.network(nil), l.now().Sub(l.start))
}

// failedLookupLimiter counts, by network, the look-ups that found no key. An instant is
// a duration since the authenticator's start. Safe for concurrent use.
type failedLookupLimiter struct {
	mu sync.Mutex
	// failures holds when each network's allowance will be whole again; a
	// network that is not in it has a whole one. Those that no longer fit
	// share the zero prefix.
	failures map[netip.Prefix]time.Duration
	swept    time.Duration
	next     time.Duration // when the next look-up of a suspect may begin
}

// trusts reports whether a network has some of its allowance left.
func (s *failedLookupLimiter) trusts(n netip.Prefix, now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole, counted := s.failures[n]
	if !counted && len(s.failures) >= maxAddresses {
		whole = s.failures[netip.Prefix{}]
	}
	return whole <= now+(failureBurst-1)*failureInterval
}

// failed takes one failure from a network's allowance.
func (s *failedLookupLimiter) failed(n netip.Prefix, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, counted := s.failures[n]; !counted && len(s.failures) >= maxAddresses {
		s.sweep(now)
		if len(s.failures) >= maxAddresses {
			n = netip.Prefix{}
		}
	}
	s.failures[n] = min(max(s.failures[n], now)+failureInterval, now+failureBurst*failureInterval)
}

// sweep forgets networks whose allowance is whole, once in a while.
func (s *failedLookupLimiter) sweep(now time.Duration) {
	if now-s.swept < failureInterval {
		return
	}
	s.swept = now
	for n, whole := range s.failures {
		if whole <= now {
			delete(s.failures, n)
		}
	}
}

// pace is how long a suspect's look-up must wait for its turn; there is none
// where too many wait already.
func (s *failedLookupLimiter) pace(now time.Duration) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := max(s.next, now)
	if turn-now > paceQueue {
		return 0, false
	}
	s.next = turn + paceInterval
	return turn - now, true
}
