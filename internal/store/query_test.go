package store

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
	"modelgate/internal/store/billing"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
	"modelgate/internal/store/wallet"
)

// queries finds every constant that is a query, of this package and those below
// it, by its name.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, dir := range []string{".", "access", "billing", "bills", "evidence", "spend", "sqldb", "sqlite", "stats"} {
		found := queriesIn(t, dir)
		if len(found) == 0 {
			t.Errorf("found no queries in %s", dir)
		}
		for name, query := range found {
			if out[name] != "" {
				t.Errorf("there are two queries called %s", name)
			}
			out[name] = query
		}
	}
	return out
}

func queriesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	fset := token.NewFileSet()
	var files []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, 0)
		must(t, err)
		files = append(files, f)
	}
	// Constants have their values even where imports do not resolve.
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}}
	pkg, _ := conf.Check("store", fset, files, nil)
	out := make(map[string]string)
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(name, "sql") && c.Val().Kind() == constant.String {
			out[name] = constant.StringVal(c.Val())
		}
	}
	return out
}

// TestEveryQueryPrepares stands in for a compiler of SQL.
func TestEveryQueryPrepares(t *testing.T) {
	t.Parallel()
	all := queries(t)
	if len(all) < 30 {
		t.Fatalf("found only %d queries", len(all))
	}
	for name, query := range all {
		if !strings.HasSuffix(query, "\n-- "+name) {
			t.Errorf("%s does not end in its name", name)
		}
		for _, word := range []string{"now()", "::", "SKIP LOCKED", "NOTIFY", "advisory"} {
			if strings.Contains(query, word) {
				t.Errorf("%s contains %s, which one engine or the other does not know", name, word)
			}
		}
	}
	each(t, func(t *testing.T, db *DB) {
		texts := map[string]string{"usageInsert": usageInsert(sqldb.MaxRows), "headInsert": headInsert(sqldb.MaxRows)}
		texts["usageFiltered"], texts["usageFiltered, shown"] = usageFiltered(false, 2, 3), usageFiltered(true, 2, 3)
		for _, statements := range []func(int) map[string]string{access.Statements, billing.Statements, evidence.Statements, spend.Statements, stats.Statements, wallet.Statements} {
			maps.Copy(texts, statements(sqldb.MaxRows))
		}
		for name, query := range all {
			own := strings.HasPrefix(name, "sqlSQLite") || strings.HasPrefix(name, "sqlPostgres")
			if !own || strings.HasPrefix(strings.ToLower(name), "sql"+db.engine.folder) {
				texts[name] = query
			}
		}
		for name, query := range texts {
			stmt, err := db.write.Prepare(query)
			if err != nil {
				t.Errorf("prepare %s: %v", name, err)
				continue
			}
			stmt.Close()
		}
	})
}

// TestRulesOfAKeyStay holds for what Caller takes from the time before.
func TestRulesOfAKeyStay(t *testing.T) {
	t.Parallel()
	updates := 0
	for name, query := range queries(t) {
		_, change, found := strings.Cut(query, "UPDATE api_key")
		if !found {
			continue
		}
		updates++
		change, _, _ = strings.Cut(change, "WHERE")
		for _, column := range []string{"entitlements", "denies", "backing"} {
			if strings.Contains(change, column) {
				t.Errorf("%s changes %s, which callers that were seen before keep", name, column)
			}
		}
	}
	if updates < 3 {
		t.Errorf("found %d statements that change keys", updates)
	}
}

// TestHotQueriesUseTheirIndexes holds for the plans that each engine makes
// for a table of some size.
func TestHotQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	all := queries(t)
	rollups := all["sqlRollups"]
	each(t, func(t *testing.T, db *DB) {
		client := fill(t, db, 6000)
		compactAll(t, db)
		fillRollups(t, db, client)
		at, last := (*sqldb.Cursor)(nil).Bound()
		cursor := &sqldb.Cursor{At: noon, ID: id(500)}
		cursorAt, cursorID := cursor.Bound()
		d := digest(21)
		list := func(at int64, id string, more ...any) []any {
			return append([]any{string(client), sqldb.Micros(noon.Add(-24 * time.Hour)), at, id, 21}, more...)
		}
		filtered := func(sub string) []any {
			return []any{string(client), sub, sqldb.Micros(noon.Add(-24 * time.Hour)), cursorAt, cursorID, 21, "openai", "azure", "ok", "partial"}
		}
		var pages []any
		for part := range 4 {
			pages = append(pages, string(client), "", "hour", "team", sqldb.Micros(noon), part)
		}
		day := sqldb.Micros(modelgate.Day.Start(noon))
		for _, c := range []struct {
			name, query string
			args        []any
			sqlite, pg  string
		}{
			{"first page", sqlUsage, list(at, last), "PRIMARY KEY", "usage_row_pkey"},
			{"next page", sqlUsage, list(cursorAt, cursorID), "PRIMARY KEY", "usage_row_pkey"},
			{"sub-account", sqlUsageOfSubAccount, list(at, last, "s0"), "usage_row_sub_account", "usage_row_sub_account"},
			{"filtered", usageFiltered(false, 2, 2), filtered(""), "usage_row_provider (client_id=? AND provider=? AND parse_status>? AND (parse_status,created_at,id)<(?,?,?))", "usage_row_provider"},
			{"filtered, sub-account", usageFiltered(true, 2, 2), filtered("s0"), "usage_row_shown (sub_account_id=? AND <expr>=? AND parse_status>? AND (parse_status,created_at,id)<(?,?,?))", "usage_row_shown"},
			{"rollups", rollups, []any{string(client), "", "day", "provider", "team", day - 30*stats.DayMicros, day}, "sqlite_autoindex_rollup_1", "rollup_pkey"},
			{"rollup pages", stats.Statements(4)["rollupSelect"], pages, "sqlite_autoindex_rollup_1", "rollup_pkey"},
			{"old rollups", sqlOldestRollup, []any{string(client), day}, "rollup_old", "rollup_old"},
			{"by id", sqlUsageByID, []any{string(client), sqldb.Micros(uuid(9).Time()), id(9)}, "PRIMARY KEY", "usage_row_pkey"},
			{"caller", all["sqlCaller"], []any{d[:], ""}, "sqlite_autoindex_api_key_2", "api_key_digest_key"},
			{"caller's budgets", all["sqlCaller"], []any{d[:], ""}, "b USING PRIMARY KEY (client_id=? AND scope=? AND scope_id=?)", "budget_pkey"},
			{"cap", all["sqlCountLiveKeys"], []any{string(client), sqldb.Micros(noon)}, "api_key_live", "api_key_live"},
			{"keys", all["sqlKeys"], []any{string(client), "", at, last, 101, false, "", "", ""}, "api_key_newest", "api_key_newest"},
			{"spend", all["sqlSpend"], []any{string(client), "client", string(client), "day", day}, "USING PRIMARY KEY", "spend_pkey"},
		} {
			want, explain := c.sqlite, "EXPLAIN QUERY PLAN "
			if db.engine.folder == "postgres" {
				want, explain = c.pg, "EXPLAIN "
			}
			plan := strings.Join(explained(t, db, explain+c.query, c.args...), "\n")
			sorts := strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE")
			if strings.HasPrefix(c.name, "filtered") { // sorts what few entries have, not what an index has
				sorts = strings.Count(plan, want) != 4
			}
			if !strings.Contains(plan, want) || sorts {
				t.Errorf("%s: the plan does not rest on %s:\n%s", c.name, want, plan)
			}
		}
	})
}

// TestStatisticsReadTheirPagesOnly holds before the engines have figures about
// a table, which is when an organization is new and after a restore.
func TestStatisticsReadTheirPagesOnly(t *testing.T) {
	t.Parallel()
	rollups := queries(t)["sqlRollups"]
	each(t, func(t *testing.T, db *DB) {
		explain, want := "EXPLAIN QUERY PLAN ", "(client_id=? AND sub_account_id=? AND grain=? AND dimension=? AND start>? AND start<?)"
		if db.engine.folder == "postgres" {
			explain, want = "EXPLAIN ", "AND (dimension = '"
		}
		plan := strings.Join(explained(t, db, explain+rollups, "c", "", "hour", "provider", "team", 0, stats.DayMicros), "\n")
		if strings.Count(plan, want) != 3 || strings.Contains(plan, "Filter: (dimension") {
			t.Errorf("statistics read pages of other dimensions:\n%s", plan)
		}
	})
}

// TestPageOfManyEntriesIsReadByWhatWasFound: however many providers and
// statuses a filter stands for, a page reads the rows of a page.
func TestPageOfManyEntriesIsReadByWhatWasFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := fill(t, db, 6000)
		const providers = 12
		at, last := (*sqldb.Cursor)(nil).Bound()
		for _, shown := range []bool{false, true} {
			args := []any{string(client), "", int64(0), at, last, 21}
			if shown {
				args[1] = "s0"
			}
			for i := range providers {
				args = append(args, fmt.Sprint("provider-", i))
			}
			query, explain, want := usageFiltered(shown, providers, 1), "EXPLAIN QUERY PLAN ", "SEARCH r USING PRIMARY KEY (client_id=? AND created_at=? AND id=?)"
			if db.engine.folder == "postgres" {
				explain, want = "EXPLAIN ", "usage_row_pkey"
			}
			plan := strings.Join(explained(t, db, explain+query, append(args, "ok")...), "\n")
			if !strings.Contains(plan, want) {
				t.Errorf("shown %v: the plan does not rest on %s:\n%s", shown, want, plan)
			}
		}
	})
}

// explained is the last column of each line of a plan.
func explained(t *testing.T, db *DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.read.Query(query, args...)
	must(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	must(t, err)
	var out []string
	for rows.Next() {
		line := make([]any, len(columns))
		for i := range line {
			line[i] = new(any)
		}
		must(t, rows.Scan(line...))
		out = append(out, fmt.Sprint(*line[len(line)-1].(*any)))
	}
	must(t, rows.Err())
	return out
}

// fill books n rows of four clients, half of them of sub-accounts, and issues
// some thousand keys, past the API where that would take long.
func fill(t testing.TB, db *DB, n int) modelgate.ClientID {
	t.Helper()
	var clients [4]modelgate.ClientID
	for i := range clients {
		clients[i] = createClient(t, db, i+1)
	}
	rows := make([]modelgate.UsageRow, 0, 500)
	for i := range n {
		r := row(clients[i%4], i)
		if i%8 < 4 {
			r.SubAccountID = modelgate.SubAccountID(fmt.Sprintf("s%d", i%4))
		}
		r.KeyID = modelgate.KeyID(id(i % 1000))
		if rows = append(rows, r); len(rows) == cap(rows) {
			book(t, db, "fill", rows...)
			rows = rows[:0]
		}
	}
	tx, err := db.write.Begin()
	must(t, err)
	for i := range 2000 {
		client, key := clients[i%4], id(i)
		d := digest(i)
		_, err := tx.Exec(`INSERT INTO api_key (id, client_id, digest, prefix, status, scopes, entitlements, denies, backing, created_at, last_used_at, expires_at, self_issued)
VALUES ($1, $2, $3, 'gw_live_01234567', 'active', '[]', '[]', '[]', '[]', $4, 0, $5, false)`,
			key, string(client), d[:], sqldb.Micros(noon.Add(time.Duration(i)*time.Second)), int64(sqldb.Never))
		must(t, err)
		_, err = tx.Exec("INSERT INTO budget (client_id, scope, scope_id, period, amount, revision) VALUES ($1, $2, $3, $4, $5, $6)",
			string(client), "key", key, "day", 1, 1)
		must(t, err)
	}
	must(t, tx.Commit())
	_, err = db.write.Exec("ANALYZE")
	must(t, err)
	return clients[0]
}

// fillRollups adds pages of many days, with content that nothing reads.
func fillRollups(t *testing.T, db *DB, client modelgate.ClientID) {
	t.Helper()
	must(t, exec(db, `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO rollup (client_id, sub_account_id, grain, dimension, start, part, data)
SELECT '`+string(client)+`', '', 'day', 'filler', i / 32 * 86400000000, i % 32, (SELECT data FROM rollup LIMIT 1) FROM n`))
	must(t, exec(db, "ANALYZE"))
}
