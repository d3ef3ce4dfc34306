package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// StatsQuery selects what statistics are made of.
type StatsQuery struct {
	// SubAccountID restricts them to an end customer, who sees a row's author
	// and slug where a reseller sees provider and model, and no region:
	// Provider is then compared with what it sees.
	SubAccountID modelgate.SubAccountID
	GroupBy      modelgate.GroupBy
	Provider     string // "" for all
	Since        time.Time
}

const sqlUsageHead = `SELECT rolled_from
FROM usage_head
WHERE client_id = $1
-- sqlUsageHead`

// sqlRollups reads the root pages of a time and those of two dimensions, or of
// one that is given twice. Each has a query of its own, for a planner without
// figures reads the pages of all dimensions to find those of a list.
const sqlRollups = `SELECT start, dimension, data
FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = '' AND start >= $6 AND start < $7
UNION ALL
SELECT start, dimension, data
FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = $4 AND start >= $6 AND start < $7
UNION ALL
SELECT start, dimension, data
FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = $5 AND start >= $6 AND start < $7
  AND $4 <> $5
-- sqlRollups`

const sqlDeltasSince = `SELECT hour, data
FROM rollup_delta
WHERE client_id = $1 AND sub_account_id = $2 AND hour >= $3
-- sqlDeltasSince`

// mostBuckets and mostSpanBuckets bound what an answer takes in memory: a
// caller can make up as many values of an attribution key as there are calls.
const (
	mostBuckets     = 250_000
	mostSpanBuckets = 1_000_000 // of all spans together
)

// Stats sums the calls since an instant by a dimension. The buckets are in the
// order of their cost, the dearest first, then of their keys; those of days in
// the order of time. (spec: GET /gw/stats)
//
// Whole days and hours come from rollups; what lies before the first whole
// hour, hours that are not in the rollups yet, and hours and days with too
// many values come from the rows. Errors: bad_request for a dimension with more
// than mostBuckets values.
func (db *DB) Stats(ctx context.Context, client modelgate.ClientID, q StatsQuery) ([]modelgate.StatsBucket, error) {
	s := db.newStatistics(client, q)
	if err := db.inTurn(ctx, "statistics", client, func(tx *sql.Tx) error { return s.collect(ctx, tx) }); err != nil {
		return nil, err
	}
	return s.buckets(0), nil
}

// statistics are statistics in the making.
type statistics struct {
	query  StatsQuery
	client modelgate.ClientID
	fresh  []any                      // leads the arguments of queries
	step   int64                      // µs of a span; 0: all of the time is one
	spans  map[int64]map[string]*sums // by where spans begin, then the keys of buckets
	made   int                        // buckets
	most   int                        // of them
	gaps   []gap
}

func (db *DB) newStatistics(client modelgate.ClientID, q StatsQuery) statistics {
	return statistics{query: q, client: client, fresh: db.engine.freshPlan, most: mostBuckets, spans: make(map[int64]map[string]*sums)}
}

// room fails where there are more buckets than may be.
func (s *statistics) room() error {
	if s.made <= s.most {
		return nil
	}
	return modelgate.Errorf(modelgate.BadRequest, "%s has too many values in this time, more than %d: ask for a shorter time", s.query.GroupBy, s.most)
}

// at has the buckets of the span that an instant lies in.
func (s *statistics) at(us int64) map[string]*sums {
	start := int64(0)
	if s.step > 0 {
		start = us - us%s.step
	}
	buckets := s.spans[start]
	if buckets == nil {
		buckets = make(map[string]*sums)
		s.spans[start] = buckets
	}
	return buckets
}

// gap is a time, to its end exclusively, that is summed from the rows.
type gap struct{ from, to int64 }

func (s *statistics) collect(ctx context.Context, tx *sql.Tx) error {
	var rolledFrom int64
	err := tx.QueryRowContext(ctx, sqlUsageHead, string(s.client)).Scan(&rolledFrom)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // nothing was ever booked
	}
	if err != nil {
		return err
	}
	since := sqldb.Micros(s.query.Since)
	hours := max(grainHour.ceil(since), grainHour.ceil(rolledFrom))
	days := grainDay.ceil(hours)
	if s.step%dayMicros != 0 {
		days = math.MaxInt64 // a day's page does not tell its hours apart
	}
	s.gaps = append(s.gaps, gap{since, hours})
	times := make(map[span]*hourOrDay)
	if err := s.rollups(ctx, tx, times, grainHour, gap{hours, days}); err != nil {
		return err
	}
	if err := s.rollups(ctx, tx, times, grainDay, gap{days, math.MaxInt64}); err != nil {
		return err
	}
	if err := s.deltas(ctx, tx, times, hours, days); err != nil {
		return err
	}
	s.finish(times)
	for _, g := range joined(s.gaps) {
		if err := s.rows(ctx, tx, g); err != nil {
			return err
		}
	}
	return nil
}

// joined puts gaps that follow each other together.
func joined(gaps []gap) []gap {
	slices.SortFunc(gaps, func(a, b gap) int { return cmp.Compare(a.from, b.from) })
	var out []gap
	for _, g := range gaps {
		if n := len(out); n > 0 && out[n-1].to >= g.from {
			out[n-1].to = max(out[n-1].to, g.to)
		} else if g.from < g.to {
			out = append(out, g)
		}
	}
	return out
}

// dimension is that of the rollups which has the buckets, and whether it is an
// attribution key.
func (s *statistics) dimension() (string, bool) {
	switch g := s.query.GroupBy; g {
	case modelgate.ByDay, modelgate.ByProvider:
		return dimProvider, false
	case modelgate.ByModel, modelgate.ByModelSlug, modelgate.ByAuthor, modelgate.ByRegion:
		return dimModel, false
	default:
		return string(g), true
	}
}

// hourOrDay is what the pages of one hour or day come to.
type hourOrDay struct {
	// absent: nothing is kept of the dimension, though there may be calls.
	absent  bool
	all     sums // of the provider dimension
	keyed   sums // of the dimension asked for
	buckets map[string]*sums
}

func (s *statistics) time(times map[span]*hourOrDay, g grain, start int64) *hourOrDay {
	at := span{grain: g, start: start}
	t := times[at]
	if t == nil {
		t = &hourOrDay{buckets: s.at(start)}
		if s.query.GroupBy == modelgate.ByDay {
			t.buckets = map[string]*sums{}
		}
		times[at] = t
	}
	return t
}

// rollups adds what the pages of a time say.
func (s *statistics) rollups(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, g grain, when gap) error {
	if when.from >= when.to {
		return nil
	}
	name, _ := s.dimension()
	args := append(slices.Clone(s.fresh), string(s.client), string(s.query.SubAccountID), string(g), dimProvider, name, when.from, when.to)
	rows, err := tx.QueryContext(ctx, sqlRollups, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var start int64
		var dimension string
		var data sql.RawBytes
		if err := rows.Scan(&start, &dimension, &data); err != nil {
			return err
		}
		if err := s.read(s.time(times, g, start), dimension, name, data); err != nil {
			return err
		}
	}
	return rows.Err()
}

// deltas adds what is not in the pages yet. Those of hours from days on count
// for their day.
func (s *statistics) deltas(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, hours, days int64) error {
	args := append(slices.Clone(s.fresh), string(s.client), string(s.query.SubAccountID), hours)
	rows, err := tx.QueryContext(ctx, sqlDeltasSince, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	name, _ := s.dimension()
	for rows.Next() {
		var hour int64
		var data sql.RawBytes
		if err := rows.Scan(&hour, &data); err != nil {
			return err
		}
		g := grainHour
		if hour >= days {
			g = grainDay
		}
		t := s.time(times, g, g.floor(hour))
		if t.absent {
			continue // it is summed from the rows
		}
		if err := s.read(t, "", name, data); err != nil {
			return err
		}
	}
	return rows.Err()
}

// finish makes gaps of hours and days that do not have all of the dimension,
// and buckets of what is left of the others.
func (s *statistics) finish(times map[span]*hourOrDay) {
	_, attribution := s.dimension()
	for at, t := range times {
		switch {
		case t.absent:
			s.gaps = append(s.gaps, gap{at.start, at.start + at.grain.length()})
		case s.query.GroupBy == modelgate.ByDay:
			s.bucket(s.at(at.start), []byte(dayOf(at.start))).add(t.all)
		case attribution:
			s.bucket(t.buckets, nil).add(sums{t.all.requests - t.keyed.requests, t.all.tokens - t.keyed.tokens, t.all.cost - t.keyed.cost})
		}
	}
}

// read adds one page to what its hour or day comes to.
func (s *statistics) read(t *hourOrDay, dimension, name string, data []byte) error {
	seen, full := false, false
	err := walkPage(data, func(grown []byte, values int64) {
		switch string(grown) {
		case noRoom:
			full = true
		case name:
			seen = true
			t.absent = values > maxValues(name)
		}
	}, func(key []byte, sum sums) {
		own := dimension
		if dimension == "" {
			text, rest, _ := bytes.Cut(key, []byte{0})
			own, key = dimProvider, rest
			if string(text) != dimProvider {
				own = ""
			}
			if string(text) == name {
				own, seen = name, true
			}
		}
		s.count(t, own, name, key, sum)
	})
	if dimension == "" && full && !seen {
		t.absent = true // left out, or not used
	}
	if err != nil {
		return err
	}
	return s.room()
}

// count adds an entry of the dimension own.
func (s *statistics) count(t *hourOrDay, own, name string, key []byte, sum sums) {
	provider := key[bytes.LastIndexByte(key, 0)+1:]
	if s.query.Provider != "" && string(provider) != s.query.Provider {
		return
	}
	if own == dimProvider {
		t.all.add(sum)
	}
	if own == name {
		t.keyed.add(sum)
		s.bucket(t.buckets, s.bucketKey(key)).add(sum)
	}
}

func (s *statistics) bucket(buckets map[string]*sums, key []byte) *sums {
	sum := buckets[string(key)]
	if sum == nil {
		sum = new(sums)
		buckets[string(key)] = sum
		s.made++
	}
	return sum
}

// bucketKey is the bucket of an entry of a rollup, but for days.
func (s *statistics) bucketKey(entry []byte) []byte {
	text, field := entry, 0
	switch s.query.GroupBy {
	case modelgate.ByModelSlug:
		field = 1
	case modelgate.ByAuthor:
		field = 2
	case modelgate.ByRegion:
		field = 3
	}
	for range field {
		_, text, _ = bytes.Cut(text, []byte{0})
	}
	text, _, _ = bytes.Cut(text, []byte{0})
	if len(text) == 0 {
		return []byte(emptyBucket(s.query.GroupBy))
	}
	return text
}

// emptyBucket is the bucket of rows that have no key.
func emptyBucket(g modelgate.GroupBy) string {
	switch g {
	case modelgate.ByModelSlug, modelgate.ByAuthor:
		return modelgate.BucketOther
	case modelgate.ByRegion:
		return modelgate.BucketUnknown
	}
	return ""
}

func dayOf(us int64) string { return time.UnixMicro(us).UTC().Format(time.DateOnly) }

// buckets are those of one span.
func (s *statistics) buckets(span int64) []modelgate.StatsBucket {
	out := make([]modelgate.StatsBucket, 0, len(s.spans[span]))
	for key, sum := range s.spans[span] {
		if *sum != (sums{}) {
			out = append(out, modelgate.StatsBucket{Key: key, Requests: sum.requests, TotalTokens: sum.tokens, Cost: modelgate.Nano(sum.cost)})
		}
	}
	slices.SortFunc(out, func(a, b modelgate.StatsBucket) int {
		if s.query.GroupBy == modelgate.ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key))
	})
	return out
}
