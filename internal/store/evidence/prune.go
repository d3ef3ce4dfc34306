package evidence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/sqldb"
)

// sqlEvidenceKept is the first record of the first chunk that holds one of
// the cutoff or later. It walks the primary key over what goes; the expression
// keeps it off evidence_chunk_time, where it would walk over what stays.
const sqlEvidenceKept = `SELECT first_seq
FROM evidence_chunk
WHERE client_id = $1 AND last_at + 0 >= $2
ORDER BY first_seq
LIMIT 1
-- sqlEvidenceKept`

const sqlInsertAnchor = `INSERT INTO evidence_anchor (client_id, seq, hash, note, cutoff, at)
VALUES ($1, $2, $3, $4, $5, $6)
-- sqlInsertAnchor`

// sqlOpenAnchor is an anchor up to which records are not gone yet.
const sqlOpenAnchor = `SELECT a.seq, a.cutoff
FROM evidence_anchor a
JOIN evidence_head h ON h.client_id = a.client_id
WHERE a.client_id = $1 AND a.seq > h.pruned
ORDER BY a.seq DESC
LIMIT 1
-- sqlOpenAnchor`

const sqlMovePruned = `UPDATE evidence_head
SET pruned = $2, covered_from = CASE WHEN covered_from < $3 THEN $3 ELSE covered_from END
WHERE client_id = $1 AND pruned < $2
-- sqlMovePruned`

const sqlPrunedChunks = `SELECT c.first_seq, c.batch_id
FROM evidence_chunk c
JOIN evidence_head h ON h.client_id = c.client_id
WHERE c.client_id = $1 AND c.last_seq <= h.pruned
ORDER BY c.first_seq
LIMIT $2
-- sqlPrunedChunks`

const sqlDeleteChunk = `DELETE FROM evidence_chunk
WHERE client_id = $1 AND first_seq = $2
-- sqlDeleteChunk`

const sqlDeleteBatch = `DELETE FROM evidence_batch
WHERE id = $1
-- sqlDeleteBatch`

const sqlEvidenceClients = `SELECT client_id
FROM evidence_head
ORDER BY client_id
-- sqlEvidenceClients`

// Pruning says what to prune of one client's chain.
type Pruning struct {
	// Before is the cutoff: records from the first on go, as long as none of
	// their chunk is of that instant or later.
	Before time.Time
	// Chunks bounds what one call deletes.
	Chunks int
	// Audit is the record of it, without its change and target.
	Audit modelgate.Audit
	// Sign makes the signed note on the end of what goes.
	Sign func(records.Head) (string, error)
}

// EvidenceClients are the clients that have a chain.
func (s *Store) EvidenceClients(ctx context.Context) ([]modelgate.ClientID, error) {
	return sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (id modelgate.ClientID, err error) {
		err = row.Scan(&id)
		return id, err
	}, sqlEvidenceClients)
}

// PruneEvidence deletes the oldest records of a client's chain, a bounded
// part of them in each call, and reports whether more is to be deleted. Before
// a record goes, the signed end of what goes is kept as an anchor, for ever,
// and an audit record of the pruning stands in the chain. A call that died
// half-way is gone on with by the next.
func (s *Store) PruneEvidence(ctx context.Context, client modelgate.ClientID, p Pruning) (more bool, err error) {
	open, cutoff, err := s.openAnchor(ctx, client)
	if err != nil {
		return false, sqldb.Wrap("prune evidence", err)
	}
	if open == 0 {
		if open, err = s.anchor(ctx, client, p); err != nil {
			return false, sqldb.Wrap("prune evidence", err)
		}
		cutoff = sqldb.Micros(p.Before)
	}
	if open > 0 {
		// The record of the pruning is in the chain before the first of the
		// records is gone from exports.
		if err := s.ChainAllEvidence(ctx, client); err != nil {
			return false, err
		}
		err := s.db.Update(ctx, "prune evidence", func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, sqlMovePruned, string(client), open, cutoff)
			return err
		})
		if err != nil {
			return false, err
		}
	}
	return s.deletePruned(ctx, client, p.Chunks)
}

func (s *Store) openAnchor(ctx context.Context, client modelgate.ClientID) (seq, cutoff int64, err error) {
	err = s.db.Read.QueryRowContext(ctx, sqlOpenAnchor, string(client)).Scan(&seq, &cutoff)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return seq, cutoff, err
}

// anchor decides how much goes, 0 for nothing, and notes it.
func (s *Store) anchor(ctx context.Context, client modelgate.ClientID, p Pruning) (seq int64, err error) {
	var head records.Head
	var pruned int64
	err = s.db.Snapshot(ctx, "anchor evidence", func(tx *sql.Tx) (err error) {
		head, pruned, err = s.prunable(ctx, tx, client, p.Before)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // it has no chain
	}
	if err != nil || head.Seq <= pruned {
		return 0, err
	}
	note, err := p.Sign(head)
	if err != nil {
		return 0, err
	}
	a := p.Audit
	a.TargetType, a.TargetID = "client", string(client)
	a.Change, err = json.Marshal(map[string]any{
		"from": pruned + 1, "to": head.Seq, "hash": head.Hash.String(), "before": records.FormatTime(p.Before), "note": note,
	})
	if err != nil {
		return 0, err
	}
	err = s.db.Update(ctx, "anchor evidence", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlInsertAnchor, string(client), head.Seq, head.Hash[:], note, sqldb.Micros(p.Before), sqldb.Micros(s.db.Now()))
		if sqldb.Duplicate(err) {
			return errOvertaken // by another instance, which goes on with it
		}
		if err != nil {
			return err
		}
		return s.RecordAudit(ctx, tx, client, a)
	})
	if errors.Is(err, errOvertaken) {
		return 0, nil
	}
	return head.Seq, err
}

// prunable is the head of the chain after the last record before an instant, and
// up to where the chain was pruned already. Errors: sql.ErrNoRows for a client
// without a chain.
func (s *Store) prunable(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, before time.Time) (head records.Head, pruned int64, err error) {
	var end records.Head
	err = tx.QueryRowContext(ctx, sqlEvidenceHead, string(client)).Scan(&end.ClientID, &end.Seq, hashColumn{&end.Hash}, &pruned)
	if err != nil {
		return end, 0, err
	}
	kept := end.Seq + 1 // nothing
	err = tx.QueryRowContext(ctx, sqlEvidenceKept, string(client), sqldb.Micros(before)).Scan(&kept)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return end, 0, err
	}
	if kept > end.Seq {
		return end, pruned, nil
	}
	head = end
	head.Seq = kept - 1
	f := finder{s: s, ctx: ctx, tx: tx, client: client, head: end, pruned: pruned}
	head.Hash, _, err = f.hashAt(head.Seq)
	return head, pruned, err
}

// ChainAllEvidence chains everything of a client that is pending now.
func (s *Store) ChainAllEvidence(ctx context.Context, client modelgate.ClientID) error {
	for {
		_, more, err := s.ChainEvidence(ctx, client)
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (s *Store) deletePruned(ctx context.Context, client modelgate.ClientID, most int) (more bool, err error) {
	type place struct {
		first int64
		batch string
	}
	gone, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (p place, err error) {
		err = row.Scan(&p.first, &p.batch)
		return p, err
	}, sqlPrunedChunks, string(client), most)
	if err != nil || len(gone) == 0 {
		return false, sqldb.Wrap("prune evidence", err)
	}
	err = s.db.Update(ctx, "prune evidence", func(tx *sql.Tx) error {
		for _, p := range gone {
			if _, err := tx.ExecContext(ctx, sqlDeleteChunk, string(client), p.first); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, sqlDeleteBatch, p.batch); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && len(gone) == most, err
}
