package selfservice

import (
	"cmp"
	"context"
	"time"

	"modelgate"
	"modelgate/internal/store/wallet"
)

func (by actor) walletOf(sub modelgate.SubAccountID) wallet.ID {
	return wallet.ID{ClientID: by.ClientID, SubAccountID: sub}
}

// errUnbound answers a key of the organization itself where a customer's is asked
// for.
var errUnbound = &modelgate.Error{Kind: modelgate.Forbidden, Message: "only a key bound to a sub-account has a wallet"}

// ownWallet is the customer's wallet. What a chargeback does is its reseller's
// business.
func (a *API) ownWallet(ctx context.Context, by actor, _ nothing) (wallet.Wallet, error) {
	if by.SubAccountID == "" {
		return wallet.Wallet{}, errUnbound
	}
	a.settle(ctx)
	w, err := a.Store.Wallet(ctx, by.walletOf(by.SubAccountID))
	w.OnChargeback = ""
	return w, err
}

func (a *API) wallets(ctx context.Context, by actor, _ nothing) ([]wallet.Wallet, error) {
	a.settle(ctx)
	return a.Store.Wallets(ctx, by.ClientID)
}

// walletPath names a sub-account in the path.
type walletPath struct{ id modelgate.SubAccountID }

func (p *walletPath) read(x *exchange) error {
	id, err := x.pathID("wallet")
	p.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) wallet(ctx context.Context, by actor, in walletPath) (wallet.Wallet, error) {
	a.settle(ctx)
	return a.Store.Wallet(ctx, by.walletOf(in.id))
}

// newWallet is the body of PUT /gw/wallets/{sub_account_id}.
type newWallet struct {
	path         walletPath
	Enabled      *bool                `json:"enabled"`
	CreditLine   modelgate.Nano       `json:"credit_line_usd"`
	LowBalance   *modelgate.Nano      `json:"low_balance_usd" null:"absent"`
	OnChargeback *wallet.OnChargeback `json:"on_chargeback" null:"absent"`
	Blocked      *bool                `json:"blocked" null:"absent"`
	Checkout     *struct {
		Enabled bool            `json:"enabled"`
		Min     *modelgate.Nano `json:"min_usd" null:"absent"`
		Max     *modelgate.Nano `json:"max_usd" null:"absent"`
	} `json:"checkout" null:"absent"`
	_ struct{} `ignore:"sub_account_id,balance_usd,held_usd,available_usd,grants"`

	settings wallet.Settings // what it says
}

func (n *newWallet) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.Enabled == nil {
		return modelgate.Errorf(modelgate.BadRequest, "enabled is missing")
	}
	n.settings = wallet.Settings{Enabled: *n.Enabled, CreditLine: n.CreditLine, LowBalance: n.LowBalance, OnChargeback: wallet.Block, Checkout: wallet.UsualCheckout()}
	if n.OnChargeback != nil {
		n.settings.OnChargeback = *n.OnChargeback
	}
	if c := n.Checkout; c != nil {
		into := &n.settings.Checkout
		into.Enabled, into.Min, into.Max = c.Enabled, *cmp.Or(c.Min, &into.Min), *cmp.Or(c.Max, &into.Max)
	}
	if err := n.settings.Validate(); err != nil {
		return err
	}
	id, err := x.pathID("sub-account")
	n.path.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) putWallet(ctx context.Context, by actor, in newWallet) error {
	record := a.audit(by, "wallet.configure", "sub_account", string(in.path.id), in.settings)
	if in.Blocked != nil && *in.Blocked {
		record.Action = "wallet.block"
	}
	if err := a.Store.PutWallet(ctx, by.walletOf(in.path.id), in.settings, in.Blocked, record); err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}

// newEntry is the body of POST /gw/wallets/{sub_account_id}/entries.
type newEntry struct {
	path       walletPath
	Kind       wallet.Kind    `json:"kind"`
	Amount     modelgate.Nano `json:"amount_usd"`
	ExpiresAt  *time.Time     `json:"expires_at" null:"absent"`
	Note       *string        `json:"note" null:"absent"`
	ExternalID string         `json:"external_id"`
}

func (n *newEntry) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.ExpiresAt != nil {
		at := n.ExpiresAt.UTC().Truncate(time.Microsecond)
		n.ExpiresAt = &at
	}
	n.Note = cmp.Or(n.Note, new(string))
	return n.path.read(x)
}

// addEntry adds an entry to a wallet, once for each external id. The audit record
// leaves the note out, in which there may be names.
func (a *API) addEntry(ctx context.Context, by actor, in newEntry) (wallet.Entry, error) {
	e := wallet.Entry{Kind: in.Kind, Amount: in.Amount, ExpiresAt: in.ExpiresAt, Note: in.Note, ExternalID: in.ExternalID}
	if err := e.Validate(a.Now()); err != nil {
		return e, err
	}
	action := "wallet.credit"
	if e.Kind == wallet.Adjustment {
		action = "wallet.adjust"
	}
	record := a.audit(by, action, "sub_account", string(in.path.id), map[string]any{"kind": e.Kind, "amount_usd": e.Amount, "external_id": e.ExternalID})
	e, err := a.Store.AddEntry(ctx, by.walletOf(in.path.id), e, record)
	if err == nil {
		a.Keys.ForgetClient(by.ClientID)
	}
	return e, err
}

// entryList is the query of a list of entries.
type entryList struct {
	limit  int
	cursor *string
}

func (q *entryList) read(x *exchange) error {
	q.limit, q.cursor = x.query.Int("limit", 1, 1000, 100), x.cursor()
	return nil
}

// entryListOf is the same of a sub-account that the path names.
type entryListOf struct {
	entryList
	walletPath
}

func (q *entryListOf) read(x *exchange) error {
	if err := q.entryList.read(x); err != nil {
		return err
	}
	return q.walletPath.read(x)
}

func (a *API) ownEntries(ctx context.Context, by actor, q entryList) (page[wallet.Entry], error) {
	if by.SubAccountID == "" {
		return page[wallet.Entry]{}, errUnbound
	}
	return a.listEntries(ctx, by, by.SubAccountID, q)
}

func (a *API) entries(ctx context.Context, by actor, q entryListOf) (page[wallet.Entry], error) {
	return a.listEntries(ctx, by, q.id, q.entryList)
}

func (a *API) listEntries(ctx context.Context, by actor, sub modelgate.SubAccountID, q entryList) (page[wallet.Entry], error) {
	filter := filter("wallet entries", by, string(sub))
	after, err := a.after(q.cursor, filter)
	if err != nil {
		return page[wallet.Entry]{}, err
	}
	a.settle(ctx)
	list, more, err := a.Store.Entries(ctx, by.walletOf(sub), q.limit, after)
	return page[wallet.Entry]{list, next(a, filter, list, more, (*wallet.Entry).Position)}, err
}
