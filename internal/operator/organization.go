package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
	"modelgate/internal/store/spend"
)

// organizationView is an organization with its figures. Those of 30 days are of
// this day (UTC) and the 29 before.
type organizationView struct {
	ID            modelgate.ClientID      `json:"id"`
	Name          string                  `json:"name"`
	Status        modelgate.ClientStatus  `json:"status"`
	Billing       modelgate.Billing       `json:"billing"`
	RoutingPolicy modelgate.RoutingPolicy `json:"routing_policy"`
	MaxKeys       int                     `json:"max_keys"`
	ActiveKeys    int                     `json:"active_keys"`
	Limits        modelgate.Limits        `json:"limits"`
	Balance       *modelgate.Nano         `json:"balance_usd"` // null unless it prepays
	Spend         modelgate.Nano          `json:"spend_30d_usd"`
	Requests      int64                   `json:"requests_30d"`
	LastCall      *time.Time              `json:"last_call_at"`
	CreatedAt     time.Time               `json:"created_at"`
}

const day = 24 * time.Hour

// since is the beginning of the 30 days of the figures.
func (a *API) since() time.Time { return a.Now().UTC().Truncate(day).Add(-29 * day) }

// view adds the figures to an organization.
func (a *API) view(ctx context.Context, c *modelgate.Client) (organizationView, error) {
	v := organizationView{
		ID: c.ID, Name: c.Name, Status: c.Status, Billing: c.Billing, RoutingPolicy: c.RoutingPolicy,
		MaxKeys: c.MaxKeys, Limits: c.Limits, CreatedAt: c.CreatedAt,
	}
	keys, err := a.Store.LiveKeys(ctx, c.ID)
	if err != nil {
		return v, err
	}
	v.ActiveKeys = keys
	buckets, err := a.Store.Stats(ctx, c.ID, store.StatsQuery{GroupBy: modelgate.ByDay, Since: a.since()})
	if err != nil {
		return v, err
	}
	for i := range buckets {
		v.Spend += buckets[i].Cost
		v.Requests += buckets[i].Requests
	}
	last, _, err := a.Store.Usage(ctx, c.ID, store.UsageList{Limit: 1})
	if err != nil {
		return v, err
	}
	if len(last) > 0 {
		v.LastCall = &last[0].At
	}
	if c.Billing == modelgate.Manual {
		balance, _, err := a.Store.Balance(ctx, c.ID, 1)
		if err != nil {
			return v, err
		}
		left := balance.Left()
		v.Balance = &left
	}
	return v, nil
}

const longestFind = 100 // bytes of q

// organizations lists organizations with their figures.
func (a *API) organizations(ctx context.Context, x *exchange) (any, error) {
	find, given := x.query.Text("q")
	status := httpx.OneOf(x.query, "status", "", modelgate.ClientActive, modelgate.ClientSuspended)
	billing := httpx.OneOf(x.query, "billing", "", modelgate.Manual, modelgate.Invoiced)
	sort, _ := x.query.Text("sort")
	if given && (find == "" || len(find) > longestFind) {
		return nil, modelgate.Errorf(modelgate.BadRequest, "q must be a part of a name or an id, of 1 to %d bytes", longestFind)
	}
	order, ok := orderOf(cmp.Or(sort, "name"))
	if !ok {
		return nil, modelgate.Errorf(modelgate.BadRequest, "sort must be name, -name, created_at, -created_at, spend_30d or -spend_30d")
	}
	clients, err := a.Store.Clients(ctx)
	if err != nil {
		return nil, err
	}
	clients = slices.DeleteFunc(clients, func(c modelgate.Client) bool {
		return status != "" && c.Status != status || billing != "" && c.Billing != billing ||
			find != "" && string(c.ID) != strings.ToLower(find) && !strings.Contains(strings.ToLower(c.Name), strings.ToLower(find))
	})
	spent := map[modelgate.ClientID]modelgate.Nano{}
	if strings.HasSuffix(sort, "spend_30d") {
		for i := range clients {
			if spent[clients[i].ID], err = a.Store.SpendSince(ctx, clients[i].ID, a.since()); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(clients, func(one, other modelgate.Client) int {
		return cmp.Or(order(&one, &other, spent), cmp.Compare(one.ID, other.ID))
	})
	shown, err := page(a, x, clients, strings.Join([]string{"operator organizations", find, string(status), string(billing), sort}, "\x00"))
	if err != nil {
		return nil, err
	}
	views := []organizationView{}
	for i := range shown {
		v, err := a.view(ctx, &shown[i])
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return views, nil
}

type order func(one, other *modelgate.Client, spent map[modelgate.ClientID]modelgate.Nano) int

// orderOf is the order that a value of sort names; - reverses.
func orderOf(sort string) (order, bool) {
	name, reversed := strings.CutPrefix(sort, "-")
	by, ok := map[string]order{
		"name": func(one, other *modelgate.Client, _ map[modelgate.ClientID]modelgate.Nano) int {
			return cmp.Compare(strings.ToLower(one.Name), strings.ToLower(other.Name))
		},
		"created_at": func(one, other *modelgate.Client, _ map[modelgate.ClientID]modelgate.Nano) int {
			return one.CreatedAt.Compare(other.CreatedAt)
		},
		"spend_30d": func(one, other *modelgate.Client, spent map[modelgate.ClientID]modelgate.Nano) int {
			return cmp.Compare(spent[one.ID], spent[other.ID])
		},
	}[name]
	if !reversed {
		return by, ok
	}
	return func(one, other *modelgate.Client, spent map[modelgate.ClientID]modelgate.Nano) int {
		return by(other, one, spent)
	}, ok
}

func (a *API) organization(ctx context.Context, x *exchange) (any, error) {
	id, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	c, err := a.Store.Client(ctx, id)
	if err != nil {
		return nil, notFound(err)
	}
	return a.view(ctx, &c)
}

// newOrganization is the body of POST /operator/v1/organizations.
type newOrganization struct {
	ID            *string                  `json:"id" null:"absent"`
	Name          string                   `json:"name"`
	Billing       *modelgate.Billing       `json:"billing" null:"absent"`
	RoutingPolicy *modelgate.RoutingPolicy `json:"routing_policy" null:"absent"`
	MaxKeys       *int                     `json:"max_keys" null:"absent"`
	Limits        *modelgate.Limits        `json:"limits" null:"absent"`
}

func (a *API) createOrganization(ctx context.Context, x *exchange) (any, error) {
	var in newOrganization
	if err := x.body(&in); err != nil {
		return nil, err
	}
	c := modelgate.Client{
		ID: modelgate.ClientID(a.IDs.New().String()), Name: in.Name, Status: modelgate.ClientActive,
		Billing: orElse(in.Billing, modelgate.Invoiced), RoutingPolicy: orElse(in.RoutingPolicy, modelgate.RouteAny),
		MaxKeys: orElse(in.MaxKeys, modelgate.DefaultMaxKeys), Limits: orElse(in.Limits, modelgate.Limits{}),
		Ceiling: modelgate.OpenCeiling(), CreatedAt: a.Now().UTC().Truncate(time.Microsecond),
	}
	if in.ID != nil {
		id, ok := modelgate.ParseUUID(*in.ID)
		if !ok {
			return nil, modelgate.Errorf(modelgate.BadRequest, "id must be a UUID")
		}
		c.ID = modelgate.ClientID(id.String())
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	err := a.Store.CreateClient(ctx, c, a.audit(x, c.ID, "client.create", "client", string(c.ID), c))
	if modelgate.KindOf(err) == modelgate.Conflict && in.ID != nil {
		return a.repeated(ctx, &c)
	}
	if err != nil {
		return nil, err
	}
	return a.view(ctx, &c)
}

// repeated answers a creation that names an id a second time: with the same
// organization if all that was asked is as it was, else conflict.
func (a *API) repeated(ctx context.Context, c *modelgate.Client) (any, error) {
	stored, err := a.Store.Client(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	if stored.Name != c.Name || stored.Billing != c.Billing || stored.RoutingPolicy != c.RoutingPolicy || stored.MaxKeys != c.MaxKeys {
		return nil, modelgate.Errorf(modelgate.Conflict, "another organization has this id")
	}
	return a.view(ctx, &stored)
}

// orElse is what a pointer points to, or otherwise.
func orElse[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// organizationPatch is the body of PATCH /operator/v1/organizations/{org}: absent
// members stay.
type organizationPatch struct {
	Name          *string                  `json:"name,omitempty"`
	Status        *modelgate.ClientStatus  `json:"status,omitempty"`
	Billing       *modelgate.Billing       `json:"billing,omitempty"`
	RoutingPolicy *modelgate.RoutingPolicy `json:"routing_policy,omitempty"`
	MaxKeys       *int                     `json:"max_keys,omitempty"`
	Limits        *modelgate.Limits        `json:"limits,omitempty"`
}

func (a *API) patchOrganization(ctx context.Context, x *exchange) (any, error) {
	var in organizationPatch
	id, err := x.org()
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	action := "client.update"
	if in.Status != nil {
		action = map[modelgate.ClientStatus]string{modelgate.ClientSuspended: "client.suspend", modelgate.ClientActive: "client.resume"}[*in.Status]
		if action == "" {
			return nil, modelgate.Errorf(modelgate.BadRequest, "status must be active or suspended")
		}
	}
	err = a.Store.UpdateClient(ctx, id, func(c *modelgate.Client) error {
		c.Name, c.Status, c.Billing = orElse(in.Name, c.Name), orElse(in.Status, c.Status), orElse(in.Billing, c.Billing)
		c.RoutingPolicy, c.MaxKeys, c.Limits = orElse(in.RoutingPolicy, c.RoutingPolicy), orElse(in.MaxKeys, c.MaxKeys), orElse(in.Limits, c.Limits)
		return nil
	}, a.audit(x, id, action, "client", string(id), in))
	if err != nil {
		return nil, notFound(err)
	}
	a.Keys.ForgetClient(id) // before the response, so that it takes effect at once on this instance
	return nil, nil
}

func (a *API) ceiling(ctx context.Context, x *exchange) (any, error) {
	id, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	c, err := a.Store.Client(ctx, id)
	return c.Ceiling, notFound(err)
}

// newCeiling is the body of PUT …/ceiling; nothing may be left out, because that
// could mean everything or nothing.
type newCeiling struct {
	MaxScopes    *[]modelgate.Scope      `json:"max_scopes"`
	Entitlements *modelgate.Entitlements `json:"entitlements"`
}

func (a *API) putCeiling(ctx context.Context, x *exchange) (any, error) {
	var in newCeiling
	id, err := x.org()
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	if in.MaxScopes == nil || in.Entitlements == nil {
		return nil, modelgate.Errorf(modelgate.BadRequest, "max_scopes and entitlements are both required; [] allows none")
	}
	ceiling := modelgate.Ceiling{MaxScopes: *in.MaxScopes, Entitlements: *in.Entitlements}
	err = a.Store.UpdateClient(ctx, id, func(c *modelgate.Client) error {
		c.Ceiling = ceiling
		return nil
	}, a.audit(x, id, "ceiling.change", "client", string(id), ceiling))
	if err != nil {
		return nil, notFound(err)
	}
	a.Keys.ForgetClient(id)
	return nil, nil
}

func (a *API) subAccounts(ctx context.Context, x *exchange) (any, error) {
	id, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	if _, err := a.Store.Client(ctx, id); err != nil {
		return nil, notFound(err)
	}
	return a.Store.SubAccounts(ctx, id)
}

// subAccountPatch is the body of PATCH …/subaccounts/{id}.
type subAccountPatch struct {
	Status *modelgate.SubAccountStatus `json:"status"`
}

func (a *API) patchSubAccount(ctx context.Context, x *exchange) (any, error) {
	var in subAccountPatch
	org, err := x.org()
	if err != nil {
		return nil, err
	}
	text, err := x.pathID("id", "sub-account")
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	if in.Status == nil || *in.Status != modelgate.SubAccountActive && *in.Status != modelgate.SubAccountSuspended {
		return nil, modelgate.Errorf(modelgate.BadRequest, "status must be active or suspended")
	}
	id := modelgate.SubAccountID(text)
	patch := modelgate.SubAccountPatch{Status: in.Status}
	if err := a.Store.PatchSubAccount(ctx, org, id, patch, a.audit(x, org, "sub_account.update", "sub_account", text, in)); err != nil {
		return nil, err
	}
	a.Keys.ForgetSubAccount(id)
	return nil, nil
}

// balanceView is GET …/balance: the newest entries only.
type balanceView struct {
	Balance  modelgate.Nano       `json:"balance_usd"`
	Credited modelgate.Nano       `json:"credited_usd"`
	Spent    modelgate.Nano       `json:"spent_usd"`
	Held     modelgate.Nano       `json:"held_usd"`
	Entries  []spend.BalanceEntry `json:"entries"`
}

func (a *API) balance(ctx context.Context, x *exchange) (any, error) {
	limit := x.query.Int("limit", 1, 200, 50)
	id, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	b, entries, err := a.Store.Balance(ctx, id, limit)
	if entries == nil {
		entries = []spend.BalanceEntry{}
	}
	return balanceView{b.Left(), b.Credited, b.Spent, b.Held, entries}, notFound(err)
}

// newEntry is the body of POST …/balance/entries. With an id it may be repeated.
type newEntry struct {
	ID     *string        `json:"id" null:"absent"`
	Amount modelgate.Nano `json:"amount_usd"`
	Note   string         `json:"note"`
}

const longestNote = 200 // bytes

func (a *API) credit(ctx context.Context, x *exchange) (any, error) {
	var in newEntry
	org, err := x.org()
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	if in.Note == "" || len(in.Note) > longestNote {
		return nil, modelgate.Errorf(modelgate.BadRequest, "note must be 1 to %d bytes that say what the amount is for", longestNote)
	}
	c, err := a.Store.Client(ctx, org)
	if err != nil {
		return nil, notFound(err)
	}
	if c.Billing != modelgate.Manual {
		return nil, modelgate.Errorf(modelgate.BadRequest, "the organization is invoiced and has no balance; set its billing to manual first")
	}
	entry := spend.BalanceEntry{ID: a.IDs.New().String(), At: a.Now().UTC().Truncate(time.Microsecond), Amount: in.Amount, Note: in.Note}
	if in.ID != nil {
		id, ok := modelgate.ParseUUID(*in.ID)
		if !ok {
			return nil, modelgate.Errorf(modelgate.BadRequest, "id must be a UUID")
		}
		entry.ID = id.String()
	}
	err = a.Store.Credit(ctx, org, entry, a.audit(x, org, "balance.credit", "client", string(org), entry))
	if modelgate.KindOf(err) == modelgate.Conflict && in.ID != nil {
		return a.credited(ctx, org, &entry)
	}
	if err != nil {
		return nil, err
	}
	a.Keys.ForgetClient(org)
	return entry, nil
}

// credited answers an entry that names an id a second time.
func (a *API) credited(ctx context.Context, org modelgate.ClientID, e *spend.BalanceEntry) (any, error) {
	_, entries, err := a.Store.Balance(ctx, org, 0)
	for i := range entries {
		if old := &entries[i]; old.ID == e.ID && old.Amount == e.Amount && old.Note == e.Note {
			return *old, err
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, modelgate.Errorf(modelgate.Conflict, "another entry has this id")
}
