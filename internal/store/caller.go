package store

import (
	"context"
	"database/sql"
	"errors"

	"modelgate"
)

// sqlCaller finds nothing for a revoked key and for one whose sub-account is
// not active, as for a key that never was.
const sqlCaller = `SELECT k.id, k.client_id, COALESCE(k.sub_account_id, ''), COALESCE(s.markup, 0),
  k.scopes, k.entitlements, k.denies, k.backing, k.limit_rps, k.limit_burst, k.limit_concurrency, k.expires_at,
  c.routing_policy, c.billing, c.limit_rps, c.limit_burst, c.limit_concurrency, c.ceiling
FROM api_key k
JOIN client c ON c.id = k.client_id
LEFT JOIN sub_account s ON s.client_id = k.client_id AND s.id = k.sub_account_id
WHERE k.digest = $1
  AND k.status = 'active'
  AND (k.sub_account_id IS NULL OR s.status = 'active')
-- sqlCaller`

// Caller finds who presents the secret with this digest. It answers
// modelgate.ErrUnauthorized for a key that is unknown, revoked or of a
// suspended sub-account. An expired key is found: the caller looks at
// ExpiresAt on every call.
func (db *DB) Caller(ctx context.Context, d modelgate.Digest) (modelgate.Caller, error) {
	var c modelgate.Caller
	var own, client modelgate.Limits
	var expiresAt int64
	err := db.read.QueryRowContext(ctx, sqlCaller, d[:]).Scan(&c.KeyID, &c.ClientID, &c.SubAccountID, &c.Markup,
		document{&c.Scopes}, document{&c.Entitlements}, document{&c.Denies}, document{&c.Backing},
		&own.RequestsPerSecond, &own.Burst, &own.Concurrency, &expiresAt,
		&c.RoutingPolicy, &c.Billing, &client.RequestsPerSecond, &client.Burst, &client.Concurrency,
		document{&c.Ceiling})
	if errors.Is(err, sql.ErrNoRows) {
		return modelgate.Caller{}, modelgate.ErrUnauthorized
	}
	if err != nil {
		return modelgate.Caller{}, wrap("look up caller", err)
	}
	c.Limits, c.ExpiresAt = own.Or(client), expires(expiresAt)
	return c, wrap("look up budgets", db.callerBudgets(ctx, &c))
}
