package store

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
)

// column is a column of a table as its engine describes it.
type column struct {
	kind string
	// spare: an INSERT may leave it out.
	spare bool
}

// columnsOf describes every column of the schema, by table.column.
func columnsOf(t *testing.T, db *DB) map[string]column {
	t.Helper()
	query := `SELECT m.name || '.' || c.name, c.type, c."notnull" = 0 OR c.dflt_value IS NOT NULL
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'`
	if db.engine.folder == "postgres" {
		query = `SELECT table_name || '.' || column_name, data_type, is_nullable = 'YES' OR column_default IS NOT NULL
			FROM information_schema.columns WHERE table_schema = current_schema()`
	}
	rows, err := db.write.QueryContext(t.Context(), query)
	must(t, err)
	defer rows.Close()
	out := map[string]column{}
	for rows.Next() {
		var name string
		var c column
		must(t, rows.Scan(&name, &c.kind, &c.spare))
		out[name] = c
	}
	must(t, rows.Err())
	return out
}

// TestMigrationsOnlyExpand is what lets instances of the version before go
// on while one of the new version has migrated: every step leaves each column
// there was as it was, and each column that it adds to a table there was may
// be left out of an INSERT.
func TestMigrationsOnlyExpand(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		files, err := fs.Sub(migrationFiles, "migrations/"+db.engine.folder)
		must(t, err)
		empty := open(t, options(t, db.engine.folder))
		for _, table := range emptied(t, empty) {
			_, err := empty.write.ExecContext(t.Context(), "DROP TABLE "+table+map[bool]string{true: " CASCADE"}[db.engine.folder == "postgres"])
			must(t, err)
		}
		p, err := goose.NewProvider(db.engine.dialect, empty.write, files, goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
		must(t, err)
		before := map[string]column{}
		for _, step := range p.ListSources() {
			_, err := p.UpTo(t.Context(), step.Version)
			must(t, err)
			after := columnsOf(t, empty)
			known := map[string]bool{}
			for name, was := range before {
				table, _, _ := strings.Cut(name, ".")
				known[table] = true
				if is, ok := after[name]; !ok || is.kind != was.kind || was.spare && !is.spare {
					t.Errorf("migration %d: column %s was %+v and is %+v (there: %v)", step.Version, name, was, is, ok)
				}
			}
			for name, is := range after {
				table, _, _ := strings.Cut(name, ".")
				if _, old := before[name]; !old && known[table] && !is.spare {
					t.Errorf("migration %d adds %s, which programs of the version before leave out of their INSERTs: give it a default", step.Version, name)
				}
			}
			before = after
		}
		if len(before) < 50 {
			t.Errorf("only %d columns found", len(before))
		}
	})
}

// emptied are all tables, those that refer to others first.
func emptied(t *testing.T, db *DB) (names []string) {
	t.Helper()
	tx, err := db.write.BeginTx(t.Context(), nil)
	must(t, err)
	defer tx.Rollback()
	ordered, err := db.tablesInOrder(t.Context(), tx)
	must(t, err)
	for i := range ordered {
		names = append(names, ordered[len(ordered)-1-i])
	}
	return append(names, versionTable)
}
