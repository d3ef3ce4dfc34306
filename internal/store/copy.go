package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"modelgate/internal/store/sqldb"
)

// CopiedTable is a table that a copy has carried over.
type CopiedTable struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// The tables of a schema and how they refer to each other, from the
// databases' own catalogs, so that a table added later is copied too.
const (
	sqlSQLiteTables = `SELECT name
FROM sqlite_master
WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
ORDER BY name
-- sqlSQLiteTables`

	sqlPostgresTables = `SELECT tablename
FROM pg_tables
WHERE schemaname = current_schema()
ORDER BY tablename
-- sqlPostgresTables`

	sqlSQLiteReferences = `SELECT m.name, f."table"
FROM sqlite_master m, pragma_foreign_key_list(m.name) f
WHERE m.type = 'table'
-- sqlSQLiteReferences`

	sqlPostgresReferences = `SELECT c.relname, r.relname
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_class r ON r.oid = k.confrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE k.contype = 'f' AND n.nspname = current_schema()
-- sqlPostgresReferences`
)

// catalogQueries lists the tables of an engine's schema and their references.
func (e engine) catalogQueries() (tables, references string) {
	if e.folder == "postgres" {
		return sqlPostgresTables, sqlPostgresReferences
	}
	return sqlSQLiteTables, sqlSQLiteReferences
}

// beforeUse are the tables that hold something as soon as a database is in
// use. What others hold then was put there by the migrations.
var beforeUse = []string{"client", "audit", "usage_row"}

// Copy carries every table of one database over into another that is not in
// use yet, of the same engine or the other, in one transaction: all of it
// arrives or nothing does. Before it commits it reads everything back and
// compares. Nobody must write to the source meanwhile; a SQLite file is best
// opened Exclusive.
func (db *DB) Copy(ctx context.Context, to *DB) (copied []CopiedTable, err error) {
	err = db.study(ctx, "copy database", func(from *sql.Tx) error {
		names, err := db.tablesInOrder(ctx, from)
		if err != nil {
			return err
		}
		return to.handle.UpdateOnce(ctx, func(into *sql.Tx) error {
			if err := to.takeTime(ctx, into); err != nil {
				return err
			}
			if err := emptyAll(ctx, into, names); err != nil {
				return err
			}
			for _, name := range names {
				n, err := to.copyTable(ctx, from, into, name, db.progress)
				if err != nil {
					return fmt.Errorf("table %s: %w", name, err)
				}
				copied = append(copied, CopiedTable{name, n})
			}
			return nil
		})
	})
	return copied, err
}

// tablesInOrder are the schema's tables, each after those it refers to.
func (db *DB) tablesInOrder(ctx context.Context, tx *sql.Tx) ([]string, error) {
	tables, references := db.engine.catalogQueries()
	names, err := sqldb.List(ctx, tx, sqldb.ScanText, tables)
	if err != nil {
		return nil, err
	}
	own := []string{versionTable, "schema_lock"} // goose's
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(own, n) })
	pairs, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (p [2]string, err error) { return p, s.Scan(&p[0], &p[1]) }, references)
	if err != nil {
		return nil, err
	}
	var ordered []string
	for len(names) > 0 {
		before := len(names)
		names = slices.DeleteFunc(names, func(n string) bool {
			waits := slices.ContainsFunc(pairs, func(p [2]string) bool {
				return p[0] == n && p[1] != n && slices.Contains(names, p[1]) && !slices.Contains(ordered, p[1])
			})
			if !waits {
				ordered = append(ordered, n)
			}
			return !waits
		})
		if len(names) == before {
			return nil, fmt.Errorf("tables refer to each other in a circle: %s", strings.Join(names, ", "))
		}
	}
	return ordered, nil
}

// emptyAll removes what migrations have put into a database, and refuses one
// that is in use.
func emptyAll(ctx context.Context, tx *sql.Tx, names []string) error {
	for _, name := range beforeUse {
		var one int
		err := tx.QueryRowContext(ctx, "SELECT 1 FROM "+name+" LIMIT 1").Scan(&one)
		if err == nil {
			return fmt.Errorf("the target is in use: its table %s is not empty", name)
		}
		if err != sql.ErrNoRows {
			return err
		}
	}
	for _, name := range slices.Backward(names) {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+name); err != nil {
			return err
		}
	}
	return nil
}

// copyTable carries one table over, reads it back and compares.
func (db *DB) copyTable(ctx context.Context, from, into *sql.Tx, name string, progress func(part string, done, total int64)) (int64, error) {
	columns, kinds, err := shape(ctx, into, name)
	if err != nil {
		return 0, err
	}
	var rows, total int64
	if err := from.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+name).Scan(&total); err != nil {
		return 0, err
	}
	text := "SELECT " + strings.Join(columns, ", ") + " FROM " + name
	var pending []any
	flush := func() error {
		if len(pending) == 0 {
			return nil
		}
		head := "INSERT INTO " + name + " (" + strings.Join(columns, ", ") + ") VALUES "
		_, err := into.ExecContext(ctx, sqldb.Tuples(head, len(pending)/len(columns), len(columns), 1), pending...)
		pending = pending[:0]
		return err
	}
	sent, err := walk(ctx, from, text, len(columns), func(row []any) error {
		rows++
		progress("copy "+name, rows, total)
		for i, v := range row {
			pending = append(pending, converted(v, kinds[i]))
		}
		if len(pending) < sqldb.MaxRows*len(columns) {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return 0, err
	}
	progress("compare "+name, 0, total)
	arrived, err := walk(ctx, into, text, len(columns), func([]any) error { return nil })
	if err == nil && arrived != sent {
		err = fmt.Errorf("what has arrived differs: %d rows of %d, or their values", arrived.rows, sent.rows)
	}
	return sent.rows, err
}

// shape is a table's columns and their types, as the engine calls them.
func shape(ctx context.Context, tx *sql.Tx, name string) (columns, kinds []string, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT * FROM "+name+" WHERE 1 = 0")
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range types {
		columns, kinds = append(columns, t.Name()), append(kinds, t.DatabaseTypeName())
	}
	return columns, kinds, rows.Err()
}

// converted is a value as a column of the target takes it. SQLite has no
// boolean.
func converted(v any, kind string) any {
	if n, ok := v.(int64); ok && kind == "BOOL" {
		return n != 0
	}
	if b, ok := v.(bool); ok && kind == "INTEGER" {
		if b {
			return int64(1)
		}
		return int64(0)
	}
	if b, ok := v.([]byte); ok && (kind == "TEXT" || kind == "JSONB") {
		return string(b)
	}
	return v
}

// digestOfTable is the number of a table's rows and the sum of their hashes, which
// does not depend on their order.
type digestOfTable struct {
	rows int64
	sum  [4]uint64
}

// walk reads all rows of a query and returns their digest.
func walk(ctx context.Context, tx *sql.Tx, text string, columns int, each func([]any) error) (d digestOfTable, err error) {
	rows, err := tx.QueryContext(ctx, text)
	if err != nil {
		return d, err
	}
	defer rows.Close()
	row, into := make([]any, columns), make([]any, columns)
	for i := range row {
		into[i] = &row[i]
	}
	var line bytes.Buffer
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return d, err
		}
		line.Reset()
		for _, v := range row {
			plain(&line, v)
		}
		hash := sha256.Sum256(line.Bytes())
		for i := range d.sum {
			d.sum[i] += binary.LittleEndian.Uint64(hash[8*i:])
		}
		d.rows++
		if err := each(row); err != nil {
			return d, err
		}
	}
	return d, rows.Err()
}

// plain writes a value so that both engines' spellings of it are the same:
// booleans are numbers, texts and bytes alike, and JSON has its members in
// order.
func plain(w *bytes.Buffer, v any) {
	switch v := v.(type) {
	case nil:
		w.WriteString("null;")
	case bool:
		plain(w, map[bool]int64{true: 1}[v])
	case string:
		plain(w, []byte(v))
	case []byte:
		if len(v) > 0 && (v[0] == '{' || v[0] == '[') {
			j := jsontext.Value(bytes.Clone(v))
			if j.Canonicalize() == nil {
				v = j
			}
		}
		fmt.Fprintf(w, "%d:%s;", len(v), v)
	default:
		fmt.Fprintf(w, "%v;", v)
	}
}
