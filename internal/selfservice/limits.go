package selfservice

import (
	"context"
	"errors"

	"modelgate"
	"modelgate/internal/quota"
)

// limits lists the organization's rate limits. An end customer sees those of its
// sub-account and keys.
func (a *API) limits(ctx context.Context, by actor, _ nothing) ([]quota.View, error) {
	list, err := a.Store.RateLimits(ctx, by.ClientID, by.SubAccountID)
	if err != nil {
		return nil, err
	}
	out := make([]quota.View, 0, len(list))
	for i := range list {
		v := quota.ViewOf(by.Caller, &list[i].RateLimit)
		v.Owner = by.shownOwner(list[i].Owner)
		out = append(out, v)
	}
	return out, nil
}

// shownOwner is an owner as the caller reads it: "" for itself.
func (by actor) shownOwner(o modelgate.Owner) modelgate.Owner {
	switch {
	case o == by.owner():
		return ""
	case by.SubAccountID != "":
		return resellers
	}
	return o
}

// newLimit is the input of PUT /gw/limits.
type newLimit struct {
	id   *string
	rule modelgate.RateLimit
}

func (n *newLimit) read(x *exchange) error {
	var body quota.NewLimit
	if err := x.body(&body); err != nil {
		return err
	}
	var err error
	n.id = body.ID
	n.rule, err = body.Rule()
	return err
}

func (a *API) putLimit(ctx context.Context, by actor, in newLimit) error {
	rule := in.rule
	rule.Owner = by.owner()
	if err := quota.Target(by.Caller, &rule, in.id); err != nil {
		return err
	}
	if rule.Unit == modelgate.UnitUSD && by.SubAccountID != "" {
		rule.Limit = int64(modelgate.Nano(rule.Limit).Unbilled(by.Markup))
		rule.Burst = int64(modelgate.Nano(rule.Burst).Unbilled(by.Markup))
	}
	record := a.audit(by, "limit.put", string(rule.Level), rule.ID, quota.Set(&rule))
	if err := a.Store.PutRateLimit(ctx, by.ClientID, by.SubAccountID, rule, record); err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}

// limitName is the query of DELETE /gw/limits.
type limitName struct {
	newLimit
	// customers: that of the sub-account's own keys is meant.
	customers bool
}

func (n *limitName) read(x *exchange) error {
	p := x.query
	scope, _ := p.Text("scope")
	unit, _ := p.Text("unit")
	window, _ := p.Text("window")
	match, matched := p.Text("match")
	if id, given := p.Text("id"); given {
		n.id = &id
	}
	owner, given := p.Text("owner")
	if n.customers = modelgate.Owner(owner) == modelgate.OwnerSubAccount; given && !n.customers {
		return modelgate.Errorf(modelgate.BadRequest, "owner must be sub_account; left out one's own limit is removed")
	}
	var err error
	n.rule, err = quota.Rule(modelgate.Level(scope), modelgate.LimitUnit(unit), window, match, matched)
	return err
}

func (a *API) deleteLimit(ctx context.Context, by actor, in limitName) error {
	rule := in.rule
	rule.Owner = by.owner()
	if err := quota.Target(by.Caller, &rule, in.id); err != nil {
		return err
	}
	change := quota.Removed(&rule)
	if in.customers {
		if by.SubAccountID != "" {
			return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account removes its own limits; leave owner out")
		}
		rule.Owner, change.Owner = modelgate.OwnerSubAccount, modelgate.OwnerSubAccount
	}
	record := a.audit(by, "limit.delete", string(rule.Level), rule.ID, change)
	err := a.Store.DeleteRateLimit(ctx, by.ClientID, by.SubAccountID, rule, record)
	if in.customers && errors.Is(err, modelgate.ErrResellersBudget) {
		err = modelgate.Errorf(modelgate.NotFound, "limit not found") // of the customer's
	}
	if err != nil {
		return err
	}
	a.Keys.ForgetClient(by.ClientID) // before the response, so that it takes effect at once on this instance
	return nil
}
