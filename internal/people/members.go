package people

import (
	"context"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/null"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// MemberView is a member of an organization as its administrators see it.
type MemberView struct {
	PersonID   modelgate.PersonID `json:"person_id"`
	Email      *string            `json:"email"`
	Name       *string            `json:"name"`
	Role       modelgate.Role     `json:"role"`
	Source     string             `json:"source"` // rule or manual
	Status     string             `json:"status"` // active, or suspended until the next sign-in
	LastSeenAt time.Time          `json:"last_seen_at"`
	Keys       int                `json:"keys"`
}

// Where a membership comes from: a rule of the configuration, which judges it at
// each sign-in, or none any more.
const (
	byRule = "rule"
	byHand = "manual"
)

// ruled is the provider whose rules decide on a member; nil where none does.
func (s *Service) ruled(m *access.PersonMember) *party {
	for _, p := range s.live.Load().parties {
		if p.Issuer == m.Person.Issuer && slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Organization == m.ClientID }) {
			return p
		}
	}
	return nil
}

// Members lists the members of an organization, those after one id, and reports
// whether more follow.
func (s *Service) Members(ctx context.Context, client modelgate.ClientID, after modelgate.PersonID, limit int) (views []MemberView, more bool, err error) {
	members, more, err := s.Store.Members(ctx, client, after, limit)
	views = make([]MemberView, 0, len(members))
	for i := range members {
		m := &members[i]
		v := MemberView{
			PersonID: m.PersonID, Email: null.IfZero(m.Person.Email), Name: null.IfZero(m.Person.Name), Role: m.Role, Source: byHand,
			Status: "active", LastSeenAt: m.Person.LastSeenAt, Keys: m.Keys,
		}
		if s.ruled(m) != nil {
			v.Source = byRule
		}
		if m.HiddenKey != modelgate.KeyActive {
			v.Status = "suspended"
		}
		views = append(views, v)
	}
	return views, more, err
}

// SetRole gives a member another role, or with role "" ends the membership with
// its sessions and keys. begin begins a record. Errors: not_found; forbidden where
// an owner is concerned and the caller is none; conflict for the last owner, and
// for a member that a rule of the configuration decides on.
func (s *Service) SetRole(ctx context.Context, by *modelgate.Caller, id modelgate.PersonID, role modelgate.Role, begin func() modelgate.Audit) error {
	secret := modelgate.NewSecret() // nobody learns it
	_, err := s.Store.ChangeMember(ctx, by.ClientID, id, access.MemberChange{
		Role: role, Key: access.MemberKey{ID: s.IDs.New(), Prefix: secret.Prefix(), Digest: secret.Digest()}, Audit: begin,
		Judge: func(m access.PersonMember) error {
			if by.Role != modelgate.RoleOwner && (m.Role == modelgate.RoleOwner || role == modelgate.RoleOwner) {
				return modelgate.Errorf(modelgate.Forbidden, "only an owner can change owners")
			}
			if p := s.ruled(&m); p != nil {
				return modelgate.Errorf(modelgate.Conflict, "this member comes from groups of %s; change them there", p.Label)
			}
			return nil
		},
	})
	s.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	s.Sessions.ForgetPeople()
	return err
}

// SessionView is a session without what names it in a browser.
type SessionView struct {
	ID         modelgate.SessionID   `json:"id"`
	Kind       modelgate.SessionKind `json:"kind"`
	PersonID   *modelgate.PersonID   `json:"person_id"`
	KeyID      modelgate.KeyID       `json:"api_key_id"`
	CreatedAt  time.Time             `json:"created_at"`
	LastSeenAt time.Time             `json:"last_seen_at"`
	ExpiresAt  time.Time             `json:"expires_at"`
	UserAgent  string                `json:"user_agent"`
	Current    bool                  `json:"current"` // of the request that lists it
}

// own are the sessions that a caller may see and end: with keys:manage all of the
// organization's dashboard, else its own.
func own(by *modelgate.Caller) access.SessionOwner {
	switch {
	case by.Has(modelgate.KeysManage):
		return access.SessionOwner{}
	case by.PersonID != "":
		return access.SessionOwner{PersonID: by.PersonID}
	}
	return access.SessionOwner{KeyID: by.KeyID}
}

// ListSessions lists the sessions that a caller may see, the newest first. of
// narrows them to those of one person; current is the caller's own.
func (s *Service) ListSessions(ctx context.Context, by *modelgate.Caller, current modelgate.SessionID, of modelgate.PersonID, limit int, after *store.Cursor) ([]SessionView, bool, error) {
	list := access.SessionList{SessionOwner: own(by), Limit: limit, After: after}
	if of != "" {
		if list.PersonID != "" && list.PersonID != of {
			return []SessionView{}, false, nil
		}
		list.PersonID = of
	}
	sessions, more, err := s.Store.Sessions(ctx, by.ClientID, list)
	views := make([]SessionView, 0, len(sessions))
	for i := range sessions {
		n := &sessions[i]
		views = append(views, SessionView{n.ID, n.Kind, null.IfZero(n.PersonID), n.KeyID, n.CreatedAt, n.LastSeenAt, n.ExpiresAt, n.UserAgent, n.ID == current})
	}
	return views, more, err
}

// EndSession ends a session that the caller may see. Errors: not_found.
func (s *Service) EndSession(ctx context.Context, by *modelgate.Caller, id modelgate.SessionID, a modelgate.Audit) error {
	err := s.Store.EndSessionByID(ctx, by.ClientID, id, own(by), a)
	s.Sessions.ForgetSession(id) // before the response, so that it takes effect at once on this instance
	return err
}

// EndSessions ends all sessions of a person in the organization. Errors:
// not_found; forbidden for another's without keys:manage.
func (s *Service) EndSessions(ctx context.Context, by *modelgate.Caller, id modelgate.PersonID, a modelgate.Audit) error {
	if id != by.PersonID && !by.Has(modelgate.KeysManage) {
		return modelgate.ErrMissingScope(modelgate.KeysManage)
	}
	err := s.Store.EndSessionsOfMember(ctx, by.ClientID, id, a)
	s.Sessions.ForgetPeople()
	return err
}
