package spend

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlCountRules counts the rules of an owner at a target, and says how many there
// may be.
const sqlCountRules = `SELECT
  (SELECT COUNT(*) FROM rule WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND owner = $4)
  + (SELECT COUNT(*) FROM rate_limit WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND owner = $4),
  CASE WHEN $2 = 'client' THEN max_rules WHEN $2 = 'sub_account' THEN 100 ELSE 32 END
FROM client
WHERE id = $1
-- sqlCountRules`

const sqlRuleCount = `SELECT (SELECT COUNT(*) FROM rule) + (SELECT COUNT(*) FROM rate_limit)
-- sqlRuleCount`

// PutLimit sets a rate limit over an hour or a day, in place of one of the same
// owner, target, match, unit and window. A new one counts the calls of its
// present window. It raises the control version. Within is as for PutBudget.
// Errors: bad_request, not_found; conflict for too many; unavailable where the
// calls so far are too many to be counted. (spec: PUT /gw/limits)
func (s *Store) PutLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	return s.changeBudget(ctx, "put rate limit", client, within, l.Budget(), a, func(tx *sql.Tx, b *modelgate.Budget, version int64) error {
		return s.putRule(ctx, tx, client, b, version)
	})
}

// DeleteLimit removes a rate limit over an hour or a day of its owner. It raises
// the control version. Within is as for PutBudget. Errors: not_found; forbidden
// where only somebody above the owner has set one.
func (s *Store) DeleteLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error {
	return s.changeBudget(ctx, "delete rate limit", client, within, l.Budget(), a, func(tx *sql.Tx, b *modelgate.Budget, _ int64) error {
		if found, err := s.deleteRule(ctx, tx, client, b); err != nil || found {
			return err
		}
		return notOwn(ctx, tx, client, b)
	})
}

// CheckRules fails where an owner has more rules and rate limits at a target than
// it may have. Errors: conflict.
func (s *Store) CheckRules(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, of modelgate.Level, id string, owner modelgate.Owner) error {
	var there, most int
	err := tx.QueryRowContext(ctx, sqlCountRules, string(client), string(of), id, string(owner)).Scan(&there, &most)
	if err == nil && there > most {
		return errTooManyRules
	}
	return err
}

// RuleCount is how many budgets with counters of their own and rate limits there
// are, of all organizations.
func (s *Store) RuleCount(ctx context.Context) (n int, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlRuleCount).Scan(&n)
	return n, sqldb.Wrap("count rules", err)
}
