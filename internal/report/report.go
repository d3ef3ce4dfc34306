// Package report sums booked calls by dimensions and spans of time, and tells
// how long they took. It reads nothing: calls are added one by one.
package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// Dimension is what calls are grouped by.
type Dimension string

// The dimensions, besides tag:NAME for an attribution key.
const (
	Model       Dimension = "model" // the slug, or the native id of what is not catalogued
	Author      Dimension = "author"
	Provider    Dimension = "provider" // for an end customer the author of what is catalogued
	NativeModel Dimension = "native_model"
	Key         Dimension = "key_id"
	SubAccount  Dimension = "sub_account_id"
	Status      Dimension = "status"
	ParseStatus Dimension = "parse_status"
	Door        Dimension = "door"
	Kind        Dimension = "kind"
	Region      Dimension = "region"
	ViaSDK      Dimension = "via_sdk"
	// Organization is for whoever sums the calls of several.
	Organization Dimension = "organization"

	tagPrefix = "tag:"
)

// Tag is the attribution key that a dimension stands for.
func (d Dimension) Tag() (key string, ok bool) {
	key, ok = strings.CutPrefix(string(d), tagPrefix)
	return key, ok && modelgate.IsAttributionKey(key)
}

// Valid reports whether there is such a dimension.
func (d Dimension) Valid() bool {
	switch d {
	case Model, Author, Provider, NativeModel, Key, SubAccount, Status, ParseStatus, Door, Kind, Region, ViaSDK, Organization:
		return true
	}
	_, ok := d.Tag()
	return ok
}

// Interval is the length of the spans of a report, all in UTC.
type Interval string

// The intervals. Weeks begin on Monday.
const (
	Whole Interval = "none" // one span is all of the time
	Hour  Interval = "hour"
	Day   Interval = "day"
	Week  Interval = "week"
	Month Interval = "month"
)

// start is where the span of an instant begins.
func (i Interval) start(at time.Time) time.Time {
	at = at.UTC()
	year, month, day := at.Date()
	switch i {
	case Hour:
		return at.Truncate(time.Hour)
	case Day:
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case Week:
		monday := (int(at.Weekday()) + 6) % 7
		return time.Date(year, month, day-monday, 0, 0, 0, 0, time.UTC)
	case Month:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// Order is what makes one group larger than another.
type Order string

// The orders.
const (
	ByCost     Order = "cost"
	ByRequests Order = "requests"
	ByTokens   Order = "tokens"
	ByErrors   Order = "errors"
	ByP95      Order = "p95" // of the latency
)

// weight is the size of a group.
func (o Order) weight(f *Figures) int64 {
	switch o {
	case ByRequests:
		return f.Requests
	case ByTokens:
		return f.TotalTokens
	case ByErrors:
		return f.Errors
	case ByP95:
		return f.Latency.Percentile(95)
	}
	return int64(f.Cost)
}

// Call is a booked call as reports see it. The texts are those that the
// caller is shown.
type Call struct {
	At          time.Time
	Client      modelgate.ClientID
	SubAccount  modelgate.SubAccountID
	Key         modelgate.KeyID
	Provider    string
	Model       string // the native id
	Slug        string
	Author      string // "" for what is not catalogued
	Kind        string
	Region      string
	Door        string
	ParseStatus string
	Status      int
	ViaSDK      bool
	Attribution func(key string) string
	TotalTokens int64
	Tokens      modelgate.TokenKinds
	Cost        modelgate.Nano
	Collected   modelgate.Nano // by the sub-account's wallet or billing event, at the markup of that time
	LatencyMS   int64
	FirstByteMS int64 // 0: none came
}

// text is the call's value of a dimension.
func (c *Call) text(d Dimension) string {
	switch d {
	case Model:
		return cmp.Or(c.Slug, c.Model)
	case Author:
		return c.Author
	case Provider:
		return c.Provider
	case NativeModel:
		return c.Model
	case Key:
		return string(c.Key)
	case SubAccount:
		return string(c.SubAccount)
	case Status:
		return strconv.Itoa(c.Status)
	case ParseStatus:
		return c.ParseStatus
	case Door:
		return c.Door
	case Kind:
		return c.Kind
	case Region:
		return c.Region
	case Organization:
		return string(c.Client)
	case ViaSDK:
		return strconv.FormatBool(c.ViaSDK)
	}
	key, _ := d.Tag()
	return c.Attribution(key)
}

// Query is how calls are summed.
type Query struct {
	GroupBy  []Dimension // at most two
	Interval Interval
	Top      int // groups, 1 or more; all others are one together
	Order    Order
}

// Row is the calls of one group in one span.
type Row struct {
	At    time.Time // where the span begins; the zero time for Whole
	Group []string  // a value for each dimension
	Other bool      // all groups that are not among the largest; Group is empty
	Figures
}

// Report sums calls. Not for concurrent use.
type Report struct {
	Query  Query
	Totals Figures
	cells  map[cellKey]*Figures
}

// cellKey is a span and a group, whose texts NUL joins.
type cellKey struct {
	at    time.Time
	group string
}

// New makes an empty report.
func New(q Query) *Report {
	return &Report{Query: q, cells: make(map[cellKey]*Figures)}
}

// Add counts a call.
func (r *Report) Add(c *Call) {
	texts := make([]string, len(r.Query.GroupBy))
	for i, d := range r.Query.GroupBy {
		texts[i] = c.text(d)
	}
	key := cellKey{r.Query.Interval.start(c.At), strings.Join(texts, "\x00")}
	cell := r.cells[key]
	if cell == nil {
		cell = new(Figures)
		r.cells[key] = cell
	}
	cell.add(c)
	r.Totals.add(c)
}

// Rows are the spans that have calls, the oldest first, and in each the largest
// groups of all the time in their order, then the rest.
func (r *Report) Rows() []Row {
	groups := make(map[string]*Figures)
	for key, cell := range r.cells {
		plus(groups, key.group, cell)
	}
	weights := make(map[string]int64, len(groups))
	for group, figures := range groups {
		weights[group] = r.Query.Order.weight(figures)
	}
	ranked := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(groups[b].Requests, groups[a].Requests), cmp.Compare(a, b))
	})
	rank := make(map[string]int, len(ranked))
	for i, group := range ranked {
		rank[group] = min(i, r.Query.Top)
	}
	type place struct {
		at   time.Time
		rank int
	}
	rows := make(map[place]*Figures)
	for key, cell := range r.cells {
		plus(rows, place{key.at, rank[key.group]}, cell)
	}
	out := make([]Row, 0, len(rows))
	for _, p := range slices.SortedFunc(maps.Keys(rows), func(a, b place) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.rank, b.rank)) }) {
		row := Row{At: p.at, Group: []string{}, Other: p.rank == r.Query.Top, Figures: *rows[p]}
		if !row.Other && len(r.Query.GroupBy) > 0 {
			row.Group = strings.Split(ranked[p.rank], "\x00")
		}
		out = append(out, row)
	}
	return out
}

// plus adds figures to those of a key.
func plus[K comparable](all map[K]*Figures, key K, f *Figures) {
	sum := all[key]
	if sum == nil {
		sum = new(Figures)
		all[key] = sum
	}
	sum.plus(f)
}

// Figures are what some calls come to.
type Figures struct {
	Requests    int64
	Errors      int64 // statuses of 400 or more
	TotalTokens int64
	Tokens      modelgate.TokenKinds
	Cost        modelgate.Nano
	// Resold is the cost of the calls of each sub-account.
	Resold    map[modelgate.SubAccountID]modelgate.Nano
	Collected modelgate.Nano
	Latency   Durations
	FirstByte Durations // of the calls that had one
}

func (f *Figures) add(c *Call) {
	f.Requests++
	if c.Status >= 400 {
		f.Errors++
	}
	f.TotalTokens += c.TotalTokens
	f.addTokens(c.Tokens)
	f.Cost = f.Cost.Add(c.Cost)
	f.Collected = f.Collected.Add(c.Collected)
	if c.SubAccount != "" {
		f.Resell(c.SubAccount, c.Cost)
	}
	f.Latency = append(f.Latency, c.LatencyMS)
	if c.FirstByteMS > 0 {
		f.FirstByte = append(f.FirstByte, c.FirstByteMS)
	}
}

func (f *Figures) plus(o *Figures) {
	f.Requests += o.Requests
	f.Errors += o.Errors
	f.TotalTokens += o.TotalTokens
	f.addTokens(o.Tokens)
	f.Cost = f.Cost.Add(o.Cost)
	f.Collected = f.Collected.Add(o.Collected)
	for id, cost := range o.Resold {
		f.Resell(id, cost)
	}
	f.Latency = append(f.Latency, o.Latency...)
	f.FirstByte = append(f.FirstByte, o.FirstByte...)
}

func (f *Figures) addTokens(k modelgate.TokenKinds) {
	t := &f.Tokens
	t.Input += k.Input
	t.CachedInput += k.CachedInput
	t.CacheWrite += k.CacheWrite
	t.Output += k.Output
	t.AudioInput += k.AudioInput
	t.AudioOutput += k.AudioOutput
}

// Resell counts the cost of a call of a sub-account.
func (f *Figures) Resell(id modelgate.SubAccountID, cost modelgate.Nano) {
	if f.Resold == nil {
		f.Resold = make(map[modelgate.SubAccountID]modelgate.Nano)
	}
	f.Resold[id] = f.Resold[id].Add(cost)
}

// Billed is what the calls of sub-accounts are billed at their present markups:
// their exact costs summed, marked up and rounded once for each. resold is
// their cost. ok is false for no such calls.
func (f *Figures) Billed(markup func(modelgate.SubAccountID) modelgate.Markup) (billed, resold modelgate.Nano, ok bool) {
	for id, cost := range f.Resold {
		billed, resold = billed.Add(cost.Billed(markup(id))), resold.Add(cost)
	}
	return billed, resold, len(f.Resold) > 0
}

// Durations are in milliseconds, in any order.
type Durations []int64

// Mean is rounded down; 0 for none.
func (d Durations) Mean() int64 {
	var sum int64
	for _, ms := range d {
		sum += ms
	}
	return sum / max(int64(len(d)), 1)
}

// Percentile is the nearest rank: the least that percent of the calls do not
// exceed. It sorts; 0 for none.
func (d Durations) Percentile(percent int) int64 {
	if len(d) == 0 {
		return 0
	}
	if !slices.IsSorted(d) {
		slices.Sort(d)
	}
	return d[max((percent*len(d)+99)/100, 1)-1]
}
