package access

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlMembers walks the primary key of member, and api_key_owner.
const sqlMembers = `SELECT ` + memberColumns + `
WHERE m.client_id = $1 AND m.person_id > $2
ORDER BY m.person_id
LIMIT $3
-- sqlMembers`

const memberColumns = `p.id, p.issuer, p.email, p.name, p.last_seen_at, m.role, m.api_key_id, k.status, m.created_at,
  (SELECT COUNT(*) FROM api_key o WHERE o.owner = m.person_id AND o.client_id = m.client_id AND o.kind = 'key' AND o.status = 'active')
FROM member m
JOIN person p ON p.id = m.person_id
JOIN api_key k ON k.id = m.api_key_id`

const sqlMember = `SELECT ` + memberColumns + `
WHERE m.client_id = $1 AND m.person_id = $2
-- sqlMember`

const sqlOtherMembers = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN role = 'owner' THEN 1 ELSE 0 END), 0)
FROM member
WHERE client_id = $1 AND person_id <> $2
-- sqlOtherMembers`

// PersonMember is a person as a member of an organization.
type PersonMember struct {
	modelgate.Member
	Person modelgate.Person // without Subject
	// HiddenKey is whether the member's pages can be used: where the hidden key
	// was revoked they cannot, until the next sign-in.
	HiddenKey modelgate.KeyStatus
	Keys      int // that are the person's and not revoked, the hidden one aside
}

func scanMember(client modelgate.ClientID) func(sqldb.Scanner) (PersonMember, error) {
	return func(row sqldb.Scanner) (m PersonMember, err error) {
		err = row.Scan(&m.Person.ID, &m.Person.Issuer, &m.Person.Email, &m.Person.Name, sqldb.Moment{Into: &m.Person.LastSeenAt},
			&m.Role, &m.KeyID, &m.HiddenKey, sqldb.Moment{Into: &m.CreatedAt}, &m.Keys)
		m.ClientID, m.PersonID = client, m.Person.ID
		return m, err
	}
}

// Members lists the members of an organization by their ids, those after one id,
// and reports whether more follow.
func (s *Store) Members(ctx context.Context, client modelgate.ClientID, after modelgate.PersonID, limit int) ([]PersonMember, bool, error) {
	rows, err := sqldb.List(ctx, s.db.Read, scanMember(client), sqlMembers, client, string(after), sqldb.Fetch(limit))
	rows, more := sqldb.Page(rows, limit)
	return rows, more, sqldb.Wrap("list members", err)
}

// MemberChange is what an administrator changes of a member.
type MemberChange struct {
	Role modelgate.Role // "" ends the membership
	Key  MemberKey      // is used where the member's hidden key was revoked
	// Judge refuses the change, with the member as it is.
	Judge func(PersonMember) error
	Audit func() modelgate.Audit // begins a record
}

// errLastOwner is a conflict.
var errLastOwner = modelgate.Errorf(modelgate.Conflict, "an organization with members keeps at least one owner")

// ChangeMember gives a member another role, or ends the membership with its
// sessions and keys. Errors: not_found; conflict where no owner would be left;
// those of Judge.
func (s *Store) ChangeMember(ctx context.Context, client modelgate.ClientID, id modelgate.PersonID, c MemberChange) (in SignedIn, err error) {
	err = s.db.Update(ctx, "change member", func(tx *sql.Tx) error {
		in = SignedIn{PersonID: id}
		if _, err := lockClient(ctx, tx, client); err != nil {
			return err
		}
		found, err := scanMember(client)(tx.QueryRowContext(ctx, sqlMember, client, string(id)))
		if err != nil {
			return sqldb.Missing(err, "person")
		}
		if err := c.Judge(found); err != nil {
			return err
		}
		var others, owners int64
		if err := tx.QueryRowContext(ctx, sqlOtherMembers, client, string(id)).Scan(&others, &owners); err != nil {
			return err
		}
		if found.Role == modelgate.RoleOwner && c.Role != modelgate.RoleOwner && others > 0 && owners == 0 {
			return errLastOwner
		}
		change := memberChange{s, tx, found.Person, c.Audit, &in, false, nil}
		before := membership{found.Member, found.HiddenKey}
		if c.Role == "" {
			err = change.end(ctx, before)
		} else {
			_, err = change.put(ctx, before, Membership{ClientID: client, Role: c.Role, Key: c.Key})
		}
		if err != nil {
			return err
		}
		return change.tell(ctx)
	})
	return in, err
}
