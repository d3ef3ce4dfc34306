package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrationFiles embed.FS

// versionTable is where goose notes what has been applied.
const versionTable = "schema_version"

const sqlSchemaVersion = `SELECT MAX(version_id)
FROM schema_version
-- sqlSchemaVersion`

// tables must all be there once the schema is current.
func tables() []string {
	return []string{
		"evidence_batch", "evidence_pending", "evidence_head", "evidence_chunk", "evidence_anchor", "evidence_key", "evidence_lease",
		"control", "client", "sub_account", "api_key", "key_lineage", "session", "browser_token", "operator_token", "branding", "audit", "usage_row", "spend", "spool_progress", "instance",
		"budget", "owned_budget", "rate_limit", "balance_entry", "slice", "slice_holder", "alert", "alert_target", "latency_histogram",
		"person", "member", "logout_token",
		"secret", "processor_config", "processor_mapping", "processor_carry", "processor_event", "processor_queue", "checkout_order",
		"usage_head", "rollup", "rollup_delta", "pruned_export", "wallet", "wallet_entry", "wallet_day", "wallet_order", "pruned_debit",
		"invoice_provider", "invoice_day",
		"async_job", "rule", "rule_head",
	}
}

// migrate applies what is missing, each migration in one transaction with its
// note in versionTable, so that a crash leaves the schema at a whole version.
func (db *DB) migrate(ctx context.Context, m Mode) error {
	files, err := fs.Sub(migrationFiles, "migrations/"+db.engine.folder)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(db.engine.dialect, db.write, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if !db.current(ctx, p) {
		if m == ReadOnly {
			return errors.New("the schema is not this program's")
		}
		if err := db.apply(ctx, p); err != nil {
			return err
		}
	}
	return db.checkTables(ctx)
}

// current spares an up-to-date database the lock. A database it cannot read
// goes the long way, which says what is wrong.
func (db *DB) current(ctx context.Context, p *goose.Provider) bool {
	var version int64
	err := db.write.QueryRowContext(ctx, sqlSchemaVersion).Scan(&version)
	return err == nil && version == newest(p)
}

func newest(p *goose.Provider) int64 {
	sources := p.ListSources()
	return sources[len(sources)-1].Version
}

func (db *DB) apply(ctx context.Context, p *goose.Provider) (err error) {
	unlock, err := db.engine.lockSchema(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	version, known, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if version > known {
		return fmt.Errorf("the schema has version %d and this program knows %d: run a newer modelgate", version, known)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("the schema stays at version %d or is half applied: %w", version, err)
	}
	return nil
}

// checkTables finds a schema that claims to be current and is not, such as
// one restored in part.
func (db *DB) checkTables(ctx context.Context) error {
	for _, table := range tables() {
		rows, err := db.write.QueryContext(ctx, "SELECT 1 FROM "+table+" WHERE 1 = 0")
		if err != nil {
			return fmt.Errorf("the schema is half applied, table %s cannot be read: %w", table, err)
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}
