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
  COALESCE(k.issued_by, ''), k.kind, COALESCE(m.person_id, ''), COALESCE(m.role, ''), k.scopes, CASE WHEN k.id <> $2 THEN k.backing ELSE '[]' END, k.limit_rps, k.limit_burst, k.limit_concurrency, k.expires_at,
  c.routing_policy, c.billing, c.limit_rps, c.limit_burst, c.limit_concurrency, c.ceiling,
  CASE WHEN EXISTS (SELECT 1 FROM rate_limit r WHERE r.client_id = k.client_id) THEN 1 ELSE 0 END,
  CASE WHEN l.scope = 'client' AND k.id <> $2 THEN k.entitlements END, CASE WHEN l.scope = 'client' AND k.id <> $2 THEN k.denies END,
  COALESCE((SELECT h.version FROM rule_head h WHERE h.client_id = k.client_id), 0),
  COALESCE((SELECT h.version FROM rule_head h WHERE h.client_id = '*'), 0),
  COALESCE(b.scope, ''), COALESCE(b.scope_id, ''), COALESCE(b.period, ''), COALESCE(b.amount, 0), COALESCE(b.revision, 0)
FROM api_key k
JOIN client c ON c.id = k.client_id
LEFT JOIN sub_account s ON s.client_id = k.client_id AND s.id = k.sub_account_id
LEFT JOIN member m ON m.client_id = k.client_id AND m.person_id = k.owner AND m.api_key_id = k.id
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
	var with modelgate.KeyID // "" is no key's
	if seen != nil {
		with = seen.KeyID
	}
	var r callerRows
	found, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (modelgate.Budget, error) {
		return s.scanCaller(row, &r)
	}, sqlCaller, d[:], with)
	if err != nil {
		return modelgate.Caller{}, sqldb.Wrap("look up caller", err)
	}
	if len(found) == 0 {
		return modelgate.Caller{}, modelgate.ErrUnauthorized
	}
	c := r.caller
	if c.KeyID == with {
		c.Entitlements, c.Denies, c.Backing = seen.Entitlements, seen.Denies, seen.Backing
	}
	if r.kind == modelgate.KeyDashboard {
		ofMember(&c)
	}
	c.Limits, c.ExpiresAt = r.own.Or(r.client), sqldb.Expires(r.expiresAt)
	if r.issuedBy != "" {
		above, err := s.inherit(ctx, &c, r.client)
		if err != nil {
			return modelgate.Caller{}, sqldb.Wrap("look up ancestors", err)
		}
		found = append(found, above...)
	}
	c.Budgets = applicable(&c, found)
	if r.rated != 0 {
		if c.RateLimits, err = s.rateLimits(ctx, &c); err != nil {
			return modelgate.Caller{}, sqldb.Wrap("look up rate limits", err)
		}
	}
	return c, s.counted.RulesOf(ctx, &c, r.rules, r.file)
}

// callerRows is what the rows of sqlCaller say. All but rules and budgets is the
// same in every row, and read from the first.
type callerRows struct {
	read        bool // the first row
	caller      modelgate.Caller
	kind        modelgate.KeyKind
	issuedBy    string
	own, client modelgate.Limits // of the key and of its organization
	expiresAt   int64
	rated       int64 // 1: the organization has rate limits
	rules       int64 // version of the organization's budget rules
	file        int64 // version of the limits of the configuration file
}

// same are the targets of the columns that are the same in every row.
func (r *callerRows) same() []any {
	c := &r.caller
	first := []any{
		&c.KeyID, &c.ClientID, &c.SubAccountID, &c.Markup,
		&r.issuedBy, &r.kind, &c.PersonID, &c.Role, sqldb.Document{Into: &c.Scopes}, sqldb.Document{Into: &c.Backing},
		&r.own.RequestsPerSecond, &r.own.Burst, &r.own.Concurrency, &r.expiresAt,
		&c.RoutingPolicy, &c.Billing, &r.client.RequestsPerSecond, &r.client.Burst, &r.client.Concurrency, sqldb.Document{Into: &c.Ceiling},
		&r.rated,
	}
	if r.read {
		return slices.Repeat([]any{ignored{}}, len(first))
	}
	return first
}

// scanCaller reads a row of sqlCaller, and returns its budget.
func (s *Store) scanCaller(row sqldb.Scanner, r *callerRows) (b modelgate.Budget, err error) {
	err = row.Scan(append(r.same(), ruleColumn{&s.rules, &r.caller.Entitlements}, ruleColumn{&s.rules, &r.caller.Denies},
		&r.rules, &r.file, &b.Level, &b.ID, &b.Period, &b.Limit, &b.Revision)...)
	r.read = true
	return b, err
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
