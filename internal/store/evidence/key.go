package evidence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlEvidenceKeys = `SELECT n, vkey, statement, at
FROM evidence_key
ORDER BY n
-- sqlEvidenceKeys`

const sqlInsertEvidenceKey = `INSERT INTO evidence_key (n, vkey, statement, at)
VALUES ($1, $2, $3, $4)
-- sqlInsertEvidenceKey`

const sqlAllClients = `SELECT id
FROM client
ORDER BY id
-- sqlAllClients`

// sqlBeginExport changes nothing while another export of the client runs.
const sqlBeginExport = `UPDATE evidence_head
SET export_until = $3
WHERE client_id = $1 AND export_until <= $2
-- sqlBeginExport`

const sqlMoveExport = `UPDATE evidence_head
SET export_until = $3
WHERE client_id = $1 AND export_until = $2
-- sqlMoveExport`

// Key is a key that signs heads of evidence, or did.
type Key struct {
	N    int64  `json:"n"`    // 1 for the first
	VKey string `json:"vkey"` // what verifiers know it by
	// Statement is the signed note by which the key before handed over, ""
	// where none did: the first key, or one after a key that was lost.
	Statement string    `json:"statement"`
	At        time.Time `json:"at"`
}

// EvidenceKeys lists all keys in their order; the last one signs.
func (s *Store) EvidenceKeys(ctx context.Context) ([]Key, error) {
	keys, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (Key, error) {
		var k Key
		err := row.Scan(&k.N, &k.VKey, &k.Statement, sqldb.Moment{Into: &k.At})
		return k, err
	}, sqlEvidenceKeys)
	return keys, sqldb.Wrap("list evidence keys", err)
}

// ErrKeyOrder says that another key has taken the place of a new one.
var ErrKeyOrder = errors.New("another signing key came first")

// AddEvidenceKey makes a key the one that signs. Where a key precedes it, the
// change is a record in the chain of every client. Errors: ErrKeyOrder unless
// k.N follows the last key's.
func (s *Store) AddEvidenceKey(ctx context.Context, k Key, newAudit func() modelgate.Audit) error {
	return s.db.Update(ctx, "add evidence key", func(tx *sql.Tx) error {
		keys, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (Key, error) {
			var k Key
			return k, row.Scan(&k.N, &k.VKey, &k.Statement, sqldb.Moment{Into: &k.At})
		}, sqlEvidenceKeys)
		if err != nil {
			return err
		}
		if k.N != int64(len(keys))+1 {
			return ErrKeyOrder
		}
		if _, err := tx.ExecContext(ctx, sqlInsertEvidenceKey, k.N, k.VKey, k.Statement, sqldb.Micros(k.At)); err != nil {
			if sqldb.Duplicate(err) {
				return ErrKeyOrder
			}
			return err
		}
		if k.N == 1 {
			return nil
		}
		return s.recordRotation(ctx, tx, keys[k.N-2].VKey, k, newAudit)
	})
}

func (s *Store) recordRotation(ctx context.Context, tx *sql.Tx, old string, k Key, newAudit func() modelgate.Audit) error {
	change, err := json.Marshal(map[string]string{"old_vkey": old, "new_vkey": k.VKey, "statement": k.Statement})
	if err != nil {
		return err
	}
	clients, err := sqldb.List(ctx, tx, sqldb.ScanText, sqlAllClients)
	if err != nil {
		return err
	}
	for _, c := range clients {
		a := newAudit()
		a.Action, a.TargetType, a.TargetID, a.Change = "evidence.key_rotate", "evidence_key", k.VKey, change
		if err := s.RecordAudit(ctx, tx, modelgate.ClientID(c), a); err != nil {
			return err
		}
	}
	return nil
}

// ErrExporting says that an export of the client is under way.
var ErrExporting = &modelgate.Error{Kind: modelgate.RateLimited, Message: "an evidence export of this client is under way; retry when it has ended"}

// ExportTicket is the right to export a client's evidence, which one at a
// time has. It ends by itself when it is not extended.
type ExportTicket struct {
	client modelgate.ClientID
	until  int64
}

// BeginExport takes the ticket and records the export in one transaction.
// Errors: ErrExporting.
func (s *Store) BeginExport(ctx context.Context, client modelgate.ClientID, d time.Duration, a modelgate.Audit) (ExportTicket, error) {
	t := ExportTicket{client: client}
	err := s.db.Update(ctx, "begin export", func(tx *sql.Tx) error {
		now := s.db.Now()
		t.until = sqldb.Micros(now.Add(d))
		r, err := tx.ExecContext(ctx, sqlBeginExport, string(client), sqldb.Micros(now), t.until)
		if err != nil {
			return err
		}
		if err := oneTicket(r); err != nil {
			return err
		}
		return s.RecordAudit(ctx, tx, client, a)
	})
	return t, err
}

// ExtendExport prolongs a ticket; with 0 it gives the ticket back.
func (s *Store) ExtendExport(ctx context.Context, t *ExportTicket, d time.Duration) error {
	return s.db.Update(ctx, "extend export", func(tx *sql.Tx) error {
		until := int64(0)
		if d > 0 {
			until = sqldb.Micros(s.db.Now().Add(d))
		}
		r, err := tx.ExecContext(ctx, sqlMoveExport, string(t.client), t.until, until)
		if err != nil {
			return err
		}
		if err := oneTicket(r); err != nil {
			return err
		}
		t.until = until
		return nil
	})
}

func oneTicket(r sql.Result) error {
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		return ErrExporting
	}
	return err
}
