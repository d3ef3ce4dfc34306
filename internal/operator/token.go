package operator

import (
	"context"
	"errors"
	"time"

	"modelgate/internal/store/access"
)

// tokens lists the operator tokens that have not ended, the newest first.
func (a *API) tokens(ctx context.Context, x *exchange) (any, error) {
	if err := x.ready(); err != nil {
		return nil, err
	}
	return a.Store.OperatorTokens(ctx, access.OperatorAPIToken)
}

// newToken is the body of POST /operator/v1/tokens.
type newToken struct {
	Name             string      `json:"name"`
	Role             access.Role `json:"role"`
	ExpiresInSeconds int64       `json:"expires_in_seconds"`
}

// mintedToken is its answer, with the secret that is shown once.
type mintedToken struct {
	access.OperatorToken
	Token string `json:"token"`
}

func (a *API) createToken(ctx context.Context, x *exchange) (any, error) {
	var in newToken
	if err := x.body(&in); err != nil {
		return nil, err
	}
	token, secret, err := access.NewOperatorToken(a.IDs.New().String(), in.Name, in.Role, time.Duration(in.ExpiresInSeconds)*time.Second, a.Now())
	if err != nil {
		return nil, err
	}
	record := a.audit(x, "", "operator.token", "operator_token", token.ID, token)
	if err := a.Store.AddOperatorToken(ctx, token, secret.Digest(), record); err != nil {
		return nil, err
	}
	return mintedToken{token, secret.Reveal()}, nil
}

func (a *API) deleteToken(ctx context.Context, x *exchange) (any, error) {
	id, err := x.pathID("id", "operator token")
	if err = errors.Join(err, x.ready()); err != nil {
		return nil, err
	}
	return nil, a.Store.RevokeOperatorToken(ctx, id, access.OperatorAPIToken, a.audit(x, "", "operator.token_revoke", "operator_token", id, nil))
}
