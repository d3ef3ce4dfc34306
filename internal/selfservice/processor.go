package selfservice

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"modelgate"
	"modelgate/internal/processor"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/internal/store/billing"
)

// processorView is GET /gw/processor/config.
type processorView struct {
	Enabled    bool                `json:"enabled"`
	Configured bool                `json:"configured"`
	Mappings   []modelgate.Mapping `json:"mappings"`
}

func (a *API) processorConfig(ctx context.Context, by actor, _ nothing) (processorView, error) {
	c, err := a.Store.ProcessorConfig(ctx, by.ClientID)
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

// putProcessor stores a sealed key, or turns the export on or off. The audit
// record says that a key was set and nothing else about it.
func (a *API) putProcessor(ctx context.Context, by actor, in newProcessor) error {
	record := a.audit(by, "processor.config.put", "processor", string(by.ClientID), struct {
		Enabled bool `json:"enabled"`
		KeySet  bool `json:"key_set"`
	}{*in.Enabled, in.APIKey != nil})
	to := billing.Switch(*in.Enabled)
	if in.APIKey == nil {
		return a.Store.SwitchProcessor(ctx, by.ClientID, to, record)
	}
	sealed, err := a.Master.Seal(ProcessorPlace(by.ClientID), []byte(*in.APIKey))
	if err != nil {
		return err
	}
	same, err := a.generation(ctx, by.ClientID, *in.APIKey)
	if err != nil {
		return err
	}
	key := billing.ProcessorKey{KeyID: a.Master.Primary(), Value: sealed, Generation: same}
	return a.Store.PutProcessorKey(ctx, by.ClientID, key, to, record)
}

// generation is the generation of the stored key if it equals key, else 0.
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
		return 0, nil // a key that cannot be opened is replaced
	}
	return kept.Generation, nil
}

// ProcessorPlace is where an organization's processor key is stored.
func ProcessorPlace(client modelgate.ClientID) secrets.Place {
	return secrets.Place{Table: store.SecretTable, Row: billing.ProcessorSecret(client), Column: store.SecretColumn}
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

func (a *API) putMapping(ctx context.Context, by actor, in newMapping) error {
	m := modelgate.Mapping{SubAccountID: in.id, CustomerID: in.CustomerID}
	return a.Store.PutMapping(ctx, by.ClientID, m, a.audit(by, "processor.mapping.put", "sub_account", string(in.id), m))
}

// mappingPath is the input of DELETE /gw/processor/mappings/{sub_account_id}.
type mappingPath struct{ id modelgate.SubAccountID }

func (m *mappingPath) read(x *exchange) error {
	id, err := x.pathID("processor mapping")
	m.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) deleteMapping(ctx context.Context, by actor, in mappingPath) error {
	return a.Store.DeleteMapping(ctx, by.ClientID, in.id, a.audit(by, "processor.mapping.delete", "sub_account", string(in.id), nil))
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
func (a *API) createCustomer(ctx context.Context, by actor, in newCustomer) (customerView, error) {
	sub, err := a.Store.SubAccount(ctx, by.ClientID, modelgate.SubAccountID(in.SubAccountID))
	if err != nil {
		return customerView{}, err
	}
	if sub.Status != modelgate.SubAccountActive {
		return customerView{}, modelgate.Errorf(modelgate.BadRequest, "the sub-account is not active")
	}
	sealed, err := a.Store.ProcessorKey(ctx, by.ClientID)
	if err != nil {
		return customerView{}, err
	}
	key, err := a.Master.Open(ProcessorPlace(by.ClientID), sealed.Value)
	if err != nil {
		return customerView{}, err
	}
	n := processor.NewCustomer{Name: sub.Name, SubAccountID: string(sub.ID)}
	if in.Name != nil {
		n.Name = *in.Name
	}
	// A request with another name or key is not a repetition.
	about := sha256.Sum256([]byte(n.Name + "\x00" + strconv.FormatInt(sealed.Generation, 10)))
	n.Once = "gw-cust-" + string(by.ClientID) + "-" + string(sub.ID) + "-" + hex.EncodeToString(about[:8])
	id, err := a.Processor.CreateCustomer(ctx, string(key), n)
	if err != nil {
		return customerView{}, shown(err)
	}
	if err := modelgate.CheckCustomerID(id); err != nil {
		return customerView{}, modelgate.Errorf(modelgate.BadGateway, "the payment processor's answer is not understood")
	}
	m := modelgate.Mapping{SubAccountID: sub.ID, CustomerID: id}
	return customerView{id}, a.Store.PutMapping(ctx, by.ClientID, m, a.audit(by, "processor.customer.create", "sub_account", string(sub.ID), m))
}

// shown is a failure of the processor as a client gets it.
func shown(err error) error {
	if e, ok := errors.AsType[*processor.Error](err); ok {
		return e.Shown()
	}
	return err
}
