package main

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/processor"
	"modelgate/internal/provider"
	"modelgate/internal/secrets"
	"modelgate/internal/selfservice"
	"modelgate/internal/store"
	"modelgate/internal/worker"
)

// newProcessor makes the client of the payment processor.
func newProcessor(cfg *config.Config) *processor.Client {
	return processor.New(processor.Options{
		BaseURL: cfg.Processor.BaseURL, Meter: cfg.Processor.MeterEventName, Control: provider.RefuseMetadata,
	})
}

// newCheckout is how balances are paid into, as configured.
func newCheckout(cfg *config.Config) selfservice.Checkout {
	p := cfg.Processor
	c := selfservice.Checkout{Key: p.APIKey.Reveal(), ReturnURL: p.ReturnURL}
	for _, s := range append([]config.Secret{p.WebhookSecret}, p.PreviousWebhookSecrets...) {
		if !p.WebhookSecret.Empty() && !s.Empty() {
			c.Secrets = append(c.Secrets, s.Reveal())
		}
	}
	if c.ReturnURL == "" {
		c.ReturnURL = baseURL(cfg, cfg.Server.Listen) + "/dashboard/billing"
	}
	return c
}

// baseURL is where people reach the gateway, without a slash at its end: as
// configured, else at an address that it listens on.
func baseURL(cfg *config.Config, listen string) string {
	switch {
	case cfg.Server.BaseURL != "":
		return strings.TrimRight(cfg.Server.BaseURL, "/")
	case cfg.Server.TLS.CertFile != "":
		return "https://" + listen
	}
	return "http://" + listen
}

// newExporter makes the loop that sends billing events.
func (s *server) newExporter(client *processor.Client) *worker.Exporter {
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_export_tries_total", Help: "Tries to send a billing event, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"sent", "again", "unsure", "failed"} {
		tries.WithLabelValues(outcome)
	}
	s.metrics.MustRegister(tries, backlog{s.db, backlogGauges()})
	keys := exportKeys{s.db, s.master}
	return s.fail.exporter(&worker.Exporter{
		Ledger: s.db, Report: client.Report, Key: keys.key, Holder: s.spool.Instance(), Now: time.Now, Log: s.log,
		Count: func(outcome string) { tries.WithLabelValues(outcome).Inc() },
	})
}

// exportKeys opens the keys that organizations have left.
type exportKeys struct {
	db     *store.DB
	master *secrets.Keys
}

func (k exportKeys) key(ctx context.Context, client modelgate.ClientID) (worker.ExportKey, error) {
	sealed, err := k.db.ProcessorKey(ctx, client)
	if err != nil {
		return worker.ExportKey{}, err
	}
	key, err := k.master.Open(selfservice.ProcessorPlace(client), sealed.Value)
	return worker.ExportKey{Secret: string(key), Generation: sealed.Generation}, err
}

// backlog reads how much waits to be sent whenever metrics are asked for. It
// says nothing while the database does not answer.
type backlog struct {
	db     *store.DB
	gauges [2]*prometheus.Desc
}

func backlogGauges() [2]*prometheus.Desc {
	return [2]*prometheus.Desc{
		prometheus.NewDesc("modelgate_export_pending", "Billing events that wait to be sent, of all instances.", nil, nil),
		prometheus.NewDesc("modelgate_export_oldest_pending_seconds", "For how long the oldest of them has waited; 0 for none.", nil, nil),
	}
}

const backlogPatience = 2 * time.Second

// Describe implements prometheus.Collector.
func (b backlog) Describe(out chan<- *prometheus.Desc) {
	for _, d := range b.gauges {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (b backlog) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogPatience)
	defer cancel()
	pending, oldest, err := b.db.ExportBacklog(ctx)
	if err != nil {
		return
	}
	out <- prometheus.MustNewConstMetric(b.gauges[0], prometheus.GaugeValue, float64(pending))
	out <- prometheus.MustNewConstMetric(b.gauges[1], prometheus.GaugeValue, oldest.Seconds())
}
