package evidence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/sqldb"
)

const (
	// passBatches and passRecords bound what one pass chains, so that its
	// transaction is short; a single larger batch is taken whole.
	passBatches = 256
	passRecords = 8192
)

const sqlEvidencePending = `SELECT ` + evidencePendingColumns + `
FROM evidence_pending
WHERE $1 = '' OR client_id = $1
ORDER BY batch_id
LIMIT $2
-- sqlEvidencePending`

const sqlEvidenceWaiting = `SELECT DISTINCT client_id
FROM evidence_pending
ORDER BY client_id
-- sqlEvidenceWaiting`

const sqlOldestEvidence = `SELECT MIN(batch_id)
FROM evidence_pending
-- sqlOldestEvidence`

// sqlLeaseEvidence changes nothing while another instance has the lease.
const sqlLeaseEvidence = `UPDATE evidence_lease
SET holder = $1, expires_at = $2
WHERE id = 1 AND (holder = $1 OR expires_at <= $3)
-- sqlLeaseEvidence`

func evidenceBatchSelect(rows int) string {
	return sqldb.Tuples("SELECT "+evidenceBatchColumns+"\nFROM evidence_batch\nWHERE id IN ", 1, rows, 1) + "\n-- evidenceBatchSelect"
}

func evidencePendingSelect(rows int) string {
	return sqldb.Tuples("SELECT batch_id, client_id\nFROM evidence_pending\nWHERE batch_id IN ", 1, rows, 1) + "\n-- evidencePendingSelect"
}

func evidenceHeadSelect(rows int) string {
	return sqldb.Tuples("SELECT client_id, seq, hash\nFROM evidence_head\nWHERE client_id IN ", 1, rows, 1) + "\n-- evidenceHeadSelect"
}

func evidencePendingDelete(rows int) string {
	return sqldb.Tuples("DELETE FROM evidence_pending\nWHERE batch_id IN ", 1, rows, 1) + "\n-- evidencePendingDelete"
}

const evidenceChunkColumns = `client_id, first_seq, last_seq, prev, hash, first_at, last_at, batch_id`

func evidenceChunkInsert(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_chunk ("+evidenceChunkColumns+")\nVALUES ", rows, 8, 1) + "\n-- evidenceChunkInsert"
}

// evidenceHeadMove is the compare-and-swap: a head that is not where the new
// records begin stays and is not counted.
func evidenceHeadMove(rows int) string {
	return sqldb.Tuples("INSERT INTO evidence_head (client_id, seq, hash, from_seq, from_hash)\nVALUES ", rows, 5, 1) + `
ON CONFLICT (client_id) DO UPDATE
SET seq = excluded.seq, hash = excluded.hash, from_seq = excluded.from_seq, from_hash = excluded.from_hash
WHERE evidence_head.seq = excluded.from_seq AND evidence_head.hash = excluded.from_hash
-- evidenceHeadMove`
}

// EvidenceBacklog is the instant of the oldest record that is in no chain,
// zero when all are.
func (s *Store) EvidenceBacklog(ctx context.Context) (time.Time, error) {
	var oldest sql.NullString
	if err := s.db.Read.QueryRowContext(ctx, sqlOldestEvidence).Scan(&oldest); err != nil || !oldest.Valid {
		return time.Time{}, sqldb.Wrap("read evidence backlog", err)
	}
	id, ok := modelgate.ParseUUID(oldest.String)
	if !ok {
		return time.Time{}, fmt.Errorf("evidence batch with the id %q", oldest.String)
	}
	return id.Time(), nil
}

// EvidenceWaiting are the clients with records that are in no chain.
func (s *Store) EvidenceWaiting(ctx context.Context) ([]modelgate.ClientID, error) {
	clients, err := sqldb.List(ctx, s.db.Read, sqldb.ScanClientID, sqlEvidenceWaiting)
	return clients, sqldb.Wrap("list clients with pending evidence", err)
}

// LeaseEvidence reports whether an instance is the one that extends the
// chains for the given time. It spares the others work; what keeps a chain
// whole when two do it all the same is the compare-and-swap.
func (s *Store) LeaseEvidence(ctx context.Context, instance string, d time.Duration) (bool, error) {
	var n int64
	err := s.db.Update(ctx, "lease evidence", func(tx *sql.Tx) error {
		now := s.db.Now()
		r, err := tx.ExecContext(ctx, sqlLeaseEvidence, instance, sqldb.Micros(now.Add(d)), sqldb.Micros(now))
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n == 1, err
}

// pendingEvidence is a batch on its way into a chain.
type pendingEvidence struct {
	id, client      string
	records         int64
	firstAt, lastAt int64
	packed          []byte
}

func scanPending(s sqldb.Scanner) (*pendingEvidence, error) {
	p := new(pendingEvidence)
	return p, s.Scan(&p.id, &p.client, &p.records, &p.firstAt, &p.lastAt)
}

// errOvertaken ends a pass that another sequencer was faster than.
var errOvertaken = errors.New("another sequencer was here")

// ChainEvidence takes the oldest pending records, of one client or with "" of
// all, into their chains. It returns how many there were and whether it is
// worth calling again at once. Any number of sequencers may call it at the
// same time, and each may die at any point: the transaction takes away the
// notes of exactly the batches that it numbers and moves every head from
// exactly where it found it, or does nothing.
func (s *Store) ChainEvidence(ctx context.Context, client modelgate.ClientID) (records int, more bool, err error) {
	pending, err := sqldb.List(ctx, s.db.Read, scanPending, sqlEvidencePending, string(client), passBatches)
	if err != nil || len(pending) == 0 {
		return 0, false, sqldb.Wrap("read pending evidence", err)
	}
	more = len(pending) == passBatches
	taken := 0
	for taken < len(pending) && (taken == 0 || records+int(pending[taken].records) <= passRecords) {
		records += int(pending[taken].records)
		taken++
	}
	more = more || taken < len(pending)
	pass := evidencePass{s: s, pending: pending[:taken], chains: make(map[string]*evidenceStep)}
	if err := pass.prepare(ctx); err != nil {
		if errors.Is(err, errOvertaken) {
			return 0, true, nil
		}
		return 0, false, sqldb.Wrap("chain evidence", err)
	}
	err = s.db.UpdateOnce(ctx, func(tx *sql.Tx) error { return pass.commit(ctx, tx) })
	if errors.Is(err, errOvertaken) || sqldb.LostRace(err) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, sqldb.Wrap("chain evidence", err)
	}
	return records, more, nil
}

// evidencePass is one call of ChainEvidence. All that is slow is prepared
// before the transaction: batches never change, and a head that has moved
// meanwhile makes the transaction fail.
type evidencePass struct {
	s       *Store
	pending []*pendingEvidence
	chains  map[string]*evidenceStep
	chunks  [][]any // each the arguments of one row of evidenceChunkInsert
}

// evidenceStep is how far a pass moves one chain.
type evidenceStep struct {
	from  records.Head
	chain records.Chain
}

func (p *evidencePass) prepare(ctx context.Context) error {
	if err := p.readHeads(ctx); err != nil {
		return err
	}
	if err := p.readBatches(ctx); err != nil {
		return err
	}
	var buf []byte
	loop := p.s.yielder.Loop()
	for _, b := range p.pending {
		var err error
		if buf, err = p.s.pack.Unpack(buf, b.packed); err != nil {
			return err
		}
		c := &p.chains[b.client].chain
		first, prev := c.Seq+1, c.Hash
		rest, record, ok := buf, []byte(nil), true
		for {
			if record, rest, ok = NextRecord(rest); !ok {
				break
			}
			c.Append(record)
			loop.Step()
		}
		if got := c.Seq + 1 - first; got != b.records {
			return fmt.Errorf("batch %s has %d records, not %d", b.id, got, b.records)
		}
		hash := c.Hash
		p.chunks = append(p.chunks, []any{b.client, first, c.Seq, prev[:], hash[:], b.firstAt, b.lastAt, b.id})
	}
	return nil
}

func (p *evidencePass) readHeads(ctx context.Context) error {
	var clients []any
	for _, b := range p.pending {
		if p.chains[b.client] == nil {
			p.chains[b.client] = &evidenceStep{from: records.Head{ClientID: modelgate.ClientID(b.client)}}
			clients = append(clients, b.client)
		}
	}
	for len(clients) > 0 {
		part := clients[:sqldb.StatementRows(len(clients), sqldb.MaxRows)]
		clients = clients[len(part):]
		heads, err := sqldb.List(ctx, p.s.db.Read, scanHead, evidenceHeadSelect(len(part)), part...)
		if err != nil {
			return err
		}
		for _, h := range heads {
			p.chains[string(h.ClientID)].from = h
		}
	}
	for _, c := range p.chains {
		c.chain.Head = c.from
	}
	return nil
}

func scanHead(s sqldb.Scanner) (records.Head, error) {
	var h records.Head
	err := s.Scan(&h.ClientID, &h.Seq, hashColumn{&h.Hash})
	return h, err
}

// readBatches finds the records. A batch that is gone was chained by another
// sequencer, or even pruned.
func (p *evidencePass) readBatches(ctx context.Context) error {
	byID := make(map[string]*pendingEvidence, len(p.pending))
	ids := p.ids()
	for _, b := range p.pending {
		byID[b.id] = b
	}
	for len(ids) > 0 {
		part := ids[:sqldb.StatementRows(len(ids), sqldb.MaxRows)]
		ids = ids[len(part):]
		found, err := sqldb.List(ctx, p.s.db.Read, func(row sqldb.Scanner) (*pendingEvidence, error) {
			var id string
			var packed []byte
			err := row.Scan(&id, &packed)
			if b := byID[id]; b != nil {
				b.packed = packed
			}
			return nil, err
		}, evidenceBatchSelect(len(part)), part...)
		if err != nil {
			return err
		}
		if len(found) < len(part) {
			return p.gone(ctx, part, byID)
		}
	}
	return nil
}

// gone says why a batch is not there: its note went before it, unless somebody
// has changed the database.
func (p *evidencePass) gone(ctx context.Context, part []any, byID map[string]*pendingEvidence) error {
	_, err := sqldb.List(ctx, p.s.db.Read, func(row sqldb.Scanner) (struct{}, error) {
		var id, client string
		if err := row.Scan(&id, &client); err != nil {
			return struct{}{}, err
		}
		if b := byID[id]; b != nil && b.packed == nil {
			return struct{}{}, fmt.Errorf("batch %s of client %s is not there: %w", id, client, errChain)
		}
		return struct{}{}, nil
	}, evidencePendingSelect(len(part)), part...)
	if err == nil {
		return errOvertaken
	}
	return err
}

func (p *evidencePass) ids() []any {
	ids := make([]any, 0, len(p.pending))
	for _, b := range p.pending {
		ids = append(ids, b.id)
	}
	return ids
}

// commit takes the notes away, writes the chunks and moves the heads. The
// notes come first: of two sequencers that want the same, one waits here.
func (p *evidencePass) commit(ctx context.Context, tx *sql.Tx) error {
	ids := p.ids()
	for len(ids) > 0 {
		part := ids[:sqldb.StatementRows(len(ids), sqldb.MaxRows)]
		ids = ids[len(part):]
		if err := exactly(tx.ExecContext(ctx, evidencePendingDelete(len(part)), part...))(len(part)); err != nil {
			return err
		}
	}
	heads := make([]any, 0, 5*len(p.chains))
	for _, c := range p.sorted() {
		heads = append(heads, string(c.from.ClientID), c.chain.Seq, c.chain.Hash[:], c.from.Seq, c.from.Hash[:])
	}
	for len(heads) > 0 {
		n := sqldb.StatementRows(len(heads)/5, p.s.db.RowsPerInsert)
		if err := exactly(tx.ExecContext(ctx, evidenceHeadMove(n), heads[:5*n]...))(n); err != nil {
			return err
		}
		heads = heads[5*n:]
	}
	return p.s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: evidenceChunkInsert, N: len(p.chunks),
		Args: func(dst []any, i int) []any { return append(dst, p.chunks[i]...) },
	})
}

// sorted are the steps in one order for all sequencers, so that they never
// wait for each other in a circle.
func (p *evidencePass) sorted() []*evidenceStep {
	out := make([]*evidenceStep, 0, len(p.chains))
	for _, c := range p.chains {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *evidenceStep) int { return cmp.Compare(a.from.ClientID, b.from.ClientID) })
	return out
}

// exactly is errOvertaken unless a statement changed as many rows as it was
// to.
func exactly(r sql.Result, err error) func(want int) error {
	return func(want int) error {
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if err == nil && n != int64(want) {
			return errOvertaken
		}
		return err
	}
}

// hashColumn scans a column of 32 bytes.
type hashColumn struct{ into *records.Hash }

// Scan implements sql.Scanner.
func (h hashColumn) Scan(src any) error {
	b, ok := src.([]byte)
	if !ok || len(b) != len(h.into) {
		return fmt.Errorf("a column of hashes holds %d bytes", len(b))
	}
	copy(h.into[:], b)
	return nil
}

// Statements are the statements of so many rows, by their names: a test
// prepares them.
func Statements(rows int) map[string]string {
	return map[string]string{
		"evidenceBatchInsert": evidenceBatchInsert(rows), "evidencePendingInsert": evidencePendingInsert(rows),
		"evidenceBatchSelect": evidenceBatchSelect(rows), "evidenceHeadSelect": evidenceHeadSelect(rows),
		"evidencePendingDelete": evidencePendingDelete(rows), "evidenceChunkInsert": evidenceChunkInsert(rows),
		"evidenceHeadMove": evidenceHeadMove(rows), "evidencePendingSelect": evidencePendingSelect(rows),
	}
}
