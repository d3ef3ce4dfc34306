package wallet

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Debits are what calls are debited to wallets.
type Debits map[ID]modelgate.Nano

func dayDebits(rows int) string {
	return sqldb.Tuples("INSERT INTO wallet_day (client_id, sub_account_id, day, amount)\nVALUES ", rows, 4, 1) + `
ON CONFLICT (client_id, sub_account_id, day) DO UPDATE
SET amount = wallet_day.amount + excluded.amount
-- dayDebits`
}

// fallen are those of some wallets whose balance has passed a bound since that was
// last noted, in either direction.
func fallen(rows int) string {
	const low, spent = `(w.low_balance IS NOT NULL AND w.credited - s.settled < w.low_balance)`, `(w.credited + w.credit_line <= s.settled)`
	return sqldb.Tuples(`SELECT w.client_id, w.sub_account_id, `+low+`, `+spent+`, w.low_noted, w.spent_noted, COALESCE(w.low_balance, 0), w.credit_line, w.credited - s.settled
FROM wallet w
JOIN spend s ON s.client_id = w.client_id AND s.scope = 'sub_account' AND s.scope_id = w.sub_account_id AND s.period = 'total' AND s.period_start = 0
WHERE w.enabled AND (`+low+` <> w.low_noted OR `+spent+` <> w.spent_noted)
  AND (w.client_id, w.sub_account_id) IN (VALUES `, rows, 2, 1) + `)
-- fallen`
}

const sqlNoteFallen = `UPDATE wallet
SET low_noted = $3, spent_noted = $4
WHERE client_id = $1 AND sub_account_id = $2
-- sqlNoteFallen`

// sqlWalletAlert notes an alert for each audience. Its instant is the period's
// start, which tells one fall of the balance from the next.
const sqlWalletAlert = `INSERT INTO alert (audience, client_id, scope, scope_id, period, period_start, percent, amount, settled, at, tries, rule, value, match_text, claimed_until)
SELECT a.audience, $1, 'sub_account', $2, 'total', CAST($3 AS BIGINT), 0, CAST($4 AS BIGINT), CAST($5 AS BIGINT), CAST($3 AS BIGINT), 0, 0, $6, '', 0
FROM (SELECT 'operator' AS audience UNION ALL SELECT 'organization') a
WHERE a.audience = 'operator' OR EXISTS (SELECT 1 FROM alert_target t WHERE t.client_id = $1)
ON CONFLICT (audience, client_id, scope, scope_id, period, period_start, rule, value, percent) DO NOTHING
-- sqlWalletAlert`

// Debited notes what calls are debited, in the transaction that books them and
// after their counters were raised.
func (s *Store) Debited(ctx context.Context, tx *sql.Tx, debits Debits) error {
	if len(debits) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(debits), ID.compare)
	today := sqldb.Micros(modelgate.Day.Start(s.db.Now()))
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{Text: dayDebits, N: len(ids), Args: func(dst []any, i int) []any {
		return append(dst, ids[i].args(today, int64(debits[ids[i]]))...)
	}})
	if err != nil {
		return err
	}
	return s.noteFallen(ctx, tx, ids)
}

// noteFallen notes an alert for each wallet whose balance has fallen below a
// bound. One that is above again will be told of anew.
func (s *Store) noteFallen(ctx context.Context, tx *sql.Tx, ids []ID) error {
	type crossing struct {
		id                                ID
		low, spent, lowNoted, spentNoted  bool
		lowBalance, creditLine, remaining modelgate.Nano
	}
	var found []crossing
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: fallen, N: len(ids), Args: func(dst []any, i int) []any { return append(dst, ids[i].args()...) },
		Scan: func(row sqldb.Scanner) error {
			var c crossing
			err := row.Scan(&c.id.ClientID, &c.id.SubAccountID, &c.low, &c.spent, &c.lowNoted, &c.spentNoted, &c.lowBalance, &c.creditLine, &c.remaining)
			found = append(found, c)
			return err
		},
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b crossing) int { return a.id.compare(b.id) })
	for _, c := range found {
		if _, err := tx.ExecContext(ctx, sqlNoteFallen, c.id.args(c.low, c.spent)...); err != nil {
			return err
		}
		if c.low && !c.lowNoted {
			if err := s.note(ctx, tx, c.id, alert{modelgate.WalletLow, c.lowBalance, c.remaining}); err != nil {
				return err
			}
		}
		if c.spent && !c.spentNoted {
			if err := s.note(ctx, tx, c.id, alert{modelgate.WalletExhausted, c.creditLine, c.remaining}); err != nil {
				return err
			}
		}
	}
	return nil
}

// alert is what is told about a wallet: an amount by its kind, and the balance.
type alert struct {
	kind            modelgate.WalletAlert
	amount, balance modelgate.Nano
}

func (s *Store) note(ctx context.Context, tx *sql.Tx, id ID, a alert) error {
	_, err := tx.ExecContext(ctx, sqlWalletAlert, id.args(sqldb.Micros(s.db.Now()), int64(a.amount), int64(a.balance), string(a.kind))...)
	return err
}

// alert tells of the balance as it is now.
func (l *ledger) alert(kind modelgate.WalletAlert, amount modelgate.Nano) {
	l.alerts = append(l.alerts, alert{kind, amount, l.credited - l.settled})
}

const sqlExpiredWallets = `SELECT DISTINCT client_id, sub_account_id
FROM wallet_entry
WHERE remaining > 0 AND expires_at > 0 AND expires_at <= $1
ORDER BY client_id, sub_account_id
-- sqlExpiredWallets`

// ExpireCredits takes off what remains of credits whose time is over, and returns
// how many entries that made. What calls have reserved stays until they have
// settled: a later run takes it.
func (s *Store) ExpireCredits(ctx context.Context, audit func(ID) modelgate.Audit) (entries int, err error) {
	now := s.db.Now()
	due, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (id ID, err error) {
		return id, row.Scan(&id.ClientID, &id.SubAccountID)
	}, sqlExpiredWallets, sqldb.Micros(now))
	if err != nil {
		return 0, sqldb.Wrap("look for expired credits", err)
	}
	for _, id := range due {
		made := 0
		err := s.change(ctx, "expire credits", id, func(l *ledger) error {
			made = l.expire(now)
			if made > 0 {
				l.audits = append(l.audits, audit(id))
			}
			return nil
		})
		if err != nil {
			return entries, err
		}
		entries += made
	}
	return entries, nil
}

// expire takes off what remains of expired credits and nobody has reserved.
func (l *ledger) expire(now time.Time) (made int) {
	for i := range l.Grants {
		g := &l.Grants[i]
		if g.ExpiresAt == nil || g.ExpiresAt.After(now) || g.Remaining == 0 {
			continue
		}
		l.changed = true // instances return what lies idle, and what was allocated is stored
		taken := l.use(g, l.Limit()-l.settled-l.Held)
		if taken == 0 {
			continue
		}
		made++
		l.add(&Entry{Kind: Expiry, Amount: -taken, By: BySystem})
	}
	return made
}
