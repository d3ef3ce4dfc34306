package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"modelgate"
)

const keyColumns = `id, client_id, COALESCE(sub_account_id, ''), prefix, status, scopes, entitlements, denies, backing,
  limit_rps, limit_burst, limit_concurrency, created_at, last_used_at, expires_at`

// sqlKeys walks api_key_newest.
const sqlKeys = `SELECT ` + keyColumns + `
FROM api_key
WHERE client_id = $1
  AND ($2 = '' OR sub_account_id = $2)
  AND (created_at, id) < ($3, $4)
ORDER BY created_at DESC, id DESC
LIMIT $5
-- sqlKeys`

const sqlFindKey = `SELECT ` + keyColumns + `
FROM api_key
WHERE id = $1
-- sqlFindKey`

const sqlRevokeKey = `UPDATE api_key
SET status = 'revoked'
WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3) AND status = 'active'
RETURNING digest
-- sqlRevokeKey`

const sqlKeyDigest = `SELECT digest
FROM api_key
WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3)
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

func scanKey(s scanner) (modelgate.Key, error) {
	var k modelgate.Key
	var expiresAt int64
	err := s.Scan(&k.ID, &k.ClientID, &k.SubAccountID, &k.Prefix, &k.Status, document{&k.Scopes},
		document{&k.Entitlements}, document{&k.Denies}, document{&k.Backing},
		&k.Limits.RequestsPerSecond, &k.Limits.Burst, &k.Limits.Concurrency,
		moment{&k.CreatedAt}, moment{&k.LastUsedAt}, &expiresAt)
	k.ExpiresAt = expires(expiresAt)
	return k, err
}

// KeyList selects keys.
type KeyList struct {
	SubAccountID modelgate.SubAccountID // "" for all of the organization
	Limit        int                    // 0 for all
	After        *Cursor                // nil for the first page
}

// Keys lists keys of every state, the newest first, and reports whether more
// follow. (spec: GET /gw/keys)
func (db *DB) Keys(ctx context.Context, client modelgate.ClientID, l KeyList) ([]modelgate.Key, bool, error) {
	at, id := l.After.before()
	rows, err := list(ctx, db.read, scanKey, sqlKeys, client, string(l.SubAccountID), at, id, fetch(l.Limit))
	rows, more := page(rows, l.Limit)
	return rows, more, wrap("list keys", err)
}

// KeyScope narrows which keys of an organization may be touched.
type KeyScope struct {
	SubAccountID modelgate.SubAccountID // "" for all
}

// RevokeKey revokes a key for good and returns its digest, so that caches can
// drop it. Revoking a revoked key changes nothing. It raises the control
// version. Errors: not_found. (spec: DELETE /gw/keys/{id})
func (db *DB) RevokeKey(ctx context.Context, client modelgate.ClientID, s KeyScope, id modelgate.KeyID, a modelgate.Audit) (modelgate.Digest, error) {
	var digest []byte
	err := db.update(ctx, "revoke key", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, sqlRevokeKey, client, id, string(s.SubAccountID)).Scan(&digest)
		if errors.Is(err, sql.ErrNoRows) {
			err = tx.QueryRowContext(ctx, sqlKeyDigest, client, id, string(s.SubAccountID)).Scan(&digest)
			if err != nil {
				return missing(err, "key")
			}
			return db.record(ctx, tx, client, a)
		}
		if err != nil {
			return err
		}
		if err := db.record(ctx, tx, client, a); err != nil {
			return err
		}
		return raiseControl(ctx, tx)
	})
	var d modelgate.Digest
	copy(d[:], digest)
	return d, err
}

// FindKey returns any organization's key or not_found. It is for the operator
// alone, who names keys without saying whose they are.
func (db *DB) FindKey(ctx context.Context, id modelgate.KeyID) (modelgate.Key, error) {
	k, err := scanKey(db.read.QueryRowContext(ctx, sqlFindKey, id))
	return k, wrap("find key", missing(err, "key"))
}

// SetKeyLimits replaces all limits of a key; nil fields fall back to the
// client's. It raises the control version. Errors: not_found, bad_request.
func (db *DB) SetKeyLimits(ctx context.Context, client modelgate.ClientID, id modelgate.KeyID, l modelgate.Limits, a modelgate.Audit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return db.update(ctx, "set key limits", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlSetKeyLimits, client, id, l.RequestsPerSecond, l.Burst, l.Concurrency)
		if err != nil {
			return err
		}
		if err := oneRow(r, "key"); err != nil {
			return err
		}
		if err := db.record(ctx, tx, client, a); err != nil {
			return err
		}
		return raiseControl(ctx, tx)
	})
}

// oneRow is not_found when a change met no row.
func oneRow(r sql.Result, what string) error {
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		return modelgate.Errorf(modelgate.NotFound, "%s not found", what)
	}
	return err
}

// touchesPerTx keeps the transactions of TouchKeys short.
const touchesPerTx = 100

// TouchKeys notes when keys were last used. A time never moves back, and an
// unknown key is ignored.
func (db *DB) TouchKeys(ctx context.Context, used map[modelgate.KeyID]time.Time) error {
	ids := slices.Sorted(maps.Keys(used)) // one order for all instances: no deadlocks
	for part := range slices.Chunk(ids, touchesPerTx) {
		err := db.update(ctx, "touch keys", func(tx *sql.Tx) error {
			for _, id := range part {
				if _, err := tx.ExecContext(ctx, sqlTouchKey, id, micros(used[id])); err != nil {
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
