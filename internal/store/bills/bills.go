// Package bills keeps what providers bill for each UTC day, the sums of the usage
// rows that it is compared with, and when each bill is read.
package bills

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Store keeps the bills of all providers. Safe for concurrent use.
type Store struct {
	db *sqldb.DB
	// record writes the audit of a change in the change's own transaction.
	record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error
}

// NewStore is the bills in a database.
func NewStore(db *sqldb.DB, record func(context.Context, *sql.Tx, modelgate.ClientID, modelgate.Audit) error) *Store {
	return &Store{db, record}
}

// Reading is how the reading of a provider's bill stands.
type Reading struct {
	Provider    string
	DueAt       time.Time // of the next scheduled reading; zero before the first
	SucceededAt time.Time // of the last reading; zero for never
	Failure     string    // why the last reading failed, "" where it did not
	Outcome     string    // JSON of the last comparison, "" before the first
}

const readingColumns = `provider, due_at, succeeded_at, failure, outcome`

const sqlReadings = `SELECT ` + readingColumns + `
FROM invoice_provider
ORDER BY provider
-- sqlReadings`

// sqlAddReading is for providers whose bill was never read.
const sqlAddReading = `INSERT INTO invoice_provider (` + readingColumns + `, claimed_until, told)
VALUES ($1, 0, 0, '', '', 0, '')
ON CONFLICT (provider) DO NOTHING
-- sqlAddReading`

const sqlClaimReading = `UPDATE invoice_provider
SET claimed_until = $2
WHERE provider = $1 AND claimed_until <= $3 AND (due_at <= $3 OR $4 = 1)
-- sqlClaimReading`

const sqlFinishReading = `UPDATE invoice_provider
SET claimed_until = 0, due_at = $2, succeeded_at = $3, failure = $4, outcome = $5
WHERE provider = $1
-- sqlFinishReading`

const sqlTell = `UPDATE invoice_provider
SET told = $2
WHERE provider = $1 AND told <> $2
-- sqlTell`

// Readings are those of all providers that were ever read.
func (s *Store) Readings(ctx context.Context) ([]Reading, error) {
	list, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (r Reading, err error) {
		err = row.Scan(&r.Provider, sqldb.Moment{Into: &r.DueAt}, sqldb.Moment{Into: &r.SucceededAt}, &r.Failure, &r.Outcome)
		return r, err
	}, sqlReadings)
	return list, sqldb.Wrap("list the readings of bills", err)
}

// ClaimReading takes the reading of a provider's bill, for at most lease, unless
// another instance is at it or, without force, it is not due.
func (s *Store) ClaimReading(ctx context.Context, provider string, lease time.Duration, force bool) (claimed bool, err error) {
	forced := 0
	if force {
		forced = 1
	}
	err = s.db.Update(ctx, "claim the reading of a bill", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sqlAddReading, provider); err != nil {
			return err
		}
		now := s.db.Now()
		n, err := sqldb.Affected(ctx, tx, sqlClaimReading, provider, sqldb.Micros(now.Add(lease)), sqldb.Micros(now), forced)
		claimed = n == 1
		return err
	})
	return claimed, err
}

// FinishReading ends a claim.
func (s *Store) FinishReading(ctx context.Context, r Reading) error {
	return s.db.Update(ctx, "end the reading of a bill", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlFinishReading, r.Provider, sqldb.Micros(r.DueAt), sqldb.Micros(r.SucceededAt), r.Failure, r.Outcome)
		return err
	})
}

// Tell reports whether the caller is the one to send an alert: what was not the last
// that was told about a provider's bill.
func (s *Store) Tell(ctx context.Context, provider, what string) (mine bool, err error) {
	err = s.db.Update(ctx, "claim an alert about a bill", func(tx *sql.Tx) error {
		n, err := sqldb.Affected(ctx, tx, sqlTell, provider, what)
		mine = n == 1
		return err
	})
	return mine, err
}
