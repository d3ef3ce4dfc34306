package bills

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Bill is what a provider bills for a day.
type Bill struct {
	Day       string // UTC, YYYY-MM-DD
	FetchedAt time.Time
	Digest    string // of Lines
	Lines     string // JSON
}

// Sums are those of a provider's usage rows of a day.
type Sums struct {
	Day      string // UTC, YYYY-MM-DD
	SummedAt time.Time
	Sealed   bool // they do not change any more
	Rows     int64
	Cost     modelgate.Nano
	Cells    string // JSON
}

// State is what there is of a day.
type State struct {
	Bill // Lines is ""
	Sums // Cells is ""
}

const sqlBills = `SELECT day, fetched_at, digest, lines
FROM invoice_day
WHERE provider = $1 AND day >= $2 AND day < $3 AND fetched_at > 0
ORDER BY day
-- sqlBills`

const sqlSums = `SELECT day, summed_at, sealed, row_count, cost, sums
FROM invoice_day
WHERE provider = $1 AND day >= $2 AND day < $3 AND summed_at > 0
ORDER BY day
-- sqlSums`

const sqlBillStates = `SELECT day, fetched_at, digest, summed_at, sealed, row_count, cost
FROM invoice_day
WHERE provider = $1 AND day >= $2 AND day < $3
ORDER BY day
-- sqlBillStates`

const sqlPutBill = `INSERT INTO invoice_day (provider, day, fetched_at, digest, lines, summed_at, sealed, row_count, cost, sums)
VALUES ($1, $2, $3, $4, $5, 0, FALSE, 0, 0, '')
ON CONFLICT (provider, day) DO UPDATE SET fetched_at = excluded.fetched_at, digest = excluded.digest, lines = excluded.lines
-- sqlPutBill`

const sqlPutSums = `INSERT INTO invoice_day (provider, day, summed_at, sealed, row_count, cost, sums, fetched_at, digest, lines)
VALUES ($1, $2, $3, $4, $5, $6, $7, 0, '', '')
ON CONFLICT (provider, day) DO UPDATE
SET summed_at = excluded.summed_at, sealed = excluded.sealed, row_count = excluded.row_count, cost = excluded.cost, sums = excluded.sums
-- sqlPutSums`

const sqlPruneBills = `DELETE FROM invoice_day
WHERE provider = $1 AND day < $2
-- sqlPruneBills`

// Bills are those of the days [from, to).
func (s *Store) Bills(ctx context.Context, provider, from, to string) ([]Bill, error) {
	list, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (b Bill, err error) {
		err = row.Scan(&b.Day, sqldb.Moment{Into: &b.FetchedAt}, &b.Digest, &b.Lines)
		return b, err
	}, sqlBills, provider, from, to)
	return list, sqldb.Wrap("read bills", err)
}

// Sums are those of the days [from, to).
func (s *Store) Sums(ctx context.Context, provider, from, to string) ([]Sums, error) {
	list, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (d Sums, err error) {
		err = row.Scan(&d.Day, sqldb.Moment{Into: &d.SummedAt}, &d.Sealed, &d.Rows, &d.Cost, &d.Cells)
		return d, err
	}, sqlSums, provider, from, to)
	return list, sqldb.Wrap("read sums for a bill", err)
}

// BillStates are those of the days [from, to) of which there is anything.
func (s *Store) BillStates(ctx context.Context, provider, from, to string) ([]State, error) {
	list, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (d State, err error) {
		err = row.Scan(&d.Bill.Day, sqldb.Moment{Into: &d.FetchedAt}, &d.Digest, sqldb.Moment{Into: &d.SummedAt}, &d.Sealed, &d.Rows, &d.Cost)
		d.Sums.Day = d.Bill.Day
		return d, err
	}, sqlBillStates, provider, from, to)
	return list, sqldb.Wrap("list the days of bills", err)
}

// PutBills stores the bills of days, all or none. Without replace, days that are
// there already refuse all.
func (s *Store) PutBills(ctx context.Context, provider string, days []Bill, replace bool, audit modelgate.Audit) error {
	return s.db.Update(ctx, "store a bill", func(tx *sql.Tx) error {
		if !replace && len(days) > 0 {
			if err := refuse(ctx, tx, provider, days); err != nil {
				return err
			}
		}
		for _, d := range days {
			if _, err := tx.ExecContext(ctx, sqlPutBill, provider, d.Day, sqldb.Micros(d.FetchedAt), d.Digest, d.Lines); err != nil {
				return err
			}
		}
		return s.record(ctx, tx, "", audit)
	})
}

// refuse fails where one of the days, which are in order, is there already.
func refuse(ctx context.Context, tx *sql.Tx, provider string, days []Bill) error {
	wanted := make(map[string]bool, len(days))
	for _, d := range days {
		wanted[d.Day] = true
	}
	var there []string
	err := sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var b Bill
		err := row.Scan(&b.Day, sqldb.Moment{Into: &b.FetchedAt}, &b.Digest, &b.Lines)
		if wanted[b.Day] {
			there = append(there, b.Day)
		}
		return err
	}, sqlBills, provider, days[0].Day, days[len(days)-1].Day+"\x7f")
	if err == nil && len(there) > 0 {
		err = &modelgate.Error{Kind: modelgate.Conflict, Message: fmt.Sprintf("days are already there: %s", strings.Join(there[:min(len(there), 10)], ", "))}
	}
	return err
}

// PutSums stores the sums of days.
func (s *Store) PutSums(ctx context.Context, provider string, days []Sums) error {
	return s.db.Update(ctx, "store sums for a bill", func(tx *sql.Tx) error {
		for _, d := range days {
			if _, err := tx.ExecContext(ctx, sqlPutSums, provider, d.Day, sqldb.Micros(d.SummedAt), d.Sealed, d.Rows, int64(d.Cost), d.Cells); err != nil {
				return err
			}
		}
		return nil
	})
}

// PruneBills deletes the days before one.
func (s *Store) PruneBills(ctx context.Context, provider, before string) error {
	return s.db.Update(ctx, "prune bills", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlPruneBills, provider, before)
		return err
	})
}
