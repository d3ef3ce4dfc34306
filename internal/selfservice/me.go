package selfservice

import (
	"context"

	"modelgate"
)

// meView is what a key may do (spec: GET /gw/me).
type meView struct {
	Scopes       []modelgate.Scope      `json:"scopes"`
	Entitlements modelgate.Entitlements `json:"entitlements"`
}

func (a *API) me(_ context.Context, by actor, _ nothing) (meView, error) {
	return meView{by.Scopes, by.Entitlements}, nil
}

// ceiling is what the caller's keys are issued under: the organization's, or
// its own rights for a key that is bound (spec: GET /gw/ceiling).
func (a *API) ceiling(_ context.Context, by actor, _ nothing) (modelgate.Ceiling, error) {
	return by.Bounds(), nil
}
