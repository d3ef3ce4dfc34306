package access

import (
	"context"
	"slices"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlCaller finds nothing for a revoked key and for one whose organization or
// sub-account is not active, as for a key that never was. There are rows for each level: one
// for each of its budgets, by the primary key of budget, or one without. Rules
// can be long and come with one level only, and not at all for the key $2.
const sqlCaller = `SELECT k.id, k.client_id, COALESCE(k.sub_account_id, ''), COALESCE(s.markup, 0),
  COALESCE(k.issued_by, ''), k.kind, k.scopes, CASE WHEN k.id <> $2 THEN k.backing ELSE '[]' END, k.limit_rps, k.limit_burst, k.limit_concurrency, k.expires_at,
  c.routing_policy, c.billing, c.limit_rps, c.limit_burst, c.limit_concurrency, c.ceiling,
  CASE WHEN EXISTS (SELECT 1 FROM rate_limit r WHERE r.client_id = k.client_id) THEN 1 ELSE 0 END,
  CASE WHEN l.scope = 'client' AND k.id <> $2 THEN k.entitlements END, CASE WHEN l.scope = 'client' AND k.id <> $2 THEN k.denies END,
  COALESCE((SELECT h.version FROM rule_head h WHERE h.client_id = k.client_id), 0),
  COALESCE(b.scope, ''), COALESCE(b.scope_id, ''), COALESCE(b.period, ''), COALESCE(b.amount, 0), COALESCE(b.revision, 0)
FROM api_key k
JOIN client c ON c.id = k.client_id
LEFT JOIN sub_account s ON s.client_id = k.client_id AND s.id = k.sub_account_id
CROSS JOIN (SELECT 'client' AS scope UNION ALL SELECT 'sub_account' UNION ALL SELECT 'key') l
LEFT JOIN budget b ON b.client_id = k.client_id AND b.scope = l.scope
  AND b.scope_id = CASE l.scope WHEN 'client' THEN k.client_id WHEN 'sub_account' THEN k.sub_account_id ELSE k.id END
WHERE k.digest = $1
  AND k.status = 'active' AND c.status = 'active'
  AND (k.sub_account_id IS NULL OR s.status = 'active')
-- sqlCaller`

// Caller finds who presents the secret with this digest, and the budgets that
// apply. It answers modelgate.ErrUnauthorized for a key that is unknown,
// revoked or of a suspended organization or sub-account. An expired key is found: the caller
// looks at ExpiresAt on every call.
//
// seen is what was found before, nil for nothing. The rules of a key never
// change and can be thousands: they are taken from there.
func (s *Store) Caller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	var c modelgate.Caller
	var with modelgate.KeyID // "" is no key's
	if seen != nil {
		with = seen.KeyID
	}
	var own, client modelgate.Limits
	var expiresAt, rated, rules int64
	var issuedBy string
	var kind modelgate.KeyKind
	into := []any{
		&c.KeyID, &c.ClientID, &c.SubAccountID, &c.Markup,
		&issuedBy, &kind, sqldb.Document{Into: &c.Scopes}, sqldb.Document{Into: &c.Backing},
		&own.RequestsPerSecond, &own.Burst, &own.Concurrency, &expiresAt,
		&c.RoutingPolicy, &c.Billing, &client.RequestsPerSecond, &client.Burst, &client.Concurrency, sqldb.Document{Into: &c.Ceiling},
		&rated,
	}
	constant := len(into)
	found, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (modelgate.Budget, error) {
		var b modelgate.Budget
		err := row.Scan(append(into[:constant], ruleColumn{&s.rules, &c.Entitlements}, ruleColumn{&s.rules, &c.Denies},
			&rules, &b.Level, &b.ID, &b.Period, &b.Limit, &b.Revision)...)
		for i := range constant {
			into[i] = ignored{} // the same in every row
		}
		return b, err
	}, sqlCaller, d[:], with)
	if err != nil {
		return modelgate.Caller{}, sqldb.Wrap("look up caller", err)
	}
	if len(found) == 0 {
		return modelgate.Caller{}, modelgate.ErrUnauthorized
	}
	if c.KeyID == with {
		c.Entitlements, c.Denies, c.Backing = seen.Entitlements, seen.Denies, seen.Backing
	}
	if kind == modelgate.KeyDashboard {
		ofMember(&c)
	}
	c.Limits, c.ExpiresAt = own.Or(client), sqldb.Expires(expiresAt)
	if issuedBy != "" {
		above, err := s.inherit(ctx, &c, client)
		if err != nil {
			return modelgate.Caller{}, sqldb.Wrap("look up ancestors", err)
		}
		found = append(found, above...)
	}
	c.Budgets = applicable(&c, found)
	if rated != 0 {
		if c.RateLimits, err = s.rateLimits(ctx, &c); err != nil {
			return modelgate.Caller{}, sqldb.Wrap("look up rate limits", err)
		}
	}
	if rules == 0 {
		return c, nil
	}
	return c, s.counted.RulesOf(ctx, &c, rules)
}

// ofMember gives the caller with a member's hidden key the rights that the
// organization's ceiling leaves of its role.
func ofMember(c *modelgate.Caller) {
	c.Scopes = slices.DeleteFunc(c.Scopes, func(s modelgate.Scope) bool { return !slices.Contains(c.Ceiling.MaxScopes, s) })
	c.Entitlements, c.Denies, c.Backing = c.Ceiling.Entitlements, c.Ceiling.Entitlements.Only(modelgate.Deny), nil
}

// ignored takes a column that is not wanted.
type ignored struct{}

// Scan implements sql.Scanner.
func (ignored) Scan(any) error { return nil }

// applicable sorts a caller's budgets, and notes that a wallet pays where one is
// among them. A manual-billing client's balance is, also before its first credit;
// another's is not.
func applicable(c *modelgate.Caller, found []modelgate.Budget) []modelgate.Budget {
	var budgets []modelgate.Budget
	balance := modelgate.Budget{Level: modelgate.LevelClient, ID: string(c.ClientID), Period: modelgate.Total}
	for _, b := range found {
		switch {
		case b.Level == "":
		case b.IsWallet():
			markup := c.Markup
			c.WalletMarkup = &markup
			budgets = append(budgets, b)
		case b.IsBalance():
			balance = b
		default:
			budgets = append(budgets, b)
		}
	}
	if c.Billing == modelgate.Manual {
		budgets = append(budgets, balance)
	}
	modelgate.SortBudgets(budgets)
	return budgets
}
