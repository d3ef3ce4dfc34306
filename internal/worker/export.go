package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/store/billing"
)

const (
	// exportPause is between two looks for events while nothing is due.
	exportPause = time.Second
	// exportQueues is how many customers are sent to at once.
	exportQueues = 16
	// exportBatch is how many events of a queue one claim takes.
	exportBatch = 50
	// exportLease is how long a queue stays with an instance that has died, and
	// exportSpare what must be left of it for another call: a call's time-out
	// and the writing of what came of it.
	exportLease = 60 * time.Second
	exportSpare = 30 * time.Second
	// exportGap is between two calls of an instance: 400 a second, so that two
	// instances stay within what the processor takes of one organization.
	exportGap = time.Second / 400
	// exportSettle bounds the writing of outcomes, also while the service
	// ends.
	exportSettle = 10 * time.Second
)

// ExportLedger is where billing events are; *store.DB is one.
type ExportLedger interface {
	FreeQueues(ctx context.Context, holder string) error
	ClaimQueues(ctx context.Context, holder string, most int, lease time.Duration) ([]billing.Queue, error)
	BeginSending(ctx context.Context, l billing.Queue, generation int64, most int) ([]billing.Sending, int, error)
	FinishSending(ctx context.Context, l billing.Queue, settled []billing.Settled, rest time.Time) error
}

// ExportKey is an organization's key at the processor.
type ExportKey struct {
	Secret     string
	Generation int64
}

// Exporter sends billing events to the payment processor. Any number of
// instances share the work; a customer is one's at a time, which sends to it
// one event after the other.
type Exporter struct {
	Ledger ExportLedger
	// Report is processor.Client.Report.
	Report func(ctx context.Context, key string, e processor.Event) error
	// Key reads an organization's key. Errors leave its events pending.
	Key func(context.Context, modelgate.ClientID) (ExportKey, error)
	// Holder names this instance; its earlier lives had the same name.
	Holder string
	Now    func() time.Time
	Log    *slog.Logger
	// Count counts the outcomes of tries: sent, again, unsure, failed.
	Count func(outcome string)
	// Pause is how long an event waits after so many tries; nil means
	// modelgate.ExportPause.
	Pause func(attempts int) time.Duration
	// Gap is the least time between two calls; 0 means 2.5 ms.
	Gap time.Duration

	rate *rate.Limiter // of calls to the processor
}

// Run sends until the context ends; a call that is under way then is waited
// for.
func (e *Exporter) Run(ctx context.Context) {
	if e.Pause == nil {
		e.Pause = modelgate.ExportPause
	}
	e.rate = rate.NewLimiter(rate.Every(cmp.Or(e.Gap, exportGap)), 1)
	var senders sync.WaitGroup
	defer senders.Wait()
	places := make(chan struct{}, exportQueues)
	more := make(chan struct{}, 1) // a queue may have more that is due
	freed := false
	for ctx.Err() == nil {
		if !freed {
			freed = e.Ledger.FreeQueues(ctx, e.Holder) == nil
		}
		claimed := time.Now()
		queues, err := e.Ledger.ClaimQueues(ctx, e.Holder, exportQueues-len(places), exportLease)
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("billing events wait for the database", "error", err)
		}
		for _, l := range queues {
			places <- struct{}{}
			senders.Go(func() {
				e.send(ctx, l, claimed)
				<-places
				select {
				case more <- struct{}{}:
				default:
				}
			})
		}
		if len(queues) == 0 || len(places) == exportQueues {
			select {
			case <-more:
			case <-time.After(exportPause):
			case <-ctx.Done():
			}
		}
	}
}

// send sends what is due in a queue that was claimed at an instant, and gives
// the queue back.
func (e *Exporter) send(ctx context.Context, l billing.Queue, claimed time.Time) {
	// What is begun is settled, even while the service ends.
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportLease)
	defer cancel()
	key, err := e.Key(settling, l.ClientID)
	if err != nil {
		e.Log.Warn("billing events wait for the key of their processor", "client_id", l.ClientID, "error", err)
		e.settle(settling, l, nil, e.Now().Add(e.Pause(longWait)))
		return
	}
	due, failed, err := e.Ledger.BeginSending(settling, l, key.Generation, exportBatch)
	if err != nil {
		e.Log.Warn("billing events wait for the database", "error", err)
		return // the claim runs out by itself
	}
	for range failed {
		e.Count("failed")
	}
	// Near the end of the claim, or of the service. By both clocks: the wall's
	// may be set back, the other one stands still while the machine sleeps.
	over := func() bool {
		return ctx.Err() != nil || time.Since(claimed) > exportLease-exportSpare || e.Now().After(l.Until.Add(-exportSpare))
	}
	settled, rest := e.tryAll(ctx, l, key, due, over)
	e.settle(settling, l, settled, rest)
}

// longWait is the number of tries after which events wait longest: that of a
// queue whose key cannot be read, which only people can mend.
const longWait = 6

// tryAll sends events one after the other. The rest of them are put back once
// the processor is away, or it is over.
func (e *Exporter) tryAll(ctx context.Context, l billing.Queue, key ExportKey, due []billing.Sending, over func() bool) (settled []billing.Settled, rest time.Time) {
	away := false
	for _, d := range due {
		if away || over() {
			d.Attempts--
			settled = append(settled, billing.Settled{Sending: d, Status: modelgate.ExportPending, At: e.Now()})
			continue
		}
		_ = e.rate.Wait(ctx) // it fails when the context ends; what is begun is settled all the same
		s := e.try(ctx, l, key, d)
		if s.Status == modelgate.ExportPending && s.LastError == awayText {
			away, rest = true, s.At
		}
		settled = append(settled, s)
	}
	return settled, rest
}

const awayText = "the processor cannot be reached"

// try sends one event and judges the outcome.
func (e *Exporter) try(ctx context.Context, l billing.Queue, key ExportKey, d billing.Sending) billing.Settled {
	at := e.Now()
	err := e.Report(context.WithoutCancel(ctx), key.Secret, processor.Event{
		ID: string(d.UsageID), Customer: l.CustomerID, Value: int64(d.Value), At: d.CreatedAt, Try: strconv.FormatInt(at.UnixNano(), 36),
	})
	s := billing.Settled{Sending: d, Status: modelgate.ExportPending}
	if err != nil {
		s.LastError = err.Error()
	}
	switch outcome := processor.OutcomeOf(err); outcome {
	case processor.Done:
		s.Status, s.At, s.UnsureAt = modelgate.ExportSent, e.Now(), time.Time{}
		e.Count("sent")
		return s
	case processor.Refused:
		s.Status = modelgate.ExportFailed
		e.Count("failed")
		return s
	case processor.Unsure:
		if s.UnsureAt.IsZero() {
			s.UnsureAt = at
		}
		e.Count("unsure")
	default: // nothing has happened there
		if outcome == processor.Away {
			s.LastError = awayText
		}
		e.Count("again")
	}
	s.At = e.Now().Add(e.Pause(d.Attempts))
	return s
}

func (e *Exporter) settle(ctx context.Context, l billing.Queue, settled []billing.Settled, rest time.Time) {
	ctx, cancel := context.WithTimeout(ctx, exportSettle)
	defer cancel()
	err := e.Ledger.FinishSending(ctx, l, settled, rest)
	if err != nil && !errors.Is(err, context.Canceled) {
		// They are sent again, and the processor tells that it has them.
		e.Log.Warn("the outcome of billing events could not be noted", "client_id", l.ClientID, "events", len(settled), "error", err)
	}
}
