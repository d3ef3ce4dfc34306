// Package sqlite is what SQLite needs beside SQL: connections that cache their
// prepared statements, virtual tables that hand many rows to one statement, file
// locks and error codes. It knows no table of the gateway's.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modelgate/internal/atomicfile"
)

// oldestVersion has the fix of the WAL reset fault
// (https://sqlite.org/wal.html#walresetbug).
const oldestVersion = "3.51.3"

// Path is the absolute path that a URL names: sqlite:FILE, relative to dir, or
// sqlite:///absolute/FILE.
func Path(raw, dir string) (string, error) {
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

// Touch makes the file at path and its folder before SQLite does, readable by its owner alone. The
// files that SQLite puts beside it take over its permissions.
func Touch(path string) error {
	if err := atomicfile.MakeDir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// OpenPool opens a pool of at most conns connections to the file at path. Each
// connection knows the virtual tables of modules, which register once for each
// pool, and caches its prepared statements. The parameters are the driver's, the
// later ones in place of the earlier.
func OpenPool(path string, conns int, modules []Module, parameters ...url.Values) (*sql.DB, error) {
	query := url.Values{}
	for _, p := range parameters {
		for k, v := range p {
			query[k] = v
		}
	}
	connector, err := newConnector((&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String(), modules)
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

// CheckVersion makes a connection and refuses an SQLite that is too old.
func CheckVersion(ctx context.Context, pool *sql.DB) error {
	var version string
	if err := pool.QueryRowContext(ctx, sqlSQLiteVersion).Scan(&version); err != nil {
		return err
	}
	var have, want [3]int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &have[0], &have[1], &have[2]); err != nil {
		return fmt.Errorf("sqlite version %q: %w", version, err)
	}
	if _, err := fmt.Sscanf(oldestVersion, "%d.%d.%d", &want[0], &want[1], &want[2]); err != nil {
		return err
	}
	for i := range have {
		if have[i] != want[i] {
			if have[i] < want[i] {
				return fmt.Errorf("sqlite %s is too old; %s is needed", version, oldestVersion)
			}
			break
		}
	}
	return nil
}
