package sqldb

import (
	"errors"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Code is the extended result code of an error of SQLite's; ok is false for any
// other (https://sqlite.org/rescode.html).
func sqliteCode(err error) (code int, ok bool) {
	e, ok := errors.AsType[*modernc.Error](err)
	if !ok {
		return 0, false
	}
	return e.Code(), true
}

// Unreachable reports whether the database cannot work at the moment.
func sqliteUnreachable(code int) bool {
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOTADB:
		return true
	}
	return false
}

// Poisoned reports whether a value can never be stored where it was meant to be.
func sqlitePoisoned(code int) bool {
	switch code & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return true
	}
	return false
}

// Duplicate reports the violation of a unique constraint.
func sqliteDuplicate(code int) bool {
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}

// Dangling reports the violation of a foreign key.
func sqliteDangling(code int) bool { return code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY }

// Damaged reports a file that cannot be read as a database.
func sqliteDamaged(code int) bool {
	return code&0xff == sqlite3.SQLITE_CORRUPT || code&0xff == sqlite3.SQLITE_NOTADB
}
