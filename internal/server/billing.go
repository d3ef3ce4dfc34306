package server

import (
	"context"
	"math"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/processor"
	"modelgate/internal/provider"
	"modelgate/internal/selfservice"
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
	s.metrics.gauge("modelgate_export_pending", "Billing events that wait to be sent, of all instances.",
		func() float64 { n, _ := s.exportBacklog(); return n })
	s.metrics.gauge("modelgate_export_oldest_pending_seconds", "For how long the oldest of them has waited; 0 for none.",
		func() float64 { _, age := s.exportBacklog(); return age })
	return s.fail.exporter(&worker.Exporter{
		Ledger: s.db, Report: client.Report, Key: s.exportKey, Holder: s.spool.Instance(), Now: time.Now, Log: s.log,
		Count: func(outcome string) { tries.WithLabelValues(outcome).Inc() },
	})
}

// exportKey opens the key that an organization has left for its processor.
func (s *Server) exportKey(ctx context.Context, client modelgate.ClientID) (worker.ExportKey, error) {
	sealed, err := s.db.ProcessorKey(ctx, client)
	if err != nil {
		return worker.ExportKey{}, err
	}
	key, err := s.master.Open(selfservice.ProcessorPlace(client), sealed.Value)
	return worker.ExportKey{Secret: string(key), Generation: sealed.Generation}, err
}

// backlogTimeout bounds the query that counts what waits to be sent.
const backlogTimeout = 2 * time.Second

// exportBacklog is how many events wait to be sent and for how many seconds the oldest
// has, whenever metrics are asked for; NaN while the database does not answer.
func (s *Server) exportBacklog() (pending, oldest float64) {
	ctx, cancel := context.WithTimeout(context.Background(), backlogTimeout)
	defer cancel()
	n, age, err := s.db.ExportBacklog(ctx)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return float64(n), age.Seconds()
}
