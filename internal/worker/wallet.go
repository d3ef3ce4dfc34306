package worker

import (
	"context"
	"log/slog"
	"time"

	"modelgate"
	"modelgate/internal/store/wallet"
)

// expiryPause is between two looks for credits whose time is over.
const expiryPause = time.Minute

// CreditExpirer takes what remains of expired credits off wallets. Several
// instances may run it at once.
type CreditExpirer struct {
	// Expire is one look; *store.DB has it as ExpireCredits.
	Expire func(context.Context, func(wallet.ID) modelgate.Audit) (entries int, err error)
	// Audit makes the record of an expiry.
	Audit func(wallet.ID) modelgate.Audit
	Log   *slog.Logger
}

// Run takes expired credits off until the context ends.
func (e *CreditExpirer) Run(ctx context.Context) {
	l := loop{first: expiryPause, pause: expiryPause, log: e.Log, trouble: "expired credits of wallets stay for now; will retry"}
	l.run(ctx, func(ctx context.Context) error {
		_, err := e.Expire(ctx, e.Audit)
		return err
	})
}
