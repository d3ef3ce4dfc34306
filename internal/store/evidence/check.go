package evidence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
	records "modelgate/internal/evidence"
	"modelgate/internal/store/sqldb"
)

// sqlEvidenceCover is the first instant of which all rows have records and
// all records have rows.
const sqlEvidenceCover = `SELECT
  COALESCE((SELECT covered_from FROM evidence_head WHERE client_id = $1), 0),
  COALESCE((SELECT pruned_before FROM usage_head WHERE client_id = $1), 0)
-- sqlEvidenceCover`

const sqlPendingBatches = `SELECT b.records
FROM evidence_pending p
JOIN evidence_batch b ON b.id = p.batch_id
WHERE p.client_id = $1
ORDER BY p.batch_id
-- sqlPendingBatches`

// Day is what the records say of the calls of one day.
type Day struct{ Calls, Cost int64 }

const dayMicros = 24 * int64(time.Hour/time.Microsecond)

// Days are days by their first µs.
type Days map[int64]Day

// Add adds calls and their cost, in nano-USD, to the day of an instant.
func (d Days) Add(at time.Time, calls, cost int64) {
	start := at.UnixMicro() - at.UnixMicro()%dayMicros
	sum := d[start]
	d[start] = Day{sum.Calls + calls, sum.Cost + cost}
}

// count adds a record. A final one counts on the day of its call.
func (d Days) count(record []byte) error {
	found := gjson.GetManyBytes(record, "type", "at", "cost_usd", "previous_cost_usd", "ref")
	kind := found[0].String()
	if kind != "usage" && kind != "usage.final" {
		return nil
	}
	cost, err := modelgate.ParseUSD(found[2].String())
	if err != nil {
		return err
	}
	if kind == "usage" {
		at, err := time.Parse(time.RFC3339Nano, found[1].String())
		d.Add(at, 1, int64(cost))
		return err
	}
	previous, err := modelgate.ParseUSD(found[3].String())
	ref, ok := modelgate.ParseUUID(found[4].String())
	if err != nil || !ok {
		return fmt.Errorf("final record of %q: %w", found[4].String(), errors.Join(err, errChain))
	}
	d.Add(ref.Time(), 0, int64(cost-previous))
	return nil
}

// CheckEvidence reads a client's whole chain, holds its hashes against each
// other, and what it says of each day against the rows.
func (s *Store) CheckEvidence(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, want Days) ([]sqldb.Difference, error) {
	have := make(Days)
	broken, err := s.readEvidence(ctx, tx, client, have)
	if err != nil || broken != nil {
		return broken, err
	}
	var covered, pruned int64
	if err := tx.QueryRowContext(ctx, sqlEvidenceCover, string(client)).Scan(&covered, &pruned); err != nil {
		return nil, err
	}
	var out []sqldb.Difference
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, day := range slices.Sorted(maps.Keys(all)) {
		if day < max(covered, pruned) {
			continue
		}
		w, h, key := want[day], have[day], time.UnixMicro(day).UTC().Format(time.DateOnly)
		if w.Calls != h.Calls {
			out = append(out, sqldb.Difference{ClientID: client, What: "evidence_calls", Key: key, Want: w.Calls, Have: h.Calls})
		}
		if w.Cost != h.Cost {
			out = append(out, sqldb.Difference{ClientID: client, What: "evidence_cost", Key: key, Want: w.Cost, Have: h.Cost})
		}
	}
	return out, nil
}

// readEvidence counts the records of a chain and those on their way into it.
// A chain that does not hold together is a difference at the first record of
// which that can be said.
func (s *Store) readEvidence(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into Days) ([]sqldb.Difference, error) {
	head, pruned := records.Head{ClientID: client}, int64(0)
	err := tx.QueryRowContext(ctx, sqlEvidenceHead, string(client)).Scan(&head.ClientID, &head.Seq, hashColumn{&head.Hash}, &pruned)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	f := finder{s: s, ctx: ctx, tx: tx, client: client, head: head, pruned: pruned}
	next, w := pruned+1, s.walker(client)
	broken := func() []sqldb.Difference {
		return []sqldb.Difference{{ClientID: client, What: "evidence_chain", Key: fmt.Sprint("from record ", next), Want: head.Seq, Have: next - 1}}
	}
	prev, _, err := f.hashAt(pruned)
	if errors.Is(err, errChain) {
		return broken(), nil
	}
	if err != nil {
		return nil, err
	}
	for next <= head.Seq {
		page, err := sqldb.List(ctx, tx, scanChunk, sqlEvidenceChunks, string(client), next-1, head.Seq, chunksPerPage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return broken(), nil
		}
		for _, c := range page {
			if c.first != next || c.prev != prev {
				return broken(), nil
			}
			if err := w.walk(c, func(l Line) error { return into.count(l.Record) }); err != nil {
				return broken(), nil
			}
			next, prev = c.last+1, c.hash
		}
	}
	if prev != head.Hash {
		return broken(), nil
	}
	return nil, s.countPending(ctx, tx, client, into)
}

func (s *Store) countPending(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into Days) error {
	var buf []byte
	_, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (struct{}, error) {
		var packed []byte
		if err := row.Scan(&packed); err != nil {
			return struct{}{}, err
		}
		var err error
		if buf, err = s.pack.Unpack(buf, packed); err != nil {
			return struct{}{}, err
		}
		rest, record, ok := buf, []byte(nil), true
		for {
			if record, rest, ok = NextRecord(rest); !ok {
				return struct{}{}, nil
			}
			if err := into.count(record); err != nil {
				return struct{}{}, err
			}
		}
	}, sqlPendingBatches, string(client))
	return err
}
