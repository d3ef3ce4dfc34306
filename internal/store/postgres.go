package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"modelgate/internal/store/sqldb"
)

const (
	postgresConns       = 16
	postgresConnectTime = 5 * time.Second
	// Connections are renewed, so that a fail-over or a changed address is
	// picked up without a restart.
	postgresConnLife = 30 * time.Minute
	postgresConnIdle = 5 * time.Minute
	// postgresIdleInTransaction is how long PostgreSQL keeps a transaction open
	// for an instance it hears nothing of. One that was cut off or suspended in
	// the middle holds its locks until then, and every other instance waits.
	postgresIdleInTransaction = 10 * time.Second
)

func openPostgres(ctx context.Context, o Options) (*DB, error) {
	conf, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, err // pgx leaves the password out of it
	}
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = postgresConnectTime
	}
	if conf.RuntimeParams["application_name"] == "" {
		conf.RuntimeParams["application_name"] = "modelgate"
	}
	if o.MaxConns == 0 {
		o.MaxConns = postgresConns
	}
	var options []stdlib.OptionOpenDB
	var begun string
	if o.Pooled {
		// Statements are described once and sent whole from then on: as fast as
		// named ones but for their plans, and with the same types. They leave
		// nothing behind on a connection that is another's the next moment.
		conf.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		begun = sqlPostgresLocal
	} else {
		options = append(options, stdlib.OptionAfterConnect(setSession))
	}
	pool := stdlib.OpenDB(*conf, options...)
	pool.SetMaxOpenConns(o.MaxConns)
	pool.SetMaxIdleConns(o.MaxConns)
	pool.SetConnMaxLifetime(postgresConnLife)
	pool.SetConnMaxIdleTime(postgresConnIdle)
	if err := checkPostgres(ctx, pool, o.Log); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	handle := sqldb.DB{
		SnapshotOptions: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		RowsPerInsert:   sqldb.MaxRows,
		ForLock:         "\nFOR NO KEY UPDATE",
		Begun:           begun,
		IdleBound:       postgresIdleInTransaction,
		Long:            sqldb.NewSemaphore(o.MaxConns),
	}
	return &DB{write: pool, read: pool, handle: handle, engine: engine{
		dialect:    goose.DialectPostgres,
		folder:     "postgres",
		freshPlan:  []any{pgx.QueryExecModeCacheDescribe},
		unhurried:  sqlPostgresUnhurried,
		unnamed:    o.Pooled,
		lockSchema: func(ctx context.Context) (func() error, error) { return lockTable(ctx, pool) },
	}}, nil
}

const sqlPostgresSession = `SELECT set_config(name, value, false)
FROM (VALUES ('idle_in_transaction_session_timeout', '0', $1), ('jit', 'on', 'off')) AS wanted (name, unset, value)
WHERE current_setting(name) = unset
-- sqlPostgresSession`

// sqlPostgresLocal is sqlPostgresSession for one transaction, where sessions are
// not ours.
const sqlPostgresLocal = `SELECT set_config(name, value, true)
FROM (VALUES ('idle_in_transaction_session_timeout', '0', $1), ('jit', 'on', 'off')) AS wanted (name, unset, value)
WHERE current_setting(name) = unset
-- sqlPostgresLocal`

// idleBound is postgresIdleInTransaction as PostgreSQL takes it.
func idleBound() string { return strconv.FormatInt(postgresIdleInTransaction.Milliseconds(), 10) }

// setSession gives a session postgresIdleInTransaction and plans without
// compilation, which takes longer than any statement here, unless the address,
// the role or the database says otherwise. These are no start-up parameters,
// for connection poolers refuse those.
func setSession(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, sqlPostgresSession, pgx.QueryExecModeExec, idleBound())
	return err
}

// sqlPostgresUnhurried lifts postgresIdleInTransaction until the transaction
// ends.
const sqlPostgresUnhurried = `SELECT set_config('idle_in_transaction_session_timeout', '0', true)
-- sqlPostgresUnhurried`

const sqlPostgresSettings = `SELECT current_setting('server_encoding'),
  COALESCE(current_setting('synchronous_commit', true), ''),
  COALESCE(current_setting('fsync', true), ''),
  COALESCE(current_setting('full_page_writes', true), '')
-- sqlPostgresSettings`

// checkPostgres refuses what cannot work and warns of settings under which a
// commit may be lost, because a committed row leaves the spool.
func checkPostgres(ctx context.Context, pool *sql.DB, log *slog.Logger) error {
	var encoding, commit, fsync, pages string
	if err := pool.QueryRowContext(ctx, sqlPostgresSettings).Scan(&encoding, &commit, &fsync, &pages); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s; UTF8 is needed", encoding)
	}
	for name, value := range map[string]string{"synchronous_commit": commit, "fsync": fsync, "full_page_writes": pages} {
		if value == "off" {
			log.WarnContext(ctx, "the database may lose committed usage rows in a crash", "setting", name, "value", value)
		}
	}
	return nil
}

// lockTable takes goose's lease in a table, which works behind every
// connection pooler and needs no advisory lock.
func lockTable(ctx context.Context, pool *sql.DB) (func() error, error) {
	l, err := lock.NewPostgresTableLocker(
		lock.WithTableName("schema_lock"),
		lock.WithTableLockTimeout(200*time.Millisecond, 600),
		lock.WithTableUnlockTimeout(200*time.Millisecond, 25),
		lock.WithTableLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return nil, err
	}
	if err := l.Lock(ctx, pool); err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(context.WithoutCancel(ctx), pool) }, nil
}
