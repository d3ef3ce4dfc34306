package billing

import (
	"context"
	"database/sql"
	"errors"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlProcessorConfig has a row for every client, whether it has a
// configuration or not.
const sqlProcessorConfig = `SELECT COALESCE(c.enabled, FALSE), COALESCE(c.generation, 0)
FROM (SELECT 1 AS one) AS o
LEFT JOIN processor_config c ON c.client_id = $1
-- sqlProcessorConfig`

// sqlPutProcessorKey leaves the time of enabling alone where nothing is
// enabled anew, and the generation where the key is that of generation $4.
const sqlPutProcessorKey = `INSERT INTO processor_config (client_id, enabled, generation, enabled_at, updated_at)
VALUES ($1, $2, 1, $3, $3)
ON CONFLICT (client_id) DO UPDATE
SET enabled_at = CASE WHEN processor_config.enabled THEN processor_config.enabled_at ELSE excluded.enabled_at END,
  enabled = excluded.enabled, updated_at = excluded.updated_at,
  generation = CASE WHEN processor_config.generation = $4 THEN processor_config.generation ELSE processor_config.generation + 1 END
-- sqlPutProcessorKey`

const sqlToggleProcessor = `UPDATE processor_config
SET enabled_at = CASE WHEN enabled THEN enabled_at ELSE $3 END, enabled = $2, updated_at = $3
WHERE client_id = $1
-- sqlToggleProcessor`

const sqlPutProcessorSecret = `INSERT INTO secret (name, key_id, value, updated_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (name) DO UPDATE
SET key_id = excluded.key_id, value = excluded.value, updated_at = excluded.updated_at
-- sqlPutProcessorSecret`

const sqlMappings = `SELECT sub_account_id, customer_id
FROM processor_mapping
WHERE client_id = $1
ORDER BY created_at, sub_account_id
-- sqlMappings`

const sqlPutMapping = `INSERT INTO processor_mapping (client_id, sub_account_id, customer_id, created_at)
VALUES ($1, $2, $3, $4)
ON CONFLICT (client_id, sub_account_id) DO UPDATE
SET customer_id = excluded.customer_id
-- sqlPutMapping`

const sqlDeleteMapping = `DELETE FROM processor_mapping
WHERE client_id = $1 AND sub_account_id = $2
-- sqlDeleteMapping`

// ProcessorConfig is an organization's billing export.
type ProcessorConfig struct {
	Enabled    bool
	Generation int64 // how many keys there have been; 0 while none
	Mappings   []modelgate.Mapping
}

// Configured reports whether the organization has left a key.
func (c ProcessorConfig) Configured() bool { return c.Generation > 0 }

// ProcessorSecret is the name of the secret that holds the key of an
// organization's payment processor.
func ProcessorSecret(client modelgate.ClientID) string { return "processor/" + string(client) }

// WebhookSecret is the name of the secret that signs what an organization's
// processor delivers.
func WebhookSecret(client modelgate.ClientID) string { return "processor_webhook/" + string(client) }

const sqlDeleteWebhookSecret = `DELETE FROM secret
WHERE name = $1
-- sqlDeleteWebhookSecret`

// PutWebhookSecret keeps the sealed secret that signs what an organization's
// processor delivers; one that is nil removes it.
func (s *Store) PutWebhookSecret(ctx context.Context, client modelgate.ClientID, keyID string, sealed []byte, a modelgate.Audit) error {
	return s.db.Update(ctx, "put webhook secret", func(tx *sql.Tx) error {
		var err error
		if sealed == nil {
			_, err = tx.ExecContext(ctx, sqlDeleteWebhookSecret, WebhookSecret(client))
		} else {
			_, err = tx.ExecContext(ctx, sqlPutProcessorSecret, WebhookSecret(client), keyID, sealed, sqldb.Micros(s.db.Now()))
		}
		if err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}

// ProcessorConfig reads an organization's billing export; one that has never
// set any has the zero value.
func (s *Store) ProcessorConfig(ctx context.Context, client modelgate.ClientID) (ProcessorConfig, error) {
	var c ProcessorConfig
	err := s.db.Snapshot(ctx, "read processor configuration", func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, sqlProcessorConfig, client).Scan(&c.Enabled, &c.Generation)
		if err != nil {
			return err
		}
		c.Mappings, err = sqldb.List(ctx, tx, func(s sqldb.Scanner) (modelgate.Mapping, error) {
			var m modelgate.Mapping
			err := s.Scan(&m.SubAccountID, &m.CustomerID)
			return m, err
		}, sqlMappings, client)
		return err
	})
	return c, err
}

// PutProcessorKey keeps an organization's processor key, which is sealed, and
// enables or disables the export. Generation is that of the key with the same
// text, 0 where there is none: what was tried with that one may be tried with
// this one. Errors: not_found for the client.
func (s *Store) PutProcessorKey(ctx context.Context, client modelgate.ClientID, key ProcessorKey, enabled Switch, a modelgate.Audit) error {
	return s.db.Update(ctx, "put processor key", func(tx *sql.Tx) error {
		now := sqldb.Micros(s.db.Now())
		_, err := tx.ExecContext(ctx, sqlPutProcessorKey, client, bool(enabled), now, key.Generation)
		if sqldb.Dangling(err) {
			return modelgate.Errorf(modelgate.NotFound, "client not found")
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqlPutProcessorSecret, ProcessorSecret(client), key.KeyID, key.Value, now); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}

// Switch turns something on or off.
type Switch bool

// The positions of a switch.
const (
	On  Switch = true
	Off Switch = false
)

// SwitchProcessor enables or disables the export. Without a key the former is
// a bad_request and the latter changes nothing.
func (s *Store) SwitchProcessor(ctx context.Context, client modelgate.ClientID, to Switch, a modelgate.Audit) error {
	return s.db.Update(ctx, "switch processor", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlToggleProcessor, client, bool(to), sqldb.Micros(s.db.Now()))
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		switch {
		case err != nil:
			return err
		case n > 0:
			return s.record(ctx, tx, client, a)
		case to == On:
			return modelgate.Errorf(modelgate.BadRequest, "no processor key is configured; send api_key with enabled")
		}
		return nil
	})
}

// ProcessorKey is the sealed key of an organization and its generation.
type ProcessorKey struct {
	KeyID      string // of the master key
	Value      []byte // sealed
	Generation int64
}

const sqlProcessorKey = `SELECT s.key_id, s.value, c.generation
FROM processor_config c
JOIN secret s ON s.name = $2
WHERE c.client_id = $1
-- sqlProcessorKey`

// ProcessorKey reads an organization's key. Errors: bad_request while it has
// left none.
func (s *Store) ProcessorKey(ctx context.Context, client modelgate.ClientID) (ProcessorKey, error) {
	var k ProcessorKey
	err := s.db.Read.QueryRowContext(ctx, sqlProcessorKey, client, ProcessorSecret(client)).Scan(&k.KeyID, &k.Value, &k.Generation)
	if errors.Is(err, sql.ErrNoRows) {
		return k, modelgate.Errorf(modelgate.BadRequest, "no processor key is configured")
	}
	return k, sqldb.Wrap("read processor key", err)
}

// PutMapping maps a sub-account to a customer of the processor, in the place
// of the one before. Errors: not_found for a sub-account that is not the
// organization's.
func (s *Store) PutMapping(ctx context.Context, client modelgate.ClientID, m modelgate.Mapping, a modelgate.Audit) error {
	return s.db.Update(ctx, "put mapping", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlPutMapping, client, m.SubAccountID, m.CustomerID, sqldb.Micros(s.db.Now()))
		if sqldb.Dangling(err) {
			return modelgate.Errorf(modelgate.NotFound, "sub-account not found")
		}
		if err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}

// DeleteMapping unmaps a sub-account: what is queued is still sent. Errors:
// not_found.
func (s *Store) DeleteMapping(ctx context.Context, client modelgate.ClientID, id modelgate.SubAccountID, a modelgate.Audit) error {
	return s.db.Update(ctx, "delete mapping", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlDeleteMapping, client, id)
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "processor mapping"); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
}
