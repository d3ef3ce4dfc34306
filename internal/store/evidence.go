package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelgate"
)

const evidenceBatchColumns = `id, records`

const evidencePendingColumns = `batch_id, client_id, records, first_at, last_at`

// evidenceBatch is what one transaction adds to the evidence of one client:
// records, each with the newline that ends it.
type evidenceBatch struct {
	client      modelgate.ClientID
	lines       []byte
	records     int
	first, last time.Time // the least and the greatest instant of the records
}

// add appends a record that write makes.
func (b *evidenceBatch) add(at time.Time, write func([]byte) ([]byte, error)) error {
	lines, err := write(b.lines)
	if err != nil {
		return fmt.Errorf("%w: %w", errValue, err)
	}
	b.lines = append(lines, '\n')
	if b.records == 0 || at.Before(b.first) {
		b.first = at
	}
	if b.records == 0 || at.After(b.last) {
		b.last = at
	}
	b.records++
	return nil
}

// evidenceRoom is about what the record of a row takes, in bytes.
const evidenceRoom = 1 << 10

// evidenceOf are the records of what is booked, in its order, a batch for
// each client.
func (db *DB) evidenceOf(b *booked) ([]*evidenceBatch, error) {
	var out []*evidenceBatch
	of, rows := make(map[modelgate.ClientID]*evidenceBatch), make(map[modelgate.ClientID]int)
	for _, r := range b.rows {
		rows[r.ClientID]++
	}
	batch := func(client modelgate.ClientID) *evidenceBatch {
		if of[client] == nil {
			of[client] = &evidenceBatch{client: client, lines: make([]byte, 0, rows[client]*evidenceRoom)}
			out = append(out, of[client])
		}
		return of[client]
	}
	by := modelgate.EvidenceWriter{Instance: b.instance, Software: db.software}
	for _, r := range b.rows {
		err := batch(r.ClientID).add(r.At, func(dst []byte) ([]byte, error) { return r.AppendEvidence(dst, by), nil })
		if err != nil {
			return nil, err
		}
	}
	for i := range b.finals {
		f := &b.finals[i]
		record := modelgate.UsageFinal{Row: f.row, Previous: f.row.Cost - f.change, At: db.now()}
		err := batch(f.row.ClientID).add(record.At, func(dst []byte) ([]byte, error) { return record.AppendEvidence(dst, by), nil })
		if err != nil {
			return nil, err
		}
	}
	return out, nil
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
	batch := evidenceBatch{client: a.ClientID}
	if err := batch.add(a.At, a.AppendEvidence); err != nil {
		return err
	}
	return db.pend(ctx, tx, []*evidenceBatch{&batch})
}

// pend writes batches, each with a note that it is in no chain yet. Their ids
// grow with time, so that the oldest is chained first.
func (db *DB) pend(ctx context.Context, tx *sql.Tx, batches []*evidenceBatch) error {
	ids, packed := make([]string, len(batches)), make([][]byte, len(batches))
	for i, b := range batches {
		ids[i], packed[i] = db.ids.New().String(), db.pack.pack(b.lines)
	}
	err := db.runMany(ctx, tx, many{
		text: evidenceBatchInsert, n: len(batches),
		args: func(dst []any, i int) []any { return append(dst, ids[i], packed[i]) },
	})
	if err != nil {
		return err
	}
	return db.runMany(ctx, tx, many{
		text: evidencePendingInsert, n: len(batches),
		args: func(dst []any, i int) []any {
			b := batches[i]
			return append(dst, ids[i], clean(string(b.client)), b.records, micros(b.first), micros(b.last))
		},
	})
}

func evidenceBatchInsert(rows int) string {
	return tuples("INSERT INTO evidence_batch ("+evidenceBatchColumns+")\nVALUES ", rows, 2, 1) + "\n-- evidenceBatchInsert"
}

func evidencePendingInsert(rows int) string {
	return tuples("INSERT INTO evidence_pending ("+evidencePendingColumns+")\nVALUES ", rows, 5, 1) + "\n-- evidencePendingInsert"
}

// packer compresses batches of records, of which most bytes are alike. Safe
// for concurrent use.
type packer struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// packWindow and packMost bound the memory of one batch, packed and unpacked.
const (
	packWindow = 1 << 20
	packMost   = 256 << 20
)

func newPacker() (*packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(packMost))
	return &packer{enc, dec}, err
}

func (p *packer) pack(lines []byte) []byte { return p.enc.EncodeAll(lines, nil) }

// unpack returns the lines in a buffer that may be handed in again.
func (p *packer) unpack(buf, packed []byte) ([]byte, error) {
	lines, err := p.dec.DecodeAll(packed, buf[:0])
	if err != nil {
		return lines, fmt.Errorf("evidence batch: %w", err)
	}
	return lines, nil
}

// nextRecord cuts the first record off lines.
func nextRecord(lines []byte) (record, rest []byte, ok bool) {
	return bytes.Cut(lines, []byte{'\n'})
}
