package store

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/report"
	"modelgate/internal/store/sqldb"
)

// TestReportsAgainstRows compares reports with sums that are made of all rows in
// another way.
func TestReportsAgainstRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		all := someCalls(t, db, client, other, random)
		dimensions := []report.Dimension{report.Model, report.Author, report.Provider, report.NativeModel, report.Key, report.SubAccount,
			report.Status, report.ParseStatus, report.Door, report.Kind, report.Region, report.ViaSDK, report.Organization, "tag:team", "tag:no.te", "tag:7", "tag:nobody"}
		for range questions() {
			f := randomFilter(random, client, all)
			q := report.Query{
				Interval: pick(random, report.Whole, report.Hour, report.Day, report.Week, report.Month),
				Top:      pick(random, 1, 2, 7, 50),
				Order:    pick(random, report.ByCost, report.ByRequests, report.ByTokens, report.ByErrors, report.ByP95),
			}
			if random.IntN(4) > 0 {
				q.GroupBy = append(q.GroupBy, pick(random, dimensions...))
			}
			if random.IntN(2) > 0 {
				q.GroupBy = append(q.GroupBy, pick(random, dimensions...))
			}
			made := report.New(q)
			must(t, db.EachCall(t.Context(), f, made.Add))
			var got []string
			for _, row := range made.Rows() {
				got = append(got, spell(row.At, strings.Join(row.Group, "|"), row.Other, &row.Figures))
			}
			got = append(got, spell(time.Time{}, "totals", false, &made.Totals))
			if d := gocmp.Diff(naive(f, q, all), got); d != "" {
				t.Fatalf("%+v %+v (-want +got):\n%s", f, q, d)
			}
		}
	})
}

// spell is a row in one line.
func spell(at time.Time, group string, other bool, f *report.Figures) string {
	return fmt.Sprint(at.Format(time.RFC3339), " ", group, " ", other, " ", f.Requests, f.Errors, f.Cost, f.TotalTokens, f.Tokens,
		f.Resold["s1"], f.Resold["s2"], " ", f.Latency.Mean(), f.Latency.Percentile(50), f.Latency.Percentile(95), " ",
		len(f.FirstByte), f.FirstByte.Mean(), f.FirstByte.Percentile(90))
}

// naive makes a report by going through all rows for each of its own.
func naive(f CallFilter, q report.Query, all []modelgate.UsageRow) []string {
	type cell struct {
		start time.Time
		group string
	}
	cells, groups := map[cell][]*modelgate.UsageRow{}, map[string][]*modelgate.UsageRow{}
	var matching []*modelgate.UsageRow
	for i := range all {
		r := &all[i]
		if !f.has(r) {
			continue
		}
		var texts []string
		for _, d := range q.GroupBy {
			texts = append(texts, valueOf(r, d, f.SubAccountID != ""))
		}
		at := r.At.UTC()
		start := map[report.Interval]time.Time{
			report.Hour:  at.Truncate(time.Hour),
			report.Day:   at.Truncate(24 * time.Hour),
			report.Week:  at.Truncate(7 * 24 * time.Hour), // the zero time was on a Monday
			report.Month: time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC),
		}[q.Interval]
		group := strings.Join(texts, "|")
		matching = append(matching, r)
		groups[group] = append(groups[group], r)
		cells[cell{start, group}] = append(cells[cell{start, group}], r)
	}
	size := func(group string) int64 {
		s := sums(groups[group])
		return map[report.Order]int64{report.ByCost: int64(s.Cost), report.ByRequests: s.Requests, report.ByTokens: s.TotalTokens,
			report.ByErrors: s.Errors, report.ByP95: s.Latency.Percentile(95)}[q.Order]
	}
	var ranked []string
	for group := range groups {
		ranked = append(ranked, group)
	}
	slices.SortFunc(ranked, func(a, b string) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(len(groups[b]), len(groups[a])),
			cmp.Compare(strings.ReplaceAll(a, "|", "\x00"), strings.ReplaceAll(b, "|", "\x00")))
	})
	var starts []time.Time
	for c := range cells {
		if !slices.Contains(starts, c.start) {
			starts = append(starts, c.start)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	var out []string
	for _, start := range starts {
		var rest []*modelgate.UsageRow
		for i, group := range ranked {
			rows := cells[cell{start, group}]
			if i >= q.Top {
				rest = append(rest, rows...)
			} else if len(rows) > 0 {
				out = append(out, spell(start, group, false, sums(rows)))
			}
		}
		if len(rest) > 0 {
			out = append(out, spell(start, "", true, sums(rest)))
		}
	}
	return append(out, spell(time.Time{}, "totals", false, sums(matching)))
}

func valueOf(r *modelgate.UsageRow, d report.Dimension, customer bool) string {
	switch d {
	case report.Organization:
		return string(r.ClientID)
	case report.Model:
		return cmp.Or(r.Slug, r.CallBegin.Model)
	case report.Author:
		if r.Slug == "" {
			return ""
		}
		return r.Author
	case report.Provider:
		if customer && r.Slug != "" {
			return r.Author
		}
		return r.CallBegin.Provider
	case report.NativeModel:
		return r.CallBegin.Model
	case report.Key:
		return string(r.KeyID)
	case report.SubAccount:
		return string(r.SubAccountID)
	case report.Status:
		return strconv.Itoa(r.StatusCode)
	case report.ParseStatus:
		return string(r.ParseStatus)
	case report.Door:
		if customer {
			return strings.TrimPrefix(r.Door, "/"+r.CallBegin.Provider)
		}
		return r.Door
	case report.Kind:
		return string(r.Kind)
	case report.Region:
		return r.CallBegin.Region
	case report.ViaSDK:
		return strconv.FormatBool(r.ViaSDK)
	}
	return r.Attribution[strings.TrimPrefix(string(d), "tag:")]
}

func sums(rows []*modelgate.UsageRow) *report.Figures {
	f := &report.Figures{Resold: map[modelgate.SubAccountID]modelgate.Nano{}}
	for _, r := range rows {
		f.Requests++
		if r.StatusCode > 399 {
			f.Errors++
		}
		f.Cost += r.Cost
		f.TotalTokens += r.Usage.Input + r.Usage.CachedInput + r.Usage.Output
		f.Tokens.Input += r.Usage.Input
		f.Tokens.CachedInput += r.Usage.CachedInput
		f.Tokens.Output += r.Usage.Output
		f.Resold[r.SubAccountID] += r.Cost
		f.Latency = append(f.Latency, r.LatencyMS)
		if r.FirstByteMS != 0 {
			f.FirstByte = append(f.FirstByte, r.FirstByteMS)
		}
	}
	return f
}

// TestReportIsBounded reads nothing of a window with too many calls.
func TestReportIsBounded(t *testing.T) {
	t.Parallel()
	db := open(t, options(t, "sqlite"))
	client := createClient(t, db, 1)
	_, err := db.handle.Write.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= $2)
INSERT INTO usage_row (`+usageColumns+`)
SELECT 'r' || i, $1, 'k', '', 'p', 'm', '', '', 'llm', '', '/d', 0, '{}', 200, 'ok', '{}', 0, 1, NULL, '', 1, 1, i, NULL, 0 FROM n`, string(client), MostCallsRead)
	must(t, err)
	n := 0
	count := func(*report.Call) { n++ }
	if err := db.EachCall(t.Context(), CallFilter{Client: client}, count); !errors.Is(err, ErrTooManyCalls) || n > 0 {
		t.Errorf("read %d calls of %d, %v", n, MostCallsRead+1, err)
	}
	must(t, db.EachCall(t.Context(), CallFilter{Client: client, From: time.UnixMicro(2)}, count))
	if n != MostCallsRead {
		t.Errorf("read %d calls, want %d", n, MostCallsRead)
	}
}

func BenchmarkReport(b *testing.B) {
	for _, engine := range engines {
		b.Run(engine, func(b *testing.B) {
			db := open(b, options(b, engine))
			client := modelgate.ClientID(id(1))
			random := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < 90_000; n += 1000 {
				var rows []modelgate.UsageRow
				for i := range 1000 {
					r := row(client, n+i)
					r.Slug, r.LatencyMS, r.Cost = pick(random, "a/a", "b/b", "c/c"), random.Int64N(5000), modelgate.Nano(random.IntN(1e6))
					rows = append(rows, modelgate.Row(r.CallBegin, r.CallEnd))
				}
				book(b, db, "i", rows...)
			}
			b.Run("report", func(b *testing.B) {
				for b.Loop() {
					made := report.New(report.Query{GroupBy: []report.Dimension{report.Model}, Interval: report.Day, Top: 7, Order: report.ByCost})
					must(b, db.EachCall(b.Context(), CallFilter{Client: client}, made.Add))
					made.Rows()
				}
			})
			for name, l := range map[string]CallList{
				"newest":       {Limit: 100},
				"filtered":     {Limit: 100, CallFilter: CallFilter{Models: []string{"a/a"}}},
				"none matches": {Limit: 100, CallFilter: CallFilter{Models: []string{"x"}}},
				"dearest":      {Limit: 100, Order: CallsDearest},
			} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						l.Client = client
						_, _, err := db.Calls(b.Context(), l)
						must(b, err)
					}
				})
			}
		})
	}
}

// What is collected for a call is what a wallet paid or what an event bills, unless
// that has failed; for calls of nobody's customers nothing.
func TestCollected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 2)
		rows := make([]modelgate.UsageRow, 4)
		for i := range rows {
			rows[i] = row(client, 1000+i)
			if i > 0 {
				rows[i].SubAccountID = sub.ID
			}
		}
		book(t, db, "one", rows...)
		for i, debit := range []int{50, 7, 0, 0} { // the first is no sub-account's
			_, err := db.write.ExecContext(t.Context(), "UPDATE usage_row SET wallet_debit = $1 WHERE id = $2", debit, rows[i].ID.String())
			must(t, err)
		}
		for i, status := range map[int]string{2: "sent", 3: "failed"} {
			_, err := db.write.ExecContext(t.Context(), `INSERT INTO processor_event (client_id, created_at, usage_id, sub_account_id, customer_id, markup, value, status,
				attempts, queued_at, next_attempt_at, unsure_at, generation, sent_at, last_error) VALUES ($1, $2, $3, $4, 'c', 0, 9, $5, 0, 0, 0, 0, 0, 0, '')`,
				string(client), sqldb.Micros(rows[i].At), rows[i].ID.String(), string(sub.ID), status)
			must(t, err)
		}
		made := report.New(report.Query{Interval: report.Whole, Top: 1})
		must(t, db.EachCall(t.Context(), CallFilter{Client: client}, made.Add))
		if made.Totals.Requests != 4 || made.Totals.Collected != 7+9_000 {
			t.Errorf("%d calls, %s collected", made.Totals.Requests, made.Totals.Collected)
		}
	})
}
