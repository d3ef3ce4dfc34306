package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/people"
	"modelgate/internal/store"
)

// peopleQuery is the query of GET /gw/people and GET /gw/sessions.
type peopleQuery struct {
	person modelgate.PersonID // "" for all
	limit  int
	cursor *string
}

func (q *peopleQuery) read(x *exchange) error {
	q.limit, q.cursor = x.query.Int("limit", 1, 200, 50), x.cursor()
	return nil
}

func (a *API) people(ctx context.Context, by actor, q peopleQuery) (page[people.MemberView], error) {
	filter := filter("people", by)
	after, err := a.after(q.cursor, filter)
	if err != nil {
		return page[people.MemberView]{}, err
	}
	if after == nil {
		after = new(store.Cursor)
	}
	members, more, err := a.People.Members(ctx, by.ClientID, modelgate.PersonID(after.ID), q.limit)
	return page[people.MemberView]{members, next(a, filter, members, more, func(m *people.MemberView) (time.Time, string) { return m.LastSeenAt, string(m.PersonID) })}, err
}

// memberName is the path of DELETE /gw/people/{id}.
type memberName struct{ id modelgate.PersonID }

func (n *memberName) read(x *exchange) error {
	id, err := x.pathID("person")
	n.id = modelgate.PersonID(id)
	return err
}

// memberRole is the path and body of PATCH /gw/people/{id}.
type memberRole struct {
	memberName
	role modelgate.Role
}

func (r *memberRole) read(x *exchange) error {
	var in struct {
		Role modelgate.Role `json:"role"`
	}
	if err := x.body(&in); err != nil {
		return err
	}
	if r.role = in.Role; !r.role.Valid() {
		return modelgate.Errorf(modelgate.BadRequest, "role must be owner, admin, billing, developer or viewer")
	}
	return r.memberName.read(x)
}

func (a *API) patchMember(ctx context.Context, by actor, in memberRole) error {
	return a.People.SetRole(ctx, by.Caller, in.id, in.role, func() modelgate.Audit { return a.audit(by, "", "", "", nil) })
}

func (a *API) removeMember(ctx context.Context, by actor, in memberName) error {
	return a.People.SetRole(ctx, by.Caller, in.id, "", func() modelgate.Audit { return a.audit(by, "", "", "", nil) })
}

// sessionQuery is the query of GET /gw/sessions.
type sessionQuery struct{ peopleQuery }

func (q *sessionQuery) read(x *exchange) error {
	var err error
	q.person, err = x.personParam(false)
	if err != nil {
		return err
	}
	return q.peopleQuery.read(x)
}

// personParam is the parameter person_id; "" where it was not sent.
func (x *exchange) personParam(required bool) (modelgate.PersonID, error) {
	text, given := x.query.Text("person_id")
	if !given && !required {
		return "", nil
	}
	id, ok := modelgate.ParseUUID(text)
	if !ok {
		return "", modelgate.Errorf(modelgate.BadRequest, "person_id must be the id of a person")
	}
	return modelgate.PersonID(id.String()), nil
}

func (a *API) sessions(ctx context.Context, by actor, q sessionQuery) (page[people.SessionView], error) {
	filter := filter("sessions", by, string(by.KeyID), string(q.person))
	after, err := a.after(q.cursor, filter)
	if err != nil {
		return page[people.SessionView]{}, err
	}
	list, more, err := a.People.ListSessions(ctx, by.Caller, by.session, q.person, q.limit, after)
	return page[people.SessionView]{list, next(a, filter, list, more, func(s *people.SessionView) (time.Time, string) { return s.CreatedAt, string(s.ID) })}, err
}

// sessionName is the path of DELETE /gw/sessions/{id}.
type sessionName struct{ id modelgate.SessionID }

func (n *sessionName) read(x *exchange) error {
	id, err := x.pathID("session")
	n.id = modelgate.SessionID(id)
	return err
}

func (a *API) endSession(ctx context.Context, by actor, in sessionName) error {
	return a.People.EndSession(ctx, by.Caller, in.id, a.audit(by, "session.revoke", "session", string(in.id), nil))
}

// sessionsOf is the query of DELETE /gw/sessions.
type sessionsOf struct{ person modelgate.PersonID }

func (q *sessionsOf) read(x *exchange) (err error) {
	q.person, err = x.personParam(true)
	return err
}

func (a *API) endSessions(ctx context.Context, by actor, in sessionsOf) error {
	return a.People.EndSessions(ctx, by.Caller, in.person, a.audit(by, "session.revoke", "person", string(in.person), nil))
}
