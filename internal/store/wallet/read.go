package wallet

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// walletSelect are wallets with their counters, in the order of scanWallet.
const walletSelect = `SELECT w.sub_account_id, w.enabled, w.blocked, w.credit_line, w.low_balance, w.on_chargeback, w.checkout, w.checkout_min, w.checkout_max,
  w.credited, w.allocated, w.low_noted, w.spent_noted, s.settled, s.held
FROM wallet w
JOIN spend s ON s.client_id = w.client_id AND s.scope = 'sub_account' AND s.scope_id = w.sub_account_id AND s.period = 'total' AND s.period_start = 0
WHERE w.client_id = $1 AND `

const sqlWallets = walletSelect + `($2 = '' OR w.sub_account_id = $2)
ORDER BY w.sub_account_id
-- sqlWallets`

// sqlCreditsLeft walks wallet_entry_left.
const sqlCreditsLeft = `SELECT sub_account_id, id, at, kind, amount, remaining, expires_at, order_id
FROM wallet_entry
WHERE client_id = $1 AND ($2 = '' OR sub_account_id = $2) AND remaining > 0
-- sqlCreditsLeft`

const entryColumns = `id, at, kind, amount, expires_at, note, ref, order_id, claimed, made_by`

const sqlWalletEntries = `SELECT ` + entryColumns + `
FROM wallet_entry
WHERE client_id = $1 AND sub_account_id = $2 AND (at, id) < ($4, $5)
ORDER BY at DESC, id DESC
LIMIT $3
-- sqlWalletEntries`

const sqlEntryByRef = `SELECT ` + entryColumns + `
FROM wallet_entry
WHERE client_id = $1 AND sub_account_id = $2 AND ref = $3
-- sqlEntryByRef`

const sqlUsageDays = `SELECT day, amount
FROM wallet_day
WHERE client_id = $1 AND sub_account_id = $2 AND day < $3
ORDER BY day DESC
LIMIT $4
-- sqlUsageDays`

func scanWallet(row sqldb.Scanner) (Wallet, error) {
	var w Wallet
	err := row.Scan(&w.SubAccountID, &w.Enabled, &w.Blocked, &w.CreditLine, &w.LowBalance, &w.OnChargeback, &w.Checkout.Enabled, &w.Checkout.Min, &w.Checkout.Max,
		&w.credited, &w.allocated, &w.lowNoted, &w.spentNoted, &w.settled, &w.Held)
	w.Balance = w.credited - w.settled
	w.Available = w.Balance + w.CreditLine - w.Held
	return w, err
}

// Wallet reads a wallet. Errors: not_found.
func (s *Store) Wallet(ctx context.Context, id ID) (Wallet, error) {
	found, err := s.wallets(ctx, id)
	if err == nil && len(found) == 0 {
		err = errNoWallet
	}
	if err != nil {
		return Wallet{}, err
	}
	return found[0], nil
}

var errNoWallet = &modelgate.Error{Kind: modelgate.NotFound, Message: "wallet not found"}

const sqlWalletTotals = `SELECT CAST(COALESCE(SUM(w.credited), 0) AS BIGINT), CAST(COALESCE(SUM(s.settled), 0) AS BIGINT)
FROM wallet w
JOIN spend s ON s.client_id = w.client_id AND s.scope = 'sub_account' AND s.scope_id = w.sub_account_id AND s.period = 'total' AND s.period_start = 0
-- sqlWalletTotals`

// WalletTotals are what all wallets were credited, and what was taken off them: by
// calls and by negative entries.
func (s *Store) WalletTotals(ctx context.Context) (credits, debits modelgate.Nano, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlWalletTotals).Scan(&credits, &debits)
	return credits, debits, sqldb.Wrap("sum wallets", err)
}

// Wallets lists the wallets of an organization.
func (s *Store) Wallets(ctx context.Context, client modelgate.ClientID) ([]Wallet, error) {
	return s.wallets(ctx, ID{ClientID: client})
}

func (s *Store) wallets(ctx context.Context, id ID) (found []Wallet, err error) {
	err = s.db.Snapshot(ctx, "read wallets", func(tx *sql.Tx) error {
		if found, err = sqldb.List(ctx, tx, scanWallet, sqlWallets, id.args()...); err != nil {
			return err
		}
		left, err := creditsLeft(ctx, tx, id)
		for i := range found {
			w := &found[i]
			w.Grants = left[w.SubAccountID]
			w.spread()
			w.Grants = slices.DeleteFunc(append([]Grant{}, w.Grants...), func(g Grant) bool { return g.Remaining == 0 })
		}
		return err
	})
	return found, err
}

// creditsLeft are the credits of which something remains, in the order of use:
// what expires first, then grants before what was paid for, then the oldest.
func creditsLeft(ctx context.Context, q sqldb.Querier, id ID) (map[modelgate.SubAccountID][]Grant, error) {
	left := make(map[modelgate.SubAccountID][]Grant)
	err := sqldb.Each(ctx, q, func(row sqldb.Scanner) error {
		var sub modelgate.SubAccountID
		var g Grant
		var expires int64
		err := row.Scan(&sub, &g.ID, sqldb.Moment{Into: &g.CreatedAt}, &g.Kind, &g.Amount, &g.Remaining, &expires, &g.orderID)
		g.ExpiresAt = moment(expires)
		left[sub] = append(left[sub], g)
		return err
	}, sqlCreditsLeft, id.args()...)
	for _, grants := range left {
		slices.SortFunc(grants, inOrderOfUse)
	}
	return left, err
}

func inOrderOfUse(a, b Grant) int {
	expires := func(g Grant) int64 {
		if g.ExpiresAt == nil {
			return math.MaxInt64
		}
		return g.ExpiresAt.UnixMicro()
	}
	bought := func(g Grant) int {
		if g.Kind == GrantKind {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(expires(a), expires(b)), bought(a)-bought(b), a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
}

// spread takes what was settled and is not allocated yet off the credits, in the
// order of use. What they do not cover stays unallocated: the next credit does.
// The credits are the same as when each call was settled, so the outcome is that of
// doing so call by call. Where jobs have given more back than calls took since,
// allocated is the larger: that much is used before the credits, and never expires.
func (w *Wallet) spread() {
	for i := range w.Grants {
		w.use(&w.Grants[i], w.settled-w.allocated)
	}
}

// use takes at most an amount off a credit, and returns how much.
func (w *Wallet) use(g *Grant, most modelgate.Nano) modelgate.Nano {
	taken := min(max(most, 0), g.Remaining)
	g.Remaining -= taken
	w.allocated += taken
	return taken
}

func moment(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	t := sqldb.Instant(us)
	return &t
}

func scanEntry(row sqldb.Scanner) (Entry, error) {
	var e Entry
	var expires int64
	var note string
	err := row.Scan(&e.ID, sqldb.Moment{Into: &e.At}, &e.Kind, &e.Amount, &expires, &note, &e.ref, &e.OrderID, &e.claimed, &e.By)
	e.ExpiresAt, e.Note = moment(expires), &note
	if external, ok := strings.CutPrefix(e.ref, external); ok {
		e.ExternalID = external
	}
	return e, err
}

// day is the length of a UTC day in µs.
const day = 24 * 60 * 60 * 1_000_000

// Position is where an entry stands in the list: that of usage at the end of its
// day.
func (e *Entry) Position() (time.Time, string) {
	if e.Kind == Usage {
		start, _ := time.Parse(time.DateOnly, e.Day) // as it was written
		return start.Add(day*time.Microsecond - time.Microsecond), string(Usage)
	}
	return e.At, e.ID
}

// Entries lists the entries of a wallet, the newest first, with a line for the
// usage of each day that has any. Errors: not_found.
func (s *Store) Entries(ctx context.Context, id ID, limit int, after *sqldb.Cursor) (list []Entry, more bool, err error) {
	err = s.db.Snapshot(ctx, "list wallet entries", func(tx *sql.Tx) error {
		if known, err := sqldb.List(ctx, tx, scanWallet, sqlWallets, id.args()...); err != nil || len(known) == 0 {
			return cmp.Or(err, error(errNoWallet))
		}
		at, last := after.Bound()
		if list, err = sqldb.List(ctx, tx, scanEntry, sqlWalletEntries, id.args(sqldb.Fetch(limit), at, last)...); err != nil {
			return err
		}
		before := at - at%day // a day whose end lies before the last one's
		if at%day == day-1 && last > string(Usage) || after == nil {
			before = at
		}
		days, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (Entry, error) {
			e := Entry{Kind: Usage}
			var start int64
			err := row.Scan(&start, &e.Amount)
			e.Day, e.Amount = sqldb.Instant(start).Format(time.DateOnly), -e.Amount
			return e, err
		}, sqlUsageDays, id.args(before, sqldb.Fetch(limit))...)
		list = append(list, days...)
		slices.SortFunc(list, func(a, b Entry) int {
			atA, idA := a.Position()
			atB, idB := b.Position()
			return cmp.Or(atB.Compare(atA), strings.Compare(idB, idA))
		})
		return err
	})
	list, more = sqldb.Page(list, limit)
	return list, more, err
}
