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

const sqlInsertSession = `INSERT INTO session (id, digest, kind, place, client_id, api_key_id, created_at, last_seen_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
-- sqlInsertSession`

const sqlSession = `SELECT s.id, s.kind, s.place, s.client_id, s.api_key_id, k.digest, s.created_at, s.last_seen_at, s.expires_at
FROM session s
JOIN api_key k ON k.id = s.api_key_id
WHERE s.digest = $1
-- sqlSession`

const sqlEndSession = `DELETE FROM session
WHERE digest = $1 AND place = $2
-- sqlEndSession`

const sqlEndSessionsOfKey = `DELETE FROM session
WHERE api_key_id = $1
-- sqlEndSessionsOfKey`

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
			sqldb.Micros(n.CreatedAt), sqldb.Micros(n.LastSeenAt), sqldb.Micros(n.ExpiresAt))
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
	var found modelgate.Session
	var key []byte
	err := s.db.Read.QueryRowContext(ctx, sqlSession, cookie[:]).Scan(&found.ID, &found.Kind, &found.Place, &found.ClientID, &found.KeyID, &key,
		sqldb.Moment{Into: &found.CreatedAt}, sqldb.Moment{Into: &found.LastSeenAt}, sqldb.Moment{Into: &found.ExpiresAt})
	if errors.Is(err, sql.ErrNoRows) {
		return found, modelgate.ErrUnauthorized
	}
	copy(found.Key[:], key)
	return found, sqldb.Wrap("look up session", err)
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
