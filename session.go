package modelgate

import "time"

// SessionID is the UUID of a session.
type SessionID string

// SessionKind says what a session was opened with.
type SessionKind string

// KeySession is a session that was opened with a gateway key.
const KeySession SessionKind = "key"

// The ends of a session that was opened with a key: so long after it began,
// and so long after its last request, which is noted to the minute.
const (
	SessionLife = 12 * time.Hour
	SessionIdle = 2 * time.Hour
)

// Session is a browser that is signed in to dashboard or portal. It says whose
// key it stands for, not what that key may do: that is looked up each time.
type Session struct {
	ID       SessionID
	Kind     SessionKind
	Place    string // where it was opened and is good
	ClientID ClientID
	KeyID    KeyID  // of the key it was opened with
	Key      Digest // of that key's secret

	CreatedAt  time.Time
	LastSeenAt time.Time // at most about a minute behind
	ExpiresAt  time.Time // never zero
}

// Live reports whether the session has neither expired at the instant now nor
// been left alone for SessionIdle.
func (s *Session) Live(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Sub(s.LastSeenAt) < SessionIdle
}
