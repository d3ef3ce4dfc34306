package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
)

const evidenceBatchColumns = `id, records`

const evidencePendingColumns = `batch_id, client_id, records, first_at, last_at`

// evidenceOf are the records of what is booked, of each client in its order.
func (db *DB) evidenceOf(b *booked) ([]evidence.Batch, error) {
	page := evidence.NewCollector(db.pack, len(b.rows))
	by := records.Origin{Instance: b.instance, Software: db.software}
	loop := db.yielder.Loop()
	for _, r := range byClient(b.rows) {
		loop.Step()
		err := page.Add(r.ClientID, r.At, func(dst []byte) ([]byte, error) { return records.AppendUsage(dst, r, by), nil })
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errValue, err)
		}
	}
	for i := range b.finals {
		f := &b.finals[i]
		record := records.Final{Row: f.row, Previous: f.row.Cost - f.change, At: db.now()}
		err := page.Add(f.row.ClientID, record.At, func(dst []byte) ([]byte, error) { return records.AppendFinal(dst, record, by), nil })
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errValue, err)
		}
	}
	return page.Batches(), nil
}

// byClient are rows with those of each client beside each other.
func byClient(rows []*modelgate.UsageRow) []*modelgate.UsageRow {
	if !slices.ContainsFunc(rows, func(r *modelgate.UsageRow) bool { return r.ClientID != rows[0].ClientID }) {
		return rows
	}
	return slices.SortedStableFunc(slices.Values(rows), func(a, b *modelgate.UsageRow) int { return cmp.Compare(a.ClientID, b.ClientID) })
}

// noteEvidence keeps the records of what is booked until the sequencer puts
// them into their chains.
func (db *DB) noteEvidence(ctx context.Context, tx *sql.Tx, b *booked) error {
	batches, err := db.evidenceOf(b)
	if err != nil {
		return err
	}
	return db.pend(ctx, tx, batches)
}

// pendAudit keeps the record of a change. One that is no client's is in no
// chain.
func (db *DB) pendAudit(ctx context.Context, tx *sql.Tx, a *modelgate.Audit) error {
	if a.ClientID == "" {
		return nil
	}
	page := evidence.NewCollector(db.pack, 0)
	if err := page.Add(a.ClientID, a.At, func(dst []byte) ([]byte, error) { return records.AppendAudit(dst, a) }); err != nil {
		return fmt.Errorf("%w: %w", errValue, err)
	}
	return db.pend(ctx, tx, page.Batches())
}

// pend writes batches, each with a note that it is in no chain yet. Their ids
// grow with time, so that the oldest is chained first.
func (db *DB) pend(ctx context.Context, tx *sql.Tx, batches []evidence.Batch) error {
	ids := make([]string, len(batches))
	for i := range ids {
		ids[i] = db.ids.New().String()
	}
	err := db.runMany(ctx, tx, sqldb.BatchExec{
		Text: evidenceBatchInsert, N: len(batches),
		Args: func(dst []any, i int) []any { return append(dst, ids[i], batches[i].Packed) },
	})
	if err != nil {
		return err
	}
	return db.runMany(ctx, tx, sqldb.BatchExec{
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
