package spend

import (
	"fmt"

	"modelgate/internal/store/sqldb"
)

// spendInsert adds amounts to counters, in the order of the rows.
func spendInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO spend ("+spendColumns+")\nVALUES ", rows, spendColumnCount, 1) + spendConflict + "\n-- spendInsert"
}

const spendConflict = `
ON CONFLICT (client_id, scope, scope_id, period, period_start) DO UPDATE
SET settled = spend.settled + excluded.settled, held = spend.held + excluded.held`

// leaseSpend takes amounts off leases: client, scope, id, period, start,
// instance and amount of each. It returns what is left of those that are there.
func leaseSpend(rows int) string {
	b := []byte("UPDATE slice\nSET granted = slice.granted - v.column7\nFROM (VALUES ")
	for i := range rows {
		if i > 0 {
			b = append(b, ", "...)
		}
		n := 7*i + 1
		b = fmt.Appendf(b, "($%d, $%d, $%d, $%d, CAST($%d AS BIGINT), $%d, CAST($%d AS BIGINT))", n, n+1, n+2, n+3, n+4, n+5, n+6)
	}
	return string(b) + ") AS v\nWHERE " + leaseSpendRow + "\n-- leaseSpend"
}

const leaseSpendRow = `slice.client_id = v.column1 AND slice.scope = v.column2 AND slice.scope_id = v.column3
  AND slice.period = v.column4 AND slice.period_start = v.column5 AND slice.instance = v.column6
RETURNING slice.client_id, slice.scope, slice.scope_id, slice.period, slice.period_start, slice.granted`

// Statements that read the tuples of a feed in place of VALUES. OR FAIL spares
// the copy of every page that it changes: who runs it takes back the
// transaction if it fails.
const (
	sqlSQLiteSpend = `INSERT OR FAIL INTO spend (` + spendColumns + `)
SELECT column1, column2, column3, column4, column5, column6, column7
FROM temp.feed_tuple
WHERE true` + spendConflict + `
-- sqlSQLiteSpend`

	sqlSQLiteLeaseSpend = `UPDATE OR FAIL slice
SET granted = slice.granted - v.column7
FROM temp.feed_tuple AS v
WHERE ` + leaseSpendRow + `
-- sqlSQLiteLeaseSpend`
)

// Statements are the statements of so many rows, by their names: a test
// prepares them.
func Statements(rows int) map[string]string {
	return map[string]string{"spendInsert": spendInsert(rows), "leaseSpend": leaseSpend(rows), "alertInsert": alertInsert(rows), "settledSelect": settledSelect(rows)}
}
