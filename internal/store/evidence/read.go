package evidence

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/sqldb"
)

const sqlEvidenceHead = `SELECT client_id, seq, hash, pruned
FROM evidence_head
WHERE client_id = $1
-- sqlEvidenceHead`

// Chunks are nearly in the order of their instants, and not quite. So what is
// the first of an instant or later is looked for among all that are older, by
// the primary key, or among all that are not, by evidence_chunk_time: the
// expressions keep the engines from the other index. sqlEvidenceUntil walks the
// primary key from its end.
const (
	sqlEvidenceTimes = `SELECT
  (SELECT MIN(last_at) FROM evidence_chunk WHERE client_id = $1),
  (SELECT MAX(last_at) FROM evidence_chunk WHERE client_id = $1)
-- sqlEvidenceTimes`

	sqlEvidenceSinceEarly = `SELECT first_seq
FROM evidence_chunk
WHERE client_id = $1 AND last_at + 0 >= $2 AND last_seq >= $3
ORDER BY first_seq
LIMIT 1
-- sqlEvidenceSinceEarly`

	sqlEvidenceSinceLate = `SELECT first_seq
FROM evidence_chunk
WHERE client_id = $1 AND last_at >= $2 AND last_seq >= $3
ORDER BY first_seq + 0
LIMIT 1
-- sqlEvidenceSinceLate`

	sqlEvidenceUntil = `SELECT first_seq
FROM evidence_chunk
WHERE client_id = $1 AND first_at < $2 AND first_seq <= $3
ORDER BY first_seq DESC
LIMIT 1
-- sqlEvidenceUntil`
)

// chunkColumns are in the order of scanChunk.
const chunkColumns = `c.first_seq, c.last_seq, c.prev, c.hash, b.records`

const sqlEvidenceChunkAt = `SELECT ` + chunkColumns + `
FROM evidence_chunk c
JOIN evidence_batch b ON b.id = c.batch_id
WHERE c.client_id = $1 AND c.first_seq <= $2
ORDER BY c.first_seq DESC
LIMIT 1
-- sqlEvidenceChunkAt`

const sqlEvidenceChunks = `SELECT ` + chunkColumns + `
FROM evidence_chunk c
JOIN evidence_batch b ON b.id = c.batch_id
WHERE c.client_id = $1 AND c.first_seq > $2 AND c.first_seq <= $3
ORDER BY c.first_seq
LIMIT $4
-- sqlEvidenceChunks`

const sqlEvidenceAnchor = `SELECT seq, hash, note
FROM evidence_anchor
WHERE client_id = $1 AND seq = $2
-- sqlEvidenceAnchor`

// chunksPerPage bounds how much of a chain is in memory at once.
const chunksPerPage = 64

// Range selects a part of a chain; zero fields select nothing away.
// The part is the smallest that holds every record which From, To, Since and
// Until ask for: records are in the order in which they were booked, so one
// of another instant may lie between them.
type Range struct {
	From, To     int64     // numbers of records, from 1
	Since, Until time.Time // instants of records, Until excluded
	Limit        int64     // of records, counted from the first
}

// Part is a part of a chain as it stands at one instant.
type Part struct {
	// Head is the end of the chain.
	Head records.Head
	// From and To are the first and the last record. To is From-1 when there
	// is none.
	From, To int64
	// Prev and Last are the hashes before From and at To.
	Prev, Last records.Hash
	// Anchor is the signed note on the end of what was pruned, "" unless the
	// part begins there.
	Anchor string
}

// Line is a record with its place in the chain. Record is valid until
// the next line.
type Line struct {
	Seq        int64
	Prev, Hash records.Hash
	Record     []byte
}

// errChain says that the stored chain does not hold together: somebody has
// changed the database.
var errChain = errors.New("the stored evidence does not hold together")

// chunk is a stored stretch of a chain.
type chunk struct {
	first, last int64
	prev, hash  records.Hash
	packed      []byte
}

func scanChunk(s sqldb.Scanner) (chunk, error) {
	var c chunk
	err := s.Scan(&c.first, &c.last, hashColumn{&c.prev}, hashColumn{&c.hash}, &c.packed)
	return c, err
}

// walker goes through chunks record by record.
type walker struct {
	pack   *Packer
	client modelgate.ClientID
	buf    []byte
	chain  records.Chain
}

// walk visits the records of a chunk, computing their hashes, and holds the
// last against the stored one.
func (w *walker) walk(c chunk, visit func(Line) error) error {
	var err error
	if w.buf, err = w.pack.Unpack(w.buf, c.packed); err != nil {
		return fmt.Errorf("records from %d: %w: %w", c.first, errChain, err)
	}
	w.chain.Head = records.Head{ClientID: w.client, Seq: c.first - 1, Hash: c.prev}
	rest, record, ok := w.buf, []byte(nil), true
	for {
		if record, rest, ok = NextRecord(rest); !ok {
			break
		}
		prev := w.chain.Hash
		w.chain.Append(record)
		if err := visit(Line{w.chain.Seq, prev, w.chain.Hash, record}); err != nil {
			return err
		}
	}
	if w.chain.Seq != c.last || w.chain.Hash != c.hash {
		return fmt.Errorf("records %d to %d: %w", c.first, c.last, errChain)
	}
	return nil
}

func (s *Store) walker(client modelgate.ClientID) *walker {
	return &walker{pack: s.pack, client: client}
}

// Evidence finds a part of a client's chain. Errors: bad_request for a From
// past the end.
func (s *Store) Evidence(ctx context.Context, client modelgate.ClientID, r Range) (Part, error) {
	part := Part{Head: records.Head{ClientID: client}}
	err := s.db.SnapshotInTurn(ctx, "find evidence", client, func(tx *sql.Tx) error {
		var pruned int64
		err := tx.QueryRowContext(ctx, sqlEvidenceHead, string(client)).Scan(&part.Head.ClientID, &part.Head.Seq, hashColumn{&part.Head.Hash}, &pruned)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		f := finder{s: s, ctx: ctx, tx: tx, client: client, head: part.Head, pruned: pruned}
		if part.From, part.To, err = f.bounds(r); err != nil {
			return err
		}
		if part.Prev, part.Anchor, err = f.hashAt(part.From - 1); err != nil {
			return err
		}
		part.Last, _, err = f.hashAt(part.To)
		return err
	})
	return part, err
}

// finder looks things up in one chain at one instant.
type finder struct {
	s      *Store
	ctx    context.Context // of one call of Evidence, which the finder does not outlive
	tx     *sql.Tx
	client modelgate.ClientID
	head   records.Head
	pruned int64
}

func (f *finder) bounds(r Range) (from, to int64, err error) {
	if r.From > f.head.Seq+1 {
		return 0, 0, modelgate.Errorf(modelgate.BadRequest, "from_seq is past the end; the last record is %d", f.head.Seq)
	}
	from, to = max(f.pruned+1, r.From), f.head.Seq
	if r.To > 0 {
		to = min(to, r.To)
	}
	if !r.Since.IsZero() {
		if from, err = f.since(r.Since, from); err != nil {
			return 0, 0, err
		}
	}
	if !r.Until.IsZero() {
		if to, err = f.until(r.Until, to); err != nil {
			return 0, 0, err
		}
	}
	if r.Limit > 0 {
		to = min(to, from+r.Limit-1)
	}
	return from, max(to, from-1), nil
}

// since is the number of the first record, from a number on, that is of an
// instant or later.
func (f *finder) since(t time.Time, from int64) (int64, error) {
	query, err := Nearer(f.ctx, f.tx, f.client, t)
	for err == nil {
		var first int64
		err = f.tx.QueryRowContext(f.ctx, query, string(f.client), sqldb.Micros(t), from).Scan(&first)
		if errors.Is(err, sql.ErrNoRows) {
			return f.head.Seq + 1, nil
		}
		if err != nil {
			break
		}
		found, last := int64(0), int64(0)
		err = f.each(first, func(l Line) {
			if found == 0 && l.Seq >= from && !recordTime(l.Record).Before(t) {
				found = l.Seq
			}
			last = l.Seq
		})
		if err == nil && found > 0 {
			return found, nil
		}
		from = last + 1 // what made the chunk qualify lies before from
	}
	return 0, err
}

// Nearer is the query for the first chunk of an instant or later that has less
// to walk over, as far as the instant tells.
func Nearer(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, t time.Time) (query string, err error) {
	var oldest, newest sql.NullInt64
	err = tx.QueryRowContext(ctx, sqlEvidenceTimes, string(client)).Scan(&oldest, &newest)
	if sqldb.Micros(t)-oldest.Int64 < newest.Int64-sqldb.Micros(t) {
		return sqlEvidenceSinceEarly, err
	}
	return sqlEvidenceSinceLate, err
}

// until is the number of the last record, up to a number, that is before an
// instant.
func (f *finder) until(t time.Time, to int64) (int64, error) {
	for {
		var first int64
		err := f.tx.QueryRowContext(f.ctx, sqlEvidenceUntil, string(f.client), sqldb.Micros(t), to).Scan(&first)
		if errors.Is(err, sql.ErrNoRows) {
			return f.pruned, nil
		}
		if err != nil {
			return 0, err
		}
		found := int64(0)
		err = f.each(first, func(l Line) {
			if l.Seq <= to && recordTime(l.Record).Before(t) {
				found = l.Seq
			}
		})
		if err != nil || found > 0 {
			return found, err
		}
		to = first - 1
	}
}

// each visits the records of the chunk in which a number lies.
func (f *finder) each(seq int64, visit func(Line)) error {
	c, err := scanChunk(f.tx.QueryRowContext(f.ctx, sqlEvidenceChunkAt, string(f.client), seq))
	if err != nil {
		return fmt.Errorf("record %d: %w", seq, gone(err))
	}
	return f.s.walker(f.client).walk(c, func(l Line) error {
		visit(l)
		return nil
	})
}

// gone is what it means that a part of a chain is not there.
func gone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errChain
	}
	return err
}

// hashAt is the hash at a number, with the note on it where that is the end
// of what was pruned.
func (f *finder) hashAt(seq int64) (hash records.Hash, note string, err error) {
	switch {
	case seq == 0:
	case seq == f.pruned:
		var at int64
		err = f.tx.QueryRowContext(f.ctx, sqlEvidenceAnchor, string(f.client), seq).Scan(&at, hashColumn{&hash}, &note)
		err = gone(err)
	case seq == f.head.Seq:
		hash = f.head.Hash
	default:
		err = f.each(seq, func(l Line) {
			if l.Seq == seq {
				hash = l.Hash
			}
		})
	}
	return hash, note, err
}

// recordTime is the instant of a record, zero where it has none. The members
// are in order of their names, and no earlier one holds text of a caller.
func recordTime(record []byte) time.Time {
	const name = `"at":"`
	i := bytes.Index(record, []byte(name))
	if i < 0 {
		return time.Time{}
	}
	text := record[i+len(name):]
	t, err := time.Parse(time.RFC3339Nano, string(text[:max(0, bytes.IndexByte(text, '"'))]))
	if err != nil {
		return time.Time{}
	}
	return t
}

// EvidenceLines visits the records of a part in their order. A chain that
// does not hold together, or that was pruned meanwhile, is an error.
func (s *Store) EvidenceLines(ctx context.Context, p Part, visit func(Line) error) error {
	next, prev := p.From, p.Prev
	w := s.walker(p.Head.ClientID)
	for next <= p.To {
		after := next - 1 // chunks that begin later; the first page also needs the one around it
		var page []chunk
		if next == p.From {
			c, err := scanChunk(s.db.Read.QueryRowContext(ctx, sqlEvidenceChunkAt, string(p.Head.ClientID), next))
			if err != nil {
				return sqldb.Wrap("read evidence", fmt.Errorf("record %d: %w", next, gone(err)))
			}
			page, after = append(page, c), c.last
		}
		more, err := sqldb.List(ctx, s.db.Read, scanChunk, sqlEvidenceChunks, string(p.Head.ClientID), after, p.To, chunksPerPage)
		if err != nil {
			return sqldb.Wrap("read evidence", err)
		}
		for _, c := range append(page, more...) {
			err := w.walk(c, func(l Line) error {
				if l.Seq < p.From || l.Seq > p.To {
					return nil
				}
				if l.Seq != next || l.Prev != prev {
					return fmt.Errorf("record %d: %w", next, errChain)
				}
				next, prev = next+1, l.Hash
				return visit(l)
			})
			if err != nil {
				return sqldb.Wrap("read evidence", err)
			}
		}
		if len(page)+len(more) == 0 {
			return sqldb.Wrap("read evidence", fmt.Errorf("record %d is not there: %w", next, errChain))
		}
	}
	if prev != p.Last {
		return sqldb.Wrap("read evidence", fmt.Errorf("record %d: %w", p.To, errChain))
	}
	return nil
}
