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

func (a *API) me(_ context.Context, b by, _ nothing) (meView, error) {
	return meView{b.Scopes, b.Entitlements}, nil
}

// ceiling is what the caller's keys are issued under: the organization's, or
// its own rights for a key that is bound (spec: GET /gw/ceiling).
func (a *API) ceiling(_ context.Context, b by, _ nothing) (modelgate.Ceiling, error) {
	return b.Bounds(), nil
}
