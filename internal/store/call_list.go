package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// MostCallsRead is how many rows one page of calls looks at, whether they match
// or not.
const MostCallsRead = 100_000

// MostCallsReadOfAll is MostCallsRead for questions about several organizations.
const MostCallsReadOfAll = 1_000_000

// CallOrder is the order of a list: a member of its rows, with a minus the largest
// first. Equal calls are ordered by time and id, the newest first.
type CallOrder string

// The orders.
const (
	CallsNewest           CallOrder = "-created_at"
	CallsOldest           CallOrder = "created_at"
	CallsDearest          CallOrder = "-cost_usd"
	CallsMostTokens       CallOrder = "-total_tokens"
	CallsSlowest          CallOrder = "-latency_ms"
	CallsSlowestFirstByte CallOrder = "-first_byte_ms"
)

// CallOrders are all there are, the default first.
func CallOrders() []CallOrder {
	return []CallOrder{CallsNewest, CallsOldest, CallsDearest, CallsMostTokens, CallsSlowest, CallsSlowestFirstByte}
}

// column is what an order compares before the time, "" for nothing.
func (o CallOrder) column() string {
	switch o {
	case CallsDearest:
		return "cost"
	case CallsMostTokens:
		return "total_tokens"
	case CallsSlowest:
		return "latency_ms"
	case CallsSlowestFirstByte:
		return "first_byte_ms"
	}
	return ""
}

// value is that of a row in the order's column.
func (o CallOrder) value(r *modelgate.UsageRow) int64 {
	switch o {
	case CallsDearest:
		return int64(r.Cost)
	case CallsMostTokens:
		return r.Usage.TotalTokens()
	case CallsSlowest:
		return r.LatencyMS
	case CallsSlowestFirstByte:
		return r.FirstByteMS
	}
	return 0
}

// CallPosition is a place in a list: behind the call with this value of the
// order's column, time and id.
type CallPosition struct {
	Value int64 // 0 in orders by time
	At    int64 // µs
	ID    string
}

// CallList selects a page of calls.
type CallList struct {
	CallFilter
	Order CallOrder     // "" is CallsNewest
	Limit int           // rows, 1 or more
	After *CallPosition // nil for the first page

	most int // rows that a page looks at; 0 is MostRead

	slice int64 // µs that a step looked at last
}

// ErrTooManyCalls says that an order other than by time has more than
// MostCallsRead rows to look at.
var ErrTooManyCalls = errors.New("more calls than can be sorted at once")

// Calls reads a page and the position that the next one begins behind; nil on
// the last page. In the orders by time a page may hold less than Limit and
// still have a next one: when the rows that it has looked at were MostCallsRead. Errors:
// ErrTooManyCalls.
func (db *DB) Calls(ctx context.Context, l CallList) (rows []modelgate.UsageRow, next *CallPosition, err error) {
	read := func(q sqldb.Querier) error {
		rows, next, err = l.read(ctx, q)
		return err
	}
	if l.Order.column() == "" && !l.Everyone && !l.Narrow() {
		err = read(db.read) // a page of an index
		return rows, next, sqldb.Wrap("list calls", err)
	}
	err = db.handle.SnapshotInTurn(ctx, "list calls", l.Client, func(tx *sql.Tx) error { return read(tx) })
	return rows, next, err
}

func (l CallList) read(ctx context.Context, q sqldb.Querier) ([]modelgate.UsageRow, *CallPosition, error) {
	l.Order = cmp.Or(l.Order, CallsNewest)
	l.most = cmp.Or(l.most, l.MostRead())
	if l.Order.column() != "" {
		return l.sorted(ctx, q)
	}
	position := l.After
	var rows []modelgate.UsageRow
	for looked := 0; ; {
		edge, step, err := l.edge(ctx, q, position, looked)
		if err != nil {
			return nil, nil, err
		}
		found, err := l.part(ctx, q, position, edge, l.Limit+1-len(rows))
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, found...)
		switch {
		case len(rows) > l.Limit:
			rows = rows[:l.Limit]
			return rows, l.behind(&rows[l.Limit-1]), nil
		case edge == nil:
			return rows, nil, nil
		}
		if looked += step; looked >= l.most {
			return rows, edge, nil
		}
		position = edge
	}
}

// edge is the last of the next rows that a page looks at, and how many these
// are; nil for all that are left. Steps grow, for most pages are filled by the
// first.
func (l *CallList) edge(ctx context.Context, q sqldb.Querier, after *CallPosition, looked int) (*CallPosition, int, error) {
	if l.Everyone {
		return l.sliceEnd(ctx, q, after, l.most-looked)
	}
	if !l.Narrow() {
		return nil, 0, nil
	}
	step := min(max(4*l.Limit, 9*looked), l.most-looked)
	var b callQuery
	b.write("SELECT created_at, id\nFROM usage_row\nWHERE ")
	b.owner(&l.CallFilter)
	l.within(&b, after, nil)
	b.write("\nORDER BY ", l.by(), "\nLIMIT 1 OFFSET ", b.arg(step-1), "\n-- calls edge")
	var edge CallPosition
	err := q.QueryRowContext(ctx, b.text.String(), b.args...).Scan(&edge.At, &edge.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, step, nil
	}
	return &edge, step, err
}

// part reads the matching rows behind one position, up to another.
func (l *CallList) part(ctx context.Context, q sqldb.Querier, after, to *CallPosition, limit int) ([]modelgate.UsageRow, error) {
	var b callQuery
	b.write("SELECT ", usageColumns, "\nFROM usage_row\nWHERE ")
	b.owner(&l.CallFilter)
	l.within(&b, after, to)
	b.filter(&l.CallFilter)
	b.write("\nORDER BY ", l.by(), "\nLIMIT ", b.arg(limit), "\n-- calls")
	return sqldb.List(ctx, q, scanUsage, b.text.String(), b.args...)
}

// within bounds the window, and the positions in it.
func (l *CallList) within(b *callQuery, after, to *CallPosition) {
	from, until := l.between(after, to)
	b.write("\n  AND created_at >= ", b.arg(from), " AND created_at < ", b.arg(until))
	behind, upTo := " < ", " >= "
	if l.Order == CallsOldest {
		behind, upTo = " > ", " <= "
	}
	if after != nil && l.Order.column() != "" {
		b.write("\n  AND (", l.Order.column(), ", created_at, id) < (", b.arg(after.Value), ", ", b.arg(after.At), ", ", b.arg(after.ID), ")")
	} else if after != nil {
		b.write("\n  AND (created_at, id)", behind, "(", b.arg(after.At), ", ", b.arg(after.ID), ")")
	}
	if to != nil {
		b.write("\n  AND (created_at, id)", upTo, "(", b.arg(to.At), ", ", b.arg(to.ID), ")")
	}
}

// by is the order in SQL.
func (l *CallList) by() string {
	if l.Order == CallsOldest {
		return "created_at, id"
	}
	by := "created_at DESC, id DESC"
	if c := l.Order.column(); c != "" {
		by = c + " DESC, " + by
	}
	return by
}

// sorted reads a page of an order that no index has.
func (l *CallList) sorted(ctx context.Context, q sqldb.Querier) ([]modelgate.UsageRow, *CallPosition, error) {
	switch n, err := countCalls(ctx, q, l.CallFilter, l.most+1); {
	case err != nil:
		return nil, nil, err
	case n > l.most:
		return nil, nil, ErrTooManyCalls
	}
	rows, err := l.part(ctx, q, l.After, nil, l.Limit+1)
	if err != nil || len(rows) <= l.Limit {
		return rows, nil, err
	}
	rows = rows[:l.Limit]
	return rows, l.behind(&rows[l.Limit-1]), nil
}

func (l *CallList) behind(r *modelgate.UsageRow) *CallPosition {
	return &CallPosition{l.Order.value(r), sqldb.Micros(r.At), r.CallBegin.ID.String()}
}

// countCalls is how many rows have the owner and the window of a filter, at most
// that many.
func countCalls(ctx context.Context, q sqldb.Querier, f CallFilter, most int) (n int, err error) {
	from, until := f.window()
	return countCallsIn(ctx, q, &f, from, until, most)
}

// countCallsIn is how many rows of a time, in µs, have the owner of a filter, at
// most that many.
func countCallsIn(ctx context.Context, q sqldb.Querier, f *CallFilter, from, until int64, most int) (n int, err error) {
	var b callQuery
	b.write("SELECT COUNT(*)\nFROM (\n  SELECT 1\n  FROM usage_row\n  WHERE ")
	b.owner(f)
	b.write("\n  AND created_at >= ", b.arg(from), " AND created_at < ", b.arg(until), "\n  LIMIT ", b.arg(most), ") AS looked\n-- calls count")
	err = q.QueryRowContext(ctx, b.text.String(), b.args...).Scan(&n)
	return n, err
}

// CountCalls is how many calls an owner has in the window of a filter, whose
// other fields do not count, at most that many.
func (db *DB) CountCalls(ctx context.Context, f CallFilter, most int) (n int, err error) {
	err = db.handle.SnapshotInTurn(ctx, "count calls", f.Client, func(tx *sql.Tx) error {
		n, err = countCalls(ctx, tx, f, most)
		return err
	})
	return n, err
}

const (
	sqlUsageRevision = `SELECT COALESCE((SELECT revision FROM usage_head WHERE client_id = $1), 0),
  (SELECT COUNT(*) FROM rollup_delta WHERE client_id = $1),
  (SELECT version FROM control)
-- sqlUsageRevision`

	sqlUsageRevisionOfAll = `SELECT (SELECT CAST(COALESCE(SUM(revision), 0) AS BIGINT) FROM usage_head),
  (SELECT COUNT(*) FROM rollup_delta),
  (SELECT version FROM control)
-- sqlUsageRevisionOfAll`
)

// UsageRevision is a text that another one follows whenever calls of a client are
// booked, changed or pruned, and when keys or sub-accounts change; "" is every
// client. It may change without that too. Each booking adds to the waiting deltas,
// whose number only shrinks together with a new revision of a head.
func (db *DB) UsageRevision(ctx context.Context, client modelgate.ClientID) (string, error) {
	var head, deltas, control int64
	query, args := sqlUsageRevision, []any{string(client)}
	if client == "" {
		query, args = sqlUsageRevisionOfAll, nil
	}
	err := db.read.QueryRowContext(ctx, query, args...).Scan(&head, &deltas, &control)
	return fmt.Sprintf("%d.%d.%d", head, deltas, control), sqldb.Wrap("read usage revision", err)
}
