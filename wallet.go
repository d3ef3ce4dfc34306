package modelgate

// IsWallet reports whether the budget is a sub-account's wallet: what the end
// customer has prepaid, in billed dollars. There is one while the wallet is
// enabled.
func (b *Budget) IsWallet() bool { return b.Period == Total && b.Level == LevelSubAccount }

// IsWallet reports whether the counter is a wallet's.
func (c *Counter) IsWallet() bool { return c.Period == Total && c.Level == LevelSubAccount }

// Debit is what a wallet pays for a cost: the billed price, at most MaxBudget.
func (m Markup) Debit(cost Nano) Nano { return min(cost.Billed(m), MaxBudget) }

// Debit is what the sub-account's wallet pays where the call costs as much; 0
// where no wallet pays.
func (b *CallBegin) Debit(cost Nano) Nano {
	if b.WalletMarkup == nil {
		return 0
	}
	return b.WalletMarkup.Debit(cost)
}

// WalletAlert is what an organization is told about a wallet.
type WalletAlert string

// The alerts. The first two come once for each time that the balance falls below
// the bound that was set, or to nothing.
const (
	WalletLow       WalletAlert = "wallet.low_balance"
	WalletExhausted WalletAlert = "wallet.exhausted"
	WalletCredited  WalletAlert = "wallet.credited"
	WalletBlocked   WalletAlert = "wallet.blocked"
)
