package store

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlSecret = `SELECT name, key_id, value
FROM secret
WHERE name = $1
-- sqlSecret`

const sqlAddSecret = `INSERT INTO secret (name, key_id, value, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO NOTHING
-- sqlAddSecret`

const sqlSecretsUnder = `SELECT name, key_id, value
FROM secret
WHERE key_id <> $1 AND name > $2
ORDER BY name
LIMIT $3
-- sqlSecretsUnder`

const sqlReplaceSecret = `UPDATE secret
SET key_id = $2, value = $3, updated_at = $4
WHERE name = $1 AND value = $5
-- sqlReplaceSecret`

const sqlCountSecrets = `SELECT key_id, COUNT(*)
FROM secret
GROUP BY key_id
ORDER BY key_id
-- sqlCountSecrets`

// Secret is a text that is sealed under the master key. The store knows
// neither the text nor the key.
type Secret struct {
	// Name says what it is, such as processor/{client_id}; it is bound into
	// Value. Not empty.
	Name  string
	KeyID string // of the master key
	Value []byte
}

// The place that secrets are sealed for, with their name as the row.
const (
	SecretTable  = "secret"
	SecretColumn = "value"
)

func scanSecret(s sqldb.Scanner) (Secret, error) {
	var v Secret
	err := s.Scan(&v.Name, &v.KeyID, &v.Value)
	return v, err
}

// Secret reads a secret. Errors: not_found.
func (db *DB) Secret(ctx context.Context, name string) (Secret, error) {
	s, err := scanSecret(db.read.QueryRowContext(ctx, sqlSecret, name))
	return s, sqldb.Wrap("read secret", sqldb.Missing(err, "secret"))
}

// AddSecret keeps a secret unless there is one of that name, and returns the
// one that is kept: instances that start together agree on it.
func (db *DB) AddSecret(ctx context.Context, s Secret) (Secret, error) {
	var kept Secret
	err := db.update(ctx, "add secret", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, sqlAddSecret, s.Name, s.KeyID, s.Value, sqldb.Micros(db.now())); err != nil {
			return err
		}
		var err error
		kept, err = scanSecret(tx.QueryRowContext(ctx, sqlSecret, s.Name))
		return err
	})
	return kept, err
}

// SecretsNotUnder lists secrets that are sealed under another key, by name
// after the one that is given, at most limit.
func (db *DB) SecretsNotUnder(ctx context.Context, keyID, after string, limit int) ([]Secret, error) {
	found, err := sqldb.List(ctx, db.read, scanSecret, sqlSecretsUnder, keyID, after, limit)
	return found, sqldb.Wrap("list secrets", err)
}

// ReplaceSecrets puts secrets that were sealed anew in the place of the old
// ones, all in one transaction, and returns how many of those were still
// there: one that was changed meanwhile is left alone.
func (db *DB) ReplaceSecrets(ctx context.Context, old, new []Secret, a modelgate.Audit) (int, error) {
	replaced := 0
	err := db.update(ctx, "replace secrets", func(tx *sql.Tx) error {
		replaced = 0
		for i, s := range new {
			r, err := tx.ExecContext(ctx, sqlReplaceSecret, s.Name, s.KeyID, s.Value, sqldb.Micros(db.now()), old[i].Value)
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return err
			}
			replaced += int(n)
		}
		return db.RecordAudit(ctx, tx, "", a)
	})
	return replaced, err
}

// SecretCount is how many secrets are sealed under a master key.
type SecretCount struct {
	KeyID string `json:"key_id"`
	Count int64  `json:"secrets"`
}

// CountSecrets counts the secrets of each master key.
func (db *DB) CountSecrets(ctx context.Context) ([]SecretCount, error) {
	counts, err := sqldb.List(ctx, db.read, func(s sqldb.Scanner) (SecretCount, error) {
		var c SecretCount
		err := s.Scan(&c.KeyID, &c.Count)
		return c, err
	}, sqlCountSecrets)
	return counts, sqldb.Wrap("count secrets", err)
}
