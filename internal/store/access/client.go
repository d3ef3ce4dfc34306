package access

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const clientColumns = `id, name, status, routing_policy, billing, max_keys, max_rules, limit_rps, limit_burst, limit_concurrency,
  ceiling, created_at`

const sqlInsertClient = `INSERT INTO client (` + clientColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
-- sqlInsertClient`

// sqlInsertHead makes the head of a client's rules; see the schema.
const sqlInsertHead = `INSERT INTO rule_head (client_id, version)
VALUES ($1, 0)
-- sqlInsertHead`

const sqlClient = `SELECT ` + clientColumns + `
FROM client
WHERE id = $1
-- sqlClient`

const sqlClients = `SELECT ` + clientColumns + `
FROM client
ORDER BY created_at, id
-- sqlClients`

// sqlLockClient takes the row lock by an update that changes nothing, which
// every engine understands.
const sqlLockClient = `UPDATE client
SET max_keys = max_keys
WHERE id = $1
RETURNING ` + clientColumns + `
-- sqlLockClient`

const sqlUpdateClient = `UPDATE client
SET name = $2, routing_policy = $3, billing = $4, max_keys = $5,
  limit_rps = $6, limit_burst = $7, limit_concurrency = $8, ceiling = $9, status = $10, max_rules = $11
WHERE id = $1
-- sqlUpdateClient`

func scanClient(s sqldb.Scanner) (modelgate.Client, error) {
	var c modelgate.Client
	err := s.Scan(&c.ID, &c.Name, &c.Status, &c.RoutingPolicy, &c.Billing, &c.MaxKeys, &c.MaxRules,
		&c.Limits.RequestsPerSecond, &c.Limits.Burst, &c.Limits.Concurrency,
		sqldb.Document{Into: &c.Ceiling}, sqldb.Moment{Into: &c.CreatedAt})
	return c, err
}

// CreateClient adds an organization. Its fields are checked as
// Client.Validate does.
func (s *Store) CreateClient(ctx context.Context, c modelgate.Client, a modelgate.Audit) error {
	if err := c.Validate(); err != nil {
		return err
	}
	ceiling, err := sqldb.JSON(c.Ceiling)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "create client", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlInsertClient, c.ID, c.Name, c.Status, c.RoutingPolicy, c.Billing, c.MaxKeys, c.MaxRules,
			c.Limits.RequestsPerSecond, c.Limits.Burst, c.Limits.Concurrency, ceiling, sqldb.Micros(c.CreatedAt))
		if sqldb.Duplicate(err) {
			return modelgate.Errorf(modelgate.Conflict, "client %s exists already", c.ID)
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlInsertHead, c.ID); err != nil {
			return err
		}
		return s.record(ctx, tx, c.ID, a)
	})
}

// Client returns one organization or not_found.
func (s *Store) Client(ctx context.Context, id modelgate.ClientID) (modelgate.Client, error) {
	c, err := scanClient(s.db.Read.QueryRowContext(ctx, sqlClient, id))
	return c, sqldb.Wrap("read client", sqldb.Missing(err, "client"))
}

// Clients lists all organizations, the oldest first.
func (s *Store) Clients(ctx context.Context) ([]modelgate.Client, error) {
	cs, err := sqldb.List(ctx, s.db.Read, scanClient, sqlClients)
	return cs, sqldb.Wrap("list clients", err)
}

// UpdateClient changes an organization: fn gets it as it is now, and no other
// change or issuance comes between. The id and the time of creation stay. It
// raises the control version. Errors: not_found, what fn returns, and those
// of Client.Validate. fn may be called more than once.
func (s *Store) UpdateClient(ctx context.Context, id modelgate.ClientID, fn func(*modelgate.Client) error, a modelgate.Audit) error {
	return s.db.Update(ctx, "update client", func(tx *sql.Tx) error {
		c, err := lockClient(ctx, tx, id)
		if err != nil {
			return err
		}
		billing := c.Billing
		if err := fn(&c); err != nil {
			return err
		}
		if err := c.Validate(); err != nil {
			return err
		}
		ceiling, err := sqldb.JSON(c.Ceiling)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlUpdateClient, id, c.Name, c.RoutingPolicy, c.Billing, c.MaxKeys,
			c.Limits.RequestsPerSecond, c.Limits.Burst, c.Limits.Concurrency, ceiling, c.Status, c.MaxRules)
		if err != nil {
			return err
		}
		if err := s.record(ctx, tx, id, a); err != nil {
			return err
		}
		if c.Billing != billing {
			return s.switchBilling(ctx, tx, id, c.Billing, a)
		}
		return sqldb.RaiseControl(ctx, tx)
	})
}

// lockClient reads a client and holds its row until the transaction ends.
func lockClient(ctx context.Context, tx *sql.Tx, id modelgate.ClientID) (modelgate.Client, error) {
	c, err := scanClient(tx.QueryRowContext(ctx, sqlLockClient, id))
	return c, sqldb.Missing(err, "client")
}
