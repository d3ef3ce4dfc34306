package selfservice

import (
	"context"

	"modelgate"
)

func (a *API) listSubAccounts(ctx context.Context, by actor, _ nothing) ([]modelgate.SubAccount, error) {
	return a.Store.SubAccounts(ctx, by.ClientID)
}

// newSubAccount is the body of POST /gw/subaccounts.
type newSubAccount struct {
	Name   string            `json:"name"`
	Slug   string            `json:"slug"`
	Markup *modelgate.Markup `json:"markup_pct,omitempty" null:"absent"` // nothing but 0
	_      struct{}          `ignore:"id,status,created_at"`
}

func (s *newSubAccount) read(x *exchange) error {
	if err := x.body(s); err != nil {
		return err
	}
	if s.Markup != nil && *s.Markup != 0 {
		return modelgate.Errorf(modelgate.BadRequest, "markup_pct is 0 for a new sub-account; set it with PATCH /gw/subaccounts/{id}")
	}
	s.Markup = nil
	var err error
	if s.Name, err = modelgate.CleanName(s.Name); err != nil {
		return err
	}
	return modelgate.CheckSlug("slug", s.Slug)
}

func (a *API) createSubAccount(ctx context.Context, by actor, in newSubAccount) (modelgate.SubAccount, error) {
	s := modelgate.SubAccount{
		ID:        modelgate.SubAccountID(a.IDs.New().String()),
		ClientID:  by.ClientID,
		Name:      in.Name,
		Slug:      in.Slug,
		Status:    modelgate.SubAccountActive,
		CreatedAt: a.Now(),
	}
	return s, a.Store.CreateSubAccount(ctx, s, a.audit(by, "sub_account.create", "sub_account", string(s.ID), in))
}

// subAccountPatch is PATCH /gw/subaccounts/{id}: absent members stay.
type subAccountPatch struct {
	id     modelgate.SubAccountID
	Status *modelgate.SubAccountStatus `json:"status,omitempty"`
	Name   *string                     `json:"name,omitempty"`
	Markup *modelgate.Markup           `json:"markup_pct,omitempty"`
	// MaxKeys is how many live keys may be bound to it.
	MaxKeys *int `json:"max_keys,omitempty"`
}

func (p *subAccountPatch) read(x *exchange) error {
	if err := x.body(p); err != nil {
		return err
	}
	if s := p.Status; s != nil && *s != modelgate.SubAccountActive && *s != modelgate.SubAccountSuspended {
		return modelgate.Errorf(modelgate.BadRequest, "status must be active or suspended")
	}
	if n := p.MaxKeys; n != nil && (*n < 1 || *n > modelgate.MaxBoundKeys) {
		return modelgate.Errorf(modelgate.BadRequest, "max_keys must be from 1 to %d", modelgate.MaxBoundKeys)
	}
	if p.Name != nil {
		name, err := modelgate.CleanName(*p.Name)
		if err != nil {
			return err
		}
		p.Name = &name
	}
	id, err := x.pathID("sub-account")
	p.id = modelgate.SubAccountID(id)
	return err
}

func (a *API) patchSubAccount(ctx context.Context, by actor, in subAccountPatch) error {
	if by.Role == modelgate.RoleBilling && (in.Status != nil || in.Name != nil || in.MaxKeys != nil) {
		return modelgate.Errorf(modelgate.Forbidden, "the role billing changes markup_pct and nothing else")
	}
	patch := modelgate.SubAccountPatch{Status: in.Status, Name: in.Name, Markup: in.Markup, MaxKeys: in.MaxKeys}
	record := a.audit(by, "sub_account.update", "sub_account", string(in.id), in)
	if err := a.Store.PatchSubAccount(ctx, by.ClientID, in.id, patch, record); err != nil {
		return err
	}
	a.Keys.ForgetSubAccount(in.id) // before the response, so that it takes effect at once on this instance
	return nil
}
