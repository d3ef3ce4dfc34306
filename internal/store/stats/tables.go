package stats

import (
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

func (r Rollups) run(ctx context.Context, tx *sql.Tx, m sqldb.BatchExec) error {
	return m.Run(ctx, tx, r.Rows)
}

// Add adds a tally to the stored rollups of clients whose heads are locked.
func (r Rollups) Add(ctx context.Context, tx *sql.Tx, hours Tallies) error {
	if len(hours) == 0 {
		return nil
	}
	s := rollupSave{pages: make(map[pageKey]*Page), adds: make(map[pageKey]map[string]*Sums)}
	both := hours.days()
	maps.Copy(both, hours)
	keys := make([]pageKey, 0, len(both))
	for at := range both {
		keys = append(keys, pageKey{span: at})
	}
	if err := r.loadPages(ctx, tx, keys, s.pages); err != nil {
		return err
	}
	for at, dimensions := range both {
		s.addToRoot(at, dimensions)
	}
	if err := r.loadPages(ctx, tx, s.missing(), s.pages); err != nil {
		return err
	}
	for _, k := range s.addToParts() {
		if _, err := tx.ExecContext(ctx, sqlDropRollup, k.args(nil)[:5]...); err != nil {
			return err
		}
	}
	return r.savePages(ctx, tx, s.pages)
}

// sqlDropRollup deletes the pages of a grown dimension.
const sqlDropRollup = `DELETE FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = $4 AND start = $5
-- sqlDropRollup`

const rollupColumns = `client_id, sub_account_id, grain, dimension, start, part, data`

const (
	rollupKeyCount    = 6
	rollupColumnCount = 7
)

// loadPages reads the pages that there are.
func (r Rollups) loadPages(ctx context.Context, tx *sql.Tx, keys []pageKey, into map[pageKey]*Page) error {
	slices.SortFunc(keys, pageKey.compare)
	return r.run(ctx, tx, sqldb.BatchExec{
		Text:  rollupSelect,
		N:     len(keys),
		Fresh: r.Fresh,
		Args:  func(dst []any, i int) []any { return keys[i].args(dst) },
		Scan: func(s sqldb.Scanner) error {
			k, data, err := scanPage(s)
			if err != nil {
				return err
			}
			into[k], err = decodePage(data)
			return err
		},
	})
}

func scanPage(s sqldb.Scanner) (k pageKey, data []byte, err error) {
	err = s.Scan(&k.client, &k.subAccount, &k.grain, &k.dimension, &k.start, &k.part, &data)
	return k, data, err
}

func (r Rollups) savePages(ctx context.Context, tx *sql.Tx, pages map[pageKey]*Page) error {
	keys := slices.SortedFunc(maps.Keys(pages), pageKey.compare)
	err := r.run(ctx, tx, sqldb.BatchExec{
		Text: rollupInsert,
		N:    len(keys),
		Args: func(dst []any, i int) []any { return append(keys[i].args(dst), pages[keys[i]].Encode()) },
	})
	if err != nil {
		return fmt.Errorf("save rollups: %w", err)
	}
	return nil
}

// rollupInsert writes pages, new ones or in place of what was there.
func rollupInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO rollup ("+rollupColumns+")\nVALUES ", rows, rollupColumnCount, 1) +
		"\nON CONFLICT (client_id, sub_account_id, grain, dimension, start, part) DO UPDATE" +
		"\nSET data = excluded.data\n-- rollupInsert"
}

// rollupSelect reads pages by their keys. The first key says what type the
// others have.
func rollupSelect(rows int) string {
	head := "SELECT r.client_id, r.sub_account_id, r.grain, r.dimension, r.start, r.part, r.data\nFROM (VALUES " +
		"(CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT))"
	if rows > 1 {
		head = sqldb.Tuples(head+", ", rows-1, rollupKeyCount, rollupKeyCount+1)
	}
	return head + ") AS k\nJOIN rollup r ON r.client_id = k.column1 AND r.sub_account_id = k.column2 AND r.grain = k.column3" +
		"\n  AND r.dimension = k.column4 AND r.start = k.column5 AND r.part = k.column6\n-- rollupSelect"
}
