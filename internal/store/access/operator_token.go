package access

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const operatorTokenColumns = `id, name, role, created_at, expires_at`

const sqlInsertOperatorToken = `INSERT INTO operator_token (` + operatorTokenColumns + `, digest)
VALUES ($1, $2, $3, $4, $5, $6)
-- sqlInsertOperatorToken`

const sqlOperatorToken = `SELECT ` + operatorTokenColumns + `
FROM operator_token
WHERE digest = $1
-- sqlOperatorToken`

const sqlOperatorTokens = `SELECT ` + operatorTokenColumns + `
FROM operator_token
WHERE expires_at > $1
ORDER BY created_at DESC, id DESC
-- sqlOperatorTokens`

const sqlRevokeOperatorToken = `DELETE FROM operator_token
WHERE id = $1
-- sqlRevokeOperatorToken`

// Role is what an operator token may do. Every role reads.
type Role string

// The roles.
const (
	Admin   Role = "admin"   // everything
	Finance Role = "finance" // money
	Support Role = "support" // revokes keys, suspends sub-accounts
	Auditor Role = "auditor" // reads
)

// OperatorToken is what a caller of the operator's API presents, without its
// secret.
type OperatorToken struct {
	ID        string    `json:"id"` // UUIDv7
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
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
	return OperatorToken{id, name, role, now, now.Add(ttl)}, modelgate.NewOperatorSecret(), nil
}

func scanOperatorToken(s sqldb.Scanner) (OperatorToken, error) {
	var t OperatorToken
	err := s.Scan(&t.ID, &t.Name, &t.Role, sqldb.Moment{Into: &t.CreatedAt}, sqldb.Moment{Into: &t.ExpiresAt})
	return t, err
}

// AddOperatorToken keeps a token under the digest of its secret.
func (s *Store) AddOperatorToken(ctx context.Context, t OperatorToken, d modelgate.Digest, a modelgate.Audit) error {
	return s.db.Update(ctx, "add operator token", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlInsertOperatorToken, t.ID, t.Name, string(t.Role), sqldb.Micros(t.CreatedAt), sqldb.Micros(t.ExpiresAt), d[:])
		if err != nil {
			return err
		}
		return s.record(ctx, tx, "", a)
	})
}

// OperatorToken finds a token by the digest of its secret, also one that has
// expired. Errors: not_found.
func (s *Store) OperatorToken(ctx context.Context, d modelgate.Digest) (OperatorToken, error) {
	t, err := scanOperatorToken(s.db.Read.QueryRowContext(ctx, sqlOperatorToken, d[:]))
	return t, sqldb.Wrap("look up operator token", sqldb.Missing(err, "operator token"))
}

// OperatorTokens lists the tokens that have not expired, the newest first.
func (s *Store) OperatorTokens(ctx context.Context) ([]OperatorToken, error) {
	tokens, err := sqldb.List(ctx, s.db.Read, scanOperatorToken, sqlOperatorTokens, sqldb.Micros(s.db.Now()))
	if tokens == nil {
		tokens = []OperatorToken{}
	}
	return tokens, sqldb.Wrap("list operator tokens", err)
}

// RevokeOperatorToken ends a token at once, on every instance. Errors: not_found.
func (s *Store) RevokeOperatorToken(ctx context.Context, id string, a modelgate.Audit) error {
	return s.db.Update(ctx, "revoke operator token", func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, sqlRevokeOperatorToken, id)
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		if n == 0 {
			return modelgate.Errorf(modelgate.NotFound, "operator token not found")
		}
		return s.record(ctx, tx, "", a)
	})
}
