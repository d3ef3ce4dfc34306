package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlIssuer is the key that issues another.
const sqlIssuer = `SELECT status, COALESCE(sub_account_id, ''), expires_at
FROM api_key
WHERE client_id = $1 AND id = $2
-- sqlIssuer`

// sqlLiveAncestors are the ancestors of a key that are not revoked, the
// nearest first. One that has expired has no live descendants.
const sqlLiveAncestors = `SELECT l.ancestor_id
FROM key_lineage l
JOIN api_key p ON p.id = l.ancestor_id
WHERE l.key_id = $1 AND p.status = 'active'
ORDER BY l.generation
-- sqlLiveAncestors`

const sqlInsertLineage = `INSERT INTO key_lineage (key_id, generation, ancestor_id)
VALUES ($1, $2, $3)
-- sqlInsertLineage`

// sqlAncestors is what binds a key $1 through its ancestors: each with its own
// limits, and a row for each of its budgets or one without.
const sqlAncestors = `SELECT l.generation, p.id, p.limit_rps, p.limit_burst, p.limit_concurrency,
  COALESCE(b.period, ''), COALESCE(b.amount, 0), COALESCE(b.revision, 0)
FROM key_lineage l
JOIN api_key p ON p.id = l.ancestor_id AND p.status = 'active'
LEFT JOIN budget b ON b.client_id = p.client_id AND b.scope = 'key' AND b.scope_id = p.id
WHERE l.key_id = $1
ORDER BY l.generation
-- sqlAncestors`

const sqlLineagesOfClient = `SELECT l.key_id, l.ancestor_id
FROM key_lineage l
JOIN api_key k ON k.id = l.key_id
WHERE k.client_id = $1
ORDER BY l.key_id, l.generation
-- sqlLineagesOfClient`

// lineageSelect reads the lineages of keys.
func lineageSelect(keys int) string {
	return sqldb.Tuples("SELECT key_id, ancestor_id\nFROM key_lineage\nWHERE key_id IN ", 1, keys, 1) +
		"\nORDER BY key_id, generation\n-- lineageSelect"
}

// lineages are the ancestors of keys, the issuer first, as they were when each
// was issued.
type lineages map[modelgate.KeyID][]modelgate.KeyID

// add reads one row of a statement that is ordered by key and generation.
func (l lineages) add(s sqldb.Scanner) error {
	var key, ancestor modelgate.KeyID
	err := s.Scan(&key, &ancestor)
	l[key] = append(l[key], ancestor)
	return err
}

// knownLineages bounds the keys whose lineage is remembered.
const knownLineages = 1 << 16

// pedigree remembers lineages, which never change. The zero value is ready.
type pedigree struct {
	mu    sync.Mutex
	known lineages
}

// lineagesOf are the lineages of the keys that made some calls. Only keys of
// sub-accounts have any.
func (db *DB) lineagesOf(ctx context.Context, tx *sql.Tx, calls charges) (lineages, error) {
	var out lineages
	var unknown []modelgate.KeyID
	read := make(lineages)
	db.pedigree.mu.Lock()
	for c := range calls {
		if c.subAccount == "" {
			continue
		}
		if out == nil {
			out = make(lineages)
		}
		ancestors, known := db.pedigree.known[c.key]
		if _, asked := read[c.key]; !known && !asked {
			unknown, read[c.key] = append(unknown, c.key), nil
		} else if len(ancestors) > 0 {
			out[c.key] = ancestors
		}
	}
	db.pedigree.mu.Unlock()
	err := db.runMany(ctx, tx, sqldb.BatchExec{Text: lineageSelect, N: len(unknown), Scan: read.add, Args: func(dst []any, i int) []any {
		return append(dst, sqldb.Clean(string(unknown[i])))
	}})
	if err != nil || len(unknown) == 0 {
		return out, err
	}
	db.pedigree.mu.Lock()
	defer db.pedigree.mu.Unlock()
	if db.pedigree.known == nil || len(db.pedigree.known) > knownLineages {
		db.pedigree.known = make(lineages)
	}
	for key, ancestors := range read {
		db.pedigree.known[key] = ancestors
		if len(ancestors) > 0 {
			out[key] = ancestors
		}
	}
	return out, nil
}

// issuer is what a key passes on to one that it issues: its end, zero for
// never, and the lineage of the new key. The client is locked. Errors:
// modelgate.ErrUnauthorized where the key is revoked, modelgate.ErrTooDeep.
func issuer(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, id modelgate.KeyID) (descent, error) {
	var d descent
	var status modelgate.KeyStatus
	var sub string
	var ends int64
	err := tx.QueryRowContext(ctx, sqlIssuer, client, id).Scan(&status, &sub, &ends)
	if errors.Is(err, sql.ErrNoRows) || err == nil && status != modelgate.KeyActive {
		return d, modelgate.ErrUnauthorized
	}
	if err != nil || sub == "" {
		return d, err
	}
	above, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlLiveAncestors, id)
	if err != nil {
		return d, err
	}
	if len(above) >= modelgate.MaxLineage {
		return d, modelgate.ErrTooDeep
	}
	d.bound, d.ends = true, sqldb.Expires(ends)
	d.ancestors = append([]string{string(id)}, above...)
	return d, nil
}

// inherit adds what binds a caller through its ancestors.
func (db *DB) inherit(ctx context.Context, c *modelgate.Caller, client modelgate.Limits) ([]modelgate.Budget, error) {
	found, err := sqldb.List(ctx, db.read, func(s sqldb.Scanner) (modelgate.Budget, error) {
		b := modelgate.Budget{Level: modelgate.LevelKey}
		var own modelgate.Limits
		err := s.Scan(&b.Generation, &b.ID, &own.RequestsPerSecond, &own.Burst, &own.Concurrency, &b.Period, &b.Limit, &b.Revision)
		if n := len(c.Ancestors); err == nil && (n == 0 || string(c.Ancestors[n-1].KeyID) != b.ID) {
			c.Ancestors = append(c.Ancestors, modelgate.Ancestor{KeyID: modelgate.KeyID(b.ID), Limits: own.Shared(client)})
		}
		if b.Period == "" {
			b.Level = ""
		}
		return b, err
	}, sqlAncestors, c.KeyID)
	return found, err
}
