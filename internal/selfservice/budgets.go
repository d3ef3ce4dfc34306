package selfservice

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/budgetview"
	"modelgate/internal/store/spend"
)

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
func (a *API) budgets(ctx context.Context, by actor, _ nothing) ([]budgetview.View, error) {
	a.settle(ctx)
	list, err := a.Store.Budgets(ctx, by.ClientID, spend.BudgetList{SubAccountID: by.SubAccountID, At: a.Now()})
	if err != nil {
		return nil, err
	}
	return views(list, func(found *spend.BudgetSpend) budgetview.View { return viewBudget(by, found) }), nil
}

// viewBudget shows a budget.
func viewBudget(by actor, found *spend.BudgetSpend) budgetview.View {
	v := budgetview.Of(&found.Budget, found.Spend, found.Values)
	v.Owner = by.shownOwner(found.Owner)
	if by.SubAccountID != "" {
		v.Billed(by.Markup)
	}
	return v
}

// newBudget is the body of PUT /gw/budgets.
type newBudget struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     *string          `json:"id" null:"absent"`
	Period modelgate.Period `json:"period"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	Window *string          `json:"window" null:"absent"`
	Match  *string          `json:"match" null:"absent"`
	Mode   *modelgate.Mode  `json:"mode" null:"absent"`
	Alerts *[]int           `json:"alerts" null:"absent"`
	_      struct{}         `ignore:"spend_usd,owner,counted_since,values"`

	budget modelgate.Budget // what it says, but for the target
}

func (n *newBudget) read(x *exchange) (err error) {
	if err := x.body(n); err != nil {
		return err
	}
	b := modelgate.Budget{Level: n.Scope, Limit: n.Limit}
	n.budget, err = budgetview.Read(b, budgetview.Members{Period: string(n.Period), Window: n.Window, Match: n.Match, Mode: n.Mode, Alerts: n.Alerts})
	return err
}

func (a *API) putBudget(ctx context.Context, by actor, in newBudget) error {
	target, err := by.budgetTarget(in.budget, in.ID)
	if err != nil {
		return err
	}
	if by.SubAccountID != "" {
		target.Limit = target.Limit.Unbilled(by.Markup)
	}
	a.settle(ctx) // the spend of calls that this instance has answered counts
	record := a.audit(by, "budget.put", string(target.Level), target.ID, budgetview.Set(&target))
	if err := a.Store.PutBudget(ctx, by.ClientID, by.SubAccountID, target, record); err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}

// budgetTarget is a budget with the target that a request names. A bound key
// sets those of its own keys alone.
func (by actor) budgetTarget(target modelgate.Budget, id *string) (modelgate.Budget, error) {
	scope := target.Level
	target.Owner = by.owner()
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
	budget modelgate.Budget // without its target
	id     *string
	// customers: that of the sub-account's own keys is meant.
	customers bool
}

func (n *budgetName) read(x *exchange) error {
	p := x.query
	scope, _ := p.Text("scope")
	period, _ := p.Text("period")
	n.budget = modelgate.Budget{Level: modelgate.Level(scope), Limit: 1}
	if id, given := p.Text("id"); given {
		n.id = &id
	}
	owner, given := p.Text("owner")
	if n.customers = modelgate.Owner(owner) == modelgate.OwnerSubAccount; given && !n.customers {
		return modelgate.Errorf(modelgate.BadRequest, "owner must be sub_account; left out one's own budget is removed")
	}
	m := budgetview.Members{Period: period}
	if window, given := p.Text("window"); given {
		m.Window = &window
	}
	if match, given := p.Text("match"); given {
		m.Match = &match
	}
	var err error
	n.budget, err = budgetview.Read(n.budget, m)
	return err
}

func (a *API) deleteBudget(ctx context.Context, by actor, in budgetName) error {
	target, err := by.budgetTarget(in.budget, in.id)
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
	record := a.audit(by, "budget.delete", string(target.Level), target.ID, budgetview.Removed(&target, whose))
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
