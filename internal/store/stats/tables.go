package stats

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"modelgate/internal/store/sqldb"
)

// Rollups says how the statements on rollups are run.
type Rollups struct {
	Rows  int   // of a statement at most, a power of two
	Fresh []any // leads the arguments of a statement that is to be planned anew
}

// Add adds the sums of hours to the stored pages of these hours and of their
// days. The clients' heads must be locked.
func (r Rollups) Add(ctx context.Context, tx *sql.Tx, hours Tallies) error {
	if len(hours) == 0 {
		return nil
	}
	m := merge{pages: make(map[pageKey]Page), adds: make(map[pageKey]map[string]*Sums)}
	both := hours.withDays()
	keys := make([]pageKey, 0, len(both))
	for at := range both {
		keys = append(keys, pageKey{span: at})
	}
	if err := r.loadPages(ctx, tx, keys, m.pages); err != nil {
		return err
	}
	for at, dimensions := range both {
		m.addToRoot(at, dimensions)
	}
	if err := r.loadPages(ctx, tx, m.missing(), m.pages); err != nil {
		return err
	}
	for _, k := range m.addToParts() {
		if _, err := tx.ExecContext(ctx, sqlDropRollup, k.args(nil)[:5]...); err != nil {
			return err
		}
	}
	return r.savePages(ctx, tx, m.pages)
}

// sqlDropRollup deletes the pages of a dimension.
const sqlDropRollup = `DELETE FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = $4 AND start = $5
-- sqlDropRollup`

// pageKey is the key of a row of rollup. The dimension of a root page is "".
type pageKey struct {
	span
	dimension string
	part      int64
}

func (k pageKey) compare(o pageKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.subAccount, o.subAccount), cmp.Compare(k.grain, o.grain),
		cmp.Compare(k.dimension, o.dimension), cmp.Compare(k.start, o.start), cmp.Compare(k.part, o.part))
}

// args appends the columns of the key.
func (k pageKey) args(dst []any) []any {
	return append(dst, string(k.client), string(k.subAccount), string(k.grain), k.dimension, k.start, k.part)
}

const rollupColumns = `client_id, sub_account_id, grain, dimension, start, part, data`

const (
	rollupKeyCount    = 6
	rollupColumnCount = 7
)

// loadPages reads those of the pages that exist.
func (r Rollups) loadPages(ctx context.Context, tx *sql.Tx, keys []pageKey, into map[pageKey]Page) error {
	slices.SortFunc(keys, pageKey.compare)
	load := sqldb.BatchExec{
		Text:  rollupSelect,
		N:     len(keys),
		Fresh: r.Fresh,
		Args:  func(dst []any, i int) []any { return keys[i].args(dst) },
		Scan: func(s sqldb.Scanner) error {
			k, p, err := scanPage(s)
			into[k] = p
			return err
		},
	}
	return load.Run(ctx, tx, r.Rows)
}

func scanPage(s sqldb.Scanner) (k pageKey, p Page, err error) {
	var data []byte
	if err = s.Scan(&k.client, &k.subAccount, &k.grain, &k.dimension, &k.start, &k.part, &data); err == nil {
		p, err = decodePage(data)
	}
	return k, p, err
}

func (r Rollups) savePages(ctx context.Context, tx *sql.Tx, pages map[pageKey]Page) error {
	keys := slices.SortedFunc(maps.Keys(pages), pageKey.compare)
	save := sqldb.BatchExec{
		Text: rollupInsert,
		N:    len(keys),
		Args: func(dst []any, i int) []any { return append(keys[i].args(dst), pages[keys[i]].Encode()) },
	}
	if err := save.Run(ctx, tx, r.Rows); err != nil {
		return fmt.Errorf("save rollups: %w", err)
	}
	return nil
}

// rollupInsert inserts or replaces pages.
func rollupInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup ("+rollupColumns+")\nVALUES ", rows, rollupColumnCount, 1) +
		"\nON CONFLICT (client_id, sub_account_id, grain, dimension, start, part) DO UPDATE" +
		"\nSET data = excluded.data\n-- rollupInsert"
}

// rollupSelect reads pages by their keys. The casts of the first key give the
// types of the others.
func rollupSelect(rows int) string {
	head := "SELECT r.client_id, r.sub_account_id, r.grain, r.dimension, r.start, r.part, r.data\nFROM (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, rollupKeyCount, rollupKeyCount+1)
	}
	return head + ") AS k\nJOIN rollup r ON r.client_id = k.column1 AND r.sub_account_id = k.column2 AND r.grain = k.column3" +
		"\n  AND r.dimension = k.column4 AND r.start = k.column5 AND r.part = k.column6\n-- rollupSelect"
}
