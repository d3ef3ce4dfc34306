package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// usageColumns are in the order of usageValues and scanUsage.
const usageColumns = `id, client_id, key_id, sub_account_id, provider, model, slug, author, kind, region, door,
  via_sdk, attribution, status_code, parse_status, quantities, total_tokens, cost, stated_cost, price_label,
  latency_ms, first_byte_ms, created_at, wallet_markup, wallet_debit`

const usageColumnCount = 25

// The usage queries walk the primary key, which begins with the client and
// the time, or usage_row_sub_account; IS TRUE keeps SQLite from
// walking all of the client for that. Filters are in usage_filter.go.
const (
	sqlUsage = `SELECT ` + usageColumns + `
FROM usage_row
WHERE client_id = $1
  AND created_at >= $2
  AND (created_at, id) < ($3, $4)
ORDER BY created_at DESC, id DESC
LIMIT $5
-- sqlUsage`

	sqlUsageOfSubAccount = `SELECT ` + usageColumns + `
FROM usage_row
WHERE sub_account_id = $6
  AND sub_account_id <> ''
  AND (client_id = $1) IS TRUE
  AND created_at >= $2
  AND (created_at, id) < ($3, $4)
ORDER BY created_at DESC, id DESC
LIMIT $5
-- sqlUsageOfSubAccount`

	sqlUsageByID = `SELECT ` + usageColumns + `
FROM usage_row
WHERE client_id = $1 AND created_at = $2 AND id = $3
-- sqlUsageByID`
)

// UsageList selects usage rows; zero fields select nothing away.
type UsageList struct {
	// SubAccountID restricts the list to an end customer, who sees a row's
	// author where a reseller sees the provider: Provider is then compared
	// with the author of rows whose route is catalogued.
	SubAccountID modelgate.SubAccountID
	Provider     string
	ParseStatus  modelgate.ParseStatus
	ID           modelgate.UsageID
	Since        time.Time     // the oldest created_at that is listed
	Limit        int           // 0 for all
	After        *sqldb.Cursor // nil for the first page
}

// Usage lists booked calls, ordered by created_at and id, the newest first,
// and reports whether more follow.
func (db *DB) Usage(ctx context.Context, client modelgate.ClientID, l UsageList) ([]modelgate.UsageRow, bool, error) {
	if l.ID != "" {
		return db.usageByID(ctx, client, l)
	}
	if l.Provider != "" || l.ParseStatus != "" {
		rows, err := db.filteredUsage(ctx, client, l)
		rows, more := sqldb.Page(rows, l.Limit)
		return rows, more, sqldb.Wrap("list filtered usage", err)
	}
	at, id := l.After.Bound()
	query, args := sqlUsage, []any{string(client), sqldb.Micros(l.Since), at, id, sqldb.Fetch(l.Limit)}
	if l.SubAccountID != "" {
		query, args = sqlUsageOfSubAccount, append(args, string(l.SubAccountID))
	}
	rows, err := sqldb.List(ctx, db.read, scanUsage, query, args...)
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list usage", err)
}

// usageByID lists one row or none: the other filters are few enough to be
// applied to it here.
func (db *DB) usageByID(ctx context.Context, client modelgate.ClientID, l UsageList) ([]modelgate.UsageRow, bool, error) {
	id, ok := modelgate.ParseUUID(string(l.ID))
	if !ok {
		return []modelgate.UsageRow{}, false, nil
	}
	rows, err := sqldb.List(ctx, db.read, scanUsage, sqlUsageByID, string(client), sqldb.Micros(id.Time()), id.String())
	if err != nil || len(rows) == 0 || l.matches(&rows[0]) {
		return rows, false, sqldb.Wrap("find usage", err)
	}
	return []modelgate.UsageRow{}, false, nil
}

// matches says in Go what the list queries say in SQL.
func (l *UsageList) matches(r *modelgate.UsageRow) bool {
	b := &r.CallBegin
	provider := b.Provider
	if l.SubAccountID != "" && b.Slug != "" {
		provider = b.Author
	}
	switch {
	case l.SubAccountID != "" && b.SubAccountID != l.SubAccountID,
		l.Provider != "" && provider != l.Provider,
		l.ParseStatus != "" && r.ParseStatus != l.ParseStatus,
		b.At.Before(l.Since):
		return false
	case l.After == nil:
		return true
	}
	at, id := l.After.Bound()
	us := sqldb.Micros(b.At)
	return us < at || us == at && b.ID.String() < id
}

func scanUsage(s sqldb.Scanner) (modelgate.UsageRow, error) {
	var r modelgate.UsageRow
	var id string
	var total, debit int64 // columns for queries; the row's own are Usage.TotalTokens and Debit
	b, e := &r.CallBegin, &r.CallEnd
	err := s.Scan(&id, &b.ClientID, &b.KeyID, &b.SubAccountID, &b.Provider, &b.Model, &b.Slug, &b.Author, &b.Kind,
		&b.Region, &b.Door, &b.ViaSDK, sqldb.Document{Into: &b.Attribution}, &e.StatusCode, &e.ParseStatus, sqldb.Document{Into: &e.Usage},
		&total, &e.Cost, &e.StatedCost, &e.PriceLabel, &e.LatencyMS, &e.FirstByteMS, sqldb.Moment{Into: &b.At}, &b.WalletMarkup, &debit)
	if err != nil {
		return r, err
	}
	parsed, ok := modelgate.ParseUUID(id)
	if !ok {
		return r, fmt.Errorf("usage row with the id %q", id)
	}
	b.ID = parsed
	return r, nil
}

// usageTexts appends the two JSON columns of a row, of which the second begins at
// second. It fails, as Poisoned knows, for what no database would take.
func usageTexts(dst []byte, r *modelgate.UsageRow) (both []byte, second int, err error) {
	if r.Cost < 0 {
		return dst, 0, fmt.Errorf("usage row %s: %w: cost %s", r.ID, sqldb.ErrValue, r.Cost)
	}
	if dst, err = appendPairs(dst, r.Attribution); err != nil {
		return dst, 0, err
	}
	second = len(dst)
	dst, err = appendUsage(dst, &r.Usage)
	return dst, second, err
}

// usageValues appends the columns of a row.
func usageValues(dst []any, r *modelgate.UsageRow) ([]any, error) {
	b, e := &r.CallBegin, &r.CallEnd
	var room [512]byte
	both, end, err := usageTexts(room[:0], r)
	if err != nil {
		return nil, err
	}
	texts := string(both)
	return append(dst, b.ID.String(), sqldb.Clean(string(b.ClientID)), sqldb.Clean(string(b.KeyID)), sqldb.Clean(string(b.SubAccountID)),
		sqldb.Clean(b.Provider), sqldb.Clean(b.Model), sqldb.Clean(b.Slug), sqldb.Clean(b.Author), sqldb.Clean(string(b.Kind)), sqldb.Clean(b.Region),
		sqldb.Clean(b.Door), b.ViaSDK, texts[:end], e.StatusCode, sqldb.Clean(string(e.ParseStatus)), texts[end:],
		e.Usage.TotalTokens(), int64(e.Cost), statedCost(e), sqldb.Clean(e.PriceLabel), e.LatencyMS, e.FirstByteMS, sqldb.Micros(b.At), walletMarkup(b), int64(b.Debit(e.Cost))), nil
}

// statedCost is a column of a row.
func statedCost(e *modelgate.CallEnd) any {
	if e.StatedCost == nil {
		return nil
	}
	return int64(*e.StatedCost)
}

// walletMarkup is the column of that name, nil for NULL.
func walletMarkup(b *modelgate.CallBegin) any {
	if b.WalletMarkup == nil {
		return nil
	}
	return int64(*b.WalletMarkup)
}

// insertUsage writes rows in statements of at most rowsPerInsert, in one order
// for all instances: two that write the same rows wait for each other, and never
// each for the other. It tells of the new ones in the order of their batch.
func (db *DB) insertUsage(ctx context.Context, tx *sql.Tx, rows []modelgate.UsageRow, inserted func(*modelgate.UsageRow)) error {
	ordered := make([]*modelgate.UsageRow, len(rows))
	for i := range rows {
		ordered[i] = &rows[i]
	}
	slices.SortStableFunc(ordered, func(a, b *modelgate.UsageRow) int { return bytes.Compare(a.CallBegin.ID[:], b.CallBegin.ID[:]) })
	fresh := make(map[string]bool, len(rows))
	args := make([]any, 0, db.handle.RowsPerInsert*usageColumnCount)
	for len(ordered) > 0 {
		part := ordered[:sqldb.StatementRows(len(ordered), db.handle.RowsPerInsert)]
		ordered = ordered[len(part):]
		var err error
		args = args[:0]
		for _, r := range part {
			if args, err = usageValues(args, r); err != nil {
				return err
			}
		}
		ids, err := sqldb.List(ctx, tx, sqldb.ScanText, usageInsert(len(part)), args...)
		if err != nil {
			return err
		}
		for _, id := range ids {
			fresh[id] = true
		}
	}
	for i := range rows {
		if id := rows[i].CallBegin.ID.String(); fresh[id] {
			delete(fresh, id)
			inserted(&rows[i])
		}
	}
	return nil
}

const sqlInsertUsage = `INSERT INTO usage_row (` + usageColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
ON CONFLICT (client_id, created_at, id) DO NOTHING
-- sqlInsertUsage`

// insertUsageSingly tells of rows some of which are there already which ones
// are new.
func (db *DB) insertUsageSingly(ctx context.Context, tx *sql.Tx, rows []modelgate.UsageRow, inserted func(*modelgate.UsageRow)) error {
	insert := func(ctx context.Context, args ...any) (sql.Result, error) {
		return tx.ExecContext(ctx, sqlInsertUsage, args...)
	}
	if !db.engine.unnamed {
		stmt, err := tx.PrepareContext(ctx, sqlInsertUsage)
		if err != nil {
			return err
		}
		defer stmt.Close()
		insert = stmt.ExecContext
	}
	args := make([]any, 0, usageColumnCount)
	still := context.WithoutCancel(ctx) // watching it would take a goroutine for each row
	loop := db.yielder.Loop()
	for i := range rows {
		loop.Step()
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if args, err = usageValues(args[:0], &rows[i]); err != nil {
			return err
		}
		r, err := insert(still, args...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil {
			return err
		} else if n == 1 {
			inserted(&rows[i])
		}
	}
	return nil
}
