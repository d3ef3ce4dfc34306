package store

import (
	"math"
	"strconv"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// CallFilter selects the calls of an organization, or of several. Values of one
// list are alternatives; lists that are empty, and zero fields, select nothing
// away.
type CallFilter struct {
	Client modelgate.ClientID // is the organization
	// Everyone selects the calls of all organizations, or where Clients are given
	// of those, instead of Client's.
	Everyone bool
	Clients  []modelgate.ClientID
	// SubAccountID restricts the calls to an end customer, who sees a call's
	// author in place of the provider where it is catalogued.
	SubAccountID modelgate.SubAccountID
	From, To     time.Time // To excluded; the zero time is no bound

	IDs           []modelgate.UUID
	Models        []string // slugs, and native ids of what is not catalogued
	Authors       []string
	Providers     []string
	Keys          []string
	SubAccounts   []string // "" is the organization itself
	Statuses      []StatusRange
	ParseStatuses []string
	Doors         []string
	Kinds         []string
	Tags          []Tag
	MinCost       modelgate.Nano
	MinLatencyMS  int64
}

// StatusRange is status codes from Least to Most.
type StatusRange struct{ Least, Most int }

// Tag is an attribution pair.
type Tag struct{ Name, Value string }

// shownModel is what a filter of models compares.
const shownModel = `CASE WHEN slug <> '' THEN slug ELSE model END`

// shownDoor is callview.CustomersDoor.
const shownDoor = `CASE WHEN SUBSTR(door, 1, LENGTH(provider) + 1) = '/' || provider THEN SUBSTR(door, LENGTH(provider) + 2) ELSE door END`

// window is the time of the calls in µs, To excluded.
func (f *CallFilter) window() (from, to int64) {
	from, to = math.MinInt64, math.MaxInt64
	if !f.From.IsZero() {
		from = sqldb.Micros(f.From)
	}
	if !f.To.IsZero() {
		to = sqldb.Micros(f.To)
	}
	if len(f.IDs) > 0 { // an id has its call's instant
		first, last := int64(math.MaxInt64), int64(math.MinInt64)
		for _, id := range f.IDs {
			at := sqldb.Micros(id.Time())
			first, last = min(first, at), max(last, at)
		}
		from, to = max(from, first), min(to, last+1)
	}
	return from, to
}

// MostRead is how many rows are looked at to answer a question, whether they match
// or not. Whoever runs the gateway has fewer questions than its customers, and
// each about more.
func (f *CallFilter) MostRead() int {
	if f.Everyone {
		return MostCallsReadOfAll
	}
	return MostCallsRead
}

// Narrow reports whether calls of the window may be left out.
func (f *CallFilter) Narrow() bool {
	var b callQuery
	b.filter(f)
	return b.text.Len() > 0
}

// callQuery is the text of a query and its arguments.
type callQuery struct {
	text strings.Builder
	args []any
}

// arg appends an argument and returns its placeholder.
func (b *callQuery) arg(v any) string {
	b.args = append(b.args, v)
	return "$" + strconv.Itoa(len(b.args))
}

func (b *callQuery) write(parts ...string) {
	for _, p := range parts {
		b.text.WriteString(p)
	}
}

// owner selects the calls of a filter's owner by an index that begins with
// it. IS TRUE keeps SQLite from walking all of the client for a sub-account.
func (b *callQuery) owner(f *CallFilter) {
	sub := string(f.SubAccountID)
	if sub == "" && len(f.SubAccounts) == 1 {
		sub = f.SubAccounts[0]
	}
	if sub == "" {
		b.clients(f, "client_id")
		return
	}
	b.write("sub_account_id = ", b.arg(sub), " AND sub_account_id <> '' AND (")
	b.clients(f, "client_id")
	b.write(") IS TRUE")
}

// clients selects the organizations of a filter by a column. Of every one the ids
// are listed, so that the rows of each are found in their index.
func (b *callQuery) clients(f *CallFilter, column string) {
	switch {
	case !f.Everyone:
		b.write(column, " = ", b.arg(string(f.Client)))
	case len(f.Clients) > 0:
		b.write(column, " IN (")
		for i, id := range f.Clients {
			b.write([]string{"", ", "}[min(i, 1)], b.arg(string(id)))
		}
		b.write(")")
	default:
		b.write(column, " IN (SELECT id FROM client)")
	}
}

// filter appends the conditions of a filter but for owner and window, each
// after an AND.
func (b *callQuery) filter(f *CallFilter) {
	ids := make([]string, len(f.IDs))
	for i, id := range f.IDs {
		ids[i] = id.String()
	}
	provider, door := "provider", "door"
	if f.SubAccountID != "" {
		provider, door = shownProvider, shownDoor
	}
	b.in("id", ids)
	b.in(shownModel, f.Models)
	b.in("CASE WHEN slug <> '' THEN author ELSE '' END", f.Authors)
	b.in(provider, f.Providers)
	b.in("key_id", f.Keys)
	b.in("sub_account_id", f.SubAccounts)
	b.in("parse_status", f.ParseStatuses)
	b.in(door, f.Doors)
	b.in("kind", f.Kinds)
	b.any(len(f.Statuses), func(i int) {
		s := f.Statuses[i]
		b.write("status_code BETWEEN ", b.arg(s.Least), " AND ", b.arg(s.Most))
	})
	b.any(len(f.Tags), func(i int) {
		t := f.Tags[i]
		b.write("attribution ->> CAST(", b.arg(sqldb.Clean(t.Name)), " AS TEXT) = ", b.arg(sqldb.Clean(t.Value)))
	})
	if f.MinCost > 0 {
		b.write("\n  AND cost >= ", b.arg(int64(f.MinCost)))
	}
	if f.MinLatencyMS > 0 {
		b.write("\n  AND latency_ms >= ", b.arg(f.MinLatencyMS))
	}
}

func (b *callQuery) in(expression string, values []string) {
	if len(values) == 0 {
		return
	}
	b.write("\n  AND ", expression, " IN (")
	for i, v := range values {
		if i > 0 {
			b.write(", ")
		}
		b.write(b.arg(v))
	}
	b.write(")")
}

// any appends n alternatives.
func (b *callQuery) any(n int, alternative func(i int)) {
	for i := range n {
		b.write([]string{"\n  AND (", " OR "}[min(i, 1)])
		alternative(i)
	}
	if n > 0 {
		b.write(")")
	}
}

// LeastCost is the lowest cost whose billed price is not below an amount.
func LeastCost(billed modelgate.Nano, markup modelgate.Markup) modelgate.Nano {
	cost := billed.Unbilled(markup)
	for cost > 0 && (cost-1).Billed(markup) >= billed {
		cost--
	}
	for cost.Billed(markup) < billed {
		cost++
	}
	return cost
}

// ParseStatusRange reads ok (below 400), 4xx, 5xx or a status code.
func ParseStatusRange(text string) (StatusRange, bool) {
	switch text {
	case "ok":
		return StatusRange{Least: 0, Most: 399}, true
	case "4xx":
		return StatusRange{Least: 400, Most: 499}, true
	case "5xx":
		return StatusRange{Least: 500, Most: 599}, true
	}
	code, err := strconv.Atoi(text)
	return StatusRange{Least: code, Most: code}, err == nil && len(text) == 3 && code >= 100
}
