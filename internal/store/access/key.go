package access

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const keyColumns = `id, client_id, COALESCE(sub_account_id, ''), name, prefix, status, scopes, entitlements, denies, backing,
  limit_rps, limit_burst, limit_concurrency, created_at, last_used_at, expires_at, COALESCE(issued_by, ''), self_issued, kind, COALESCE(owner, '')`

// sqlKeys walks api_key_newest. $7 is what a prefix or a part of a name begins
// with, as a pattern.
const sqlKeys = `SELECT ` + keyColumns + `
FROM api_key
WHERE client_id = $1
  AND ($2 = '' OR sub_account_id = $2)
  AND (created_at, id) < ($3, $4)
  AND (NOT $6 OR self_issued)
  AND ($9 = '' OR owner = $9)
  AND ($7 = '' OR id = $8 OR prefix LIKE LOWER($7) ESCAPE '\' OR LOWER(name) LIKE '%' || LOWER($7) ESCAPE '\')
ORDER BY created_at DESC, id DESC
LIMIT $5
-- sqlKeys`

// sqlKeysOfAll is for the operator. Without an organization it reads all keys.
const sqlKeysOfAll = `SELECT ` + keyColumns + `
FROM api_key
WHERE ($1 = '' OR client_id = $1)
  AND ($2 = '' OR sub_account_id = $2)
  AND (created_at, id) < ($3, $4)
  AND ($6 = '' OR id = $7 OR prefix LIKE LOWER($6) ESCAPE '\' OR LOWER(name) LIKE '%' || LOWER($6) ESCAPE '\')
  AND ($8 = '' OR ($8 = 'revoked' AND status = 'revoked') OR ($8 = 'active' AND status = 'active' AND expires_at > $9)
    OR ($8 = 'expired' AND status = 'active' AND expires_at <= $9))
  AND ($10 = '' OR prefix LIKE $10 ESCAPE '\')
ORDER BY created_at DESC, id DESC
LIMIT $5
-- sqlKeysOfAll`

const sqlFindKey = `SELECT ` + keyColumns + `
FROM api_key
WHERE id = $1
-- sqlFindKey`

const sqlFindKeyByDigest = `SELECT ` + keyColumns + `
FROM api_key
WHERE digest = $1
-- sqlFindKeyByDigest`

const sqlRevokeKey = `UPDATE api_key
SET status = 'revoked'
WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3) AND (NOT $4 OR self_issued) AND ($5 = '' OR owner = $5) AND status = 'active'
RETURNING digest
-- sqlRevokeKey`

// sqlRevokeDescendants finds them by key_lineage_ancestor.
const sqlRevokeDescendants = `UPDATE api_key
SET status = 'revoked'
WHERE client_id = $1 AND status = 'active' AND id IN (
    SELECT key_id
    FROM key_lineage
    WHERE ancestor_id = $2)
RETURNING digest
-- sqlRevokeDescendants`

// sqlHandOn walks api_key_issued_by.
const sqlHandOn = `UPDATE api_key
SET issued_by = (
    SELECT p.issued_by
    FROM api_key p
    WHERE p.id = $2)
WHERE client_id = $1 AND issued_by = $2
-- sqlHandOn`

const sqlKeyDigest = `SELECT digest
FROM api_key
WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3) AND (NOT $4 OR self_issued) AND ($5 = '' OR owner = $5)
-- sqlKeyDigest`

// sqlSetKeyLimits and the others leave the rules of a key as they are: Caller
// does not read them twice.
const sqlSetKeyLimits = `UPDATE api_key
SET limit_rps = $3, limit_burst = $4, limit_concurrency = $5
WHERE client_id = $1 AND id = $2
-- sqlSetKeyLimits`

const sqlTouchKey = `UPDATE api_key
SET last_used_at = $2
WHERE id = $1 AND last_used_at < $2
-- sqlTouchKey`

func scanKey(s sqldb.Scanner) (modelgate.Key, error) {
	var k modelgate.Key
	var expiresAt int64
	err := s.Scan(&k.ID, &k.ClientID, &k.SubAccountID, &k.Name, &k.Prefix, &k.Status, sqldb.Document{Into: &k.Scopes},
		sqldb.Document{Into: &k.Entitlements}, sqldb.Document{Into: &k.Denies}, sqldb.Document{Into: &k.Backing},
		&k.Limits.RequestsPerSecond, &k.Limits.Burst, &k.Limits.Concurrency,
		sqldb.Moment{Into: &k.CreatedAt}, sqldb.Moment{Into: &k.LastUsedAt}, &expiresAt, &k.IssuedBy, &k.SelfIssued, &k.Kind, &k.Owner)
	k.ExpiresAt = sqldb.Expires(expiresAt)
	return k, err
}

// KeyList selects keys.
type KeyList struct {
	SubAccountID modelgate.SubAccountID // "" for all of the organization
	SelfIssued   bool                   // those that were issued in a portal, and no others
	Owner        modelgate.PersonID     // "" for those of everybody
	// Find selects keys by their whole id, the beginning of their secret's
	// prefix, or a part of their name, in which the case of the letters a to z
	// does not count; "" for all.
	Find string
	// State and Prefix, the beginning of a secret, select too; only KeysOfAll reads
	// them.
	State  KeyState
	Prefix string
	Limit  int           // 0 for all
	After  *sqldb.Cursor // nil for the first page
}

// Keys lists keys of every state, the newest first, and reports whether more
// follow.
func (s *Store) Keys(ctx context.Context, client modelgate.ClientID, l KeyList) ([]modelgate.Key, bool, error) {
	at, id := l.After.Bound()
	rows, err := sqldb.List(ctx, s.db.Read, scanKey, sqlKeys, client, string(l.SubAccountID), at, id, sqldb.Fetch(l.Limit), l.SelfIssued,
		l.pattern(), strings.ToLower(l.Find), string(l.Owner))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list keys", err)
}

// KeyState is a key's status, or that it has expired.
type KeyState string

// The states of a key.
const (
	KeyActive  KeyState = "active" // and not expired
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked"
)

// KeysOfAll is Keys over all organizations for "", for the operator.
func (s *Store) KeysOfAll(ctx context.Context, client modelgate.ClientID, l KeyList) ([]modelgate.Key, bool, error) {
	at, id := l.After.Bound()
	rows, err := sqldb.List(ctx, s.db.Read, scanKey, sqlKeysOfAll, string(client), string(l.SubAccountID), at, id, sqldb.Fetch(l.Limit),
		l.pattern(), strings.ToLower(l.Find), string(l.State), sqldb.Micros(s.db.Now()), beginning(l.Prefix))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list keys of all organizations", err)
}

// LiveKeys is how many keys of an organization are active and not expired.
func (s *Store) LiveKeys(ctx context.Context, client modelgate.ClientID) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlCountLiveKeys, client, sqldb.Micros(s.db.Now())).Scan(&n)
	return n, sqldb.Wrap("count keys", err)
}

// pattern is for LIKE, "" without Find.
func (l *KeyList) pattern() string { return beginning(l.Find) }

// beginning is the pattern of what begins with a text, "" for "".
func beginning(text string) string {
	if text == "" {
		return ""
	}
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text) + "%"
}

// KeyScope narrows which keys of an organization may be touched.
type KeyScope struct {
	SubAccountID modelgate.SubAccountID // "" for all
	SelfIssued   bool                   // those that were issued in a portal, and no others
	Owner        modelgate.PersonID     // "" for those of everybody
}

// RevokeKey revokes a key for good, and with it all that were issued below it,
// and returns their digests, so that caches can drop them; the key's own comes
// first. Revoking a revoked key changes nothing. It raises the control version.
// Errors: not_found.
func (s *Store) RevokeKey(ctx context.Context, client modelgate.ClientID, in KeyScope, id modelgate.KeyID, a modelgate.Audit) ([]modelgate.Digest, error) {
	return s.revokeKey(ctx, client, in, id, a, func(tx *sql.Tx) ([]modelgate.Digest, error) {
		return sqldb.List(ctx, tx, scanDigest, sqlRevokeDescendants, client, id)
	})
}

// RevokeKeyAlone is RevokeKey but for the keys that were issued below it: they
// go on below its own ancestors, and what was set on it binds them no more.
func (s *Store) RevokeKeyAlone(ctx context.Context, client modelgate.ClientID, in KeyScope, id modelgate.KeyID, a modelgate.Audit) ([]modelgate.Digest, error) {
	return s.revokeKey(ctx, client, in, id, a, func(tx *sql.Tx) ([]modelgate.Digest, error) {
		_, err := tx.ExecContext(ctx, sqlHandOn, client, id)
		return nil, err
	})
}

// revokeKey locks the client, so that no key is issued below the revoked one
// meanwhile.
func (s *Store) revokeKey(ctx context.Context, client modelgate.ClientID, in KeyScope, id modelgate.KeyID, a modelgate.Audit,
	below func(*sql.Tx) ([]modelgate.Digest, error)) (digests []modelgate.Digest, err error) {
	err = s.db.Update(ctx, "revoke key", func(tx *sql.Tx) error {
		if _, err := lockClient(ctx, tx, client); err != nil {
			return sqldb.Missing(err, "key")
		}
		own, err := scanDigest(tx.QueryRowContext(ctx, sqlRevokeKey, client, id, string(in.SubAccountID), in.SelfIssued, string(in.Owner)))
		if errors.Is(err, sql.ErrNoRows) {
			own, err = scanDigest(tx.QueryRowContext(ctx, sqlKeyDigest, client, id, string(in.SubAccountID), in.SelfIssued, string(in.Owner)))
			if err != nil {
				return sqldb.Missing(err, "key")
			}
			digests = []modelgate.Digest{own}
			return s.record(ctx, tx, client, a)
		}
		if err != nil {
			return err
		}
		others, err := below(tx)
		if err != nil {
			return err
		}
		digests = append([]modelgate.Digest{own}, others...)
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		return sqldb.RaiseControl(ctx, tx)
	})
	return digests, err
}

// keyNames reads the names of that many keys of a client, or of all.
func keyNames(keys int) string {
	return sqldb.Tuples("SELECT id, name\nFROM api_key\nWHERE (client_id = $1 OR $1 = '') AND name <> '' AND id IN ", 1, keys, 2) + "\n-- keyNames"
}

// KeyNames are the names of keys of a client; "" is every client. Keys without a
// name are left out.
func (s *Store) KeyNames(ctx context.Context, client modelgate.ClientID, ids []modelgate.KeyID) (map[modelgate.KeyID]string, error) {
	names := make(map[modelgate.KeyID]string)
	for len(ids) > 0 {
		n := sqldb.StatementRows(len(ids), s.db.RowsPerInsert)
		args := []any{string(client)}
		for _, id := range ids[:n] {
			args = append(args, string(id))
		}
		ids = ids[n:]
		_, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (struct{}, error) {
			var id modelgate.KeyID
			var name string
			err := row.Scan(&id, &name)
			names[id] = name
			return struct{}{}, err
		}, keyNames(n), args...)
		if err != nil {
			return nil, sqldb.Wrap("name keys", err)
		}
	}
	return names, nil
}

func scanDigest(s sqldb.Scanner) (d modelgate.Digest, err error) {
	var b []byte
	err = s.Scan(&b)
	copy(d[:], b)
	return d, err
}

// FindKey returns any organization's key or not_found. It is for the operator
// alone, who names keys without saying whose they are.
func (s *Store) FindKey(ctx context.Context, id modelgate.KeyID) (modelgate.Key, error) {
	k, err := scanKey(s.db.Read.QueryRowContext(ctx, sqlFindKey, id))
	return k, sqldb.Wrap("find key", sqldb.Missing(err, "key"))
}

// FindKeyByDigest returns the key with a secret, of whatever organization, or
// not_found. It is the operator's look-up.
func (s *Store) FindKeyByDigest(ctx context.Context, d modelgate.Digest) (modelgate.Key, error) {
	k, err := scanKey(s.db.Read.QueryRowContext(ctx, sqlFindKeyByDigest, d[:]))
	return k, sqldb.Wrap("find key by digest", sqldb.Missing(err, "key"))
}

// SetKeyLimits replaces all limits of a key; nil fields fall back to the
// client's. It raises the control version. Errors: not_found, bad_request.
func (s *Store) SetKeyLimits(ctx context.Context, client modelgate.ClientID, id modelgate.KeyID, l modelgate.Limits, a modelgate.Audit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return s.db.Update(ctx, "set key limits", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlSetKeyLimits, client, id, l.RequestsPerSecond, l.Burst, l.Concurrency)
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "key"); err != nil {
			return err
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		return sqldb.RaiseControl(ctx, tx)
	})
}

// TouchKeys notes when keys were last used. A time never moves back, and an
// unknown key is ignored.
func (s *Store) TouchKeys(ctx context.Context, used map[modelgate.KeyID]time.Time) error {
	return noteUses(ctx, s.db, "touch keys", sqlTouchKey, used)
}
