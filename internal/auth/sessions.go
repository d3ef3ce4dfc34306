package auth

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"modelgate"
)

// sessionCapacity is how many sessions are kept in memory.
const sessionCapacity = 10_000

// SessionSource is where sessions come from.
type SessionSource interface {
	// Session is the session with the digest of a cookie; an unauthorized
	// modelgate.Error says that there is none. One past its end is returned:
	// that is judged on every request.
	Session(context.Context, modelgate.Digest) (modelgate.Session, error)
	// SessionVersion changes whenever sessions are ended.
	SessionVersion(context.Context) (int64, error)
	// TouchSessions stores when sessions were last used.
	TouchSessions(context.Context, map[modelgate.SessionID]time.Time) error
}

// SessionOptions are what NewSessions needs; all are required. What Options
// says of the fields holds here too.
type SessionOptions struct {
	Source      SessionSource
	Unreachable func(error) bool
	Now         func() time.Time
	Log         *slog.Logger
	Client      func(peer netip.Addr, forwarded []string) netip.Addr // as in Options
}

// Sessions finds the sessions of the pages, by the rules of keys: a session
// that was ended on another instance is refused about a second later. Safe for
// concurrent use; Run must be running.
type Sessions struct {
	cache[modelgate.Session]
	touches touches[modelgate.SessionID]
}

// NewSessions makes an empty cache of sessions.
func NewSessions(o SessionOptions) *Sessions {
	s := &Sessions{touches: newTouches(o.Source.TouchSessions)}
	s.source = source[modelgate.Session]{
		find: func(ctx context.Context, d modelgate.Digest, _ *modelgate.Session) (*modelgate.Session, error) {
			session, err := o.Source.Session(ctx, d)
			return &session, err
		},
		version: o.Source.SessionVersion,
	}
	s.unreachable, s.now, s.log, s.client = o.Unreachable, o.Now, o.Log, o.Client
	s.init(sessionCapacity)
	return s
}

// Run keeps the sessions up to date until ctx ends, then stores the last uses
// that are left.
func (s *Sessions) Run(ctx context.Context) {
	s.run(ctx, "last uses of sessions", s.touches.flush)
}

// Find is the live session with the digest of a cookie, which is shared and
// must not be changed. Errors are those of Authenticator.Identify.
func (s *Sessions) Find(ctx context.Context, digest modelgate.Digest, from Origin) (*modelgate.Session, error) {
	e, now, err := s.current(ctx, digest, s.shard(digest).get(digest), from)
	if err != nil {
		return nil, err
	}
	if !e.value.Live(now) {
		return nil, modelgate.ErrUnauthorized
	}
	if e.use.due(now.Sub(s.start)) {
		s.touches.add(e.value.ID, now)
	}
	return e.value, nil
}

// ForgetPeople is Forget for every session that was opened with an account of an
// OpenID provider.
func (s *Sessions) ForgetPeople() {
	s.forget(func(e *entry[modelgate.Session]) bool { return e.value != nil && e.value.PersonID != "" })
}

// Count is how many live sessions of a kind this instance has in memory, which are
// those that it was asked for lately.
func (s *Sessions) Count(kind modelgate.SessionKind) (n int) {
	now := s.now()
	for i := range s.shards {
		s.shards[i].each(func(e *entry[modelgate.Session]) {
			if e.value != nil && e.value.Kind == kind && e.value.Live(now) {
				n++
			}
		})
	}
	return n
}

// ForgetSession is Forget for the session with an id.
func (s *Sessions) ForgetSession(id modelgate.SessionID) {
	s.forget(func(e *entry[modelgate.Session]) bool { return e.value != nil && e.value.ID == id })
}

// ForgetKey is Forget for every session that was opened with a key.
func (s *Sessions) ForgetKey(id modelgate.KeyID) {
	s.forget(func(e *entry[modelgate.Session]) bool { return e.value != nil && e.value.KeyID == id })
}
