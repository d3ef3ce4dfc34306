package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate/internal/store/sqlite"
)

func TestOpenRefusesURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "mysql://x", "sqlite:", "sqlite::memory:", "sqlite://relative.db", "postgres://%zz"} {
		db, err := Open(t.Context(), Options{URL: url, DataDir: t.TempDir()})
		if err == nil {
			t.Errorf("Open(%q) succeeded, want an error", url)
			db.Close()
		}
	}
}

func TestSQLitePath(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"sqlite:a.db":          "/data/a.db",
		"sqlite:b c?#%/a.db":   "/data/b c?#%/a.db",
		"sqlite:/abs/a.db":     "/abs/a.db",
		"sqlite:///abs/a.db":   "/abs/a.db",
		"sqlite:../beside.db":  "/beside.db",
		"sqlite:with space.db": "/data/with space.db",
	} {
		if got, err := sqlite.Path(url, "/data"); got != want || err != nil {
			t.Errorf("Path(%q) = %q, %v, want %q", url, got, err, want)
		}
	}
}

func TestSQLiteFileIsItsOwners(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "odd ?#%41 dir")
	db := open(t, Options{URL: "sqlite:x.db", DataDir: dir})
	createClient(t, db, 1)
	for _, name := range []string{"x.db", "x.db-wal"} {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}

func TestSQLiteSettings(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "sqlite"))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
	} {
		var got string
		must(t, db.write.QueryRow("PRAGMA "+pragma).Scan(&got))
		if got != want {
			t.Errorf("writer: %s = %s, want %s", pragma, got, want)
		}
	}
	if _, err := db.read.Exec("DELETE FROM control"); err == nil {
		t.Error("a reader could write")
	}
}

func TestExclusiveModeKeepsASecondServerOut(t *testing.T) {
	t.Parallel()
	o := options(t, "sqlite")
	o.Mode = Exclusive
	first, err := Open(t.Context(), o)
	must(t, err)
	if db, err := Open(t.Context(), o); !errors.Is(err, ErrInUse) {
		t.Errorf("second server: Open = %v, %v, want ErrInUse", db, err)
	}
	o.Mode = Shared
	command := open(t, o)
	createClient(t, command, 1)
	if cs, err := first.Clients(t.Context()); err != nil || len(cs) != 1 {
		t.Errorf("the server sees %v, %v, want the command's client", cs, err)
	}
	must(t, first.Close())
	o.Mode = Exclusive
	open(t, o)
}

func TestMigratorsAtOnce(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := options(t, engine)
			var starters sync.WaitGroup
			for range 4 {
				starters.Go(func() {
					db, err := Open(t.Context(), o)
					if err != nil {
						t.Errorf("Open = %v", err)
						return
					}
					if v, err := db.ControlVersion(t.Context()); v != 1 || err != nil {
						t.Errorf("ControlVersion = %d, %v, want 1", v, err)
					}
					must(t, db.Close())
				})
			}
			starters.Wait()
		})
	}
}

func TestSchemaNewerThanKnown(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := options(t, engine)
			db := open(t, o)
			_, err := db.write.Exec("INSERT INTO schema_version (version_id, is_applied) VALUES (9999, true)")
			must(t, err)
			if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "newer modelgate") {
				t.Errorf("Open = %v, want a hint at a newer modelgate", err)
			}
		})
	}
}

func TestSchemaHalfApplied(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		for name, damage := range map[string]string{
			"table missing":   "DROP TABLE spend",
			"version missing": "DELETE FROM schema_version WHERE version_id >= 1",
		} {
			t.Run(engine+" "+name, func(t *testing.T) {
				t.Parallel()
				o := options(t, engine)
				_, err := open(t, o).write.Exec(damage)
				must(t, err)
				if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "half applied") {
					t.Errorf("Open = %v, want half applied", err)
				}
			})
		}
	}
}

func TestPostgresWarnsOfLostCommits(t *testing.T) {
	t.Parallel()
	o := options(t, "postgres")
	var out bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&out, nil))
	open(t, o)
	quiet := out.String()
	o.URL += sep(o.URL) + "synchronous_commit=off"
	open(t, o)
	if strings.Contains(quiet, "synchronous_commit") || !strings.Contains(out.String(), "setting=synchronous_commit") {
		t.Errorf("log with synchronous_commit on: %q, off: %q", quiet, out.String())
	}
}

func sep(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
		defer cancel()
		_, err := db.Caller(expired, digest(1), nil)
		if !Unreachable(err) || Poisoned(err) {
			t.Errorf("after a time-out: Unreachable(%v) = false", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := db.Caller(gone, digest(1), nil); err == nil || Unreachable(err) {
			t.Errorf("after the caller left: Unreachable(%v) = true", err)
		}
		if _, err := db.Caller(t.Context(), digest(1), nil); Unreachable(err) || Poisoned(err) {
			t.Errorf("for an unknown key: Unreachable(%v) = true", err)
		}
		createClient(t, db, 1)
		err = db.CreateClient(t.Context(), newClient(1), audit("client.create"))
		wantKind(t, "a duplicate client", err, "conflict")
		if Unreachable(err) {
			t.Errorf("for a duplicate: Unreachable(%v) = true", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		_, err := Open(t.Context(), Options{URL: "postgres://u@127.0.0.1:1/none"})
		if !Unreachable(err) {
			t.Errorf("Unreachable(%v) = false", err)
		}
	})
	for _, err := range []error{io.ErrUnexpectedEOF, fmt.Errorf("x: %w", context.DeadlineExceeded)} {
		if !Unreachable(err) {
			t.Errorf("Unreachable(%v) = false", err)
		}
	}
	if Unreachable(nil) || Unreachable(errors.New("no")) {
		t.Error("Unreachable is true for nil or any error")
	}
}

func TestLockedSQLiteFileIsUnreachable(t *testing.T) {
	t.Parallel()
	o := options(t, "sqlite")
	holder, db := open(t, o), open(t, o)
	tx, err := holder.write.Begin()
	must(t, err)
	defer tx.Rollback()
	_, err = db.write.Exec("PRAGMA busy_timeout = 1")
	must(t, err)
	err = db.CreateClient(t.Context(), newClient(1), audit("client.create"))
	if !Unreachable(err) {
		t.Errorf("Unreachable(%v) = false", err)
	}
}
