package access

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const operatorTokenColumns = `id, name, role, kind, parent, created_at, expires_at, provider, issuer, subject, provider_session, idle, last_seen_at`

const sqlInsertOperatorToken = `INSERT INTO operator_token (` + operatorTokenColumns + `, digest)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
-- sqlInsertOperatorToken`

const sqlOperatorToken = `SELECT ` + operatorTokenColumns + `
FROM operator_token
WHERE digest = $1
-- sqlOperatorToken`

const sqlOperatorTokens = `SELECT ` + operatorTokenColumns + `
FROM operator_token
WHERE kind = $1 AND expires_at > $2 AND (idle = 0 OR last_seen_at + idle > $2)
ORDER BY created_at DESC, id DESC
-- sqlOperatorTokens`

const sqlRevokeOperatorToken = `DELETE FROM operator_token
WHERE id = $1 AND kind = $2
-- sqlRevokeOperatorToken`

const sqlEndOperatorSessions = `DELETE FROM operator_token
WHERE parent = $1
-- sqlEndOperatorSessions`

const sqlUseOperatorLink = `DELETE FROM operator_token
WHERE digest = $1 AND kind = 'link' AND expires_at > $2
-- sqlUseOperatorLink`

const sqlPruneOperatorTokens = `DELETE FROM operator_token
WHERE kind <> 'token' AND (expires_at <= $1 OR idle > 0 AND last_seen_at + idle <= $1)
-- sqlPruneOperatorTokens`

const sqlTouchOperatorSession = `UPDATE operator_token
SET last_seen_at = $2
WHERE id = $1 AND last_seen_at < $3
-- sqlTouchOperatorSession`

// sqlEndOperatorsOfProvider ends sessions as sqlEndSessionsOfProvider does.
const sqlEndOperatorsOfProvider = `DELETE FROM operator_token
WHERE kind = 'session' AND issuer = $1 AND ($2 = '' OR provider_session = $2) AND ($3 = '' OR subject = $3)
-- sqlEndOperatorsOfProvider`

// Role is what an operator token may do. Every role reads.
type Role string

// The roles.
const (
	Admin   Role = "admin"   // everything
	Finance Role = "finance" // money
	Support Role = "support" // revokes keys, suspends sub-accounts
	Auditor Role = "auditor" // reads
)

// OperatorKind is how a secret of the operator's API is presented.
type OperatorKind string

// The kinds.
const (
	OperatorAPIToken OperatorKind = "token"   // in the header Authorization
	OperatorSession  OperatorKind = "session" // in the cookie of the console
	OperatorLink     OperatorKind = "link"    // once, to open a session
)

// OperatorToken is what a caller of the operator's API presents, without its
// secret.
type OperatorToken struct {
	ID   string       `json:"id"` // UUIDv7
	Name string       `json:"name"`
	Role Role         `json:"role"`
	Kind OperatorKind `json:"-"`
	// Parent is the id of the token that a session was opened with; "" for none.
	Parent    string    `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Account is who has signed in with an account of an OpenID provider; the zero
	// value for everything else.
	Account OperatorAccount `json:"-"`
	// Idle ends a session that was not used for so long; 0 for never.
	Idle time.Duration `json:"-"`
	// LastSeenAt is when a session was last used, to the minute.
	LastSeenAt time.Time `json:"-"`
}

// OperatorAccount is an account of an OpenID provider.
type OperatorAccount struct {
	Provider        string // its name
	Issuer, Subject string
	Session         string // what the provider calls it; "" where it does not say
}

// Live reports whether the token is good at the instant now.
func (t *OperatorToken) Live(now time.Time) bool {
	return now.Before(t.ExpiresAt) && (t.Idle == 0 || now.Sub(t.LastSeenAt) < t.Idle)
}

// The bounds of a token's life.
const (
	minOperatorTTL = time.Minute
	maxOperatorTTL = 365 * 24 * time.Hour
)

// NewOperatorToken draws a token. Errors are bad_request.
func NewOperatorToken(id, name string, role Role, ttl time.Duration, now time.Time) (OperatorToken, modelgate.Secret, error) {
	var none modelgate.Secret
	name, err := modelgate.CleanName(name)
	switch {
	case err != nil:
		return OperatorToken{}, none, err
	case role != Admin && role != Finance && role != Support && role != Auditor:
		return OperatorToken{}, none, modelgate.Errorf(modelgate.BadRequest, "role must be admin, finance, support or auditor")
	case ttl < minOperatorTTL || ttl > maxOperatorTTL:
		return OperatorToken{}, none, modelgate.Errorf(modelgate.BadRequest, "expires_in_seconds must be an integer from 60 to 31536000")
	}
	now = now.UTC().Truncate(time.Microsecond)
	return OperatorToken{ID: id, Name: name, Role: role, Kind: OperatorAPIToken, CreatedAt: now, ExpiresAt: now.Add(ttl)}, modelgate.NewOperatorSecret(), nil
}

func scanOperatorToken(s sqldb.Scanner) (OperatorToken, error) {
	var t OperatorToken
	var idle int64
	err := s.Scan(&t.ID, &t.Name, &t.Role, &t.Kind, &t.Parent, sqldb.Moment{Into: &t.CreatedAt}, sqldb.Moment{Into: &t.ExpiresAt},
		&t.Account.Provider, &t.Account.Issuer, &t.Account.Subject, &t.Account.Session, &idle, sqldb.Moment{Into: &t.LastSeenAt})
	t.Idle = time.Duration(idle) * time.Microsecond
	return t, err
}

// AddOperatorToken keeps a token under the digest of its secret. Sessions and links
// that have expired are deleted meanwhile.
func (s *Store) AddOperatorToken(ctx context.Context, t OperatorToken, d modelgate.Digest, a modelgate.Audit) error {
	return s.db.Update(ctx, "add operator token", func(tx *sql.Tx) error {
		return s.insertOperatorToken(ctx, tx, &t, d, a)
	})
}

func (s *Store) insertOperatorToken(ctx context.Context, tx *sql.Tx, t *OperatorToken, d modelgate.Digest, a modelgate.Audit) error {
	t.LastSeenAt = t.CreatedAt
	if _, err := tx.ExecContext(ctx, sqlPruneOperatorTokens, sqldb.Micros(s.db.Now())); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, sqlInsertOperatorToken, t.ID, t.Name, string(t.Role), string(t.Kind), t.Parent, sqldb.Micros(t.CreatedAt), sqldb.Micros(t.ExpiresAt),
		t.Account.Provider, t.Account.Issuer, t.Account.Subject, t.Account.Session, t.Idle.Microseconds(), sqldb.Micros(t.LastSeenAt), d[:])
	if err != nil {
		return err
	}
	return s.record(ctx, tx, "", a)
}

// UseOperatorLink opens a session with a link, which is good once. Errors:
// unauthorized.
func (s *Store) UseOperatorLink(ctx context.Context, link modelgate.Digest, session OperatorToken, d modelgate.Digest, a modelgate.Audit) error {
	return s.db.Update(ctx, "use operator link", func(tx *sql.Tx) error {
		n, err := sqldb.Affected(ctx, tx, sqlUseOperatorLink, link[:], sqldb.Micros(s.db.Now()))
		if err != nil {
			return err
		}
		if n == 0 {
			return modelgate.Errorf(modelgate.Unauthorized, "this link was used or has expired; make another with \"modelgate operator link\"")
		}
		return s.insertOperatorToken(ctx, tx, &session, d, a)
	})
}

// OperatorToken finds a token by the digest of its secret, also one that has
// expired. Errors: not_found.
func (s *Store) OperatorToken(ctx context.Context, d modelgate.Digest) (OperatorToken, error) {
	t, err := scanOperatorToken(s.db.Read.QueryRowContext(ctx, sqlOperatorToken, d[:]))
	return t, sqldb.Wrap("look up operator token", sqldb.Missing(err, "operator token"))
}

// OperatorTokens lists those of a kind that have not expired, the newest first.
func (s *Store) OperatorTokens(ctx context.Context, kind OperatorKind) ([]OperatorToken, error) {
	tokens, err := sqldb.List(ctx, s.db.Read, scanOperatorToken, sqlOperatorTokens, string(kind), sqldb.Micros(s.db.Now()))
	if tokens == nil {
		tokens = []OperatorToken{}
	}
	return tokens, sqldb.Wrap("list operator tokens", err)
}

// RevokeOperatorToken ends a token with its sessions, or a session, at once, on
// every instance. Errors: not_found.
func (s *Store) RevokeOperatorToken(ctx context.Context, id string, kind OperatorKind, a modelgate.Audit) error {
	return s.db.Update(ctx, "revoke operator token", func(tx *sql.Tx) error {
		n, err := sqldb.Affected(ctx, tx, sqlRevokeOperatorToken, id, string(kind))
		if err != nil {
			return err
		}
		if n == 0 {
			return modelgate.Errorf(modelgate.NotFound, "operator %s not found", kind)
		}
		if _, err := tx.ExecContext(ctx, sqlEndOperatorSessions, id); err != nil {
			return err
		}
		return s.record(ctx, tx, "", a)
	})
}

// touchOperators is how exactly the last use of a session is known.
const touchOperators = time.Minute

// TouchOperatorSession notes that a session is used, once a minute.
func (s *Store) TouchOperatorSession(ctx context.Context, t *OperatorToken) error {
	now := s.db.Now()
	if t.Idle == 0 || now.Sub(t.LastSeenAt) < touchOperators {
		return nil
	}
	return s.db.Update(ctx, "touch operator session", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlTouchOperatorSession, t.ID, sqldb.Micros(now), sqldb.Micros(now.Add(-touchOperators)))
		return err
	})
}
