package access

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlPutPerson = `INSERT INTO person (id, issuer, subject, email, name, created_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $6)
ON CONFLICT (issuer, subject) DO UPDATE
SET email = excluded.email, name = excluded.name, last_seen_at = excluded.last_seen_at
RETURNING id
-- sqlPutPerson`

// sqlMemberships walks member_person.
const sqlMemberships = `SELECT m.client_id, m.role, m.api_key_id, k.status, m.created_at
FROM member m
JOIN api_key k ON k.id = m.api_key_id
WHERE m.person_id = $1
ORDER BY m.client_id
-- sqlMemberships`

const sqlPutMember = `INSERT INTO member (client_id, person_id, role, api_key_id, created_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (client_id, person_id) DO UPDATE
SET role = excluded.role, api_key_id = excluded.api_key_id
-- sqlPutMember`

const sqlDeleteMember = `DELETE FROM member
WHERE client_id = $1 AND person_id = $2
-- sqlDeleteMember`

const sqlSetKeyScopes = `UPDATE api_key
SET scopes = $3
WHERE client_id = $1 AND id = $2
-- sqlSetKeyScopes`

const sqlNameKey = `UPDATE api_key
SET name = $3
WHERE client_id = $1 AND id = $2
-- sqlNameKey`

// sqlRevokeOwned walks api_key_owner.
const sqlRevokeOwned = `UPDATE api_key
SET status = 'revoked'
WHERE client_id = $1 AND owner = $2 AND status = 'active'
RETURNING digest
-- sqlRevokeOwned`

// MemberKey is a hidden key that a new member can be given. Its secret is known
// to nobody.
type MemberKey struct {
	ID     modelgate.UUID
	Prefix string
	Digest modelgate.Digest
}

// Membership is what the rules of a provider say of a person in one
// organization.
type Membership struct {
	ClientID modelgate.ClientID
	Role     modelgate.Role
	Key      MemberKey // is used where the member has no key
}

// SignedIn is what a sign-in has come to.
type SignedIn struct {
	PersonID modelgate.PersonID
	// Members are those of organizations that are not suspended, in the order of
	// the memberships that were asked for.
	Members []modelgate.Member
	// Ended are the digests of keys that are revoked now.
	Ended []modelgate.Digest
	// Changed are the organizations in which the person's rights are others now.
	Changed []modelgate.ClientID
	// Unknown are the organizations that there are not.
	Unknown []modelgate.ClientID
}

// SignIn notes who signs in, and makes the memberships those that are asked for:
// it adds, changes and ends them, with a record of each. Sessions and keys of a
// membership end with it. p.ID is for a person that is new. All of it happens, or
// nothing.
func (s *Store) SignIn(ctx context.Context, p modelgate.Person, want []Membership, audit func() modelgate.Audit) (in SignedIn, err error) {
	err = s.db.Update(ctx, "sign in", func(tx *sql.Tx) error {
		in = SignedIn{}
		err := tx.QueryRowContext(ctx, sqlPutPerson, string(p.ID), p.Issuer, p.Subject, p.Email, p.Name, sqldb.Micros(p.LastSeenAt)).Scan(&in.PersonID)
		if err != nil {
			return err
		}
		change := memberChange{s, tx, p, audit, &in, false, nil}
		change.person.ID = in.PersonID
		return change.to(ctx, want)
	})
	return in, err
}

// ErasePerson ends all memberships of a person and forgets who it was: the row
// stays for the records that name its id, with nothing that leads to somebody.
// Errors: not_found.
func (s *Store) ErasePerson(ctx context.Context, id modelgate.PersonID, audit func() modelgate.Audit) (in SignedIn, err error) {
	err = s.db.Update(ctx, "erase person", func(tx *sql.Tx) error {
		in = SignedIn{PersonID: id}
		r, err := tx.ExecContext(ctx, sqlErasePerson, string(id))
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "person"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlForgetNames, string(id)); err != nil {
			return err
		}
		if err := s.record(ctx, tx, "", audit()); err != nil {
			return err
		}
		change := memberChange{s, tx, modelgate.Person{ID: id}, audit, &in, false, nil}
		return change.to(ctx, nil)
	})
	return in, err
}

const sqlErasePerson = `UPDATE person
SET subject = id, issuer = '', email = '', name = ''
WHERE id = $1
-- sqlErasePerson`

// sqlForgetNames walks api_key_owner.
const sqlForgetNames = `UPDATE api_key
SET name = ''
WHERE owner = $1
-- sqlForgetNames`

// memberChange makes the memberships of one person others.
type memberChange struct {
	*Store
	tx     *sql.Tx
	person modelgate.Person
	audit  func() modelgate.Audit // begins a record
	in     *SignedIn
	ended  bool // sessions
	// suspended are the organizations that nobody can use at present.
	suspended []modelgate.ClientID
}

type membership struct {
	modelgate.Member
	key modelgate.KeyStatus
}

func (c *memberChange) to(ctx context.Context, want []Membership) error {
	// One order of locks for all: no deadlocks.
	inOrder := slices.SortedFunc(slices.Values(want), func(a, b Membership) int { return cmp.Compare(a.ClientID, b.ClientID) })
	have, err := sqldb.List(ctx, c.tx, func(row sqldb.Scanner) (m membership, err error) {
		err = row.Scan(&m.ClientID, &m.Role, &m.KeyID, &m.key, sqldb.Moment{Into: &m.CreatedAt})
		return m, err
	}, sqlMemberships, string(c.person.ID))
	if err != nil {
		return err
	}
	members := make(map[modelgate.ClientID]modelgate.Member)
	for _, m := range inOrder {
		at := slices.IndexFunc(have, func(h membership) bool { return h.ClientID == m.ClientID })
		var before membership
		if at >= 0 {
			before = have[at]
			have = slices.Delete(have, at, at+1)
		}
		member, err := c.put(ctx, before, m)
		if modelgate.KindOf(err) == modelgate.NotFound {
			c.in.Unknown = append(c.in.Unknown, m.ClientID)
			continue
		}
		if err != nil {
			return err
		}
		members[m.ClientID] = member
	}
	for _, gone := range have {
		if err := c.end(ctx, gone); err != nil {
			return err
		}
	}
	for _, m := range want {
		if member, ok := members[m.ClientID]; ok && !slices.Contains(c.suspended, m.ClientID) {
			c.in.Members = append(c.in.Members, member)
		}
	}
	return c.tell(ctx)
}

// tell raises the versions that other instances watch. It comes last, as
// endSessions does.
func (c *memberChange) tell(ctx context.Context) error {
	if len(c.in.Changed) > 0 {
		if err := sqldb.RaiseControl(ctx, c.tx); err != nil {
			return err
		}
	}
	if len(c.in.Changed) == 0 && !c.ended {
		return nil
	}
	_, err := c.tx.ExecContext(ctx, sqlRaiseSessions)
	return err
}

// put makes or changes a membership; before is the zero value for none. Errors:
// not_found for an organization that there is not.
func (c *memberChange) put(ctx context.Context, before membership, want Membership) (modelgate.Member, error) {
	client, err := lockClient(ctx, c.tx, want.ClientID)
	if err != nil {
		return before.Member, err
	}
	if client.Status == modelgate.ClientSuspended {
		c.suspended = append(c.suspended, want.ClientID)
	}
	name := c.keyName()
	m := before.Member
	action := "person.role"
	if m.KeyID == "" {
		action = "person.join"
		m = modelgate.Member{ClientID: want.ClientID, PersonID: c.person.ID, CreatedAt: c.person.LastSeenAt}
	}
	same := before.Role == want.Role && before.key == modelgate.KeyActive
	m.Role, m.PersonID = want.Role, c.person.ID
	if before.key != modelgate.KeyActive { // also where an admin has revoked it
		k := modelgate.Key{
			ID: modelgate.KeyID(want.Key.ID.String()), ClientID: want.ClientID, Name: name, Prefix: want.Key.Prefix, Status: modelgate.KeyActive,
			Scopes: want.Role.Scopes(), Kind: modelgate.KeyDashboard, Owner: c.person.ID, CreatedAt: want.Key.ID.Time(),
		}
		if _, err := insertKey(ctx, c.tx, k, want.Key.Digest); err != nil {
			return m, err
		}
		m.KeyID = k.ID
	} else if _, err := c.tx.ExecContext(ctx, sqlNameKey, m.ClientID, m.KeyID, name); err != nil {
		return m, err
	}
	if same {
		return m, nil
	}
	if _, err := c.tx.ExecContext(ctx, sqlPutMember, m.ClientID, string(m.PersonID), string(m.Role), m.KeyID, sqldb.Micros(m.CreatedAt)); err != nil {
		return m, err
	}
	scopes, err := sqldb.JSON(want.Role.Scopes())
	if err != nil {
		return m, err
	}
	if _, err := c.tx.ExecContext(ctx, sqlSetKeyScopes, m.ClientID, m.KeyID, scopes); err != nil {
		return m, err
	}
	c.in.Changed = append(c.in.Changed, m.ClientID)
	return m, c.note(ctx, m.ClientID, action, map[string]any{"role": m.Role})
}

// keyName is how lists call the person's hidden keys.
func (c *memberChange) keyName() string {
	for _, name := range []string{c.person.Email, c.person.Name} {
		if clean, err := modelgate.CleanKeyName(name); err == nil {
			return clean
		}
	}
	return ""
}

// end ends a membership with its sessions and keys.
func (c *memberChange) end(ctx context.Context, m membership) error {
	if _, err := lockClient(ctx, c.tx, m.ClientID); err != nil {
		return err
	}
	revoked, err := sqldb.List(ctx, c.tx, scanDigest, sqlRevokeOwned, m.ClientID, string(c.person.ID))
	if err != nil {
		return err
	}
	for _, query := range []string{sqlEndSessionsOfMember, sqlDeleteMember} {
		if _, err := c.tx.ExecContext(ctx, query, m.ClientID, string(c.person.ID)); err != nil {
			return err
		}
	}
	c.ended = true
	c.in.Ended = append(c.in.Ended, revoked...)
	c.in.Changed = append(c.in.Changed, m.ClientID)
	return c.note(ctx, m.ClientID, "person.leave", nil)
}

// note keeps the record of a change; it names the person by its id only.
func (c *memberChange) note(ctx context.Context, client modelgate.ClientID, action string, set any) error {
	a := c.audit()
	a.ClientID, a.Action, a.TargetType, a.TargetID = client, action, "person", string(c.person.ID)
	if a.Actor == (modelgate.Actor{}) {
		a.Actor.PersonID = c.person.ID
	}
	if set != nil {
		var err error
		if a.Change, err = json.Marshal(set); err != nil {
			return err
		}
	}
	return c.record(ctx, c.tx, client, a)
}

// sqlPersonMembers walks member_person.
const sqlPersonMembers = `SELECT m.client_id, c.name, m.role, m.api_key_id
FROM member m
JOIN client c ON c.id = m.client_id
WHERE m.person_id = $1
ORDER BY c.name, m.client_id
-- sqlPersonMembers`

// Organization is an organization that a person is a member of.
type Organization struct {
	ID    modelgate.ClientID
	Name  string
	Role  modelgate.Role
	KeyID modelgate.KeyID // the member's hidden key
}

// OrganizationsOf are those that a person is a member of, by name.
func (s *Store) OrganizationsOf(ctx context.Context, id modelgate.PersonID) ([]Organization, error) {
	rows, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (o Organization, err error) {
		err = row.Scan(&o.ID, &o.Name, &o.Role, &o.KeyID)
		return o, err
	}, sqlPersonMembers, string(id))
	return rows, sqldb.Wrap("list organizations", err)
}

const sqlPerson = `SELECT id, issuer, subject, email, name, created_at, last_seen_at
FROM person
WHERE id = $1
-- sqlPerson`

// Person is the person with an id. Errors: not_found.
func (s *Store) Person(ctx context.Context, id modelgate.PersonID) (p modelgate.Person, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlPerson, string(id)).Scan(&p.ID, &p.Issuer, &p.Subject, &p.Email, &p.Name,
		sqldb.Moment{Into: &p.CreatedAt}, sqldb.Moment{Into: &p.LastSeenAt})
	return p, sqldb.Wrap("find person", sqldb.Missing(err, "person"))
}
