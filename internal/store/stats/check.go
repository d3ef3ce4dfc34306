package stats

import (
	"cmp"
	"context"
	"database/sql"
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

// Mismatch is a sum that differs from that of the rows. Key names it within its
// client.
type Mismatch struct {
	Key        string
	Want, Have int64
}

// Check compares the rollups of a client with its rows, one day at a time: it
// needs as much memory as the values of a day. Nothing is compared from before
// prunedBefore, in µs.
func Check(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, prunedBefore int64) ([]Mismatch, error) {
	from := prunedBefore
	if from == 0 {
		from = math.MinInt64
	}
	days, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (day int64, err error) {
		err = s.Scan(&day)
		return Day.Floor(day), err // the query rounds towards 1970
	}, sqlRollupDays, string(client), from)
	if err != nil {
		return nil, err
	}
	var out []Mismatch
	for _, day := range slices.Compact(days) {
		c := check{client: client, have: make(Tallies), ownPages: make(map[pageKey]int64)}
		g, want := Gap{day, day + DayMicros}, make(Tallies)
		if err := EachCall(ctx, tx, client, "", g, func(c *Call) error { want.Add(c); return nil }); err != nil {
			return nil, err
		}
		c.want = want.withDays()
		if err := c.readPages(ctx, tx, g); err != nil {
			return nil, err
		}
		c.checkCounts()
		if err := c.readDeltas(ctx, tx, g); err != nil {
			return nil, err
		}
		c.compare()
		slices.SortFunc(c.found, func(a, b Mismatch) int { return cmp.Compare(a.Key, b.Key) })
		out = append(out, c.found...)
	}
	return out, nil
}

// check compares the rollups of one day.
type check struct {
	client     modelgate.ClientID
	want, have Tallies
	// ownPages has the stored count of values of each dimension that has pages
	// of its own, and noRoom; part is 0.
	ownPages map[pageKey]int64
	found    []Mismatch
}

func (c *check) readPages(ctx context.Context, tx *sql.Tx, g Gap) error {
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		k, p, err := scanPage(s)
		for key, sum := range p {
			name, entry := k.dimension, key
			if name == "" {
				name, entry, _ = strings.Cut(key, "\x00")
			}
			if name == "" {
				c.ownPages[pageKey{span: k.span, dimension: entry}] = sum.Requests
			} else {
				c.have.of(k.span).count(name, []byte(entry), sum)
			}
		}
		return struct{}{}, err
	}, sqlRollupsOfDay, string(c.client), g.From, g.To)
	return err
}

// checkCounts compares the stored counts of values with the pages.
func (c *check) checkCounts() {
	for k, n := range c.ownPages {
		stored := values(c.have.of(k.span)[k.dimension])
		if k.dimension != noRoom && n <= maxValues(k.dimension) && n != stored {
			c.found = append(c.found, Mismatch{k.String() + "/" + k.dimension + "/values", stored, n})
		}
	}
}

// omitted reports whether a dimension is not stored because it has too many
// values, or because there were too many dimensions.
func (c *check) omitted(at span, name string) (tooMany, leftOut bool) {
	n, own := c.ownPages[pageKey{span: at, dimension: name}]
	_, full := c.ownPages[pageKey{span: at, dimension: noRoom}]
	return n > maxValues(name), full && !own && c.have[at][name] == nil
}

// readDeltas adds the deltas, except for dimensions that are not stored.
func (c *check) readDeltas(ctx context.Context, tx *sql.Tx, g Gap) error {
	waiting := make(Tallies)
	_, err := sqldb.List(ctx, tx, func(s sqldb.Scanner) (struct{}, error) {
		at := span{client: c.client, grain: Hour}
		var data []byte
		err := s.Scan(&at.subAccount, &at.start, &data)
		if err == nil {
			_, err = waiting.of(at).addPage(data)
		}
		return struct{}{}, err
	}, sqlDeltasOfDay, string(c.client), g.From, g.To)
	for at, dimensions := range waiting.withDays() {
		for name, entries := range dimensions {
			if tooMany, leftOut := c.omitted(at, name); tooMany || leftOut {
				continue
			}
			for key, sum := range entries {
				c.have.of(at).count(name, []byte(key), *sum)
			}
		}
	}
	return err
}

func (c *check) compare() {
	for at, dimensions := range c.have {
		want := c.want.of(at)
		for name, entries := range dimensions {
			for key := range entries {
				want.count(name, []byte(key), Sums{}) // nothing, where the rows have no such key
			}
		}
	}
	for at, dimensions := range c.want {
		for name, want := range dimensions {
			tooMany, leftOut := c.omitted(at, name)
			if leftOut || tooMany && values(want) > maxValues(name) {
				continue
			}
			for key, w := range want {
				var have Sums
				if h := c.have[at][name][key]; h != nil {
					have = *h
				}
				c.compareSums(at.String()+"/"+name+"/"+strings.ReplaceAll(key, "\x00", "/"), *w, have)
			}
		}
	}
}

func (c *check) compareSums(where string, want, have Sums) {
	for _, f := range [...]struct {
		name       string
		want, have int64
	}{{"requests", want.Requests, have.Requests}, {"tokens", want.Tokens, have.Tokens}, {"cost", want.Cost, have.Cost}} {
		if f.want != f.have {
			c.found = append(c.found, Mismatch{where + "/" + f.name, f.want, f.have})
		}
	}
}
