package server

import (
	"context"
	"math"

	"modelgate"
	"modelgate/internal/store/wallet"
	"modelgate/internal/worker"
)

// newExpirer makes the loop that takes expired credits off wallets.
func (s *Server) newExpirer() *worker.CreditExpirer {
	s.metrics.gauge("modelgate_wallet_credits_usd", "What all wallets were ever credited, in billed USD.",
		func() float64 { credits, _ := s.walletTotals(); return credits })
	s.metrics.gauge("modelgate_wallet_debits_usd", "What calls and negative entries ever took off all wallets, in billed USD.",
		func() float64 { _, debits := s.walletTotals(); return debits })
	return &worker.CreditExpirer{Expire: s.db.ExpireCredits, Log: s.log, Audit: func(id wallet.ID) modelgate.Audit {
		record := Audit(modelgate.Actor{System: true}, "wallet.expire")
		record.ClientID, record.TargetType, record.TargetID = id.ClientID, "sub_account", string(id.SubAccountID)
		return record
	}}
}

// walletTotals are asked for whenever metrics are; NaN while the database does not
// answer.
func (s *Server) walletTotals() (credits, debits float64) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	c, d, err := s.db.WalletTotals(ctx)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return float64(c) / float64(modelgate.USD), float64(d) / float64(modelgate.USD)
}
