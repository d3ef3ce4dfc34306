package evidence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/sqldb"
)

const evidenceBatchColumns = `id, records`

const evidencePendingColumns = `batch_id, client_id, records, first_at, last_at`

// Note keeps the records of what one transaction of an instance books, until the
// sequencer puts them into their chains: rows that are new and rows that have
// become final.
func (s *Store) Note(ctx context.Context, tx *sql.Tx, instance string, rows []*modelgate.UsageRow, finals []records.Final) error {
	page := NewCollector(s.pack, len(rows))
	by := records.Origin{Instance: instance, Software: s.software}
	loop := s.yielder.Loop()
	for _, r := range byClient(rows) {
		loop.Step()
		err := page.Add(r.ClientID, r.At, func(dst []byte) ([]byte, error) { return records.AppendUsage(dst, r, by), nil })
		if err != nil {
			return fmt.Errorf("%w: %w", sqldb.ErrValue, err)
		}
	}
	for _, f := range finals {
		err := page.Add(f.Row.ClientID, f.At, func(dst []byte) ([]byte, error) { return records.AppendFinal(dst, f, by), nil })
		if err != nil {
			return fmt.Errorf("%w: %w", sqldb.ErrValue, err)
		}
	}
	return s.pend(ctx, tx, page.Batches())
}

// byClient are rows with those of each client beside each other.
func byClient(rows []*modelgate.UsageRow) []*modelgate.UsageRow {
	if !slices.ContainsFunc(rows, func(r *modelgate.UsageRow) bool { return r.ClientID != rows[0].ClientID }) {
		return rows
	}
	return slices.SortedStableFunc(slices.Values(rows), func(a, b *modelgate.UsageRow) int { return cmp.Compare(a.ClientID, b.ClientID) })
}

// pendAudit keeps the record of a change. One that is no client's is in no
// chain.
func (s *Store) pendAudit(ctx context.Context, tx *sql.Tx, a *modelgate.Audit) error {
	if a.ClientID == "" {
		return nil
	}
	page := NewCollector(s.pack, 0)
	if err := page.Add(a.ClientID, a.At, func(dst []byte) ([]byte, error) { return records.AppendAudit(dst, a) }); err != nil {
		return fmt.Errorf("%w: %w", sqldb.ErrValue, err)
	}
	return s.pend(ctx, tx, page.Batches())
}

// pend writes batches, each with a note that it is in no chain yet. Their ids
// grow with time, so that the oldest is chained first.
func (s *Store) pend(ctx context.Context, tx *sql.Tx, batches []Batch) error {
	ids := make([]string, len(batches))
	for i := range ids {
		ids[i] = s.ids.New().String()
	}
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: evidenceBatchInsert, N: len(batches),
		Args: func(dst []any, i int) []any { return append(dst, ids[i], batches[i].Packed) },
	})
	if err != nil {
		return err
	}
	return s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: evidencePendingInsert, N: len(batches),
		Args: func(dst []any, i int) []any {
			b := &batches[i]
			return append(dst, ids[i], sqldb.Clean(string(b.Client)), b.Records, sqldb.Micros(b.First), sqldb.Micros(b.Last))
		},
	})
}

func evidenceBatchInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_batch ("+evidenceBatchColumns+")\nVALUES ", rows, 2, 1) + "\n-- evidenceBatchInsert"
}

func evidencePendingInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_pending ("+evidencePendingColumns+")\nVALUES ", rows, 5, 1) + "\n-- evidencePendingInsert"
}
