package store

import (
	"context"
	"database/sql"
	"slices"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/stats"
	"modelgate/internal/store/wallet"
)

// booked is what one transaction changes about the usage rows.
type booked struct {
	// instance is whose spool the rows come from.
	instance string
	// rows are those that were not there before. One of a job is provisional
	// and comes again in finals: its cost counts as spent from now on, but
	// whoever tells others about a row waits for the final one.
	rows []*modelgate.UsageRow
	// unfollowed are those of rows whose job is not kept, as they came.
	unfollowed []*modelgate.UsageRow
	// finals are rows that were provisional until now.
	finals []final
	// debits are what is taken off wallets.
	debits wallet.Debits
}

// debit charges a call to the wallet that pays for it, if any.
func (b *booked) debit(charged *spend.Charges, r *modelgate.UsageRow, settled, held, leased modelgate.Nano) error {
	if r.WalletMarkup == nil {
		return nil
	}
	if b.debits == nil {
		b.debits = make(wallet.Debits)
	}
	b.debits[wallet.ID{ClientID: r.ClientID, SubAccountID: r.SubAccountID}] += settled
	return charged.AddWallet(r, spend.Amount{Settled: settled, Held: held, Leased: leased})
}

// final is the row of a job that has come to its end.
type final struct {
	row *modelgate.UsageRow // as it is now
	// change and tokens are its cost and its total tokens, less what they were
	// while it was provisional; either may be negative.
	change modelgate.Nano
	tokens int64
	// use is what it has used beside its cost, less what that was.
	use modelgate.Amounts
	// reserve was held of the row's budgets beside its cost, and is free now.
	reserve modelgate.Nano
}

// clients are those of the rows.
func (b *booked) clients() map[modelgate.ClientID]struct{} {
	ids := make(map[modelgate.ClientID]struct{}, 1)
	for _, r := range b.rows {
		ids[r.ClientID] = struct{}{}
	}
	for i := range b.finals {
		ids[b.finals[i].row.ClientID] = struct{}{}
	}
	return ids
}

// charge counts the cost of new and final rows against budgets, limits and
// wallets, and their latencies.
func (b *booked) charge(charged *spend.Charges, counted stats.LatencyCounts) error {
	for _, r := range b.rows {
		a := spend.Amount{Settled: r.Cost, Held: -r.Cost, Leased: r.Cost}
		if r.Job != nil {
			a.Leased += r.Job.Reserve // it stays held, by the job
		}
		charge := spend.Charge{Amount: a, Reserved: true}
		if charged.Ruled(r.ClientID) {
			charge.Use = r.Usage.Amounts(r.Cost)
		}
		if err := charged.Add(r, charge); err != nil {
			return err
		}
		if err := b.debit(charged, r, r.Debit(r.Cost), -r.Debit(r.Cost), r.Debit(a.Leased)); err != nil {
			return err
		}
		counted.Add(r)
	}
	for _, r := range b.unfollowed {
		if err := charged.Add(r, spend.Charge{Amount: spend.Amount{Held: -r.Job.Reserve, Leased: r.Job.Reserve}}); err != nil {
			return err
		}
		kept := r.Debit(r.Cost+r.Job.Reserve) - r.Debit(r.Cost)
		if err := b.debit(charged, r, 0, -kept, kept); err != nil {
			return err
		}
	}
	return b.chargeFinals(charged, counted)
}

// chargeFinals is charge for final rows: by what has changed since they were
// provisional.
func (b *booked) chargeFinals(charged *spend.Charges, counted stats.LatencyCounts) error {
	for i := range b.finals {
		f := &b.finals[i]
		if err := charged.Add(f.row, spend.Charge{Amount: spend.Amount{Settled: f.change, Held: -f.reserve}, Use: f.use}); err != nil {
			return err
		}
		before := f.row.Cost - f.change
		debited := f.row.Debit(before)
		if err := b.debit(charged, f.row, f.row.Debit(f.row.Cost)-debited, debited-f.row.Debit(before+f.reserve), 0); err != nil {
			return err
		}
		counted.AddChange(f.row, f.tokens, f.change)
	}
	return nil
}

// book carries new and final rows into everything that is kept about them, in
// their own transaction: none of it can say anything else than the rows do.
func (db *DB) book(ctx context.Context, tx *sql.Tx, b *booked) error {
	if err := db.addRollups(ctx, tx, b); err != nil {
		return err
	}
	counted := stats.LatencyCounts{}
	charged, err := db.Charges(ctx, tx, b.clients())
	if err != nil {
		return err
	}
	if err := b.charge(charged, counted); err != nil {
		return err
	}
	above, err := db.Lineages(ctx, tx, charged.Keys())
	if err != nil {
		return err
	}
	if err := counted.Save(ctx, tx, &db.handle); err != nil {
		return err
	}
	if err := db.Settle(ctx, tx, b.instance, charged, above); err != nil {
		return err
	}
	if err := db.Debited(ctx, tx, b.debits); err != nil {
		return err
	}
	billed := slices.Clone(b.rows)
	for _, f := range b.finals {
		billed = append(billed, f.row)
	}
	if err := db.QueueEvents(ctx, tx, billed); err != nil {
		return err
	}
	finals := make([]records.Final, len(b.finals))
	for i, f := range b.finals {
		finals[i] = records.Final{Row: f.row, Previous: f.row.Cost - f.change, At: db.now()}
	}
	return db.Note(ctx, tx, b.instance, b.rows, finals)
}
