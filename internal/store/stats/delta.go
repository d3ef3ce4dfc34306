package stats

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// AddDeltas stores what a batch adds: one row for each client, sub-account and
// hour, however many different values there are. Batches do not wait for each
// other.
func (r Rollups) AddDeltas(ctx context.Context, tx *sql.Tx, t Tallies) error {
	spans := slices.SortedFunc(maps.Keys(t), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.subAccount, b.subAccount), cmp.Compare(a.start, b.start))
	})
	id := rand.Text()
	insert := sqldb.BatchExec{
		Text: deltaInsert,
		N:    len(spans),
		Args: func(dst []any, i int) []any {
			at := spans[i]
			return append(dst, string(at.client), string(at.subAccount), at.start, id, encodeDelta(t[at]))
		},
	}
	return insert.Run(ctx, tx, r.Rows)
}

// encodeDelta makes a root page. It is read once and soon, so its keys are not
// sorted.
func encodeDelta(dimensions tally) []byte {
	n := 0
	for _, entries := range dimensions {
		n += len(entries)
	}
	return encode(n, func(yield func(string, Sums) bool) {
		for name, entries := range dimensions {
			for key, s := range entries {
				if !yield(name+"\x00"+key, *s) {
					return
				}
			}
		}
	})
}

const sqlDeltas = `SELECT sub_account_id, hour, id, data
FROM rollup_delta
WHERE client_id = $1
ORDER BY sub_account_id, hour, id
LIMIT $2
-- sqlDeltas`

// CompactionEntries bounds the different keys that one compaction merges, except
// for those of its last hour: each may lie on a page of its own.
const CompactionEntries = 5000

// deltaKey is the key of a row of rollup_delta.
type deltaKey struct {
	span
	id string
}

// Compaction is the deltas that one transaction merges into pages.
type Compaction struct {
	Most int  // deltas
	Full bool // there may be more

	tallies Tallies
	keys    []deltaKey
	entries int // different keys in tallies
}

// Read adds deltas of a client until Full.
func (c *Compaction) Read(ctx context.Context, tx *sql.Tx, r Rollups, client modelgate.ClientID) error {
	if c.Full {
		return nil
	}
	if c.tallies == nil {
		c.tallies = make(Tallies)
	}
	rows, err := tx.QueryContext(ctx, sqlDeltas, append(slices.Clone(r.Fresh), string(client), c.Most-len(c.keys)+1)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		k := deltaKey{span: span{client: client, grain: Hour}}
		var data sql.RawBytes
		if err := rows.Scan(&k.subAccount, &k.start, &k.id, &data); err != nil {
			return err
		}
		if c.Full = len(c.keys) == c.Most || c.entries >= CompactionEntries && c.tallies[k.span] == nil; c.Full {
			return nil
		}
		added, err := c.tallies.of(k.span).addPage(data)
		if err != nil {
			return fmt.Errorf("%s: %w", k.span, err)
		}
		c.keys, c.entries = append(c.keys, k), c.entries+added
	}
	return rows.Err()
}

// Compact merges what a compaction has read into the pages, and deletes it. The
// clients' heads must be locked.
func (r Rollups) Compact(ctx context.Context, tx *sql.Tx, c *Compaction) error {
	if err := r.Add(ctx, tx, c.tallies); err != nil {
		return err
	}
	del := sqldb.BatchExec{
		Text: deltaDelete,
		N:    len(c.keys),
		Args: func(dst []any, i int) []any {
			k := c.keys[i]
			return append(dst, string(k.client), string(k.subAccount), k.start, k.id)
		},
	}
	return del.Run(ctx, tx, r.Rows)
}

// deltaInsert inserts deltas.
func deltaInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup_delta (client_id, sub_account_id, hour, id, data)\nVALUES ", rows, 5, 1) + "\n-- deltaInsert"
}

// deltaDelete deletes deltas by their keys. The casts of the first key give the
// types of the others.
func deltaDelete(rows int) string {
	head := "DELETE FROM rollup_delta\nWHERE (client_id, sub_account_id, hour, id) IN (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, 4, 5)
	}
	return head + ")\n-- deltaDelete"
}

// Statements are the statements that are no constants, for a number of rows, by
// their names: for tests that prepare them.
func Statements(rows int) map[string]string {
	return map[string]string{
		"rollupInsert": rollupInsert(rows), "rollupSelect": rollupSelect(rows),
		"deltaInsert": deltaInsert(rows), "deltaDelete": deltaDelete(rows),
		"latencyInsert": latencyInsert(rows),
	}
}
