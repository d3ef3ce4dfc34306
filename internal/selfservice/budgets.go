package selfservice

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/store/spend"
)

// budgetView is a budget in a list (spec: Budget).
type budgetView struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     string           `json:"id,omitzero"`
	Period modelgate.Period `json:"period"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	Spend  modelgate.Nano   `json:"spend_usd"`
	// Owner is "" for the caller's own budgets.
	Owner modelgate.Owner `json:"owner,omitempty"`
}

// resellers is the owner that a bound key is shown for every budget set above it.
const resellers modelgate.Owner = "reseller"

// owner is the owner of the budgets that the caller sets and removes.
func (by actor) owner() modelgate.Owner {
	if by.SubAccountID != "" {
		return modelgate.OwnerSubAccount
	}
	return modelgate.OwnerOrganization
}

// budgets lists the organization's budgets. An end customer sees those of its
// sub-account and keys. Both spend and limit are as billed, so that their ratio
// does not reveal the markup.
func (a *API) budgets(ctx context.Context, by actor, _ nothing) ([]budgetView, error) {
	a.settle(ctx)
	list, err := a.Store.Budgets(ctx, by.ClientID, spend.BudgetList{SubAccountID: by.SubAccountID, At: a.Now()})
	if err != nil {
		return nil, err
	}
	return views(list, func(found *spend.BudgetSpend) budgetView { return viewBudget(by, found) }), nil
}

// viewBudget shows a budget.
func viewBudget(by actor, found *spend.BudgetSpend) budgetView {
	v := budgetView{found.Level, found.ID, found.Period, found.Limit, found.Spend, ""}
	if found.Level == modelgate.LevelClient {
		v.ID = ""
	}
	v.Owner = by.shownOwner(found.Owner)
	if by.SubAccountID != "" {
		v.Limit, v.Spend = v.Limit.BilledInMicros(by.Markup), v.Spend.Billed(by.Markup)
	}
	return v
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
	return (&modelgate.Budget{Level: n.Scope, Period: n.Period, Limit: n.Limit}).Validate()
}

func (a *API) putBudget(ctx context.Context, by actor, in newBudget) error {
	target, err := by.budgetTarget(in.Scope, in.ID, in.Period)
	if err != nil {
		return err
	}
	target.Limit = in.Limit
	if by.SubAccountID != "" {
		target.Limit = in.Limit.Unbilled(by.Markup)
	}
	a.settle(ctx) // the spend of calls that this instance has answered counts
	record := a.audit(by, "budget.put", string(target.Level), target.ID, struct {
		Period modelgate.Period `json:"period"`
		Limit  modelgate.Nano   `json:"limit_usd"`
	}{target.Period, target.Limit})
	if err := a.Store.PutBudget(ctx, by.ClientID, by.SubAccountID, target, record); err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}

// budgetTarget is the budget that a request names. A bound key sets those of
// its own keys alone.
func (by actor) budgetTarget(scope modelgate.Level, id *string, period modelgate.Period) (modelgate.Budget, error) {
	target := modelgate.Budget{Level: scope, Period: period, Owner: by.owner()}
	if by.SubAccountID != "" && scope != modelgate.LevelKey {
		return target, modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account can set budgets of scope key only")
	}
	if scope == modelgate.LevelClient {
		if id != nil {
			return target, modelgate.Errorf(modelgate.BadRequest, "id must be left out for scope client")
		}
		target.ID = string(by.ClientID)
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
	scope, _ := p.Text("scope")
	period, _ := p.Text("period")
	n.scope, n.period = modelgate.Level(scope), modelgate.Period(period)
	if id, given := p.Text("id"); given {
		n.id = &id
	}
	owner, given := p.Text("owner")
	if n.customers = modelgate.Owner(owner) == modelgate.OwnerSubAccount; given && !n.customers {
		return modelgate.Errorf(modelgate.BadRequest, "owner must be sub_account; left out one's own budget is removed")
	}
	return (&modelgate.Budget{Level: n.scope, Period: n.period, Limit: 1}).Validate()
}

func (a *API) deleteBudget(ctx context.Context, by actor, in budgetName) error {
	target, err := by.budgetTarget(in.scope, in.id, in.period)
	if err != nil {
		return err
	}
	var whose modelgate.Owner // where it is not the caller's own
	if in.customers {
		if by.SubAccountID != "" {
			return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account removes its own budgets; leave owner out")
		}
		target.Owner, whose = modelgate.OwnerSubAccount, modelgate.OwnerSubAccount
	}
	record := a.audit(by, "budget.delete", string(target.Level), target.ID, struct {
		Period modelgate.Period `json:"period"`
		Owner  modelgate.Owner  `json:"owner,omitempty"`
	}{target.Period, whose})
	err = a.Store.DeleteBudget(ctx, by.ClientID, by.SubAccountID, target, record)
	if in.customers && errors.Is(err, modelgate.ErrResellersBudget) {
		err = modelgate.Errorf(modelgate.NotFound, "budget not found") // of the customer's
	}
	if err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}
