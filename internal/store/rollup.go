package store

import (
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Rollups are sums of usage rows by hour and by day, so that statistics cost
// the same however many calls there were. The transaction that books rows notes
// what they add (rollup_delta.go), a loop puts that into pages
// (rollup_save.go), GET /gw/stats reads both (stats.go), and Reconcile holds
// them against the rows.

// grain is the length of a rollup's time.
type grain string

const (
	grainHour grain = "hour"
	grainDay  grain = "day"
)

const (
	hourMicros = int64(time.Hour / time.Microsecond)
	dayMicros  = 24 * hourMicros
)

func (g grain) length() int64 {
	if g == grainDay {
		return dayMicros
	}
	return hourMicros
}

// floor is the beginning of the hour or day that an instant lies in.
func (g grain) floor(us int64) int64 {
	start := us - us%g.length()
	if start > us { // before 1970
		start -= g.length()
	}
	return start
}

// ceil is the first beginning of an hour or day that is not before an instant.
func (g grain) ceil(us int64) int64 { return g.floor(us + g.length() - 1) }

// The dimensions of a rollup beside the attribution keys, none of which can
// be grouped on under these names.
const (
	dimProvider = string(modelgate.ByProvider)
	dimModel    = string(modelgate.ByModel)
)

// maxValues bounds what is kept of a dimension for one hour or day: of one
// with more values nothing is, and it is summed from the rows. The providers
// are those of the configuration.
func maxValues(dimension string) int64 {
	switch dimension {
	case dimProvider:
		return 1 << 30
	case dimModel:
		return 4000
	}
	return 1000
}

// span is a rollup's owner and time.
type span struct {
	client     modelgate.ClientID
	subAccount modelgate.SubAccountID // "" for all of the client
	grain      grain
	start      int64 // µs
}

// tally collects what is to be added to rollups: by dimension and entry.
type tally map[span]map[string]map[string]*sums

// counted is what rollups need to know of a row.
type counted struct {
	client      modelgate.ClientID
	subAccount  modelgate.SubAccountID
	at          int64 // µs
	provider    string
	model       string
	slug        string
	author      string
	region      string
	attribution map[string]string
	sums        sums
}

// countedRow is a new row as it counts.
func countedRow(r *modelgate.UsageRow) counted {
	b := &r.CallBegin
	c := counted{
		client: modelgate.ClientID(sqldb.Clean(string(b.ClientID))), subAccount: modelgate.SubAccountID(sqldb.Clean(string(b.SubAccountID))), at: sqldb.Micros(b.At), provider: sqldb.Clean(b.Provider), model: sqldb.Clean(b.Model),
		slug: sqldb.Clean(b.Slug), author: sqldb.Clean(b.Author), region: sqldb.Clean(b.Region), attribution: b.Attribution,
		sums: sums{1, r.Usage.TotalTokens(), int64(r.Cost)},
	}
	if c.slug == "" {
		c.author = "" // of routes that are catalogued only
	}
	return c
}

// shown is the row as its end customer sees it: what was asked for in place
// of where it ran.
func (c counted) shown() counted {
	if c.slug != "" {
		c.provider, c.model = c.author, c.slug
	}
	c.region = ""
	return c
}

// add counts a row in its hour, for its client and its sub-account.
func (t tally) add(c *counted) {
	start := grainHour.floor(c.at)
	t.addTo(span{client: c.client, grain: grainHour, start: start}, c)
	if c.subAccount != "" {
		shown := c.shown()
		t.addTo(span{client: c.client, subAccount: c.subAccount, grain: grainHour, start: start}, &shown)
	}
}

func (t tally) addTo(at span, c *counted) {
	dimensions := t[at]
	if dimensions == nil {
		dimensions = make(map[string]map[string]*sums, 8)
		t[at] = dimensions
	}
	var room [256]byte
	count(dimensions, dimProvider, append(room[:0], c.provider...), c.sums)
	count(dimensions, dimModel, c.modelKey(room[:0]), c.sums)
	for k, v := range c.attribution {
		if groupable(k) {
			key := append(append(append(room[:0], sqldb.Clean(v)...), 0), c.provider...)
			count(dimensions, k, key, c.sums)
		}
	}
}

// modelKey appends the row's entry of the model dimension.
func (c *counted) modelKey(b []byte) []byte {
	for _, s := range [...]string{c.model, c.slug, c.author, c.region} {
		b = append(append(b, s...), 0)
	}
	return append(b, c.provider...)
}

// groupable reports whether statistics can be grouped on an attribution key.
func groupable(k string) bool {
	return modelgate.IsAttributionKey(k) && !modelgate.GroupBy(k).BuiltIn()
}

// count adds to an entry, and reports whether it is a new one.
func count(dimensions map[string]map[string]*sums, dimension string, key []byte, s sums) (added bool) {
	entries := dimensions[dimension]
	if entries == nil {
		entries = make(map[string]*sums)
		dimensions[dimension] = entries
	}
	sum := entries[string(key)]
	if added = sum == nil; added {
		sum = new(sums)
		entries[string(key)] = sum
	}
	sum.add(s)
	return added
}

// days adds up the hours.
func (t tally) days() tally {
	out := make(tally)
	for at, dimensions := range t {
		at.grain, at.start = grainDay, grainDay.floor(at.start)
		into := out[at]
		if into == nil {
			into = make(map[string]map[string]*sums, len(dimensions))
			out[at] = into
		}
		for name, entries := range dimensions {
			sum := into[name]
			if sum == nil {
				sum = make(map[string]*sums, len(entries))
				into[name] = sum
			}
			for key, s := range entries {
				if sum[key] == nil {
					sum[key] = new(sums)
				}
				sum[key].add(*s)
			}
		}
	}
	return out
}

// firstText is the first part of an entry's key.
func firstText(key string) string {
	text, _, _ := strings.Cut(key, "\x00")
	return text
}
