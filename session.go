package modelgate

import (
	"strings"
	"time"
)

// SessionID is the UUID of a session.
type SessionID string

// SessionKind says what a session was opened with.
type SessionKind string

// The kinds: a session was opened with a gateway key, or by a person with an
// account of an OpenID provider.
const (
	KeySession    SessionKind = "key"
	PersonSession SessionKind = "person"
)

// The ends of a session that was opened with a key: so long after it began,
// and so long after its last request, which is noted to the minute.
const (
	SessionLife = 12 * time.Hour
	SessionIdle = 2 * time.Hour
)

// MaxUserAgent bounds what is kept of a browser's User-Agent, in bytes.
const MaxUserAgent = 200

// CutUserAgent is what is kept of a User-Agent.
func CutUserAgent(text string) string {
	text = text[:min(len(text), MaxUserAgent)]
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, text), "")
}

// Session is a browser that is signed in to dashboard or portal. It says whose
// key it stands for, not what that key may do: that is looked up each time.
type Session struct {
	ID       SessionID
	Kind     SessionKind
	Place    string // where it was opened and is good
	ClientID ClientID
	KeyID    KeyID  // of the key it was opened with, or the hidden one of the member
	Key      Digest // of that key's secret
	// PersonID and Provider are "" for a session that was opened with a key.
	PersonID PersonID
	Provider string // the name of the OpenID provider
	Role     Role   // of the person at present

	// ProviderSession is what the provider calls the session; "" where it does
	// not say.
	ProviderSession string
	UserAgent       string        // of the browser that opened it, at most MaxUserAgent bytes
	Idle            time.Duration // it ends so long after the last request

	CreatedAt  time.Time
	LastSeenAt time.Time // at most about a minute behind
	ExpiresAt  time.Time // never zero
}

// Live reports whether the session has neither expired at the instant now nor
// been left alone for Idle.
func (s *Session) Live(now time.Time) bool {
	return now.Before(s.ExpiresAt) && now.Sub(s.LastSeenAt) < s.Idle
}
