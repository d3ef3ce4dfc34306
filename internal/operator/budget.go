package operator

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/budgetview"
	"modelgate/internal/store/spend"
)

// budgetRow is a budget with what is held of it.
type budgetRow struct {
	budgetview.View
	Owner modelgate.Owner `json:"owner"`
	Held  modelgate.Nano  `json:"held_usd"`
}

// budgets lists an organization's budgets, those of all owners.
func (a *API) budgets(ctx context.Context, x *exchange) (any, error) {
	org, err := x.known(ctx, a)
	if err != nil {
		return nil, err
	}
	found, err := a.Store.Budgets(ctx, org, spend.BudgetList{At: a.Now()})
	rows := []budgetRow{}
	for i := range found {
		b := &found[i]
		rows = append(rows, budgetRow{budgetview.Of(&b.Budget, b.Spend, b.Values), b.Owner, b.Held})
	}
	return rows, err
}

// known is the organization in the path, which there is. It ends the reading of the
// parameters.
func (x *exchange) known(ctx context.Context, a *API) (modelgate.ClientID, error) {
	org, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return "", err
	}
	_, err = a.Store.Client(ctx, org)
	return org, notFound(err)
}

// newBudget is the body of PUT …/budgets, as of PUT /gw/budgets.
type newBudget struct {
	Scope  modelgate.Level  `json:"scope"`
	ID     *string          `json:"id" null:"absent"`
	Period modelgate.Period `json:"period"`
	Limit  modelgate.Nano   `json:"limit_usd"`
	Window *string          `json:"window" null:"absent"`
	Match  *string          `json:"match" null:"absent"`
	Mode   *modelgate.Mode  `json:"mode" null:"absent"`
	Alerts *[]int           `json:"alerts" null:"absent"`
	_      struct{}         `ignore:"spend_usd,held_usd,owner,counted_since,values"`
}

// putBudget sets a budget of the operator's own, beside those of the organization
// and its customers.
func (a *API) putBudget(ctx context.Context, x *exchange) (any, error) {
	var in newBudget
	org, err := x.org()
	if err != nil {
		return nil, err
	}
	if err := x.body(&in); err != nil {
		return nil, err
	}
	b, err := budgetview.Read(modelgate.Budget{Level: in.Scope, Limit: in.Limit},
		budgetview.Members{Period: string(in.Period), Window: in.Window, Match: in.Match, Mode: in.Mode, Alerts: in.Alerts})
	if err != nil {
		return nil, err
	}
	if err := a.aim(ctx, org, &b, in.ID); err != nil {
		return nil, err
	}
	if err := a.Store.PutBudget(ctx, org, "", b, a.audit(x, org, "budget.put", string(b.Level), b.ID, budgetview.Set(&b))); err != nil {
		return nil, err
	}
	a.Keys.ForgetClient(org) // before the response, so that it takes effect at once on this instance
	return nil, nil
}

// aim sets the owner and the target of a budget.
func (a *API) aim(ctx context.Context, org modelgate.ClientID, b *modelgate.Budget, id *string) error {
	if _, err := a.Store.Client(ctx, org); err != nil {
		return notFound(err)
	}
	b.Owner = modelgate.OwnerOperator
	switch {
	case b.Level == modelgate.LevelClient && id != nil:
		return modelgate.Errorf(modelgate.BadRequest, "id must be left out for scope client")
	case b.Level == modelgate.LevelClient:
		b.ID = string(org)
		return nil
	case id == nil:
		return modelgate.Errorf(modelgate.BadRequest, "id is required for scope %s", b.Level)
	}
	parsed, ok := modelgate.ParseUUID(*id)
	if !ok {
		return modelgate.Errorf(modelgate.NotFound, "budget target not found")
	}
	b.ID = parsed.String()
	return nil
}

// deleteBudget removes a budget of the operator's own.
func (a *API) deleteBudget(ctx context.Context, x *exchange) (any, error) {
	p := x.query
	given := func(name string) *string {
		if text, ok := p.Text(name); ok {
			return &text
		}
		return nil
	}
	scope, _ := p.Text("scope")
	period, _ := p.Text("period")
	id, window, match := given("id"), given("window"), given("match")
	org, err := x.org()
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	b, err := budgetview.Read(modelgate.Budget{Level: modelgate.Level(scope), Limit: 1}, budgetview.Members{Period: period, Window: window, Match: match})
	if err != nil {
		return nil, err
	}
	if err := a.aim(ctx, org, &b, id); err != nil {
		return nil, err
	}
	record := a.audit(x, org, "budget.delete", string(b.Level), b.ID, budgetview.Removed(&b, ""))
	if err := a.Store.DeleteBudget(ctx, org, "", b, record); err != nil {
		return nil, err
	}
	a.Keys.ForgetClient(org)
	return nil, nil
}
