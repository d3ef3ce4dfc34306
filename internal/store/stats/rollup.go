// Package stats keeps sums of usage rows by hour and by day, and makes statistics
// of them. What runs a statement takes the transaction of the store.
package stats

import (
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Rollups are sums of usage rows by hour and by day, so that statistics cost
// the same however many calls there were. The transaction that books rows notes
// what they add (delta.go), a loop puts that into pages (change.go, tables.go),
// GET /gw/stats reads both (statistics.go), and Check holds them against the
// rows.

// Grain is the length of a rollup's time.
type Grain string

// The grains.
const (
	Hour Grain = "hour"
	Day  Grain = "day"
)

// The lengths of the grains, in µs.
const (
	HourMicros = int64(time.Hour / time.Microsecond)
	DayMicros  = 24 * HourMicros
)

func (g Grain) length() int64 {
	if g == Day {
		return DayMicros
	}
	return HourMicros
}

// Floor is the beginning of the hour or day that an instant lies in, both in µs.
func (g Grain) Floor(us int64) int64 {
	start := us - us%g.length()
	if start > us { // before 1970
		start -= g.length()
	}
	return start
}

// ceil is the first beginning of an hour or day that is not before an instant.
func (g Grain) ceil(us int64) int64 { return g.Floor(us + g.length() - 1) }

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
	grain      Grain
	start      int64 // µs
}

// String is grain/time or sub_account/id/grain/time, as Difference.Key spells
// it.
func (s span) String() string {
	text := string(s.grain) + "/" + time.UnixMicro(s.start).UTC().Format("2006-01-02T15")
	if s.subAccount != "" {
		text = "sub_account/" + string(s.subAccount) + "/" + text
	}
	return text
}

// Tallies collect what is to be added to rollups: by dimension and entry.
type Tallies map[span]map[string]map[string]*Sums

// Call is what rollups need to know of a row. Its texts are as they are stored.
type Call struct {
	Client      modelgate.ClientID
	SubAccount  modelgate.SubAccountID
	At          int64 // µs
	Provider    string
	Model       string
	Slug        string
	Author      string
	Region      string
	Attribution map[string]string
	Sums        Sums
}

// shown is the row as its end customer sees it: what was asked for in place
// of where it ran.
func (c Call) shown() Call {
	if c.Slug != "" {
		c.Provider, c.Model = c.Author, c.Slug
	}
	c.Region = ""
	return c
}

// Add counts a row in its hour, for its client and its sub-account.
func (t Tallies) Add(c *Call) {
	start := Hour.Floor(c.At)
	t.addTo(span{client: c.Client, grain: Hour, start: start}, c)
	if c.SubAccount != "" {
		shown := c.shown()
		t.addTo(span{client: c.Client, subAccount: c.SubAccount, grain: Hour, start: start}, &shown)
	}
}

func (t Tallies) addTo(at span, c *Call) {
	dimensions := t[at]
	if dimensions == nil {
		dimensions = make(map[string]map[string]*Sums, 8)
		t[at] = dimensions
	}
	var room [256]byte
	count(dimensions, dimProvider, append(room[:0], c.Provider...), c.Sums)
	count(dimensions, dimModel, c.modelKey(room[:0]), c.Sums)
	for k, v := range c.Attribution {
		if groupable(k) {
			key := append(append(append(room[:0], sqldb.Clean(v)...), 0), c.Provider...)
			count(dimensions, k, key, c.Sums)
		}
	}
}

// modelKey appends the row's entry of the model dimension.
func (c *Call) modelKey(b []byte) []byte {
	for _, s := range [...]string{c.Model, c.Slug, c.Author, c.Region} {
		b = append(append(b, s...), 0)
	}
	return append(b, c.Provider...)
}

// groupable reports whether statistics can be grouped on an attribution key.
func groupable(k string) bool {
	return modelgate.IsAttributionKey(k) && !modelgate.GroupBy(k).BuiltIn()
}

// count adds to an entry, and reports whether it is a new one.
func count(dimensions map[string]map[string]*Sums, dimension string, key []byte, s Sums) (added bool) {
	entries := dimensions[dimension]
	if entries == nil {
		entries = make(map[string]*Sums)
		dimensions[dimension] = entries
	}
	sum := entries[string(key)]
	if added = sum == nil; added {
		sum = new(Sums)
		entries[string(key)] = sum
	}
	sum.add(s)
	return added
}

// addDelta adds what a delta holds, and returns how many entries are new.
func (t Tallies) addDelta(at span, data []byte) (added int, err error) {
	dimensions := t[at]
	if dimensions == nil {
		dimensions = make(map[string]map[string]*Sums, 8)
		t[at] = dimensions
	}
	err = walkPage(data, func([]byte, int64) {}, func(key []byte, s Sums) {
		name, entry, _ := strings.Cut(string(key), "\x00")
		if count(dimensions, name, []byte(entry), s) {
			added++
		}
	})
	return added, err
}

// days adds up the hours.
func (t Tallies) days() Tallies {
	out := make(Tallies)
	for at, dimensions := range t {
		at.grain, at.start = Day, Day.Floor(at.start)
		into := out[at]
		if into == nil {
			into = make(map[string]map[string]*Sums, len(dimensions))
			out[at] = into
		}
		for name, entries := range dimensions {
			sum := into[name]
			if sum == nil {
				sum = make(map[string]*Sums, len(entries))
				into[name] = sum
			}
			for key, s := range entries {
				if sum[key] == nil {
					sum[key] = new(Sums)
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
