package access

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"
	"weak"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlRateLimits lists the rate limits of one client, $1 and $3, or of all
// between them; where $2 names a sub-account, its and its keys'.
const sqlRateLimits = `SELECT client_id, number, scope, scope_id, match, unit, time_window, owner, amount, burst
FROM (
  SELECT client_id, number, scope, scope_id, match, unit, time_window, owner, amount, burst
  FROM rate_limit
  WHERE client_id >= $1 AND client_id <= $3
  UNION ALL
  SELECT client_id, number, scope, scope_id, match_text, unit, period, owner, amount, 0
  FROM rule
  WHERE client_id >= $1 AND client_id <= $3 AND unit <> '') r
WHERE client_id >= $1 AND client_id <= $3 AND ($2 = '' OR scope = 'sub_account' AND scope_id = $2 OR scope = 'key' AND EXISTS (
    SELECT 1
    FROM api_key k
    WHERE k.id = r.scope_id AND k.client_id = r.client_id AND k.sub_account_id = $2))
ORDER BY client_id, scope, scope_id, match, unit, time_window, owner
-- sqlRateLimits`

// sqlRateLimitsOfCaller are those that bind a key $3 of a sub-account $2, or of
// none.
const sqlRateLimitsOfCaller = `SELECT client_id, number, scope, scope_id, match, unit, time_window, owner, amount, burst
FROM rate_limit
WHERE client_id = $1 AND (scope = 'client' OR scope = 'sub_account' AND scope_id = $2 OR scope = 'key' AND (scope_id = $3 OR scope_id IN (
    SELECT ancestor_id
    FROM key_lineage
    WHERE key_id = $3)))
-- sqlRateLimitsOfCaller`

const sqlPutRateLimit = `INSERT INTO rate_limit (client_id, scope, scope_id, match, unit, time_window, owner, amount, burst, number)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (client_id, scope, scope_id, match, unit, time_window, owner) DO UPDATE
SET amount = excluded.amount, burst = excluded.burst, number = excluded.number
-- sqlPutRateLimit`

const sqlDeleteRateLimit = `DELETE FROM rate_limit
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND match = $4 AND unit = $5 AND time_window = $6 AND owner = $7
-- sqlDeleteRateLimit`

const sqlRateLimitOwners = `SELECT owner
FROM rate_limit
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND match = $4 AND unit = $5 AND time_window = $6
-- sqlRateLimitOwners`

// sqlRateLimitTarget counts whether a target is the client's and, where $4 names
// a sub-account, that one's.
const sqlRateLimitTarget = `SELECT
  (SELECT COUNT(*) FROM client WHERE $2 = 'client' AND id = $1 AND id = $3 AND $4 = '')
  + (SELECT COUNT(*) FROM sub_account WHERE $2 = 'sub_account' AND client_id = $1 AND id = $3 AND ($4 = '' OR id = $4))
  + (SELECT COUNT(*) FROM api_key WHERE $2 = 'key' AND client_id = $1 AND id = $3 AND ($4 = '' OR sub_account_id = $4))
-- sqlRateLimitTarget`

// ClientRateLimit is a rate limit and whose it is.
type ClientRateLimit struct {
	modelgate.RateLimit
	ClientID modelgate.ClientID
}

// RateLimits lists the rate limits of an organization, or with "" of all. Where
// within names a sub-account, the list is of that one and its keys.
func (s *Store) RateLimits(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID) ([]ClientRateLimit, error) {
	first, last := string(client), string(client)
	if client == "" {
		first, last = "+", "~" // before and behind every id, and behind modelgate.FileClient
	}
	out, err := sqldb.List(ctx, s.db.Read, scanRateLimit, sqlRateLimits, first, string(within), last)
	return out, sqldb.Wrap("list rate limits", err)
}

func scanRateLimit(s sqldb.Scanner) (ClientRateLimit, error) {
	var l ClientRateLimit
	var match string
	if err := s.Scan(&l.ClientID, &l.Number, &l.Level, &l.ID, &match, &l.Unit, &l.Window, &l.Owner, &l.Limit, &l.Burst); err != nil {
		return l, err
	}
	if match == "" {
		return l, nil
	}
	var err error
	l.Match, err = modelgate.ParseMatch(match)
	return l, err
}

// PutRateLimit sets a rate limit, in place of one of the same owner, target,
// match, unit and window. One that is OnClock counts the calls of its present
// window. Where within names a sub-account, a target that is not
// that one or a key of it is not_found. It raises the control version. Errors:
// bad_request, not_found; conflict where the owner has set too many for the
// target.
func (s *Store) PutRateLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.OnClock() {
		return s.counted.PutLimit(ctx, client, within, l, a)
	}
	return s.changeRateLimit(ctx, "put rate limit", client, within, &l, a, func(tx *sql.Tx, name []any, version int64) error {
		if _, err := tx.ExecContext(ctx, sqlPutRateLimit, append(name, l.Limit, l.Burst, version)...); err != nil {
			return err
		}
		return s.counted.CheckRules(ctx, tx, client, l.Level, l.ID, modelgate.Owner(ownerOf(&l)))
	})
}

// DeleteRateLimit removes a rate limit of its owner. It raises the control
// version. Within is as for PutRateLimit. Errors: not_found; forbidden where only
// somebody above the owner has set one.
func (s *Store) DeleteRateLimit(ctx context.Context, client modelgate.ClientID, within modelgate.SubAccountID, l modelgate.RateLimit, a modelgate.Audit) error {
	if l.OnClock() {
		return s.counted.DeleteLimit(ctx, client, within, l, a)
	}
	return s.changeRateLimit(ctx, "delete rate limit", client, within, &l, a, func(tx *sql.Tx, name []any, _ int64) error {
		r, err := tx.ExecContext(ctx, sqlDeleteRateLimit, name...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return notOwnRateLimit(ctx, tx, name[:len(name)-1], l.Owner)
	})
}

// notOwnRateLimit is why an owner has no rate limit to remove.
func notOwnRateLimit(ctx context.Context, tx *sql.Tx, name []any, owner modelgate.Owner) error {
	owners, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlRateLimitOwners, name...)
	if err != nil {
		return err
	}
	operators := slices.Contains(owners, string(modelgate.OwnerOperator))
	switch {
	case owner == modelgate.OwnerSubAccount && (operators || slices.Contains(owners, string(modelgate.OwnerOrganization))):
		return modelgate.ErrResellersBudget
	case owner == modelgate.OwnerOrganization && operators:
		return modelgate.ErrOperatorsBudget
	}
	return modelgate.Errorf(modelgate.NotFound, "limit not found")
}

// ownerOf is who a rate limit's owner is stored as.
func ownerOf(l *modelgate.RateLimit) string {
	return string(cmp.Or(l.Owner, modelgate.OwnerOrganization))
}

func (s *Store) changeRateLimit(ctx context.Context, op string, client modelgate.ClientID, within modelgate.SubAccountID, l *modelgate.RateLimit, a modelgate.Audit,
	change func(tx *sql.Tx, name []any, version int64) error) error {
	return s.db.Update(ctx, op, func(tx *sql.Tx) error {
		var found int
		err := tx.QueryRowContext(ctx, sqlRateLimitTarget, string(client), string(l.Level), l.ID, string(within)).Scan(&found)
		if err != nil {
			return err
		}
		if found == 0 {
			return modelgate.Errorf(modelgate.NotFound, "limit target not found")
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		version, err := sqldb.NextControl(ctx, tx)
		if err != nil {
			return err
		}
		return change(tx, []any{string(client), string(l.Level), l.ID, l.Match.String(), string(l.Unit), l.Window, ownerOf(l)}, version)
	})
}

// rateLimits are those that bind a caller. Callers share them: an organization
// can have a thousand, and a hundred thousand keys.
func (s *Store) rateLimits(ctx context.Context, c *modelgate.Caller) ([]*modelgate.RateLimit, error) {
	found, err := sqldb.List(ctx, s.db.Read, scanRateLimit, sqlRateLimitsOfCaller, string(c.ClientID), string(c.SubAccountID), string(c.KeyID))
	if err != nil {
		return nil, err
	}
	out := make([]*modelgate.RateLimit, len(found))
	for i := range found {
		out[i] = s.rates.shared(&found[i].RateLimit)
	}
	modelgate.SortRates(out)
	return out, nil
}

// rateLimitCache shares rate limits that callers have in common, for as long as
// somebody has them. The zero value is ready. It is safe for concurrent use.
type rateLimitCache struct {
	mu    sync.Mutex
	known map[int64]weak.Pointer[modelgate.RateLimit]
	sweep int // the size at which those that nobody has are dropped
}

// shared is the limit that others have already, or this one.
func (c *rateLimitCache) shared(l *modelgate.RateLimit) *modelgate.RateLimit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[l.Number].Value(); known != nil && known.ID == l.ID && known.Level == l.Level {
		return known
	}
	if len(c.known) >= c.sweep {
		for n, p := range c.known {
			if p.Value() == nil {
				delete(c.known, n)
			}
		}
		c.sweep = max(1024, 2*len(c.known))
	}
	if c.known == nil {
		c.known = make(map[int64]weak.Pointer[modelgate.RateLimit])
	}
	own := *l
	c.known[l.Number] = weak.Make(&own)
	return &own
}
