// Package store keeps what the gateway must not forget, in SQLite or
// PostgreSQL. It is the only package that knows SQL, with those below it, whose
// methods are DB's too: access (who may call), spend (counters, budgets and
// balances), evidence, billing, wallet and bills (of providers).
//
// Both engines run the same query texts; what differs between them is listed
// in engine.go. A public method is one transaction. Every method on a
// tenant's data takes the ClientID second and has it in its WHERE clause, so
// that a foreign id finds nothing. Times are stored as microseconds since the
// epoch (0 is the zero time) and read back in UTC, money as nano-USD.
//
// Errors are either *modelgate.Error, which a client may be shown, or wrapped
// internal ones. Unreachable and Poisoned sort the latter for callers that
// must decide between trying again and giving up.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"modelgate/internal/store/access"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/bills"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/sqlite"
	"modelgate/internal/store/wallet"
	"modelgate/internal/yield"
)

// Mode says who else may use a SQLite file at the same time. PostgreSQL
// ignores it.
type Mode string

// The modes. A server opens the file Exclusive, so that no second server
// ever shares it; an operator's command opens it Shared, beside the server.
const (
	Shared    Mode = ""
	Exclusive Mode = "exclusive"
	// ReadOnly makes and changes nothing: the database must be there, with the
	// schema of this program. PostgreSQL honours the latter alone.
	ReadOnly Mode = "read only"
)

// Options say which database to open and how.
type Options struct {
	// URL is sqlite:FILE, relative to DataDir or absolute, or
	// postgres://user:password@host:5432/name.
	URL     string
	DataDir string
	Mode    Mode
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Log receives warnings about the database's own settings; nil discards
	// them.
	Log *slog.Logger
	// MaxConns bounds the connections of this process: all of them on
	// PostgreSQL, the readers on SQLite. 0 means a default for the engine.
	MaxConns int
	// Pooled says that a pooler gives the connections of PostgreSQL out by the
	// transaction: no statement has a name and no setting outlives its
	// transaction. SQLite ignores it.
	Pooled bool
	// Software is the version of the program, as evidence names it.
	Software string
	// Yielder lets calls run during long work: with SQLite the database's work is
	// this process's. nil where no calls are served.
	Yielder *yield.Yielder
	// Progress, if not nil, is told how far Copy and Reconcile are: what they are
	// at, and how much of it is done of how much there is.
	Progress func(part string, done, total int64)
}

// The methods of the stores below are DB's too.
type (
	accessStore   = access.Store
	spendStore    = spend.Store
	evidenceStore = evidence.Store
	billingStore  = billing.Store
	walletStore   = wallet.Store
	billsStore    = bills.Store
)

// Cursor is a place in a list; Difference is one of reconcile's.
type (
	Cursor     = sqldb.Cursor
	Difference = sqldb.Difference
)

// DB is an open database. It is safe for concurrent use.
type DB struct {
	write  *sql.DB
	read   *sql.DB // the same as write on PostgreSQL
	engine engine
	now    func() time.Time
	// handle is the same database for the packages below.
	handle sqldb.DB
	*accessStore
	*spendStore
	*evidenceStore
	*billingStore
	*walletStore
	*billsStore
	feed     *usageFeed     // nil on PostgreSQL
	yielder  *yield.Yielder // Options.Yielder
	progress func(part string, done, total int64)
	lock     *os.File // held while open in Exclusive mode; nil otherwise
}

// ErrInUse says that another server has the SQLite file open.
var ErrInUse = errors.New("another server is using this database")

// ErrDamaged says that the SQLite file is no database, or a damaged one.
var ErrDamaged = errors.New("the database file is damaged, or is no database")

// fault names what failed, the file where that is damaged, and what is to be done.
func (o *Options) fault(op string, err error) error {
	if path, pathErr := sqlite.Path(o.URL, o.DataDir); pathErr == nil && sqldb.Damaged(err) {
		return fmt.Errorf("%s: %s: %w: %w", op, path, ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w%s", op, err, sqldb.Advice(err))
}

// Open connects, brings the schema up to date and checks that it is whole. It
// fails on a schema that a newer version made. The context bounds all of it.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string, int64, int64) {}
	}
	var db *DB
	var err error
	switch {
	case strings.HasPrefix(o.URL, "sqlite:"):
		db, err = openSQLite(ctx, o)
	case strings.HasPrefix(o.URL, "postgres://"), strings.HasPrefix(o.URL, "postgresql://"):
		db, err = openPostgres(ctx, o)
	default:
		err = errors.New("database url must begin with sqlite: or postgres://")
	}
	if err != nil {
		return nil, o.fault("open database", err)
	}
	db.now, db.yielder, db.progress = o.Now, o.Yielder, o.Progress
	h := &db.handle
	h.Write, h.Read = db.write, db.read
	h.Now = func() time.Time { return db.now() } // tests change it
	if db.evidenceStore, err = evidence.NewStore(h, o.Software, o.Yielder); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.spendStore = spend.NewStore(h, db.RecordAudit)
	db.accessStore = access.NewStore(h, db.RecordAudit, db.SwitchBilling, db.spendStore)
	db.billingStore = billing.NewStore(h, db.RecordAudit)
	db.walletStore = wallet.NewStore(h, db.RecordAudit)
	db.billsStore = bills.NewStore(h, db.RecordAudit)
	if err := db.migrate(ctx, o.Mode); err != nil {
		return nil, errors.Join(o.fault("migrate database", err), db.Close())
	}
	return db, nil
}

// Shared reports whether other instances may use the same database.
func (db *DB) Shared() bool { return db.read == db.write }

// Close closes all connections and releases the lock of Exclusive mode.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil && db.read != db.write {
		errs = append(errs, db.read.Close())
	}
	if db.write != nil {
		errs = append(errs, db.write.Close())
	}
	if db.lock != nil {
		errs = append(errs, db.lock.Close())
	}
	return errors.Join(errs...)
}

// update and snapshot are those of sqldb.DB.
func (db *DB) update(ctx context.Context, op string, fn func(*sql.Tx) error) error {
	return db.handle.Update(ctx, op, fn)
}

func (db *DB) snapshot(ctx context.Context, op string, fn func(*sql.Tx) error) error {
	return db.handle.Snapshot(ctx, op, fn)
}

// study is snapshot for fn that does much between its queries, while the
// database hears nothing of it.
func (db *DB) study(ctx context.Context, op string, fn func(*sql.Tx) error) error {
	return db.snapshot(ctx, op, func(tx *sql.Tx) error {
		if err := db.takeTime(ctx, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

// takeTime lets a transaction do much between its statements. It is not for
// one that keeps others waiting.
func (db *DB) takeTime(ctx context.Context, tx *sql.Tx) error {
	if db.engine.unhurried == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, db.engine.unhurried)
	return err
}

// Unreachable is sqldb.Unreachable, for callers that decide between trying
// again and giving up.
func Unreachable(err error) bool { return sqldb.Unreachable(err) }

// Poisoned is sqldb.Poisoned.
func Poisoned(err error) bool { return sqldb.Poisoned(err) }
