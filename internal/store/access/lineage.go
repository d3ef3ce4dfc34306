package access

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

// LineagesOfClient are the lineages of all keys of a client.
func LineagesOfClient(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) (map[modelgate.KeyID][]modelgate.KeyID, error) {
	all := lineages{}
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) { return struct{}{}, all.add(s) }, sqlLineagesOfClient, client)
	return all, err
}

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

// lineageCache remembers lineages, which never change. The zero value is ready.
type lineageCache struct {
	mu    sync.Mutex
	known lineages
}

// Lineages are the ancestors of some keys, the issuer first, as they were when
// each key was issued. A key without any is left out.
func (s *Store) Lineages(ctx context.Context, tx *sql.Tx, keys []modelgate.KeyID) (map[modelgate.KeyID][]modelgate.KeyID, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	out := make(lineages)
	var unknown []modelgate.KeyID
	read := make(lineages)
	s.lineages.mu.Lock()
	for _, key := range keys {
		ancestors, known := s.lineages.known[key]
		if _, asked := read[key]; !known && !asked {
			unknown, read[key] = append(unknown, key), nil
		} else if len(ancestors) > 0 {
			out[key] = ancestors
		}
	}
	s.lineages.mu.Unlock()
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{Text: lineageSelect, N: len(unknown), Scan: read.add, Args: func(dst []any, i int) []any {
		return append(dst, sqldb.Clean(string(unknown[i])))
	}})
	if err != nil || len(unknown) == 0 {
		return out, err
	}
	s.lineages.mu.Lock()
	defer s.lineages.mu.Unlock()
	if s.lineages.known == nil || len(s.lineages.known) > knownLineages {
		s.lineages.known = make(lineages)
	}
	for key, ancestors := range read {
		s.lineages.known[key] = ancestors
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
func (s *Store) inherit(ctx context.Context, c *modelgate.Caller, client modelgate.Limits) ([]modelgate.Budget, error) {
	found, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (modelgate.Budget, error) {
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
