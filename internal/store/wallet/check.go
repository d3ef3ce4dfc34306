package wallet

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlWalletSums are what is kept about wallets and what their entries, days and
// pruned rows come to.
const sqlWalletSums = `SELECT w.sub_account_id, w.credited, w.allocated, w.enabled, w.blocked, w.credit_line,
  CAST(COALESCE(e.credits, 0) AS BIGINT), CAST(COALESCE(e.remaining, 0) AS BIGINT), CAST(COALESCE(e.taken, 0) AS BIGINT),
  CAST(COALESCE(d.amount, 0) AS BIGINT), COALESCE(p.amount, 0), COALESCE(b.amount, 0)
FROM wallet w
LEFT JOIN (SELECT sub_account_id, SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS credits, SUM(remaining) AS remaining,
    SUM(CASE WHEN amount < 0 THEN -amount ELSE 0 END) AS taken
  FROM wallet_entry WHERE client_id = $1 GROUP BY sub_account_id) e ON e.sub_account_id = w.sub_account_id
LEFT JOIN (SELECT sub_account_id, SUM(amount) AS amount FROM wallet_day WHERE client_id = $1 GROUP BY sub_account_id) d
  ON d.sub_account_id = w.sub_account_id
LEFT JOIN pruned_debit p ON p.client_id = w.client_id AND p.sub_account_id = w.sub_account_id
LEFT JOIN budget b ON b.client_id = w.client_id AND b.scope = 'sub_account' AND b.scope_id = w.sub_account_id AND b.period = 'total'
WHERE w.client_id = $1
ORDER BY w.sub_account_id
-- sqlWalletSums`

// sqlDebitedRows are the rows that wallets have paid for, those that cost the same
// at once.
const sqlDebitedRows = `SELECT sub_account_id, cost, wallet_markup, wallet_debit, COUNT(*)
FROM usage_row
WHERE client_id = $1 AND wallet_markup IS NOT NULL
GROUP BY sub_account_id, cost, wallet_markup, wallet_debit
-- sqlDebitedRows`

// CheckWallets finds wallets that are not what their entries and rows come to.
// settled is what each of their counters should have settled.
func CheckWallets(ctx context.Context, tx *sql.Tx, client modelgate.ClientID) (settled map[modelgate.SubAccountID]modelgate.Nano, out []sqldb.Difference, err error) {
	differ := func(what string, sub modelgate.SubAccountID, want, have modelgate.Nano) {
		if want != have {
			out = append(out, sqldb.Difference{ClientID: client, What: what, Key: string(sub), Want: int64(want), Have: int64(have)})
		}
	}
	debits := make(map[modelgate.SubAccountID]modelgate.Nano)
	err = sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var sub modelgate.SubAccountID
		var cost, debit modelgate.Nano
		var markup modelgate.Markup
		var rows int64
		err := row.Scan(&sub, &cost, &markup, &debit, &rows)
		differ("wallet_debit", sub, markup.Debit(cost), debit)
		debits[sub] += debit * modelgate.Nano(rows)
		return err
	}, sqlDebitedRows, string(client))
	if err != nil {
		return nil, nil, err
	}
	settled = make(map[modelgate.SubAccountID]modelgate.Nano)
	err = sqldb.Each(ctx, tx, func(row sqldb.Scanner) error {
		var w Wallet
		var credits, remaining, taken, days, pruned, limit modelgate.Nano
		err := row.Scan(&w.SubAccountID, &w.credited, &w.allocated, &w.Enabled, &w.Blocked, &w.CreditLine, &credits, &remaining, &taken, &days, &pruned, &limit)
		sub := w.SubAccountID
		debited := debits[sub] + pruned
		settled[sub] = debited + taken
		differ("wallet_credits", sub, credits, w.credited)
		differ("wallet_remaining", sub, credits-w.allocated, remaining)
		differ("wallet_days", sub, debited, days)
		switch want := w.Limit(); {
		case !w.Enabled:
			differ("wallet_limit", sub, 0, limit)
		case w.Blocked:
			differ("wallet_limit", sub, blockedLimit, limit)
		default:
			differ("wallet_limit", sub, want, limit)
		}
		return err
	}, sqlWalletSums, string(client))
	return settled, out, err
}
