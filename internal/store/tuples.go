package store

import (
	"math/bits"
	"strconv"
)

// Statements of many rows are the only ones that are not constants. Their
// numbers of rows are powers of two, so that there are few different texts
// and each connection keeps them prepared.

// statementRows is how many of n rows the next statement takes: the largest
// power of two that is neither above n nor above most.
func statementRows(n, most int) int {
	return 1 << (bits.Len(uint(min(n, most))) - 1)
}

// usageInsert inserts rows and returns the ids of those that were new.
func usageInsert(rows int) string {
	return tuples("INSERT INTO usage_row ("+usageColumns+")\nVALUES ", rows, usageColumnCount, 1) +
		"\nON CONFLICT (client_id, created_at, id) DO NOTHING\nRETURNING id\n-- usageInsert"
}

// spendInsert adds amounts to counters, in the order of the rows.
func spendInsert(rows int) string {
	return tuples("INSERT INTO spend ("+spendColumns+")\nVALUES ", rows, spendColumnCount, 1) +
		"\nON CONFLICT (client_id, scope, scope_id, period, period_start) DO UPDATE" +
		"\nSET settled = spend.settled + excluded.settled, held = spend.held + excluded.held\n-- spendInsert"
}

// pulseInsert adds to the counts of calls, in the order of the rows.
func pulseInsert(rows int) string {
	return tuples("INSERT INTO pulse ("+pulseColumns+")\nVALUES ", rows, pulseColumnCount, 1) +
		"\nON CONFLICT (client_id, scope, scope_id, hour, latency_class) DO UPDATE" +
		"\nSET requests = pulse.requests + excluded.requests, errors = pulse.errors + excluded.errors," +
		"\n  total_tokens = pulse.total_tokens + excluded.total_tokens, cost = pulse.cost + excluded.cost," +
		"\n  latency_ms = pulse.latency_ms + excluded.latency_ms\n-- pulseInsert"
}

// tuples appends ($1, $2), ($3, $4), … to head, counting from first.
func tuples(head string, rows, columns, first int) string {
	b := make([]byte, 0, len(head)+rows*columns*7)
	b = append(b, head...)
	for i := range rows * columns {
		switch {
		case i == 0:
			b = append(b, '(')
		case i%columns == 0:
			b = append(b, "), ("...)
		default:
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, '$'), int64(i+first), 10)
	}
	return string(append(b, ')'))
}
