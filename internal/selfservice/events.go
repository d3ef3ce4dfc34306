package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/null"
	"modelgate/internal/store/billing"
)

// eventList is the query of GET /gw/processor/events.
type eventList struct {
	status modelgate.ExportStatus
	limit  int
	cursor *string
}

func (l *eventList) read(x *exchange) error {
	l.status = httpx.OneOf(x.query, "status", "", modelgate.ExportPending, modelgate.ExportSent, modelgate.ExportFailed)
	l.limit = x.query.Int("limit", 1, 200, 50)
	l.cursor = x.cursor()
	return nil
}

// eventsView is GET /gw/processor/events.
type eventsView struct {
	Counts        billing.EventCounts `json:"counts"`
	OldestPending int64               `json:"oldest_pending_age_seconds"`
	Events        []eventView         `json:"events"`

	next string
}

func (v eventsView) cursor() (any, string) { return v, v.next }

type eventView struct {
	UsageID       modelgate.UsageID      `json:"usage_record_id"`
	SubAccountID  modelgate.SubAccountID `json:"sub_account_id"`
	CustomerID    string                 `json:"stripe_customer_id"`
	Status        modelgate.ExportStatus `json:"status"`
	Attempts      int                    `json:"attempts"`
	Amount        modelgate.Nano         `json:"amount_usd"`
	CreatedAt     time.Time              `json:"created_at"`
	NextAttemptAt *time.Time             `json:"next_attempt_at"`
	SentAt        *time.Time             `json:"sent_at"`
	LastError     *string                `json:"last_error"`
}

func (a *API) processorEvents(ctx context.Context, by actor, in eventList) (eventsView, error) {
	filter := filter("events", by, string(in.status))
	after, err := a.after(in.cursor, filter)
	if err != nil {
		return eventsView{}, err
	}
	a.settle(ctx)
	l, err := a.Store.ExportEvents(ctx, by.ClientID, billing.EventPage{Status: in.status, Limit: in.limit, After: after})
	return eventsView{
		Counts: l.Counts, OldestPending: int64(l.OldestPending / time.Second),
		Events: views(l.Events, func(e *modelgate.ExportEvent) eventView {
			return eventView{e.UsageID, e.SubAccountID, e.CustomerID, e.Status, e.Attempts, e.Value.USD(), e.CreatedAt,
				null.IfZero(e.NextAttemptAt), null.IfZero(e.SentAt), null.IfZero(e.LastError)}
		}),
		next: next(a, filter, l.Events, l.More, func(e *modelgate.ExportEvent) (time.Time, string) { return e.CreatedAt, string(e.UsageID) }),
	}, err
}

// eventPath is the input of POST /gw/processor/events/{usage_record_id}/retry.
type eventPath struct{ id modelgate.UUID }

func (e *eventPath) read(x *exchange) error {
	var ok bool
	if e.id, ok = modelgate.ParseUUID(x.path[0]); !ok {
		return modelgate.Errorf(modelgate.NotFound, "no failed billing event of that id")
	}
	return nil
}

func (a *API) retryEvent(ctx context.Context, by actor, in eventPath) error {
	return a.Store.RetryEvent(ctx, by.ClientID, in.id, a.audit(by, "processor.event.retry", "usage_row", in.id.String(), nil))
}

// retryEvents is POST /gw/processor/events/retry.
func (a *API) retryEvents(ctx context.Context, by actor, _ nothing) (billing.RetriedEvents, error) {
	return a.Store.RetryEvents(ctx, by.ClientID, a.audit(by, "processor.events.retry", "client", string(by.ClientID), nil))
}
