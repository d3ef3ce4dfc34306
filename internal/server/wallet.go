package server

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/processor"
	"modelgate/internal/store/wallet"
	"modelgate/internal/topup"
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

// newTopUps is how customers pay into their wallets.
func (s *Server) newTopUps(cfg *config.Config, client *processor.Client, ids *modelgate.IDs) *topup.Service {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "modelgate_wallet_webhooks_total",
		Help: "Deliveries of resellers' processors, by what they are about and what became of them."}, []string{"type", "outcome"})
	s.metrics.MustRegister(v)
	for _, kind := range []string{"payment", "refund", "dispute"} {
		v.WithLabelValues(kind, "booked")
	}
	payments := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "modelgate_topups_total",
		Help: "Payments of customers into their wallets, by what became of them."}, []string{"outcome"})
	s.metrics.MustRegister(payments)
	for _, o := range topup.Outcomes() {
		payments.WithLabelValues(string(o))
	}
	return &topup.Service{
		Store: s.db, Processor: client, Master: s.master, IDs: ids, Now: time.Now, Log: s.log, Base: BaseURL(cfg, cfg.Server.Listen),
		Count:      func(kind, outcome string) { v.WithLabelValues(kind, outcome).Inc() },
		CountTopUp: func(o topup.Outcome) { payments.WithLabelValues(string(o)).Inc() },
	}
}
