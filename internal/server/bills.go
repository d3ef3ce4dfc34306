package server

import (
	"context"
	"log/slog"
	"math"
	"math/big"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/bill"
	"modelgate/internal/cancelctx"
	"modelgate/internal/config"
	"modelgate/internal/invoice"
	"modelgate/internal/store"
)

// Bills reads, keeps and compares the bills of the providers of a configuration. It
// tells nobody.
func Bills(db *store.DB, live func() *config.Config, log *slog.Logger) *bill.Service {
	return &bill.Service{
		Ledger: db, Providers: func() []bill.Provider { return billProviders(live()) }, Now: time.Now, Sleep: cancelctx.Sleep, Log: log,
		Audit:        func(action string) modelgate.Audit { return Audit(modelgate.Actor{System: true}, action) },
		AlertPercent: func() float64 { return float64(live().Invoices.AlertUnexplainedPercent) / float64(modelgate.USD) },
		Alert:        func(context.Context, string, string, any) error { return nil },
		Observe:      func([]bill.Status) {},
	}
}

// billProviders are the providers of a configuration as package bill wants them.
func billProviders(cfg *config.Config) []bill.Provider {
	list := make([]bill.Provider, len(cfg.Providers))
	for n := range cfg.Providers {
		p := &cfg.Providers[n]
		i := &p.Invoice
		list[n] = bill.Provider{
			Name: p.Name, BaseURL: i.BaseURL, Credential: i.Credential.Reveal(), CredentialFile: i.CredentialFile, Projects: i.Projects, Keys: i.APIKeys,
			Daily: i.Schedule == config.InvoiceDaily, Lag: i.Lag, Factor: contractFactor(p.ContractFactor),
			Amount: map[config.InvoiceAmount]string{config.InvoiceEffective: "EffectiveCost", config.InvoiceBilled: "BilledCost", config.InvoiceList: "ListCost"}[i.Amount],
		}
		if i.Source != config.InvoiceFile {
			list[n].API = string(i.Source)
		}
		for _, s := range i.SKUs {
			list[n].SKUs = append(list[n].SKUs, invoice.SKU(s))
		}
	}
	return list
}

// contractFactor is what the operator pays of the costs of a day.
func contractFactor(c config.ContractFactor) func(day string) *big.Rat {
	return func(day string) *big.Rat {
		at, _ := time.Parse(time.DateOnly, day) // a day of a row or a bill
		return big.NewRat(int64(c.On(at)), int64(modelgate.USD))
	}
}

// ContractFactors are those of all providers of a configuration, 1 for others.
func ContractFactors(cfg *config.Config) func(provider, day string) *big.Rat {
	of := make(map[string]func(string) *big.Rat)
	for i := range cfg.Providers {
		of[cfg.Providers[i].Name] = contractFactor(cfg.Providers[i].ContractFactor)
	}
	return func(provider, day string) *big.Rat {
		if f := of[provider]; f != nil {
			return f(day)
		}
		return big.NewRat(1, 1)
	}
}

// newBills makes the loop that reads the bills of providers, and its metrics. These
// begin with the providers whose bills are read every day.
func (s *Server) newBills() *bill.Service {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
		s.metrics.MustRegister(v)
		return v
	}
	usd := gauge("modelgate_invoice_usd", "What a provider bills for the newest 30 final days, by the cause of its difference from the usage rows; rows is what these cost.", "provider", "cause")
	explained := gauge("modelgate_invoice_explained_ratio", "The part of that bill which is explained; NaN before the first comparison.", "provider")
	last := gauge("modelgate_invoice_last_success_timestamp_seconds", "When a provider's bill was last read; 0 for never.", "provider")
	b := Bills(s.db, s.config.Load, s.log)
	b.Alert = s.alerter.Tell
	b.Observe = func(list []bill.Status) {
		usd.Reset()
		explained.Reset()
		last.Reset()
		for _, st := range list {
			if !st.Scheduled {
				continue
			}
			explained.WithLabelValues(st.Provider).Set(math.NaN())
			last.WithLabelValues(st.Provider).Set(0)
			if st.SucceededAt != nil {
				last.WithLabelValues(st.Provider).Set(float64(st.SucceededAt.Unix()))
			}
			o := st.Outcome
			if o == nil {
				usd.WithLabelValues(st.Provider, "rows").Set(math.NaN())
				continue
			}
			explained.WithLabelValues(st.Provider).Set(o.ExplainedPercent / 100)
			usd.WithLabelValues(st.Provider, "rows").Set(float64(o.Own) / float64(modelgate.USD))
			for _, c := range o.Causes {
				usd.WithLabelValues(st.Provider, c.Name).Set(float64(c.USD) / float64(modelgate.USD))
			}
		}
	}
	var begin []bill.Status
	for _, p := range b.Providers() {
		begin = append(begin, bill.Status{Provider: p.Name, Scheduled: p.Scheduled()})
	}
	b.Observe(begin)
	return b
}
