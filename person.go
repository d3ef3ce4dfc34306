package modelgate

import (
	"slices"
	"strings"
	"time"
)

// PersonID is the UUID of a person.
type PersonID string

// Person is somebody who signed in with an account of an OpenID provider. Who
// it is is said by Issuer and Subject alone: an e-mail address can be changed
// and given to somebody else.
type Person struct {
	ID      PersonID
	Issuer  string // of the provider
	Subject string // what the provider calls the account, for good
	Email   string // "" where the provider does not say it or has not verified it
	Name    string // "" where the provider does not say it

	CreatedAt  time.Time
	LastSeenAt time.Time // when the person last signed in
}

// Role is what a member of an organization may do there.
type Role string

// The roles.
const (
	RoleOwner     Role = "owner"
	RoleAdmin     Role = "admin"
	RoleBilling   Role = "billing"
	RoleDeveloper Role = "developer"
	RoleViewer    Role = "viewer"
)

// AllRoles lists the roles, that with the most rights first.
func AllRoles() []Role {
	return []Role{RoleOwner, RoleAdmin, RoleBilling, RoleDeveloper, RoleViewer}
}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(AllRoles(), r) }

// Scopes are the rights of the role. What an organization's ceiling does not
// have is not among those of its members.
func (r Role) Scopes() []Scope {
	switch r {
	case RoleOwner, RoleAdmin:
		return AllScopes()
	case RoleDeveloper:
		return []Scope{InferenceUse, StatsRead}
	case RoleBilling, RoleViewer:
		return []Scope{StatsRead}
	}
	return nil
}

// Member is a person in an organization.
type Member struct {
	ClientID ClientID
	PersonID PersonID
	Role     Role
	KeyID    KeyID // the hidden key that its calls are made with

	CreatedAt time.Time
}

// KeyKind says what a key is for.
type KeyKind string

// The kinds. A key of the kind KeyDashboard belongs to a member: its secret is
// known to nobody, its rights are those of the member's role under the
// organization's present ceiling, and it does not count towards the
// organization's bound of keys.
const (
	KeyPlain     KeyKind = "key"
	KeyDashboard KeyKind = "dashboard"
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
