package selfservice

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/processor"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
)

// processorView is GET /gw/processor/config.
type processorView struct {
	Enabled    bool                `json:"enabled"`
	Configured bool                `json:"configured"`
	Mappings   []modelgate.Mapping `json:"mappings"`
}

func (a *API) processorConfig(ctx context.Context, b by, _ nothing) (processorView, error) {
	c, err := a.Store.ProcessorConfig(ctx, b.ClientID)
	return processorView{c.Enabled, c.Configured(), c.Mappings}, err
}

// newProcessor is the body of PUT /gw/processor/config.
type newProcessor struct {
	Enabled *bool   `json:"enabled"`
	APIKey  *string `json:"api_key" null:"absent"`
}

const maxAPIKey = 512 // bytes

func (n *newProcessor) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.Enabled == nil {
		return modelgate.Errorf(modelgate.BadRequest, "enabled is missing")
	}
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if k := n.APIKey; k != nil && (*k == "" || len(*k) > maxAPIKey || strings.ContainsFunc(*k, unfit)) {
		return modelgate.Errorf(modelgate.BadRequest, "api_key must be a key of the payment processor")
	}
	return nil
}

// putProcessor keeps a key, sealed, or turns the export on or off. What is
// audited says that a key was set and nothing about it.
func (a *API) putProcessor(ctx context.Context, b by, in newProcessor) (none, error) {
	record, err := a.audit(b, "processor.config.put", "processor", string(b.ClientID), struct {
		Enabled bool `json:"enabled"`
		KeySet  bool `json:"key_set"`
	}{*in.Enabled, in.APIKey != nil})
	if err != nil {
		return none{}, err
	}
	to := store.Switch(*in.Enabled)
	if in.APIKey == nil {
		return none{}, a.Store.SwitchProcessor(ctx, b.ClientID, to, record)
	}
	sealed, err := a.Master.Seal(ProcessorPlace(b.ClientID), []byte(*in.APIKey))
	if err != nil {
		return none{}, err
	}
	same, err := a.generation(ctx, b.ClientID, *in.APIKey)
	if err != nil {
		return none{}, err
	}
	key := store.ProcessorKey{Secret: store.Secret{KeyID: a.Master.Primary(), Value: sealed}, Generation: same}
	return none{}, a.Store.PutProcessorKey(ctx, b.ClientID, key, to, record)
}

// generation is that of the key which is kept where it is the same, else 0.
func (a *API) generation(ctx context.Context, client modelgate.ClientID, key string) (int64, error) {
	kept, err := a.Store.ProcessorKey(ctx, client)
	if modelgate.KindOf(err) == modelgate.BadRequest { // there is none
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	text, err := a.Master.Open(ProcessorPlace(client), kept.Value)
	if err != nil || subtle.ConstantTimeCompare(text, []byte(key)) == 0 {
		return 0, nil // what cannot be opened is replaced
	}
	return kept.Generation, nil
}

// ProcessorPlace is where an organization's processor key lies.
func ProcessorPlace(client modelgate.ClientID) secrets.Place {
	return secrets.Place{Table: store.SecretTable, Row: store.ProcessorSecret(client), Column: store.SecretColumn}
}

// newMapping is the body of PUT /gw/processor/mappings/{sub_account_id}.
type newMapping struct {
	id         modelgate.SubAccountID
	CustomerID string `json:"stripe_customer_id"`
}

func (m *newMapping) read(x *exchange) error {
	if err := x.body(m); err != nil {
		return err
	}
	if err := modelgate.CheckCustomerID(m.CustomerID); err != nil {
		return err
	}
	id, err := x.pathID("sub-account")
	m.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) putMapping(ctx context.Context, b by, in newMapping) (none, error) {
	m := modelgate.Mapping{SubAccountID: in.id, CustomerID: in.CustomerID}
	record, err := a.audit(b, "processor.mapping.put", "sub_account", string(in.id), m)
	if err != nil {
		return none{}, err
	}
	return none{}, a.Store.PutMapping(ctx, b.ClientID, m, record)
}

// mappingPath is the input of DELETE /gw/processor/mappings/{sub_account_id}.
type mappingPath struct{ id modelgate.SubAccountID }

func (m *mappingPath) read(x *exchange) error {
	id, err := x.pathID("processor mapping")
	m.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) deleteMapping(ctx context.Context, b by, in mappingPath) (none, error) {
	record, err := a.audit(b, "processor.mapping.delete", "sub_account", string(in.id), nil)
	if err != nil {
		return none{}, err
	}
	return none{}, a.Store.DeleteMapping(ctx, b.ClientID, in.id, record)
}

// newCustomer is the body of POST /gw/processor/customers.
type newCustomer struct {
	SubAccountID string  `json:"sub_account_id"`
	Name         *string `json:"name" null:"absent"`
}

func (n *newCustomer) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.SubAccountID == "" {
		return modelgate.Errorf(modelgate.BadRequest, "sub_account_id is missing")
	}
	if n.Name != nil {
		name, err := modelgate.CleanName(*n.Name)
		if err != nil {
			return err
		}
		n.Name = &name
	}
	id, ok := modelgate.ParseUUID(n.SubAccountID)
	if !ok {
		return modelgate.Errorf(modelgate.NotFound, "sub-account not found")
	}
	n.SubAccountID = id.String()
	return nil
}

// customerView is the answer of POST /gw/processor/customers.
type customerView struct {
	CustomerID string `json:"stripe_customer_id"`
}

// createCustomer makes a customer at the processor and maps the sub-account to
// it. The same request again, within a day, makes no second one.
func (a *API) createCustomer(ctx context.Context, b by, in newCustomer) (customerView, error) {
	sub, err := a.Store.SubAccount(ctx, b.ClientID, modelgate.SubAccountID(in.SubAccountID))
	if err != nil {
		return customerView{}, err
	}
	if sub.Status != modelgate.SubAccountActive {
		return customerView{}, modelgate.Errorf(modelgate.BadRequest, "the sub-account is not active")
	}
	sealed, err := a.Store.ProcessorKey(ctx, b.ClientID)
	if err != nil {
		return customerView{}, err
	}
	key, err := a.Master.Open(ProcessorPlace(b.ClientID), sealed.Value)
	if err != nil {
		return customerView{}, err
	}
	n := processor.NewCustomer{Name: sub.Name, SubAccountID: string(sub.ID)}
	if in.Name != nil {
		n.Name = *in.Name
	}
	// Another name or another key is another request.
	about := sha256.Sum256([]byte(n.Name + "\x00" + strconv.FormatInt(sealed.Generation, 10)))
	n.Once = "gw-cust-" + string(b.ClientID) + "-" + string(sub.ID) + "-" + hex.EncodeToString(about[:8])
	id, err := a.Processor.CreateCustomer(ctx, string(key), n)
	if err != nil {
		return customerView{}, shown(err)
	}
	if err := modelgate.CheckCustomerID(id); err != nil {
		return customerView{}, modelgate.Errorf(modelgate.BadGateway, "the payment processor's answer is not understood")
	}
	m := modelgate.Mapping{SubAccountID: sub.ID, CustomerID: id}
	record, err := a.audit(b, "processor.customer.create", "sub_account", string(sub.ID), m)
	if err != nil {
		return customerView{}, err
	}
	return customerView{id}, a.Store.PutMapping(ctx, b.ClientID, m, record)
}

// shown is a failure of the processor as a client gets it.
func shown(err error) error {
	if e, ok := errors.AsType[*processor.Error](err); ok {
		return e.Shown()
	}
	return err
}

// eventList is the query of GET /gw/processor/events.
type eventList struct {
	status modelgate.ExportStatus
	limit  int
	cursor string
	paged  bool
}

func (l *eventList) read(x *exchange) error {
	p := x.query
	status, sent, err := p.Text("status")
	if err != nil {
		return err
	}
	l.status = modelgate.ExportStatus(status)
	if sent && l.status != modelgate.ExportPending && l.status != modelgate.ExportSent && l.status != modelgate.ExportFailed {
		return modelgate.Errorf(modelgate.BadRequest, "status must be pending, sent or failed")
	}
	if l.limit, err = p.Int("limit", httpx.Bounds{Min: 1, Max: 200}, 50); err != nil {
		return err
	}
	l.cursor, l.paged, err = p.Text("cursor")
	return err
}

// eventsView is GET /gw/processor/events.
type eventsView struct {
	Counts        store.ExportCounts `json:"counts"`
	OldestPending int64              `json:"oldest_pending_age_seconds"`
	Events        []eventView        `json:"events"`

	next string
}

func (v eventsView) split() (any, string) { return v, v.next }

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

func (a *API) processorEvents(ctx context.Context, b by, in eventList) (eventsView, error) {
	filter := filter("events", b, string(in.status))
	after, err := a.after(in.cursor, in.paged, filter)
	if err != nil {
		return eventsView{}, err
	}
	a.settle(ctx)
	l, err := a.Store.ExportEvents(ctx, b.ClientID, store.ExportPage{Status: in.status, Limit: in.limit, After: after})
	if err != nil {
		return eventsView{}, err
	}
	out := eventsView{Counts: l.Counts, OldestPending: int64(l.OldestPending / time.Second), Events: make([]eventView, 0, len(l.Events))}
	if l.More {
		last := l.Events[len(l.Events)-1]
		out.next = a.Cursors.Sign(httpx.Position{At: last.CreatedAt, ID: string(last.UsageID)}, filter)
	}
	for _, e := range l.Events {
		v := eventView{e.UsageID, e.SubAccountID, e.CustomerID, e.Status, e.Attempts, e.Value.USD(), e.CreatedAt,
			instant(e.NextAttemptAt), instant(e.SentAt), nil}
		if e.LastError != "" {
			v.LastError = &e.LastError
		}
		out.Events = append(out.Events, v)
	}
	return out, nil
}

// instant is null for none.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
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

func (a *API) retryEvent(ctx context.Context, b by, in eventPath) (none, error) {
	record, err := a.audit(b, "processor.event.retry", "usage_row", in.id.String(), nil)
	if err != nil {
		return none{}, err
	}
	return none{}, a.Store.RetryEvent(ctx, b.ClientID, in.id, record)
}

// retryEvents is POST /gw/processor/events/retry.
func (a *API) retryEvents(ctx context.Context, b by, _ nothing) (store.RetriedEvents, error) {
	record, err := a.audit(b, "processor.events.retry", "client", string(b.ClientID), nil)
	if err != nil {
		return store.RetriedEvents{}, err
	}
	return a.Store.RetryEvents(ctx, b.ClientID, record)
}
