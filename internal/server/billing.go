package server

import (
	"context"
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
		c.ReturnURL = BaseURL(cfg, cfg.Server.Listen) + "/dashboard/billing"
	}
	return c
}

// newExporter makes the loop that sends billing events.
func (s *Server) newExporter(client *processor.Client) *worker.Exporter {
	tries := s.metrics.outcomes("modelgate_export_tries_total", "Tries to send a billing event, by outcome.", "outcome", "sent", "again", "unsure", "failed")
	s.metrics.MustRegister(backlog{s.db, backlogGauges()})
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
