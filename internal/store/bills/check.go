package bills

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlSealedDays are the sums of days of which no row is pruned.
const sqlSealedDays = `SELECT provider, day, row_count, cost
FROM invoice_day
WHERE summed_at > 0 AND sealed AND day >= $1
ORDER BY provider, day
-- sqlSealedDays`

// sqlProviderDays counts days since 1970.
const sqlProviderDays = `SELECT provider, created_at / 86400000000, COUNT(*), CAST(SUM(cost) AS BIGINT)
FROM usage_row
WHERE created_at >= $1
GROUP BY provider, created_at / 86400000000
-- sqlProviderDays`

const sqlPrunedBefore = `SELECT COALESCE(MAX(pruned_before), 0)
FROM usage_head
-- sqlPrunedBefore`

// CheckSums finds days whose stored sums are not those of their rows.
func CheckSums(ctx context.Context, tx *sql.Tx) ([]sqldb.Difference, error) {
	var pruned int64
	if err := tx.QueryRowContext(ctx, sqlPrunedBefore).Scan(&pruned); err != nil {
		return nil, err
	}
	type key struct{ provider, day string }
	type sums struct {
		rows int64
		cost modelgate.Nano
	}
	have := make(map[key]sums)
	err := sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var k key
		var s sums
		err := row.Scan(&k.provider, &k.day, &s.rows, &s.cost)
		have[k] = s
		return err
	}, sqlSealedDays, day(pruned))
	if err != nil || len(have) == 0 {
		return nil, err
	}
	want := make(map[key]sums)
	err = sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var k key
		var days int64
		var s sums
		err := row.Scan(&k.provider, &days, &s.rows, &s.cost)
		k.day = day(days * 86_400_000_000)
		want[k] = s
		return err
	}, sqlProviderDays, pruned)
	if err != nil {
		return nil, err
	}
	var out []sqldb.Difference
	for k, h := range have {
		w := want[k]
		for what, pair := range map[string][2]int64{"invoice_rows": {w.rows, h.rows}, "invoice_cost": {int64(w.cost), int64(h.cost)}} {
			if pair[0] != pair[1] {
				out = append(out, sqldb.Difference{What: what, Key: k.provider + "/" + k.day, Want: pair[0], Have: pair[1]})
			}
		}
	}
	slices.SortFunc(out, func(a, b sqldb.Difference) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.What, b.What)) })
	return out, nil
}

// day is the UTC day of an instant in microseconds.
func day(micros int64) string { return sqldb.Instant(micros).UTC().Format("2006-01-02") }
