package store

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
	"modelgate/internal/store/evidence"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/stats"
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

// evidenceDay is what the records say of the calls of one day.
type evidenceDay struct{ calls, cost int64 }

// evidenceDays are days by their first µs.
type evidenceDays map[int64]evidenceDay

func (d evidenceDays) add(at time.Time, calls, cost int64) {
	start := at.UnixMicro() - at.UnixMicro()%stats.DayMicros
	sum := d[start]
	d[start] = evidenceDay{sum.calls + calls, sum.cost + cost}
}

// count adds a record. A final one counts on the day of its call.
func (d evidenceDays) count(record []byte) error {
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
		d.add(at, 1, int64(cost))
		return err
	}
	previous, err := modelgate.ParseUSD(found[3].String())
	ref, ok := modelgate.ParseUUID(found[4].String())
	if err != nil || !ok {
		return fmt.Errorf("final record of %q: %w", found[4].String(), errors.Join(err, errChain))
	}
	d.add(ref.Time(), 0, int64(cost-previous))
	return nil
}

// checkEvidence reads a client's whole chain, holds its hashes against each
// other, and what it says of each day against the rows.
func (db *DB) checkEvidence(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, rows []dailyCost) ([]Difference, error) {
	have, want := make(evidenceDays), make(evidenceDays)
	broken, err := db.readEvidence(ctx, tx, client, have)
	if err != nil || broken != nil {
		return broken, err
	}
	for _, r := range rows {
		want.add(time.UnixMicro(r.call.day), r.calls, int64(r.cost))
	}
	var covered, pruned int64
	if err := tx.QueryRowContext(ctx, sqlEvidenceCover, string(client)).Scan(&covered, &pruned); err != nil {
		return nil, err
	}
	var out []Difference
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, day := range slices.Sorted(maps.Keys(all)) {
		if day < max(covered, pruned) {
			continue
		}
		w, h, key := want[day], have[day], time.UnixMicro(day).UTC().Format(time.DateOnly)
		if w.calls != h.calls {
			out = append(out, Difference{client, "evidence_calls", key, w.calls, h.calls})
		}
		if w.cost != h.cost {
			out = append(out, Difference{client, "evidence_cost", key, w.cost, h.cost})
		}
	}
	return out, nil
}

// readEvidence counts the records of a chain and those on their way into it.
// A chain that does not hold together is a difference at the first record of
// which that can be said.
func (db *DB) readEvidence(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into evidenceDays) ([]Difference, error) {
	head, pruned := records.Head{ClientID: client}, int64(0)
	err := tx.QueryRowContext(ctx, sqlEvidenceHead, string(client)).Scan(&head.ClientID, &head.Seq, hashColumn{&head.Hash}, &pruned)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	f := finder{db: db, ctx: ctx, tx: tx, client: client, head: head, pruned: pruned}
	next, w := pruned+1, db.walker(client)
	broken := func() []Difference {
		return []Difference{{client, "evidence_chain", fmt.Sprint("from record ", next), head.Seq, next - 1}}
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
			if err := w.walk(c, func(l EvidenceLine) error { return into.count(l.Record) }); err != nil {
				return broken(), nil
			}
			next, prev = c.last+1, c.hash
		}
	}
	if prev != head.Hash {
		return broken(), nil
	}
	return nil, db.countPending(ctx, tx, client, into)
}

func (db *DB) countPending(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, into evidenceDays) error {
	var buf []byte
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		var packed []byte
		if err := s.Scan(&packed); err != nil {
			return struct{}{}, err
		}
		var err error
		if buf, err = db.pack.Unpack(buf, packed); err != nil {
			return struct{}{}, err
		}
		rest, record, ok := buf, []byte(nil), true
		for {
			if record, rest, ok = evidence.NextRecord(rest); !ok {
				return struct{}{}, nil
			}
			if err := into.count(record); err != nil {
				return struct{}{}, err
			}
		}
	}, sqlPendingBatches, string(client))
	return err
}
