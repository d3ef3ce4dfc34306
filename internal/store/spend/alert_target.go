package spend

import (
	"context"
	"database/sql"
	"errors"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlAlertTarget = `SELECT t.webhook_url, s.key_id, s.value
FROM alert_target t
JOIN secret s ON s.name = $2
WHERE t.client_id = $1
-- sqlAlertTarget`

const sqlPutAlertTarget = `INSERT INTO alert_target (client_id, webhook_url, updated_at)
VALUES ($1, $2, $3)
ON CONFLICT (client_id) DO UPDATE
SET webhook_url = excluded.webhook_url, updated_at = excluded.updated_at
-- sqlPutAlertTarget`

const sqlPutAlertSecret = `INSERT INTO secret (name, key_id, value, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET key_id = excluded.key_id, value = excluded.value, updated_at = excluded.updated_at
-- sqlPutAlertSecret`

const sqlDeleteAlertTarget = `DELETE FROM alert_target
WHERE client_id = $1
-- sqlDeleteAlertTarget`

const sqlDeleteAlertSecret = `DELETE FROM secret
WHERE name = $1
-- sqlDeleteAlertSecret`

// AlertTarget is where an organization wants its alerts.
type AlertTarget struct {
	URL string
	// Secret is the key of the signature, sealed with the master key KeyID.
	KeyID  string
	Secret []byte
}

// AlertSecret is the name of the secret that signs an organization's alerts.
func AlertSecret(client modelgate.ClientID) string { return "alerts/" + string(client) }

// AlertTarget reads where an organization wants its alerts. Errors: not_found.
func (s *Store) AlertTarget(ctx context.Context, client modelgate.ClientID) (AlertTarget, error) {
	var t AlertTarget
	err := s.db.Read.QueryRowContext(ctx, sqlAlertTarget, client, AlertSecret(client)).Scan(&t.URL, &t.KeyID, &t.Secret)
	if errors.Is(err, sql.ErrNoRows) {
		return t, modelgate.Errorf(modelgate.NotFound, "no webhook is set for alerts")
	}
	return t, sqldb.Wrap("read alert target", err)
}

// PutAlertTarget sets where an organization wants its alerts. With the next
// call it gets those of parts that were used up before. Errors: not_found for the client.
func (s *Store) PutAlertTarget(ctx context.Context, client modelgate.ClientID, t AlertTarget, a modelgate.Audit) error {
	return s.db.Update(ctx, "put alert target", func(tx *sql.Tx) error {
		now := sqldb.Micros(s.db.Now())
		_, err := tx.ExecContext(ctx, sqlPutAlertTarget, client, t.URL, now)
		if sqldb.Dangling(err) {
			return modelgate.Errorf(modelgate.NotFound, "client not found")
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlPutAlertSecret, AlertSecret(client), t.KeyID, t.Secret, now); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}

// DeleteAlertTarget ends an organization's alerts; those not yet delivered are
// dropped when they are due. Without a target it does nothing.
func (s *Store) DeleteAlertTarget(ctx context.Context, client modelgate.ClientID, a modelgate.Audit) error {
	return s.db.Update(ctx, "delete alert target", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlDeleteAlertTarget, client)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlDeleteAlertSecret, AlertSecret(client)); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}
