package operator

import (
	"context"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/null"
	"modelgate/internal/store"
	"modelgate/internal/store/billing"
)

// eventView is a billing event of any organization.
type eventView struct {
	UsageID       modelgate.UsageID      `json:"usage_record_id"`
	Organization  modelgate.ClientID     `json:"organization_id"`
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

// events lists billing events of one organization or of all, the newest first.
func (a *API) events(ctx context.Context, x *exchange) (any, error) {
	p := x.query
	list := billing.EventPage{
		Status: httpx.OneOf(p, "status", "", modelgate.ExportPending, modelgate.ExportSent, modelgate.ExportFailed),
		Limit:  p.Int("limit", 1, 200, 50),
	}
	cursor, continued := p.Text("cursor")
	org, err := x.organizationFilter()
	if err != nil {
		return nil, err
	}
	filter := strings.Join([]string{"operator events", string(org), string(list.Status)}, "\x00")
	if continued {
		at, err := a.Cursors.Read(cursor, filter)
		if err != nil {
			return nil, err
		}
		list.After = &store.Cursor{At: at.At, ID: at.ID}
	}
	var found []modelgate.ExportEvent
	var more bool
	if org == "" {
		found, more, err = a.Store.EventsOfAll(ctx, list)
	} else {
		var of billing.EventList
		of, err = a.Store.ExportEvents(ctx, org, list)
		found, more = of.Events, of.More
	}
	if err != nil {
		return nil, err
	}
	if more {
		last := &found[len(found)-1]
		x.w.Header().Set("X-Next-Cursor", a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: string(last.UsageID)}, filter))
	}
	views := []eventView{}
	for i := range found {
		e := &found[i]
		views = append(views, eventView{e.UsageID, e.ClientID, e.SubAccountID, e.CustomerID, e.Status, e.Attempts, e.Value.USD(), e.CreatedAt,
			null.IfZero(e.NextAttemptAt), null.IfZero(e.SentAt), null.IfZero(e.LastError)})
	}
	return views, nil
}

// resendEvent sends a failed billing event again.
func (a *API) resendEvent(ctx context.Context, x *exchange) (any, error) {
	var in struct {
		Accept *bool `json:"accept_double_billing" null:"absent"`
	}
	text, err := x.pathID("id", "billing event")
	if err != nil {
		return nil, err
	}
	if x.r.ContentLength != 0 {
		if err := x.body(&in); err != nil {
			return nil, err
		}
	} else if err := x.ready(); err != nil {
		return nil, err
	}
	id, _ := modelgate.ParseUUID(text)
	// The store finds whose the event is.
	return nil, a.Store.ResendEvent(ctx, id, orElse(in.Accept, false), a.audit(x, "", "processor.event.resend", "usage_row", text, in))
}
