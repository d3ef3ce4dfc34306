package stats

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlRollupDays = `SELECT created_at - created_at % 86400000000 AS day
FROM usage_row
WHERE client_id = $1 AND created_at >= $2
UNION
SELECT start - start % 86400000000
FROM rollup
WHERE client_id = $1 AND start + 0 >= $2
UNION
SELECT hour - hour % 86400000000
FROM rollup_delta
WHERE client_id = $1 AND hour >= $2
ORDER BY day
-- sqlRollupDays`

const sqlRollupsOfDay = `SELECT client_id, sub_account_id, grain, dimension, start, part, data
FROM rollup
WHERE client_id = $1 AND start + 0 >= $2 AND start + 0 < $3
-- sqlRollupsOfDay`

const sqlDeltasOfDay = `SELECT sub_account_id, hour, data
FROM rollup_delta
WHERE client_id = $1 AND hour >= $2 AND hour < $3
-- sqlDeltasOfDay`

// Mismatch is a sum that is not that of the rows: Key says which one, beneath its
// client.
type Mismatch struct {
	Key        string
	Want, Have int64
}

// Check compares the rollups of a client with its rows, a day at a
// time: as much memory as the values of a day take. rolledFrom and prunedBefore
// are the client's, in µs.
func Check(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, rolledFrom, prunedBefore int64) ([]Mismatch, error) {
	from := prunedBefore
	if from == 0 {
		from = math.MinInt64
	}
	days, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (day int64, err error) {
		err = s.Scan(&day)
		return Day.Floor(day), err // rounded towards 1970 by the query
	}, sqlRollupDays, string(client), from)
	if err != nil {
		return nil, err
	}
	var out []Mismatch
	for _, day := range slices.Compact(days) {
		c := rollupCheck{client: client, rolledFrom: rolledFrom, want: make(Tallies), have: make(map[span]*keptSpan)}
		until := day + DayMicros
		if err := EachCall(ctx, tx, client, Gap{day, until}, c.want.Add); err != nil {
			return nil, err
		}
		maps.Copy(c.want, c.want.days())
		if err := c.read(ctx, tx, Gap{day, until}); err != nil {
			return nil, err
		}
		out = append(out, c.compare()...)
	}
	return out, nil
}

// rollupCheck compares the rollups of a day.
type rollupCheck struct {
	client     modelgate.ClientID
	rolledFrom int64
	want       Tallies
	have       map[span]*keptSpan
}

// keptSpan is what the pages of an hour or day hold together.
type keptSpan struct {
	grown   map[string]int64
	entries map[string]map[string]Sums
}

func (c *rollupCheck) read(ctx context.Context, tx *sql.Tx, g Gap) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k, data, err := scanPage(s)
		if err != nil {
			return struct{}{}, err
		}
		kept := c.kept(k.span)
		p, err := decodePage(data)
		if err != nil {
			return struct{}{}, err
		}
		maps.Copy(kept.grown, p.grown)
		for key, sum := range p.entries {
			name, entry := k.dimension, key
			if name == "" {
				name, entry, _ = strings.Cut(key, "\x00")
			}
			if kept.entries[name] == nil {
				kept.entries[name] = map[string]Sums{}
			}
			kept.entries[name][entry] = sum
		}
		return struct{}{}, nil
	}, sqlRollupsOfDay, string(c.client), g.From, g.To)
	if err != nil {
		return err
	}
	waiting := make(Tallies)
	_, err = sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		at := span{client: c.client, grain: Hour}
		var data []byte
		if err := s.Scan(&at.subAccount, &at.start, &data); err != nil {
			return struct{}{}, err
		}
		_, err := waiting.addDelta(at, data)
		return struct{}{}, err
	}, sqlDeltasOfDay, string(c.client), g.From, g.To)
	maps.Copy(waiting, waiting.days())
	for at, dimensions := range waiting {
		c.kept(at).wait(dimensions)
	}
	return err
}

func (c *rollupCheck) kept(at span) *keptSpan {
	kept := c.have[at]
	if kept == nil {
		kept = &keptSpan{grown: map[string]int64{}, entries: map[string]map[string]Sums{}}
		c.have[at] = kept
	}
	return kept
}

// wait adds what is not in the pages yet. The counts of values become what
// they will be once it is.
func (k *keptSpan) wait(dimensions map[string]map[string]*Sums) {
	for name, entries := range dimensions {
		if _, there := k.entries[name]; !there && (k.grown[noRoom] > 0 || k.grown[name] > maxValues(name)) {
			continue // left out, or too much to keep
		}
		if k.entries[name] == nil {
			k.entries[name] = map[string]Sums{}
		}
		for entry, s := range entries {
			sum := k.entries[name][entry]
			sum.add(*s)
			k.entries[name][entry] = sum
		}
		if _, grown := k.grown[name]; grown {
			p := Page{entries: k.entries[name]}
			k.grown[name] = p.values()
		}
	}
}

func (c *rollupCheck) compare() []Mismatch {
	spans := make(map[span]bool)
	for at := range c.want {
		spans[at] = true
	}
	for at := range c.have {
		spans[at] = true
	}
	var out []Mismatch
	for at := range spans {
		if at.start < at.grain.ceil(c.rolledFrom) {
			continue // summed from rows
		}
		kept := c.have[at]
		if kept == nil {
			kept = &keptSpan{}
		}
		names := make(map[string]bool)
		for name := range c.want[at] {
			names[name] = true
		}
		for name := range kept.entries {
			names[name] = true
		}
		for name := range names {
			out = append(out, c.compareDimension(at, name, c.want[at][name], kept)...)
		}
	}
	return out
}

func (c *rollupCheck) compareDimension(at span, name string, want map[string]*Sums, kept *keptSpan) []Mismatch {
	have := kept.entries[name]
	count, grown := kept.grown[name]
	p := NewPage()
	for key := range want {
		p.entries[key] = Sums{}
	}
	values := p.values()
	switch {
	case have == nil && !grown && kept.grown[noRoom] > 0:
		return nil // left out
	case count > maxValues(name) && values > maxValues(name):
		return nil // too much to keep
	}
	var out []Mismatch
	if grown && count != values {
		out = append(out, Mismatch{at.String() + "/" + name + "/values", values, count})
	}
	keys := make(map[string]bool, len(want))
	for key := range want {
		keys[key] = true
	}
	for key := range have {
		keys[key] = true
	}
	for key := range keys {
		var w Sums
		if want[key] != nil {
			w = *want[key]
		}
		h := have[key]
		where := at.String() + "/" + name + "/" + strings.ReplaceAll(key, "\x00", "/")
		for _, f := range [...]struct {
			name       string
			want, have int64
		}{{"requests", w.Requests, h.Requests}, {"tokens", w.Tokens, h.Tokens}, {"cost", w.Cost, h.Cost}} {
			if f.want != f.have {
				out = append(out, Mismatch{where + "/" + f.name, f.want, f.have})
			}
		}
	}
	slices.SortFunc(out, func(a, b Mismatch) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
