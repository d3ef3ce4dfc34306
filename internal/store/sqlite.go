package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/pressly/goose/v3"

	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/sqlite"
)

const (
	// sqliteReaders is the size of the reading pool.
	sqliteReaders = 4
	// sqlitePage is the size of a page of a new database, in bytes: with 30
	// usage rows to a page the tree is split and written less often than with
	// the default's 7.
	sqlitePage = 16 << 10
	// temporaryInMemory keeps what SQLite spills in memory: the file system of a
	// container may be read-only but for the data.
	temporaryInMemory = "temp_store(MEMORY)"
	// sqliteBusy is how long a writer waits for one in another process.
	sqliteBusy = 5 * time.Second
)

// openSQLite opens one writing connection and a pool of readers. The writer
// syncs every commit: what the shipper has committed leaves the spool.
func openSQLite(ctx context.Context, o Options) (*DB, error) {
	path, err := sqlite.Path(o.URL, o.DataDir)
	if err != nil {
		return nil, err
	}
	if o.Mode == ReadOnly {
		return readSQLite(path)
	}
	if err := sqlite.Touch(path); err != nil {
		return nil, err
	}
	db := &DB{engine: sqliteEngine(path)}
	if o.Mode == Exclusive {
		if db.lock, err = lockExclusive(path + ".lock"); err != nil {
			return nil, err
		}
	}
	if o.MaxConns == 0 {
		o.MaxConns = sqliteReaders
	}
	h := &db.handle
	h.Long, h.RowsPerInsert, h.SnapshotOptions = sqldb.NewSemaphore(o.MaxConns), 1, &sql.TxOptions{ReadOnly: true}
	common := url.Values{"_busy_timeout": {fmt.Sprint(sqliteBusy.Milliseconds())}, "_foreign_keys": {"1"}}
	var failed error
	db.feed = newUsageFeed(o.Yielder)
	h.Feed = db.feed.tuples.Run
	db.write, err = sqlite.OpenPool(path, 1, db.feed.modules(), common, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_pragma": {fmt.Sprintf("page_size(%d)", sqlitePage), temporaryInMemory},
	})
	db.read, failed = sqlite.OpenPool(path, o.MaxConns, nil, common, url.Values{"_query_only": {"1"}, "_pragma": {temporaryInMemory}})
	if err = errors.Join(err, failed); err == nil {
		err = beginSQLite(ctx, path, db.write)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// readSQLite opens a file that is there for one reader.
func readSQLite(path string) (*DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	db := &DB{engine: sqliteEngine(path)}
	db.handle.Long, db.handle.RowsPerInsert = sqldb.NewSemaphore(1), 1
	var err error
	db.read, err = sqlite.OpenPool(path, 1, nil, url.Values{"_query_only": {"1"}})
	db.write = db.read
	return db, err
}

func sqliteEngine(path string) engine {
	return engine{
		dialect:    goose.DialectSQLite3,
		folder:     "sqlite",
		lockSchema: func(ctx context.Context) (func() error, error) { return sqlite.WaitLock(ctx, schemaLock(path)) },
	}
}

// beginSQLite makes the first connection, which turns on the WAL before a
// reader sees the file. SQLite lets nobody wait who does that beside another:
// processes that start at once do it in turn.
func beginSQLite(ctx context.Context, path string, pool *sql.DB) error {
	unlock, err := sqlite.WaitLock(ctx, schemaLock(path))
	if err != nil {
		return err
	}
	return errors.Join(sqlite.CheckVersion(ctx, pool), unlock())
}

func schemaLock(path string) string { return path + ".migrate.lock" }

// lockExclusive takes the lock that a server holds on its database, at once or
// with ErrInUse. Closing the file releases it.
func lockExclusive(path string) (*os.File, error) {
	f, err := sqlite.LockFile(path)
	if errors.Is(err, sqlite.ErrLocked) {
		return nil, fmt.Errorf("%w (%s is locked)", ErrInUse, path)
	}
	return f, err
}
