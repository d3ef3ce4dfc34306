package store

import (
	"context"
	"database/sql"

	"modelgate"
)

// booked is what one transaction adds to the usage rows.
type booked struct {
	// instance is whose spool the rows come from.
	instance string
	// rows are those that were not there before.
	rows []*modelgate.UsageRow
}

// book carries new rows into everything that is kept about them, in their own
// transaction: none of it can say anything else than the rows do.
func (db *DB) book(ctx context.Context, tx *sql.Tx, b *booked) error {
	spent := amounts{}
	for _, r := range b.rows {
		c := call{r.ClientID, r.SubAccountID, r.KeyID, r.At, r.Holds}
		if err := spent.add(c, r.Cost); err != nil {
			return err
		}
	}
	if err := db.settle(ctx, tx, b.instance, spent); err != nil {
		return err
	}
	return db.noteAlerts(ctx, tx, spent)
}
