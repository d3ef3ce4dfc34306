package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/store/wallet"
)

// wallet groups the commands on the wallets of sub-accounts.
func (a *app) wallet() *cobra.Command {
	return a.group("wallet", "Prepaid wallets of sub-accounts", a.walletCredit(), a.walletShow())
}

// walletFlags are which wallet a command is about.
type walletFlags struct{ client, sub string }

func (a *app) walletFlags(cmd *cobra.Command, f *walletFlags) {
	a.clientFlag(cmd, &f.client, whichClient)
	cmd.Flags().StringVar(&f.sub, "sub-account", "", "whose wallet: the `ID` of the sub-account")
}

func (op *operation) wallet(f walletFlags) (wallet.ID, error) {
	client, err := op.client(f.client)
	return wallet.ID{ClientID: client, SubAccountID: modelgate.SubAccountID(f.sub)}, err
}

func (a *app) walletCredit() *cobra.Command {
	var of walletFlags
	var usd, note, external string
	cmd := a.operator("credit", "Add to a wallet, or take off it", func(op *operation) error {
		amount, err := modelgate.ParseUSD(usd)
		if err != nil {
			return fmt.Errorf("--usd: %w", err)
		}
		id, err := op.wallet(of)
		if err != nil {
			return err
		}
		if external == "" {
			external = modelgate.NewIDs(time.Now).New().String()
		}
		e := wallet.Entry{Kind: wallet.Adjustment, Amount: amount, Note: &note, ExternalID: external}
		if err := e.Validate(time.Now()); err != nil {
			return err
		}
		record := audit("wallet credit", "wallet.adjust", "sub_account", string(id.SubAccountID), map[string]any{"amount_usd": amount, "external_id": external})
		if _, err := op.db.AddEntry(op.ctx, id, e, record); err != nil {
			return err
		}
		return op.showWallet(id)
	})
	a.walletFlags(cmd, &of)
	cmd.Flags().StringVar(&usd, "usd", "", "how much, such as 25 or 0.5: `AMOUNT`; -5 takes something off")
	cmd.Flags().StringVar(&note, "note", "", "what for; the customer sees it")
	cmd.Flags().StringVar(&external, "external-id", "", "a name under which this is entered once, however often it is run: `NAME`")
	required(cmd, "client", "sub-account", "usd")
	return cmd
}

func (a *app) walletShow() *cobra.Command {
	var of walletFlags
	cmd := a.operator("show", "Show a wallet and its newest entries", func(op *operation) error {
		id, err := op.wallet(of)
		if err != nil {
			return err
		}
		return op.showWallet(id)
	})
	a.walletFlags(cmd, &of)
	required(cmd, "client", "sub-account")
	return cmd
}

// showWallet prints a wallet.
func (op *operation) showWallet(id wallet.ID) error {
	w, err := op.db.Wallet(op.ctx, id)
	if err != nil {
		return err
	}
	entries, _, err := op.db.Entries(op.ctx, id, balanceEntries, nil)
	if err != nil {
		return err
	}
	value := struct {
		wallet.Wallet
		Entries []wallet.Entry `json:"entries"`
	}{w, entries}
	return op.out.table(value, "BALANCE USD\tRESERVED\tAVAILABLE\tCREDIT LINE\tENABLED\tBLOCKED", func(row func(...any)) {
		row(w.Balance, w.Held, w.Available, w.CreditLine, w.Enabled, w.Blocked)
		row()
		for _, e := range entries {
			if e.Kind == wallet.Usage {
				row(e.Day, e.Amount, e.Kind)
				continue
			}
			row(e.At.Format(time.RFC3339), e.Amount, e.Kind, *e.Note, e.ID)
		}
	})
}
