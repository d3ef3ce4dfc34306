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

// AddDeltas notes what a batch adds, for a folding to put into pages.
func (r Rollups) AddDeltas(ctx context.Context, tx *sql.Tx, t Tallies) error {
	spans := slices.SortedFunc(maps.Keys(t), func(a, b span) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.subAccount, b.subAccount), cmp.Compare(a.start, b.start))
	})
	id := rand.Text()
	return r.run(ctx, tx, sqldb.BatchExec{
		Text: deltaInsert,
		N:    len(spans),
		Args: func(dst []any, i int) []any {
			at := spans[i]
			return append(dst, string(at.client), string(at.subAccount), at.start, id, encodeDelta(t[at]))
		},
	})
}

const sqlDeltas = `SELECT sub_account_id, hour, id, data
FROM rollup_delta
WHERE client_id = $1
ORDER BY sub_account_id, hour, id
LIMIT $2
-- sqlDeltas`

// FoldEntries bounds the different sums that one transaction puts into pages,
// but for those of its last hour: each may lie on a page of its own.
const FoldEntries = 5000

// deltaName is the key of a row of rollup_delta.
type deltaName struct {
	span
	id string
}

// NewFolding is for at most so many deltas.
func NewFolding(most int) *Folding { return &Folding{Tallies: make(Tallies), most: most} }

// Folding is what one transaction puts into pages: Tallies. Full says that there
// may be more.
type Folding struct {
	Tallies Tallies
	names   []deltaName
	entries int // different ones, of the tally
	most    int // names
	Full    bool
}

// Read adds deltas of a client, until there are enough.
func (f *Folding) Read(ctx context.Context, tx *sql.Tx, r Rollups, client modelgate.ClientID) error {
	if f.Full {
		return nil
	}
	rows, err := tx.QueryContext(ctx, sqlDeltas, append(slices.Clone(r.Fresh), string(client), f.most-len(f.names)+1)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		n := deltaName{span: span{client: client, grain: Hour}}
		var data sql.RawBytes
		if err := rows.Scan(&n.subAccount, &n.start, &n.id, &data); err != nil {
			return err
		}
		if f.Full = len(f.names) == f.most || f.entries >= FoldEntries && f.Tallies[n.span] == nil; f.Full {
			return nil
		}
		added, err := f.Tallies.addDelta(n.span, data)
		if err != nil {
			return fmt.Errorf("%s: %w", n.span, err)
		}
		f.names, f.entries = append(f.names, n), f.entries+added
	}
	return rows.Err()
}

// DeleteFolded deletes the deltas that a folding has read.
func (r Rollups) DeleteFolded(ctx context.Context, tx *sql.Tx, f *Folding) error {
	return r.run(ctx, tx, sqldb.BatchExec{
		Text: deltaDelete,
		N:    len(f.names),
		Args: func(dst []any, i int) []any {
			n := f.names[i]
			return append(dst, string(n.client), string(n.subAccount), n.start, n.id)
		},
	})
}

// deltaInsert adds to rollups.
func deltaInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup_delta (client_id, sub_account_id, hour, id, data)\nVALUES ", rows, 5, 1) + "\n-- deltaInsert"
}

// deltaDelete deletes what was put into pages. The first key says what type
// the others have.
func deltaDelete(rows int) string {
	head := "DELETE FROM rollup_delta\nWHERE (client_id, sub_account_id, hour, id) IN (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, 4, 5)
	}
	return head + ")\n-- deltaDelete"
}

// Statements are the statements that are no constants, for so many rows, by
// their names: for tests that prepare them.
func Statements(rows int) map[string]string {
	return map[string]string{
		"rollupInsert": rollupInsert(rows), "rollupSelect": rollupSelect(rows),
		"deltaInsert": deltaInsert(rows), "deltaDelete": deltaDelete(rows),
	}
}
