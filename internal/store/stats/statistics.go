package stats

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
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

const sqlDeltasSince = `SELECT hour, '', data
FROM rollup_delta
WHERE client_id = $1 AND sub_account_id = $2 AND hour >= $3
-- sqlDeltasSince`

// Statistics makes statistics of the calls of a client. Not for concurrent use.
type Statistics struct {
	Query  Query
	Client modelgate.ClientID
	Step   int64 // µs of a span, whole hours or whole days; 0: one span is all of the time
	Most   int   // buckets, in all spans together
	Fresh  []any // leads the arguments of queries

	spans map[int64]map[string]*Sums // by where spans begin, then the keys of buckets
	made  int                        // buckets
}

// room fails if there are more than Most buckets.
func (s *Statistics) room() error {
	if s.made <= s.Most {
		return nil
	}
	return modelgate.Errorf(modelgate.BadRequest, "%s has too many values in this time, more than %d: ask for a shorter time", s.Query.GroupBy, s.Most)
}

// at returns the buckets of the span that contains an instant.
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

// Gap is a time in µs, To excluded, for which statistics are made from the rows.
type Gap struct{ From, To int64 }

// Collect sums the calls. Errors: bad_request for more than Most buckets.
func (s *Statistics) Collect(ctx context.Context, tx *sql.Tx) error {
	s.spans = make(map[int64]map[string]*Sums)
	since := sqldb.Micros(s.Query.Since)
	hours := Hour.ceil(since)
	days := Day.ceil(hours)
	if s.Step%DayMicros != 0 {
		days = math.MaxInt64 // the page of a day does not tell its hours apart
	}
	times := make(map[span]*hourOrDay)
	name, _ := s.dimension()
	if err := s.pages(ctx, tx, times, days, sqlRollups, string(Hour), dimProvider, name, hours, days); err != nil {
		return err
	}
	if err := s.pages(ctx, tx, times, days, sqlRollups, string(Day), dimProvider, name, days, int64(math.MaxInt64)); err != nil {
		return err
	}
	if err := s.pages(ctx, tx, times, days, sqlDeltasSince, hours); err != nil {
		return err
	}
	gaps := []Gap{{since, hours}}
	for at, t := range times {
		if t.absent {
			gaps = append(gaps, Gap{at.start, at.start + at.grain.length()})
			delete(times, at)
		}
	}
	for _, g := range gaps {
		if err := s.rows(ctx, tx, times, g); err != nil {
			return err
		}
	}
	s.addUngrouped(times)
	return nil
}

// dimension returns the dimension of the rollups that has the buckets, and
// whether it is an attribution key.
func (s *Statistics) dimension() (name string, attribution bool) {
	switch g := s.Query.GroupBy; g {
	case modelgate.ByDay, modelgate.ByProvider:
		return dimProvider, false
	case modelgate.ByModel, modelgate.ByModelSlug, modelgate.ByAuthor, modelgate.ByRegion:
		return dimModel, false
	default:
		return string(g), true
	}
}

// hourOrDay is the sums of one hour or day.
type hourOrDay struct {
	// absent: the dimension is not stored, though there may be calls.
	absent  bool
	all     Sums // of the provider dimension
	grouped Sums // of the dimension asked for
	buckets map[string]*Sums
	day     string
}

func (s *Statistics) time(times map[span]*hourOrDay, g Grain, us int64) *hourOrDay {
	at := span{grain: g, start: g.Floor(us)}
	t := times[at]
	if t == nil {
		t = &hourOrDay{buckets: s.at(at.start), day: time.UnixMicro(at.start).UTC().Format(time.DateOnly)}
		times[at] = t
	}
	return t
}

// pages adds pages or deltas. From days on they count for their day.
func (s *Statistics) pages(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, days int64, query string, args ...any) error {
	args = slices.Concat(s.Fresh, []any{string(s.Client), string(s.Query.SubAccountID)}, args)
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	name, _ := s.dimension()
	for rows.Next() {
		var start int64
		var dimension string
		var data sql.RawBytes
		if err := rows.Scan(&start, &dimension, &data); err != nil {
			return err
		}
		g := Hour
		if start >= days {
			g = Day
		}
		t := s.time(times, g, start)
		if t.absent {
			continue // the rows are summed
		}
		if err := s.read(t, dimension, name, data); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rows adds the rows of a time, by hours.
func (s *Statistics) rows(ctx context.Context, tx *sql.Tx, times map[span]*hourOrDay, g Gap) error {
	name, attribution := s.dimension()
	var buf [256]byte
	return EachCall(ctx, tx, s.Client, s.Query.SubAccountID, g, func(c *Call) error {
		if s.Query.SubAccountID != "" {
			shown := c.shown()
			c = &shown
		}
		t := s.time(times, Hour, c.At)
		s.count(t, true, name == dimProvider, append(buf[:0], c.Provider...), c.Sums)
		if value, ok := c.Attribution[name]; attribution && ok {
			s.count(t, false, true, c.valueKey(buf[:0], value), c.Sums)
		}
		if name == dimModel {
			s.count(t, false, true, c.modelKey(buf[:0]), c.Sums)
		}
		return s.room()
	})
}

// addUngrouped adds the calls that do not have the attribution key.
func (s *Statistics) addUngrouped(times map[span]*hourOrDay) {
	if _, attribution := s.dimension(); !attribution {
		return
	}
	for _, t := range times {
		s.bucket(t.buckets, nil).add(Sums{t.all.Requests - t.grouped.Requests, t.all.Tokens - t.grouped.Tokens, t.all.Cost - t.grouped.Cost})
	}
}

// read adds one page, or one delta, to its hour or day.
func (s *Statistics) read(t *hourOrDay, dimension, name string, data []byte) error {
	seen, full, page := false, false, []byte(dimension)
	err := walkPage(data, func(key []byte, sum Sums) {
		own := page
		if dimension == "" {
			own, key, _ = bytes.Cut(key, []byte{0})
		}
		switch {
		case len(own) > 0:
			grouped := string(own) == name
			seen = seen || grouped
			s.count(t, string(own) == dimProvider, grouped, key, sum)
		case string(key) == noRoom:
			full = true
		case string(key) == name:
			seen, t.absent = true, sum.Requests > maxValues(name)
		}
	})
	if err != nil {
		return err
	}
	if dimension == "" && full && !seen {
		t.absent = true // left out, or not used
	}
	return s.room()
}

// count adds a key's sums to all calls, to those grouped, or to both.
func (s *Statistics) count(t *hourOrDay, all, grouped bool, key []byte, sum Sums) {
	provider := key[bytes.LastIndexByte(key, 0)+1:]
	if s.Query.Provider != "" && string(provider) != s.Query.Provider {
		return
	}
	if all {
		t.all.add(sum)
	}
	if grouped {
		t.grouped.add(sum)
		s.bucket(t.buckets, s.bucketKey(t, key)).add(sum)
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

// bucketKey is the bucket of a key of a page.
func (s *Statistics) bucketKey(t *hourOrDay, key []byte) []byte {
	text, field := key, 0
	switch s.Query.GroupBy {
	case modelgate.ByDay:
		return []byte(t.day)
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
		return []byte(emptyBucket(s.Query.GroupBy))
	}
	return text
}

// emptyBucket is the bucket of calls without a text in the dimension.
func emptyBucket(g modelgate.GroupBy) string {
	switch g {
	case modelgate.ByModelSlug, modelgate.ByAuthor:
		return modelgate.BucketOther
	case modelgate.ByRegion:
		return modelgate.BucketUnknown
	}
	return ""
}

// Buckets returns the buckets of all of the time, for a Step of 0. They are
// ordered by descending cost, then by key; days by time.
func (s *Statistics) Buckets() []modelgate.StatsBucket {
	out := make([]modelgate.StatsBucket, 0, len(s.spans[0]))
	for key, sum := range s.spans[0] {
		if *sum != (Sums{}) {
			out = append(out, sum.bucket(key))
		}
	}
	slices.SortFunc(out, func(a, b modelgate.StatsBucket) int {
		if s.Query.GroupBy == modelgate.ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key))
	})
	return out
}

func (s Sums) bucket(key string) modelgate.StatsBucket {
	return modelgate.StatsBucket{Key: key, Requests: s.Requests, TotalTokens: s.Tokens, Cost: modelgate.Nano(s.Cost)}
}
