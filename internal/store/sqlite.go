package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
)

const (
	// oldestSQLite has the fix of the WAL reset fault
	// (https://sqlite.org/wal.html#walresetbug).
	oldestSQLite = "3.51.3"
	// sqliteReaders is the size of the reading pool.
	sqliteReaders = 4
	// sqlitePage is the size of a page of a new database, in bytes: with 30
	// usage rows to a page the tree is split and written less often than with
	// the default's 7.
	sqlitePage = 16 << 10
	// sqliteBusy is how long a writer waits for one in another process.
	sqliteBusy = 5 * time.Second
)

// openSQLite opens one writing connection and a pool of readers. The writer
// syncs every commit: what the shipper has committed leaves the spool.
func openSQLite(ctx context.Context, o Options) (*DB, error) {
	path, err := sqlitePath(o.URL, o.DataDir)
	if err != nil {
		return nil, err
	}
	if err := touch(path); err != nil {
		return nil, err
	}
	db := &DB{engine: sqliteEngine(path)}
	if o.Mode == Exclusive {
		if db.lock, err = lockFile(path + ".lock"); err != nil {
			return nil, err
		}
	}
	if o.MaxConns == 0 {
		o.MaxConns = sqliteReaders
	}
	db.long = newTurns(o.MaxConns)
	common := url.Values{"_busy_timeout": {fmt.Sprint(sqliteBusy.Milliseconds())}, "_foreign_keys": {"1"}}
	var failed error
	db.feed = &feed{way: o.Yielder}
	db.write, err = openPool(path, 1, db.feed, common, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_pragma": {fmt.Sprintf("page_size(%d)", sqlitePage)},
	})
	db.read, failed = openPool(path, o.MaxConns, nil, common, url.Values{"_query_only": {"1"}})
	if err = errors.Join(err, failed); err == nil {
		err = beginSQLite(ctx, path, db.write)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func sqliteEngine(path string) engine {
	return engine{
		dialect:       goose.DialectSQLite3,
		folder:        "sqlite",
		snapshot:      &sql.TxOptions{ReadOnly: true},
		rowsPerInsert: 1,
		lockSchema:    func(ctx context.Context) (func() error, error) { return waitFileLock(ctx, schemaLock(path)) },
	}
}

// sqlitePath is the absolute path that the URL names.
func sqlitePath(raw, dir string) (string, error) {
	name := strings.TrimPrefix(raw, "sqlite:")
	if rest, ok := strings.CutPrefix(name, "//"); ok {
		name = rest
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("%q: write sqlite:FILE or sqlite:///absolute/FILE", raw)
		}
	}
	if name == "" || strings.HasPrefix(name, ":") {
		return "", fmt.Errorf("%q names no file", raw)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return filepath.Abs(name)
}

// touch makes the file before SQLite does, readable by its owner alone. The
// files that SQLite puts beside it take over its permissions.
func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func openPool(path string, conns int, f *feed, parameters ...url.Values) (*sql.DB, error) {
	query := url.Values{}
	for _, p := range parameters {
		for k, v := range p {
			query[k] = v
		}
	}
	connector, err := newKeeper((&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String(), f)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	return pool, nil
}

const sqlSQLiteVersion = `SELECT sqlite_version()
-- sqlSQLiteVersion`

// beginSQLite makes the first connection, which turns on the WAL before a
// reader sees the file. SQLite lets nobody wait who does that beside another:
// processes that start at once do it in turn.
func beginSQLite(ctx context.Context, path string, pool *sql.DB) error {
	unlock, err := waitFileLock(ctx, schemaLock(path))
	if err != nil {
		return err
	}
	return errors.Join(checkSQLite(ctx, pool), unlock())
}

func schemaLock(path string) string { return path + ".migrate.lock" }

func checkSQLite(ctx context.Context, pool *sql.DB) error {
	var version string
	if err := pool.QueryRowContext(ctx, sqlSQLiteVersion).Scan(&version); err != nil {
		return err
	}
	var have, want [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &have[0], &have[1], &have[2]); err != nil {
		return fmt.Errorf("sqlite version %q: %w", version, err)
	}
	if _, err := fmt.Sscanf(oldestSQLite, "%d.%d.%d", &want[0], &want[1], &want[2]); err != nil {
		return err
	}
	for i := range have {
		if have[i] != want[i] {
			if have[i] < want[i] {
				return fmt.Errorf("sqlite %s is too old; %s is needed", version, oldestSQLite)
			}
			break
		}
	}
	return nil
}

// lockFile takes the lock that a server holds on its database, at once or
// with ErrInUse. Closing the file releases it, and so does the end of the
// process, however it comes.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w (%s is locked)", ErrInUse, path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// waitFileLock takes a lock like lockFile and waits for it.
func waitFileLock(ctx context.Context, path string) (func() error, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := lockFile(path)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, ErrInUse) {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", path, ctx.Err())
		}
	}
}
