package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// usageHead is a row of usage_head.
type usageHead struct {
	prunedBefore int64
	prunedCost   modelgate.Nano
}

const sqlUsageHead = `SELECT pruned_before, pruned_cost
FROM usage_head
WHERE client_id = $1
-- sqlUsageHead`

// readHead returns the zero value for a client without a head.
func readHead(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) (usageHead, error) {
	var h usageHead
	err := tx.QueryRowContext(ctx, sqlUsageHead, string(client)).Scan(&h.prunedBefore, &h.prunedCost)
	if errors.Is(err, sql.ErrNoRows) {
		return usageHead{}, nil
	}
	return h, err
}

// lockHeads locks the clients' heads until the transaction ends. Missing heads
// are inserted. All transactions lock heads in the same order, and before
// counters.
func (db *DB) lockHeads(ctx context.Context, tx *sql.Tx, clients []modelgate.ClientID) error {
	names := slices.Compact(slices.Sorted(slices.Values(clients)))
	return db.handle.Batch(ctx, tx, sqldb.BatchExec{
		Text: headInsert,
		N:    len(names),
		Args: func(dst []any, i int) []any { return append(dst, string(names[i]), 0, 0, 0) },
	})
}

// headInsert inserts or locks the heads of clients, in the order of the rows.
func headInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO usage_head (client_id, revision, pruned_before, pruned_cost)\nVALUES ", rows, 4, 1) +
		"\nON CONFLICT (client_id) DO UPDATE SET revision = usage_head.revision + 1\n-- headInsert"
}
