package stats

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

// Query selects what statistics are made of.
type Query struct {
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

// Statistics are statistics in the making. Step and Most may be set before
// Collect. Not for concurrent use.
type Statistics struct {
	query  Query
	client modelgate.ClientID
	fresh  []any                      // leads the arguments of queries
	Step   int64                      // µs of a span; 0: all of the time is one
	spans  map[int64]map[string]*Sums // by where spans begin, then the keys of buckets
	made   int                        // buckets
	Most   int                        // of them
	gaps   []Gap
}

// NewStatistics is for statistics of a client's calls with at most so many
// buckets; fresh leads the arguments of queries.
func NewStatistics(client modelgate.ClientID, q Query, most int, fresh []any) *Statistics {
	return &Statistics{query: q, client: client, fresh: fresh, Most: most, spans: make(map[int64]map[string]*Sums)}
}

// room fails where there are more buckets than may be.
func (s *Statistics) room() error {
	if s.made <= s.Most {
		return nil
	}
	return modelgate.Errorf(modelgate.BadRequest, "%s has too many values in this time, more than %d: ask for a shorter time", s.query.GroupBy, s.Most)
}

// at has the buckets of the span that an instant lies in.
func (s *Statistics) at(us int64) map[string]*Sums {
	start := int64(0)
	if s.Step > 0 {
		start = us - us%s.Step
	}
	buckets := s.spans[start]
	if buckets == nil {
		buckets = make(map[string]*Sums)
		s.spans[start] = buckets
	}
	return buckets
}

// Gap is a time in µs, to its end exclusively, that is summed from the rows.
type Gap struct{ From, To int64 }

// Collect sums the calls. Errors: bad_request for more than Most buckets.
func (s *Statistics) Collect(ctx context.Context, tx *sql.Tx) error {
	var rolledFrom int64
	err := tx.QueryRowContext(ctx, sqlUsageHead, string(s.client)).Scan(&rolledFrom)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // nothing was ever booked
	}
	if err != nil {
		return err
	}
	since := sqldb.Micros(s.query.Since)
	hours := max(Hour.ceil(since), Hour.ceil(rolledFrom))
	days := Day.ceil(hours)
	if s.Step%DayMicros != 0 {
		days = math.MaxInt64 // a day's page does not tell its hours apart
	}
	s.gaps = append(s.gaps, Gap{since, hours})
	times := make(map[span]*hourOrDay)
	if err := s.rollups(ctx, tx, times, Hour, Gap{hours, days}); err != nil {
		return err
	}
	if err := s.rollups(ctx, tx, times, Day, Gap{days, math.MaxInt64}); err != nil {
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
func joined(gaps []Gap) []Gap {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.From, b.From) })
	var out []Gap
	for _, g := range gaps {
		if n := len(out); n > 0 && out[n-1].To >= g.From {
			out[n-1].To = max(out[n-1].To, g.To)
		} else if g.From < g.To {
			out = append(out, g)
		}
	}
	return out
}

// dimension is that of the rollups which has the buckets, and whether it is an
// attribution key.
func (s *Statistics) dimension() (string, bool) {
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
	all     Sums // of the provider dimension
	keyed   Sums // of the dimension asked for
	buckets map[string]*Sums
}

func (s *Statistics) time(times map[span]*hourOrDay, g Grain, start int64) *hourOrDay {
	at := span{grain: g, start: start}
	t := times[at]
	if t == nil {
		t = &hourOrDay{buckets: s.at(start)}
		if s.query.GroupBy == modelgate.ByDay {
			t.buckets = map[string]*Sums{}
		}
		times[at] = t
	}
	return t
}

// rollups adds what the pages of a time say.
func (s *Statistics) rollups(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, g Grain, when Gap) error {
	if when.From >= when.To {
		return nil
	}
	name, _ := s.dimension()
	args := append(slices.Clone(s.fresh), string(s.client), string(s.query.SubAccountID), string(g), dimProvider, name, when.From, when.To)
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
func (s *Statistics) deltas(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, hours, days int64) error {
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
		g := Hour
		if hour >= days {
			g = Day
		}
		t := s.time(times, g, g.Floor(hour))
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
func (s *Statistics) finish(times map[span]*hourOrDay) {
	_, attribution := s.dimension()
	for at, t := range times {
		switch {
		case t.absent:
			s.gaps = append(s.gaps, Gap{at.start, at.start + at.grain.length()})
		case s.query.GroupBy == modelgate.ByDay:
			s.bucket(s.at(at.start), []byte(dayOf(at.start))).add(t.all)
		case attribution:
			s.bucket(t.buckets, nil).add(Sums{t.all.Requests - t.keyed.Requests, t.all.Tokens - t.keyed.Tokens, t.all.Cost - t.keyed.Cost})
		}
	}
}

// read adds one page to what its hour or day comes to.
func (s *Statistics) read(t *hourOrDay, dimension, name string, data []byte) error {
	seen, full := false, false
	err := walkPage(data, func(grown []byte, values int64) {
		switch string(grown) {
		case noRoom:
			full = true
		case name:
			seen = true
			t.absent = values > maxValues(name)
		}
	}, func(key []byte, sum Sums) {
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
func (s *Statistics) count(t *hourOrDay, own, name string, key []byte, sum Sums) {
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

func (s *Statistics) bucket(buckets map[string]*Sums, key []byte) *Sums {
	sum := buckets[string(key)]
	if sum == nil {
		sum = new(Sums)
		buckets[string(key)] = sum
		s.made++
	}
	return sum
}

// bucketKey is the bucket of an entry of a rollup, but for days.
func (s *Statistics) bucketKey(entry []byte) []byte {
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

// Buckets are those of one span, 0 where Step is: the dearest first, then in the
// order of their keys; days in the order of time.
func (s *Statistics) Buckets(span int64) []modelgate.StatsBucket {
	out := make([]modelgate.StatsBucket, 0, len(s.spans[span]))
	for key, sum := range s.spans[span] {
		if *sum != (Sums{}) {
			out = append(out, modelgate.StatsBucket{Key: key, Requests: sum.Requests, TotalTokens: sum.Tokens, Cost: modelgate.Nano(sum.Cost)})
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
