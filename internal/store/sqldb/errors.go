package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"modelgate"
)

// ErrValue says that a row cannot be stored in any database.
var ErrValue = errors.New("value cannot be stored")

// Unreachable reports whether err means that the database did not answer or
// cannot work at the moment: no connection, a time-out, a shutdown, a full
// disk. The same call may succeed later. It is false for an answer such as
// "no such row" or a violated constraint, and for a caller that gave up.
func Unreachable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return unreachablePostgres(e.Code)
	}
	if code, ok := sqliteCode(err); ok {
		return sqliteUnreachable(code)
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	for _, known := range []error{context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return true
		}
	}
	return pgconn.SafeToRetry(err)
}

// unreachablePostgres knows the classes of
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
func unreachablePostgres(code string) bool {
	switch code {
	case "25006", // writes refused: a standby that was the primary
		"25P03",          // heard nothing of this instance for too long
		"40001", "40P01", // lost a race more often than it is tried
		"55P03", // a lock was not to be had
		"57014": // statement time-out
		return true
	}
	for _, class := range []string{"08", "53", "57P", "58"} { // connection, resources, shutdown, system
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	return false
}

// Poisoned reports whether err means that some row of a batch can never be
// Stored: it violates a constraint or holds a value that has no place in its
// column. The shipper halves such a batch until it has the row alone.
func Poisoned(err error) bool {
	if errors.Is(err, ErrValue) {
		return true
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		class := e.Code[:min(2, len(e.Code))]
		return class == "22" || class == "23" || class == "54" // data, integrity, program limit
	}
	code, ok := sqliteCode(err)
	return ok && sqlitePoisoned(code)
}

// Duplicate reports whether err is the violation of a unique constraint.
func Duplicate(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23505"
	}
	code, ok := sqliteCode(err)
	return ok && sqliteDuplicate(code)
}

// Dangling reports whether err is the violation of a foreign key.
func Dangling(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "23503"
	}
	code, ok := sqliteCode(err)
	return ok && sqliteDangling(code)
}

// Damaged reports whether err means that a SQLite file cannot be read as one.
func Damaged(err error) bool {
	code, ok := sqliteCode(err)
	return ok && sqliteDamaged(code)
}

// LostRace reports whether the engine refused a transaction in favour of
// another, so that it is to be run again.
func LostRace(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == "40001" || e.Code == "40P01"
	}
	return false
}

// Wrap leaves errors for clients as they are and names the operation of all
// others.
func Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*modelgate.Error](err); ok {
		return err
	}
	return fmt.Errorf("%s: %w%s", op, err, Advice(err))
}

// Advice is what the operator can do about an error, "" for nothing.
func Advice(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == pgDuplicateStatement || pg.Code == pgNoSuchStatement) {
		return " (behind a pooler in transaction mode, such as PgBouncer, set database.pooler: transaction)"
	}
	return ""
}

// What PostgreSQL answers where statements that were prepared by name are on
// other connections than the ones they were prepared on.
const (
	pgDuplicateStatement = "42P05"
	pgNoSuchStatement    = "26000"
)

// Missing turns "no rows" into not_found.
func Missing(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return modelgate.Errorf(modelgate.NotFound, "%s not found", what)
	}
	return err
}

// OneRow is not_found where a change met no row.
func OneRow(r sql.Result, what string) error {
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		return modelgate.Errorf(modelgate.NotFound, "%s not found", what)
	}
	return err
}
