package selfservice

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/store"
)

// budgetView is a budget in a list (spec: Budget).
type budgetView struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     string           `json:"id,omitzero"`
	Period modelgate.Period `json:"period"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	Spend  modelgate.Nano   `json:"spend_usd"`
	// Owner is left out of one's own.
	Owner modelgate.Owner `json:"owner,omitempty"`
}

// resellers is how a bound key reads the owner of all that is set above it.
const resellers modelgate.Owner = "reseller"

// owner is whose budgets the caller sets and removes.
func (b by) owner() modelgate.Owner {
	if b.SubAccountID != "" {
		return modelgate.OwnerSubAccount
	}
	return modelgate.OwnerOrganization
}

// budgets lists the organization's budgets. An end customer sees those of its
// sub-account and keys, as billed: the limit too, so that no ratio gives the
// surcharge away.
func (a *API) budgets(ctx context.Context, b by, _ nothing) ([]budgetView, error) {
	a.settle(ctx)
	list, err := a.Store.Budgets(ctx, b.ClientID, store.BudgetList{SubAccountID: b.SubAccountID, At: a.Now()})
	if err != nil {
		return nil, err
	}
	out := make([]budgetView, 0, len(list))
	for _, found := range list {
		v := budgetView{found.Level, found.ID, found.Period, found.Limit, found.Spend, ""}
		if found.Level == modelgate.LevelClient {
			v.ID = ""
		}
		switch {
		case found.Owner == b.owner():
		case b.SubAccountID != "":
			v.Owner = resellers
		default:
			v.Owner = found.Owner
		}
		if b.SubAccountID != "" {
			v.Limit, v.Spend = billedLimit(v.Limit, b.Markup), v.Spend.Billed(b.Markup)
		}
		out = append(out, v)
	}
	return out, nil
}

// billedLimit is a limit as the end customer sees it: in whole millionths of a
// dollar, because to the nano-dollar what becomes of a limit that it sets
// itself would tell the surcharge.
func billedLimit(n modelgate.Nano, m modelgate.Markup) modelgate.Nano {
	const grain = modelgate.USD / 1_000_000
	return max(n.Billed(m).Add(grain/2)/grain, 1) * grain
}

// newBudget is the body of PUT /gw/budgets.
type newBudget struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     *string          `json:"id" null:"absent"`
	Period modelgate.Period `json:"period"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	_      struct{}         `ignore:"spend_usd,owner"`
}

func (n *newBudget) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	b := modelgate.Budget{Level: n.Scope, Period: n.Period, Limit: n.Limit}
	return b.Validate()
}

func (a *API) putBudget(ctx context.Context, b by, in newBudget) (none, error) {
	target, err := b.budgetTarget(in.Scope, in.ID, in.Period)
	if err != nil {
		return none{}, err
	}
	target.Limit = in.Limit
	if b.SubAccountID != "" {
		target.Limit = in.Limit.Unbilled(b.Markup)
	}
	a.settle(ctx) // what was answered before counts
	record, err := a.audit(b, "budget.put", string(target.Level), target.ID, struct {
		Period modelgate.Period `json:"period"`
		Limit  modelgate.Nano   `json:"limit_usd"`
	}{target.Period, target.Limit})
	if err != nil {
		return none{}, err
	}
	if err := a.Store.PutBudget(ctx, b.ClientID, store.KeyScope{SubAccountID: b.SubAccountID}, target, record); err != nil {
		return none{}, err
	}
	a.Keys.ForgetClient(b.ClientID) // before the answer: here it holds at once
	return none{}, nil
}

// budgetTarget is the budget that a request names. A bound key sets those of
// its own keys alone.
func (b by) budgetTarget(scope modelgate.Level, id *string, period modelgate.Period) (modelgate.Budget, error) {
	target := modelgate.Budget{Level: scope, Period: period, Owner: b.owner()}
	if b.SubAccountID != "" && scope != modelgate.LevelKey {
		return target, modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account can set budgets of scope key only")
	}
	if scope == modelgate.LevelClient {
		if id != nil {
			return target, modelgate.Errorf(modelgate.BadRequest, "id must be left out for scope client")
		}
		target.ID = string(b.ClientID)
		return target, nil
	}
	if id == nil {
		return target, modelgate.Errorf(modelgate.BadRequest, "id is required for scope %s", scope)
	}
	parsed, ok := modelgate.ParseUUID(*id)
	if !ok {
		return target, modelgate.Errorf(modelgate.NotFound, "budget target not found")
	}
	target.ID = parsed.String()
	return target, nil
}

// budgetName is the query of DELETE /gw/budgets.
type budgetName struct {
	scope  modelgate.Level
	id     *string
	period modelgate.Period
	// customers: that of the sub-account's own keys is meant.
	customers bool
}

func (n *budgetName) read(x *exchange) error {
	p := x.query
	scope, _, err := p.Text("scope")
	if err != nil {
		return err
	}
	period, _, err := p.Text("period")
	if err != nil {
		return err
	}
	id, given, err := p.Text("id")
	if err != nil {
		return err
	}
	if given {
		n.id = &id
	}
	owner, given, err := p.Text("owner")
	if err != nil {
		return err
	}
	if n.customers = modelgate.Owner(owner) == modelgate.OwnerSubAccount; given && !n.customers {
		return modelgate.Errorf(modelgate.BadRequest, "owner must be sub_account; left out one's own budget is removed")
	}
	n.scope, n.period = modelgate.Level(scope), modelgate.Period(period)
	b := modelgate.Budget{Level: n.scope, Period: n.period, Limit: 1}
	return b.Validate()
}

func (a *API) deleteBudget(ctx context.Context, b by, in budgetName) (none, error) {
	target, err := b.budgetTarget(in.scope, in.id, in.period)
	if err != nil {
		return none{}, err
	}
	var whose modelgate.Owner // where it is not the caller's own
	if in.customers {
		if b.SubAccountID != "" {
			return none{}, modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account removes its own budgets; leave owner out")
		}
		target.Owner, whose = modelgate.OwnerSubAccount, modelgate.OwnerSubAccount
	}
	record, err := a.audit(b, "budget.delete", string(target.Level), target.ID, struct {
		Period modelgate.Period `json:"period"`
		Owner  modelgate.Owner  `json:"owner,omitempty"`
	}{target.Period, whose})
	if err != nil {
		return none{}, err
	}
	err = a.Store.DeleteBudget(ctx, b.ClientID, store.KeyScope{SubAccountID: b.SubAccountID}, target, record)
	if in.customers && errors.Is(err, modelgate.ErrResellersBudget) {
		err = modelgate.Errorf(modelgate.NotFound, "budget not found") // of the customer's
	}
	if err != nil {
		return none{}, err
	}
	a.Keys.ForgetClient(b.ClientID) // before the answer: here it holds at once
	return none{}, nil
}
