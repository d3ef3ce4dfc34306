package store

import (
	"context"
	"database/sql"
	"time"

	"modelgate/internal/store/sqldb"
)

// No index has the calls of all organizations in the order of time: each would
// cost every call that is booked. A page across organizations looks at slices of
// time instead, in the order of the list. A slice begins at the next call there
// is, so none is empty, and is shorter the more calls there are.

const (
	firstSlice    = int64(time.Minute / time.Microsecond)
	shortestSlice = int64(time.Second / time.Microsecond)
	longestSlice  = shortestSlice * 60 * 60 * 24 * 366 * 100
	sliceGrowth   = 8
)

// sliceEnd is where the next slice of a page ends, and how many calls are in it;
// nil for the last. A slice has no more calls than are left to be looked at, unless
// there are that many in a second.
func (l *CallList) sliceEnd(ctx context.Context, q sqldb.Querier, after *CallPosition, left int) (*CallPosition, int, error) {
	from, until := l.between(after, nil)
	next, err := l.nextCall(ctx, q, from, until)
	if err != nil || !next.Valid {
		return nil, 0, err
	}
	for length := max(l.slice, firstSlice); ; length /= sliceGrowth {
		begin, end := max(next.Int64-length+1, from), until
		if l.Order == CallsOldest {
			begin, end = from, min(next.Int64+length, until)
		}
		n, err := countCallsIn(ctx, q, &l.CallFilter, begin, end, left+1)
		switch {
		case err != nil:
			return nil, 0, err
		case n > left && length > shortestSlice:
			continue
		}
		if l.slice = length; n <= 4*l.Limit {
			l.slice = min(length*sliceGrowth, longestSlice)
		}
		switch edge := (&CallPosition{At: begin}); {
		case l.Order == CallsOldest && end == until, l.Order != CallsOldest && begin == from:
			return nil, n, nil
		case l.Order == CallsOldest:
			edge.At = end
			return edge, n, nil
		default:
			return edge, n, nil
		}
	}
}

// between is the window of a list, of which a list across organizations needs no
// more than what lies between two positions.
func (l *CallList) between(after, to *CallPosition) (from, until int64) {
	from, until = l.window()
	if !l.Everyone || l.Order.column() != "" {
		return from, until
	}
	if l.Order == CallsOldest {
		after, to = to, after
	}
	if after != nil {
		until = min(until, after.At+1)
	}
	if to != nil {
		from = max(from, to.At)
	}
	return from, until
}

// nextCall is the time of the first call in a time in the order of the list, none
// where there is no call.
func (l *CallList) nextCall(ctx context.Context, q sqldb.Querier, from, until int64) (at sql.NullInt64, err error) {
	first := "MAX"
	if l.Order == CallsOldest {
		first = "MIN"
	}
	var b callQuery
	b.write("SELECT ", first, "(at)\nFROM (\n  SELECT (SELECT ", first, "(created_at) FROM usage_row WHERE client_id = client.id AND created_at >= ",
		b.arg(from), " AND created_at < ", b.arg(until), ") AS at\n  FROM client\n  WHERE ")
	b.clients(&l.CallFilter, "client.id")
	b.write(") AS next\n-- calls next")
	err = q.QueryRowContext(ctx, b.text.String(), b.args...).Scan(&at)
	return at, err
}
