package modelgate

import (
	"slices"
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
