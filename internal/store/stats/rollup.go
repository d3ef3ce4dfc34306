// Package stats keeps sums of usage rows by hour and by day, and makes
// statistics of them, so that these cost the same however many calls there were.
//
// The transaction that books rows stores what they add as deltas (delta.go). A
// background loop merges the deltas of many batches into pages (merge.go,
// tables.go). Statistics read both in one snapshot (statistics.go). Check
// compares both with the rows (check.go). Everything that runs a statement
// takes the transaction of the store.
package stats

import (
	"bytes"
	"maps"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

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

// maxValues bounds the values of a dimension in one hour or day. Beyond it
// nothing of the dimension is stored, and its statistics are made from the rows.
// The configuration bounds the providers.
func maxValues(dimension string) int64 {
	switch dimension {
	case dimProvider:
		return 1 << 30
	case dimModel:
		return 4000
	}
	return 1000
}

// span is the owner and the time of a rollup.
type span struct {
	client     modelgate.ClientID
	subAccount modelgate.SubAccountID // "" for all of the client
	grain      Grain
	start      int64 // µs
}

// String is grain/time or sub_account/id/grain/time, as in Difference.Key.
func (s span) String() string {
	text := string(s.grain) + "/" + time.UnixMicro(s.start).UTC().Format("2006-01-02T15")
	if s.subAccount != "" {
		text = "sub_account/" + string(s.subAccount) + "/" + text
	}
	return text
}

// Tallies are sums to be added to rollups.
type Tallies map[span]tally

// tally is the sums of one span, by dimension and key (see Page).
type tally map[string]map[string]*Sums

func (t Tallies) of(at span) tally {
	sums := t[at]
	if sums == nil {
		sums = make(tally, 8)
		t[at] = sums
	}
	return sums
}

// Call is a usage row as rollups and statistics count it. Its texts are as
// they are stored; Author is "" for a route without catalog entry.
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

// shown is the call as its end customer sees it: author and slug in place of
// provider and model, and no region.
func (c Call) shown() Call {
	if c.Slug != "" {
		c.Provider, c.Model = c.Author, c.Slug
	}
	c.Region = ""
	return c
}

// Add counts a call in its hour, for its client and its sub-account.
func (t Tallies) Add(c *Call) {
	at := span{client: c.Client, grain: Hour, start: Hour.Floor(c.At)}
	t.of(at).add(c)
	if at.subAccount = c.SubAccount; at.subAccount != "" {
		shown := c.shown()
		t.of(at).add(&shown)
	}
}

func (t tally) add(c *Call) {
	var buf [256]byte
	t.count(dimProvider, append(buf[:0], c.Provider...), c.Sums)
	t.count(dimModel, c.modelKey(buf[:0]), c.Sums)
	for k, v := range c.Attribution {
		if groupable(k) {
			t.count(k, c.valueKey(buf[:0], sqldb.Clean(v)), c.Sums)
		}
	}
}

// modelKey appends the call's key in the model dimension.
func (c *Call) modelKey(b []byte) []byte {
	for _, s := range [...]string{c.Model, c.Slug, c.Author, c.Region} {
		b = append(append(b, s...), 0)
	}
	return append(b, c.Provider...)
}

// valueKey appends the call's key in the dimension of an attribution key.
func (c *Call) valueKey(b []byte, value string) []byte {
	return append(append(append(b, value...), 0), c.Provider...)
}

// groupable reports whether statistics can be grouped by an attribution key.
func groupable(k string) bool {
	return modelgate.IsAttributionKey(k) && !modelgate.GroupBy(k).BuiltIn()
}

// count adds to the sums of a key. It reports whether the key is new.
func (t tally) count(dimension string, key []byte, s Sums) (added bool) {
	entries := t[dimension]
	if entries == nil {
		entries = make(map[string]*Sums)
		t[dimension] = entries
	}
	sum := entries[string(key)]
	if added = sum == nil; added {
		sum = new(Sums)
		entries[string(key)] = sum
	}
	sum.add(s)
	return added
}

// addPage adds an encoded root page without dimensions that have pages of their
// own. It returns how many keys are new.
func (t tally) addPage(data []byte) (added int, err error) {
	err = walkPage(data, func(key []byte, s Sums) {
		name, entry, _ := bytes.Cut(key, []byte{0})
		if t.count(string(name), entry, s) {
			added++
		}
	})
	return added, err
}

// withDays returns the sums of hours and those of their days.
func (t Tallies) withDays() Tallies {
	out := maps.Clone(t)
	for at, dimensions := range t {
		at.grain, at.start = Day, Day.Floor(at.start)
		day := out.of(at)
		for name, entries := range dimensions {
			for key, s := range entries {
				day.count(name, []byte(key), *s)
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
