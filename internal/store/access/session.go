package access

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlInsertSession = `INSERT INTO session (id, digest, kind, place, client_id, api_key_id, person_id, provider, provider_session, user_agent, idle,
  created_at, last_seen_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, NULLIF($7, ''), $8, $9, $10, $11, $12, $13, $14)
-- sqlInsertSession`

const sessionColumns = `s.id, s.kind, s.place, s.client_id, s.api_key_id, k.digest, COALESCE(s.person_id, ''), COALESCE(m.role, ''), s.provider,
  s.provider_session, s.user_agent, s.idle, s.created_at, s.last_seen_at, s.expires_at
FROM session s
JOIN api_key k ON k.id = s.api_key_id
LEFT JOIN member m ON m.client_id = s.client_id AND m.person_id = s.person_id`

const sqlSession = `SELECT ` + sessionColumns + `
WHERE s.digest = $1
-- sqlSession`

const sqlEndSession = `DELETE FROM session
WHERE digest = $1 AND place = $2
-- sqlEndSession`

const sqlEndSessionsOfKey = `DELETE FROM session
WHERE api_key_id = $1
-- sqlEndSessionsOfKey`

// sqlSessions walks session_newest.
const sqlSessions = `SELECT ` + sessionColumns + `
WHERE s.client_id = $1
  AND ($2 = '' OR s.person_id = $2) AND ($3 = '' OR s.api_key_id = $3)
  AND (s.created_at, s.id) < ($4, $5)
  AND s.expires_at > $6 AND s.last_seen_at + s.idle > $6
  AND s.place = 'dashboard'
ORDER BY s.created_at DESC, s.id DESC
LIMIT $7
-- sqlSessions`

const sqlEndSessionByID = `DELETE FROM session
WHERE client_id = $1 AND id = $2 AND place = 'dashboard'
  AND ($3 = '' OR person_id = $3) AND ($4 = '' OR api_key_id = $4)
-- sqlEndSessionByID`

// sqlEndSessionsOfMember walks session_person.
const sqlEndSessionsOfMember = `DELETE FROM session
WHERE client_id = $1 AND person_id = $2
-- sqlEndSessionsOfMember`

const sqlEndAllSessions = `DELETE FROM session
-- sqlEndAllSessions`

// sqlEndSessionsOfProvider walks session_person.
const sqlEndSessionsOfProvider = `DELETE FROM session
WHERE person_id IN (
    SELECT p.id
    FROM person p
    WHERE p.issuer = $1 AND ($3 = '' OR p.subject = $3))
  AND ($2 = '' OR provider_session = $2)
-- sqlEndSessionsOfProvider`

const sqlInsertLogoutToken = `INSERT INTO logout_token (issuer, token_id, expires_at)
VALUES ($1, $2, $3)
ON CONFLICT (issuer, token_id) DO NOTHING
-- sqlInsertLogoutToken`

const sqlSweepLogoutTokens = `DELETE FROM logout_token
WHERE expires_at < $1
-- sqlSweepLogoutTokens`

// sqlEndOldSessions leaves the newest $2 sessions of a key.
const sqlEndOldSessions = `DELETE FROM session
WHERE api_key_id = $1 AND id NOT IN (
  SELECT id FROM session WHERE api_key_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2)
-- sqlEndOldSessions`

// sqlSweepSessions walks session_end.
const sqlSweepSessions = `DELETE FROM session
WHERE id IN (SELECT id FROM session WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
-- sqlSweepSessions`

const sqlTouchSession = `UPDATE session
SET last_seen_at = $2
WHERE id = $1 AND last_seen_at < $2
-- sqlTouchSession`

const sqlSessionVersion = `SELECT session_version
FROM control
WHERE id = 1
-- sqlSessionVersion`

const sqlRaiseSessions = `UPDATE control
SET session_version = session_version + 1
WHERE id = 1
-- sqlRaiseSessions`

const (
	// sessionsPerKey bounds the sessions that one key has at a time: one more
	// ends the oldest.
	sessionsPerKey = 100
	// sweptSessions is how many that have expired go with one that begins.
	sweptSessions = 100
)

// SessionVersion is a number that grows whenever sessions are ended before
// their time. Reading it is cheap enough to be done every second.
func (s *Store) SessionVersion(ctx context.Context) (int64, error) {
	var v int64
	err := s.db.Read.QueryRowContext(ctx, sqlSessionVersion).Scan(&v)
	return v, sqldb.Wrap("read session version", err)
}

// StartSession keeps a new session under the digest of its cookie. The key's
// oldest sessions end where it has more than a hundred, and sessions that have
// expired are swept out.
func (s *Store) StartSession(ctx context.Context, n modelgate.Session, cookie modelgate.Digest) error {
	return s.db.Update(ctx, "start session", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlInsertSession, string(n.ID), cookie[:], string(n.Kind), n.Place, string(n.ClientID), string(n.KeyID),
			string(n.PersonID), n.Provider, n.ProviderSession, n.UserAgent, n.Idle.Microseconds(), sqldb.Micros(n.CreatedAt), sqldb.Micros(n.LastSeenAt), sqldb.Micros(n.ExpiresAt))
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlSweepSessions, sqldb.Micros(s.db.Now()), sweptSessions); err != nil {
			return err
		}
		return endSessions(ctx, tx, sqlEndOldSessions, string(n.KeyID), sessionsPerKey)
	})
}

// Session is the session with the digest of a cookie, ended by time or not.
// Errors: modelgate.ErrUnauthorized where there is none.
func (s *Store) Session(ctx context.Context, cookie modelgate.Digest) (modelgate.Session, error) {
	found, err := scanSession(s.db.Read.QueryRowContext(ctx, sqlSession, cookie[:]))
	if errors.Is(err, sql.ErrNoRows) {
		return found, modelgate.ErrUnauthorized
	}
	return found, sqldb.Wrap("look up session", err)
}

func scanSession(row sqldb.Scanner) (n modelgate.Session, err error) {
	var key []byte
	var idle int64
	err = row.Scan(&n.ID, &n.Kind, &n.Place, &n.ClientID, &n.KeyID, &key, &n.PersonID, &n.Role, &n.Provider,
		&n.ProviderSession, &n.UserAgent, &idle,
		sqldb.Moment{Into: &n.CreatedAt}, sqldb.Moment{Into: &n.LastSeenAt}, sqldb.Moment{Into: &n.ExpiresAt})
	copy(n.Key[:], key)
	n.Idle = time.Duration(idle) * time.Microsecond
	return n, err
}

// EndSession ends the session with the digest of a cookie for good, if it was
// opened in a place. To end one that is not there changes nothing, and costs a
// read: anybody may ask for it.
func (s *Store) EndSession(ctx context.Context, cookie modelgate.Digest, place string) error {
	found, err := s.Session(ctx, cookie)
	if modelgate.KindOf(err) == modelgate.Unauthorized || err == nil && found.Place != place {
		return nil
	}
	// Where the read failed the change is tried all the same: it is repeated on
	// a new connection.
	return s.db.Update(ctx, "end session", func(tx *sql.Tx) error { return endSessions(ctx, tx, sqlEndSession, cookie[:], place) })
}

// SessionOwner is whose sessions are meant; the zero value is everybody.
type SessionOwner struct {
	PersonID modelgate.PersonID
	KeyID    modelgate.KeyID
}

// SessionList selects sessions of an organization.
type SessionList struct {
	SessionOwner
	Limit int           // 0 for all
	After *sqldb.Cursor // nil for the first page
}

// Sessions lists the sessions of an organization's dashboard that have not ended,
// the newest first, and reports whether more follow.
func (s *Store) Sessions(ctx context.Context, client modelgate.ClientID, l SessionList) ([]modelgate.Session, bool, error) {
	at, id := l.After.Bound()
	rows, err := sqldb.List(ctx, s.db.Read, scanSession, sqlSessions, client, string(l.PersonID), string(l.KeyID), at, id, sqldb.Micros(s.db.Now()), sqldb.Fetch(l.Limit))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list sessions", err)
}

// EndSessionByID ends a session of an organization's dashboard. Errors:
// not_found, also for one of another owner.
func (s *Store) EndSessionByID(ctx context.Context, client modelgate.ClientID, id modelgate.SessionID, of SessionOwner, a modelgate.Audit) error {
	return s.db.Update(ctx, "end session", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlEndSessionByID, client, string(id), string(of.PersonID), string(of.KeyID))
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "session"); err != nil {
			return err
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlRaiseSessions)
		return err
	})
}

// EndSessionsOfMember ends every session of a person in an organization. Errors:
// not_found for who is not a member.
func (s *Store) EndSessionsOfMember(ctx context.Context, client modelgate.ClientID, id modelgate.PersonID, a modelgate.Audit) error {
	return s.db.Update(ctx, "end sessions", func(tx *sql.Tx) error {
		if _, err := scanMember(client)(tx.QueryRowContext(ctx, sqlMember, client, string(id))); err != nil {
			return sqldb.Missing(err, "person")
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		return endSessions(ctx, tx, sqlEndSessionsOfMember, client, string(id))
	})
}

// EndAllSessions ends every session there is, in portals too, and says how many
// there were.
func (s *Store) EndAllSessions(ctx context.Context, a modelgate.Audit) (ended int64, err error) {
	err = s.db.Update(ctx, "end sessions", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlEndAllSessions)
		if err != nil {
			return err
		}
		if ended, err = r.RowsAffected(); err != nil {
			return err
		}
		if err := s.record(ctx, tx, "", a); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlRaiseSessions)
		return err
	})
	return ended, err
}

// Logout is what the logout token of an OpenID provider ends.
type Logout struct {
	Issuer  string
	TokenID string
	Expires time.Time // of the token
	// Session is what the provider calls the session; with "" all sessions of
	// Subject end.
	Session string
	Subject string
}

// EndSessionsOfProvider ends the sessions that a logout token names, those of the
// operator's console too. A token that
// was taken before ends nothing.
func (s *Store) EndSessionsOfProvider(ctx context.Context, l Logout) error {
	return s.db.Update(ctx, "log out", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sqlSweepLogoutTokens, sqldb.Micros(s.db.Now())); err != nil {
			return err
		}
		r, err := tx.ExecContext(ctx, sqlInsertLogoutToken, l.Issuer, l.TokenID, sqldb.Micros(l.Expires))
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlEndOperatorsOfProvider, l.Issuer, l.Session, l.Subject); err != nil {
			return err
		}
		return endSessions(ctx, tx, sqlEndSessionsOfProvider, l.Issuer, l.Session, l.Subject)
	})
}

// EndSessionsOfKey ends every session that was opened with a key.
func (s *Store) EndSessionsOfKey(ctx context.Context, id modelgate.KeyID) error {
	return s.db.Update(ctx, "end sessions", func(tx *sql.Tx) error { return endSessions(ctx, tx, sqlEndSessionsOfKey, string(id)) })
}

// endSessions deletes sessions and, where there were any, raises the version
// that tells other instances. It comes last in a transaction, as
// sqldb.RaiseControl does.
func endSessions(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	r, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, sqlRaiseSessions)
	return err
}

// TouchSessions notes when sessions were last used. A time never moves back,
// and an unknown session is ignored.
func (s *Store) TouchSessions(ctx context.Context, used map[modelgate.SessionID]time.Time) error {
	return noteUses(ctx, s.db, "touch sessions", sqlTouchSession, used)
}

// touchesPerTx keeps the transactions of noteUses short.
const touchesPerTx = 100

// noteUses notes last uses with a query that takes an id and an instant.
func noteUses[ID ~string](ctx context.Context, db *sqldb.DB, what, query string, used map[ID]time.Time) error {
	ids := slices.Sorted(maps.Keys(used)) // one order for all instances: no deadlocks
	for part := range slices.Chunk(ids, touchesPerTx) {
		err := db.Update(ctx, what, func(tx *sql.Tx) error {
			for _, id := range part {
				if _, err := tx.ExecContext(ctx, query, string(id), sqldb.Micros(used[id])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
