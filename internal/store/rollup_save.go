package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// head is a row of usage_head.
type head struct {
	rolledFrom   int64
	prunedBefore int64
	prunedCost   modelgate.Nano // filled in by readHead only
}

const usageHeadColumnCount = 6

// lockHeads locks the clients' heads until the transaction ends, and fills
// them in. All transactions take them in the same order, and before counters.
func (db *DB) lockHeads(ctx context.Context, tx *sql.Tx, clients map[modelgate.ClientID]head) error {
	names := slices.Sorted(maps.Keys(clients))
	return db.runMany(ctx, tx, sqldb.BatchExec{
		Text: headInsert,
		N:    len(names),
		Args: func(dst []any, i int) []any { return append(dst, string(names[i]), 0, 0, 0, 0, 0) },
		Scan: func(s sqldb.Scanner) error {
			var name modelgate.ClientID
			var h head
			err := s.Scan(&name, &h.rolledFrom, &h.prunedBefore)
			clients[name] = h
			return err
		},
	})
}
