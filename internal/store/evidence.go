package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const evidenceBatchColumns = `id, records`

const evidencePendingColumns = `batch_id, client_id, records, first_at, last_at`

// evidenceBatch are records of one client, one after the other: not more than
// evidenceRecords, or the memory of a batch of rows would be that of all their
// records.
type evidenceBatch struct {
	client      modelgate.ClientID
	records     int
	first, last time.Time // the least and the greatest instant of the records
	packed      []byte
}

const evidenceRecords = 1000

// evidenceRoom is about what the record of a row takes, in bytes.
const evidenceRoom = 768

// evidencePage collects records, each with the newline that ends it, and packs
// them into batches.
type evidencePage struct {
	pack  *packer
	lines []byte
	now   evidenceBatch // of what is in lines
	done  []evidenceBatch
}

// add appends a record of a client that write makes.
func (p *evidencePage) add(client modelgate.ClientID, at time.Time, write func([]byte) ([]byte, error)) error {
	if p.now.client != client || p.now.records == evidenceRecords {
		p.turn()
		p.now.client = client
	}
	lines, err := write(p.lines)
	if err != nil {
		return fmt.Errorf("%w: %w", errValue, err)
	}
	p.lines = append(lines, '\n')
	b := &p.now
	if b.records == 0 || at.Before(b.first) {
		b.first = at
	}
	if b.records == 0 || at.After(b.last) {
		b.last = at
	}
	b.records++
	return nil
}

// turn packs what was collected.
func (p *evidencePage) turn() {
	if p.now.records > 0 {
		p.now.packed = p.pack.pack(p.lines)
		p.done = append(p.done, p.now)
	}
	p.now, p.lines = evidenceBatch{}, p.lines[:0]
}

// evidenceOf are the records of what is booked, of each client in its order.
func (db *DB) evidenceOf(b *booked) ([]evidenceBatch, error) {
	page := evidencePage{pack: db.pack, lines: make([]byte, 0, min(len(b.rows), evidenceRecords)*evidenceRoom)}
	by := modelgate.EvidenceWriter{Instance: b.instance, Software: db.software}
	work := db.way.Work()
	for _, r := range byClient(b.rows) {
		work.Step()
		err := page.add(r.ClientID, r.At, func(dst []byte) ([]byte, error) { return r.AppendEvidence(dst, by), nil })
		if err != nil {
			return nil, err
		}
	}
	for i := range b.finals {
		f := &b.finals[i]
		record := modelgate.UsageFinal{Row: f.row, Previous: f.row.Cost - f.change, At: db.now()}
		err := page.add(f.row.ClientID, record.At, func(dst []byte) ([]byte, error) { return record.AppendEvidence(dst, by), nil })
		if err != nil {
			return nil, err
		}
	}
	page.turn()
	return page.done, nil
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
	page := evidencePage{pack: db.pack}
	if err := page.add(a.ClientID, a.At, a.AppendEvidence); err != nil {
		return err
	}
	page.turn()
	return db.pend(ctx, tx, page.done)
}

// pend writes batches, each with a note that it is in no chain yet. Their ids
// grow with time, so that the oldest is chained first.
func (db *DB) pend(ctx context.Context, tx *sql.Tx, batches []evidenceBatch) error {
	ids := make([]string, len(batches))
	for i := range ids {
		ids[i] = db.ids.New().String()
	}
	err := db.runMany(ctx, tx, sqldb.BatchExec{
		Text: evidenceBatchInsert, N: len(batches),
		Args: func(dst []any, i int) []any { return append(dst, ids[i], batches[i].packed) },
	})
	if err != nil {
		return err
	}
	return db.runMany(ctx, tx, sqldb.BatchExec{
		Text: evidencePendingInsert, N: len(batches),
		Args: func(dst []any, i int) []any {
			b := &batches[i]
			return append(dst, ids[i], sqldb.Clean(string(b.client)), b.records, sqldb.Micros(b.first), sqldb.Micros(b.last))
		},
	})
}

func evidenceBatchInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_batch ("+evidenceBatchColumns+")\nVALUES ", rows, 2, 1) + "\n-- evidenceBatchInsert"
}

func evidencePendingInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_pending ("+evidencePendingColumns+")\nVALUES ", rows, 5, 1) + "\n-- evidencePendingInsert"
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
