package spend

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlUse reads what is settled and held of a counter.
const sqlUse = `SELECT settled + held
FROM spend
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5
-- sqlUse`

const sqlFileVersion = `SELECT version
FROM rule_head
WHERE client_id = '*'
-- sqlFileVersion`

// Use is what is settled and held of a counter.
func (s *Store) Use(ctx context.Context, k modelgate.Counter) (n modelgate.Nano, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlUse, counter{k}.args(nil)...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, sqldb.Wrap("read a counter", err)
}

// PutFileLimits sets the rate limits over an hour or a day of the configuration
// file, at most 100, in place of all that there were. They are the rules of
// modelgate.FileClient. One that stays keeps its counters; a new one counts the
// calls from now on. Where anything changes, it raises the control version.
func (s *Store) PutFileLimits(ctx context.Context, limits []*modelgate.RateLimit) error {
	return s.db.Update(ctx, "put the configuration's limits", func(tx *sql.Tx) error {
		var version int64
		if len(limits) == 0 {
			err := tx.QueryRowContext(ctx, sqlFileVersion).Scan(&version)
			if errors.Is(err, sql.ErrNoRows) { // there never were any
				return nil
			}
			if err != nil {
				return err
			}
		}
		if err := tx.QueryRowContext(ctx, sqlRaiseHead, string(modelgate.FileClient)).Scan(&version); err != nil {
			return err
		}
		there, err := readRules(ctx, tx, modelgate.FileClient)
		if err != nil {
			return err
		}
		changed, kept := false, make(map[int64]bool, len(limits))
		for i, l := range limits {
			b := l.Budget()
			at := slices.IndexFunc(there.all, func(o *modelgate.Budget) bool {
				return o.Level == b.Level && o.Period == b.Period && o.Unit == b.Unit && o.Match.Same(b.Match)
			})
			if at >= 0 {
				old := there.all[at]
				kept[old.Rule] = true
				if old.Limit == b.Limit {
					continue
				}
			}
			changed = true
			if err := s.putFileLimit(ctx, tx, &b, at >= 0, version, i); err != nil {
				return err
			}
		}
		for _, old := range there.all {
			if kept[old.Rule] {
				continue
			}
			changed = true
			// Its counters stay until their windows are long over: no other limit
			// gets its number.
			if err := tx.QueryRowContext(ctx, sqlDeleteRule, ruleName(modelgate.FileClient, old)...).Scan(new(int64)); err != nil {
				return err
			}
		}
		if !changed {
			return nil
		}
		return sqldb.RaiseControl(ctx, tx)
	})
}

// putFileLimit sets the i-th limit under a version.
func (s *Store) putFileLimit(ctx context.Context, tx *sql.Tx, b *modelgate.Budget, there bool, version int64, i int) error {
	args := append(ruleName(modelgate.FileClient, b), string(modelgate.Hard), "[]", int64(b.Limit), version)
	if there {
		return tx.QueryRowContext(ctx, sqlUpdateRule, args...).Scan(new(int64))
	}
	const most = 128 // limits of a version
	_, err := tx.ExecContext(ctx, sqlInsertRule, append(args, sqldb.Micros(s.db.Now()), -(version*most+int64(i)))...)
	return err
}
