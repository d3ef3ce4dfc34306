package store

import (
	"context"

	"github.com/pressly/goose/v3"
)

// engine is everything in which the two databases differ for the rest of the
// package:
//
//   - the dialect and folder of the migrations, and the lock under which they
//     run;
//   - SnapshotOptions of sqldb.DB: PostgreSQL needs repeatable read for one view
//     of several queries, SQLite gives it to every reading transaction;
//   - RowsPerInsert of sqldb.DB: a statement of many rows saves round trips on
//     PostgreSQL, while on SQLite, which has none, it only binds slower;
//   - freshPlan: PostgreSQL keeps the plan of a statement that it is sent again
//     and again, also one that it made when a table was all but empty;
//   - unhurried: PostgreSQL ends transactions that it hears nothing of;
//   - Begun of sqldb.DB, and unnamed: behind a pooler a session is somebody else's after each
//     transaction;
//   - connecting (sqlite.go, postgres.go) and error codes (errors.go), with what
//     SQLite alone has in the package sqlite.
type engine struct {
	dialect goose.Dialect
	folder  string // of migrations
	// freshPlan leads the arguments of a statement that is to be planned anew.
	freshPlan []any
	// unhurried is run first in a transaction that does much between its
	// statements, "" for nothing.
	unhurried string
	// unnamed: no statement may be prepared, for it would be by name.
	unnamed bool
	// lockSchema excludes other migrators, in this and other processes.
	lockSchema func(context.Context) (unlock func() error, err error)
}
