package access

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const tokenColumns = `t.id, t.client_id, t.sub_account_id, t.api_key_id, t.end_user, t.models, t.origins, t.attribution,
  t.requests_per_minute, t.amount, t.created_at, t.expires_at`

// sqlToken finds a token and the digest of its key.
const sqlToken = `SELECT ` + tokenColumns + `, k.digest
FROM browser_token t
JOIN api_key k ON k.id = t.api_key_id
WHERE t.digest = $1 AND NOT t.revoked
-- sqlToken`

const sqlInsertToken = `INSERT INTO browser_token (id, client_id, sub_account_id, api_key_id, digest, end_user, models, origins, attribution,
  requests_per_minute, amount, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
-- sqlInsertToken`

const sqlInsertCap = `INSERT INTO budget (client_id, scope, scope_id, period, amount, revision)
VALUES ($1, 'token', $2, 'ever', $3, 1)
-- sqlInsertCap`

// sqlLiveTokens is one range of browser_token_live.
const sqlLiveTokens = `SELECT COUNT(*)
FROM browser_token
WHERE client_id = $1 AND NOT revoked AND expires_at > $2
-- sqlLiveTokens`

// sqlTokens walks browser_token_newest.
const sqlTokens = `SELECT ` + tokenColumns + `, COALESCE(s.settled, 0)
FROM browser_token t
LEFT JOIN spend s ON s.client_id = t.client_id AND s.scope = 'token' AND s.scope_id = t.id AND s.period = 'ever' AND s.period_start = 0
WHERE t.client_id = $1 AND NOT t.revoked AND t.expires_at > $2
  AND ($3 = '' OR t.sub_account_id = $3) AND ($4 = '' OR t.api_key_id = $4) AND ($5 = '' OR t.end_user = $5)
  AND (t.created_at, t.id) < ($6, $7)
ORDER BY t.created_at DESC, t.id DESC
LIMIT $8
-- sqlTokens`

const sqlTokenSpend = `SELECT settled + held
FROM spend
WHERE client_id = $1 AND scope = 'token' AND scope_id = $2 AND period = 'ever' AND period_start = 0
-- sqlTokenSpend`

const sqlTokenExists = `SELECT EXISTS (
  SELECT 1
  FROM browser_token
  WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3) AND ($4 = '' OR api_key_id = $4))
-- sqlTokenExists`

const sqlRevokeToken = `UPDATE browser_token
SET revoked = $6
WHERE client_id = $1 AND id = $2 AND ($3 = '' OR sub_account_id = $3) AND ($4 = '' OR api_key_id = $4)
  AND NOT revoked AND expires_at > $5
-- sqlRevokeToken`

// sqlRevokeTokens walks browser_token_user.
const sqlRevokeTokens = `UPDATE browser_token
SET revoked = $6
WHERE client_id = $1 AND end_user = $2 AND ($3 = '' OR sub_account_id = $3) AND ($4 = '' OR api_key_id = $4)
  AND NOT revoked AND expires_at > $5
-- sqlRevokeTokens`

// The statements that sweep out tokens walk browser_token_end.
const (
	sqlOldTokens = `SELECT client_id, id
FROM browser_token
WHERE expires_at <= $1
ORDER BY expires_at
LIMIT $2
-- sqlOldTokens`

	sqlDropToken = `DELETE FROM browser_token
WHERE id = $1
-- sqlDropToken`

	sqlDropCap = `DELETE FROM budget
WHERE client_id = $1 AND scope = 'token' AND scope_id = $2
-- sqlDropCap`

	sqlDropTokenSpend = `DELETE FROM spend
WHERE client_id = $1 AND scope = 'token' AND scope_id = $2 AND NOT EXISTS (
    SELECT 1
    FROM slice
    WHERE slice.client_id = spend.client_id AND slice.scope = spend.scope AND slice.scope_id = spend.scope_id)
-- sqlDropTokenSpend`
)

const sqlTokenVersion = `SELECT version + token_version
FROM control
WHERE id = 1
-- sqlTokenVersion`

const sqlRaiseTokens = `UPDATE control
SET token_version = token_version + 1
WHERE id = 1
-- sqlRaiseTokens`

const (
	// sweptTokens is how many that ended long ago go with one that is minted.
	sweptTokens = 4
	// tokenKept is for how long after its end a token stays: a job of its last
	// call has ended by then, and is booked.
	tokenKept = 10 * 24 * time.Hour
)

// errTooManyTokens refuses one more.
var errTooManyTokens = &modelgate.Error{Kind: modelgate.Conflict, Message: "too many live tokens; revoke some, let them expire, or ask the operator to raise tokens.per_client"}

// Minted is a browser token and whose it is.
type Minted struct {
	modelgate.Token
	ClientID     modelgate.ClientID
	SubAccountID modelgate.SubAccountID // of the key
	KeyID        modelgate.KeyID        // that minted it
	Spend        modelgate.Nano         // settled so far; set in lists only
}

func scanToken(s sqldb.Scanner, last any) (Minted, error) {
	var m Minted
	var origins sql.NullString
	err := s.Scan(&m.ID, &m.ClientID, &m.SubAccountID, &m.KeyID, &m.EndUser, sqldb.Document{Into: &m.Models}, &origins,
		sqldb.Document{Into: &m.Attribution}, &m.RequestsPerMinute, &m.Cap,
		sqldb.Moment{Into: &m.CreatedAt}, sqldb.Moment{Into: &m.ExpiresAt}, last)
	if err == nil && origins.Valid {
		err = sqldb.Document{Into: &m.Origins}.Scan(origins.String)
	}
	return m, err
}

// MintToken keeps a token under the digest of its secret, with its cap. Tokens
// that ended long ago are swept out. Errors: conflict where the organization
// has so many live ones, which tokens that are minted at once may pass by a few.
func (s *Store) MintToken(ctx context.Context, m Minted, secret modelgate.Digest, most int, a modelgate.Audit) error {
	models, err := sqldb.JSON(m.Models)
	if err != nil {
		return err
	}
	var origins *string
	if m.Origins != nil {
		text, err := sqldb.JSON(m.Origins)
		if err != nil {
			return err
		}
		origins = &text
	}
	attribution, err := sqldb.JSON(m.Attribution)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "mint token", func(tx *sql.Tx) error {
		now := s.db.Now()
		var live int
		if err := tx.QueryRowContext(ctx, sqlLiveTokens, string(m.ClientID), sqldb.Micros(now)).Scan(&live); err != nil {
			return err
		}
		if live >= most {
			return errTooManyTokens
		}
		if _, err := tx.ExecContext(ctx, sqlInsertToken, string(m.ID), string(m.ClientID), string(m.SubAccountID), string(m.KeyID), secret[:], m.EndUser,
			models, origins, attribution, m.RequestsPerMinute, int64(m.Cap), sqldb.Micros(m.CreatedAt), sqldb.Micros(m.ExpiresAt)); err != nil {
			return err
		}
		if m.Cap > 0 {
			if _, err := tx.ExecContext(ctx, sqlInsertCap, string(m.ClientID), string(m.ID), int64(m.Cap)); err != nil {
				return err
			}
		}
		if err := sweepTokens(ctx, tx, now.Add(-tokenKept)); err != nil {
			return err
		}
		return s.record(ctx, tx, m.ClientID, a)
	})
}

// sweepTokens deletes tokens that ended before an instant, with their counters.
func sweepTokens(ctx context.Context, tx *sql.Tx, before time.Time) error {
	old, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (name [2]string, err error) {
		return name, s.Scan(&name[0], &name[1])
	}, sqlOldTokens, sqldb.Micros(before), sweptTokens)
	if err != nil {
		return err
	}
	for _, t := range old {
		for _, statement := range [...]string{sqlDropCap, sqlDropTokenSpend} {
			if _, err := tx.ExecContext(ctx, statement, t[0], t[1]); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, sqlDropToken, t[1]); err != nil {
			return err
		}
	}
	return nil
}

// TokenCaller is the caller that comes with the token of a digest: its key's,
// narrowed. seen is what was found before, nil for nothing. Errors are
// those of Caller; a token that has expired is found, one that was revoked is not.
func (s *Store) TokenCaller(ctx context.Context, secret modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	var key []byte
	m, err := scanToken(s.db.Read.QueryRowContext(ctx, sqlToken, secret[:]), &key)
	if errors.Is(err, sql.ErrNoRows) {
		return modelgate.Caller{}, modelgate.ErrUnauthorized
	}
	if err != nil {
		return modelgate.Caller{}, sqldb.Wrap("look up token", err)
	}
	var digest modelgate.Digest
	copy(digest[:], key)
	caller, err := s.Caller(ctx, digest, seen)
	if err != nil {
		return modelgate.Caller{}, err
	}
	return caller.As(&m.Token), nil
}

// TokenVersion is a number that grows whenever what TokenCaller found may have
// become wrong. Reading it is cheap enough to be done every second.
func (s *Store) TokenVersion(ctx context.Context) (int64, error) {
	var v int64
	err := s.db.Read.QueryRowContext(ctx, sqlTokenVersion).Scan(&v)
	return v, sqldb.Wrap("read token version", err)
}

// TokenScope narrows which tokens of an organization may be seen and revoked.
type TokenScope struct {
	SubAccountID modelgate.SubAccountID // "" for all
	KeyID        modelgate.KeyID        // that minted them; "" for all
}

// TokenList selects live tokens.
type TokenList struct {
	TokenScope
	EndUser string        // "" for all
	Limit   int           // 0 for all
	After   *sqldb.Cursor // nil for the first page
}

// Tokens lists live tokens, the newest first, and reports whether more follow.
func (s *Store) Tokens(ctx context.Context, client modelgate.ClientID, l TokenList) ([]Minted, bool, error) {
	at, id := l.After.Bound()
	rows, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (Minted, error) {
		var spend modelgate.Nano
		m, err := scanToken(s, &spend)
		m.Spend = spend
		return m, err
	}, sqlTokens, string(client), sqldb.Micros(s.db.Now()), string(l.SubAccountID), string(l.KeyID), sqldb.Clean(l.EndUser), at, id, sqldb.Fetch(l.Limit))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list tokens", err)
}

// TokenSpend is what the calls of a token have cost and what open ones hold.
func (s *Store) TokenSpend(ctx context.Context, client modelgate.ClientID, id modelgate.TokenID) (modelgate.Nano, error) {
	var n modelgate.Nano
	err := s.db.Read.QueryRowContext(ctx, sqlTokenSpend, string(client), string(id)).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, sqldb.Wrap("read token spend", err)
}

// RevokeToken ends a token for good. To revoke one that has ended changes
// nothing. It raises the token version. Errors: not_found.
func (s *Store) RevokeToken(ctx context.Context, client modelgate.ClientID, in TokenScope, id modelgate.TokenID, a modelgate.Audit) error {
	return s.db.Update(ctx, "revoke token", func(tx *sql.Tx) error {
		var there bool
		if err := tx.QueryRowContext(ctx, sqlTokenExists, string(client), string(id), string(in.SubAccountID), string(in.KeyID)).Scan(&there); err != nil {
			return err
		}
		if !there {
			return modelgate.Errorf(modelgate.NotFound, "token not found")
		}
		_, err := s.revokeTokens(ctx, tx, sqlRevokeToken, client, in, string(id), a)
		return err
	})
}

// RevokeTokensOf is RevokeToken for all live tokens of an end user. It reports
// how many there were, which may be none.
func (s *Store) RevokeTokensOf(ctx context.Context, client modelgate.ClientID, in TokenScope, endUser string, a modelgate.Audit) (n int64, err error) {
	err = s.db.Update(ctx, "revoke tokens", func(tx *sql.Tx) error {
		n, err = s.revokeTokens(ctx, tx, sqlRevokeTokens, client, in, sqldb.Clean(endUser), a)
		return err
	})
	return n, err
}

func (s *Store) revokeTokens(ctx context.Context, tx *sql.Tx, statement string, client modelgate.ClientID, in TokenScope, what string, a modelgate.Audit) (int64, error) {
	n, err := sqldb.Affected(ctx, tx, statement, string(client), what, string(in.SubAccountID), string(in.KeyID), sqldb.Micros(s.db.Now()), true)
	if err != nil {
		return 0, err
	}
	if err := s.record(ctx, tx, client, a); err != nil || n == 0 {
		return n, err
	}
	_, err = tx.ExecContext(ctx, sqlRaiseTokens) // last, as sqldb.RaiseControl
	return n, err
}
