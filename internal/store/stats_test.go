package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/store/stats"
)

// summed is what statistics have to be: a plain sum over rows as they are
// listed.
func summed(rows []modelgate.UsageRow, q StatsQuery) []modelgate.StatsBucket {
	byKey := map[string]*modelgate.StatsBucket{}
	for i := range rows {
		r := &rows[i]
		b := r.CallBegin
		if q.SubAccountID != "" {
			if b.SubAccountID != q.SubAccountID {
				continue
			}
			if b.Region = ""; b.Slug != "" {
				b.Provider, b.Model = b.Author, b.Slug
			}
		}
		if b.At.Before(q.Since) || q.Provider != "" && b.Provider != q.Provider {
			continue
		}
		var key string
		switch q.GroupBy {
		case modelgate.ByProvider:
			key = b.Provider
		case modelgate.ByModel:
			key = b.Model
		case modelgate.ByModelSlug:
			key = cmp.Or(b.Slug, "other")
		case modelgate.ByAuthor:
			if key = "other"; b.Slug != "" {
				key = b.Author
			}
		case modelgate.ByDay:
			key = b.At.Format(time.DateOnly)
		case modelgate.ByRegion:
			key = cmp.Or(b.Region, "unknown")
		default:
			key = b.Attribution[string(q.GroupBy)]
		}
		if byKey[key] == nil {
			byKey[key] = &modelgate.StatsBucket{Key: key}
		}
		byKey[key].Requests++
		byKey[key].TotalTokens += r.Usage.TotalTokens()
		byKey[key].Cost += r.Cost
	}
	out := []modelgate.StatsBucket{}
	for _, b := range byKey {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b modelgate.StatsBucket) int {
		if q.GroupBy == modelgate.ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key))
	})
	return out
}

// wantStats holds statistics against the plain sum.
func wantStats(t interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, db *DB, client modelgate.ClientID, q StatsQuery) {
	t.Helper()
	rows, _, err := db.Usage(context.Background(), client, UsageList{})
	if err != nil {
		t.Fatalf("Usage = %v", err)
	}
	got, err := db.Stats(context.Background(), client, q)
	if err != nil {
		t.Fatalf("Stats(%+v) = %v", q, err)
	}
	if d := gocmp.Diff(summed(rows, q), got); d != "" {
		t.Errorf("Stats(%+v) of %d rows (-want +got):\n%s", q, len(rows), d)
	}
}

// randomRow draws a call of one of the clients, some days around noon.
func randomRow(rt *rapid.T, clients []modelgate.ClientID, n int) modelgate.UsageRow {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
	r := row(rapid.SampledFrom(clients).Draw(rt, "client"), n)
	r.At = noon.Add(time.Duration(rapid.Int64Range(-int64(70*time.Hour), int64(26*time.Hour)).Draw(rt, "at"))).Truncate(time.Microsecond)
	if rapid.Bool().Draw(rt, "whole hour") {
		r.At = r.At.Truncate(time.Hour)
	}
	b := &r.CallBegin
	b.SubAccountID = modelgate.SubAccountID(pick("sub-account", "", "s1", "s2"))
	if b.SubAccountID != "" {
		b.SubAccountID += modelgate.SubAccountID(b.ClientID[len(b.ClientID)-1:]) // is of one client only
	}
	b.KeyID = modelgate.KeyID(pick("key", "k1", "k2", "k3"))
	b.Provider, b.Region = pick("provider", "openai", "azure", "x"), pick("region", "", "us", "eu")
	b.Model = pick("model", "m1", "m2", "gpt\x00\xff")
	b.Slug, b.Author = "", ""
	if rapid.Bool().Draw(rt, "catalogued") {
		b.Author = pick("author", "openai", "meta", "other")
		b.Slug = b.Author + "/" + pick("name", "a", "b")
	}
	b.Attribution = nil
	for range rapid.IntRange(0, 3).Draw(rt, "pairs") {
		if b.Attribution == nil {
			b.Attribution = map[string]string{}
		}
		b.Attribution[pick("name of a pair", "team", "env", "day", "model", "a.b", "user")] = pick("value", "", "x", "y\x00", "søk", `"\`) // values that are easy to mistake
	}
	if rapid.Bool().Draw(rt, "user") {
		if b.Attribution == nil {
			b.Attribution = map[string]string{}
		}
		b.Attribution["user"] = fmt.Sprint("u", rapid.SampledFrom(upTo(150)).Draw(rt, "which user")) // as often each
	}
	r.Usage = modelgate.Usage{Input: rapid.Int64Range(0, 1000).Draw(rt, "tokens")}
	r.Cost = modelgate.Nano(rapid.Int64Range(0, 3).Draw(rt, "cost"))
	return modelgate.Row(r.CallBegin, r.CallEnd)
}

// upTo are the numbers below n.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func drawQuery(rt *rapid.T) StatsQuery {
	return StatsQuery{
		SubAccountID: modelgate.SubAccountID(rapid.SampledFrom([]string{"", "", "", "s11", "s12", "s21", "s22"}).Draw(rt, "of")),
		GroupBy: rapid.SampledFrom([]modelgate.GroupBy{"provider", "model", "model_slug", "author", "day", "region",
			"team", "env", "a.b", "user", "key_id", "sub_account_id", "nobody"}).Draw(rt, "group by"),
		Provider: rapid.SampledFrom([]string{"", "", "openai", "azure", "meta", "nobody"}).Draw(rt, "of provider"),
		Since:    noon.Add(-time.Duration(rapid.Int64Range(0, int64(80*time.Hour)).Draw(rt, "since"))).Truncate(time.Microsecond),
	}
}

// TestStatsAreTheSumOfRows holds statistics, by every dimension and over any
// window, against the rows.
func TestStatsAreTheSumOfRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		clients := []modelgate.ClientID{createClient(t, db, 1), createClient(t, db, 2)}
		calls, offset := 0, int64(0)
		rapid.Check(t, func(rt *rapid.T) {
			var rows []modelgate.UsageRow
			for range rapid.IntRange(0, 30).Draw(rt, "rows") {
				calls++
				rows = append(rows, randomRow(rt, clients, calls%5000))
			}
			offset++
			if _, err := db.Record(t.Context(), Batch{Instance: "i", Rows: rows, Progress: Position{0, offset}}); err != nil {
				rt.Fatalf("Record = %v", err)
			}
			if rapid.Bool().Draw(rt, "compact") {
				if _, err := db.CompactRollups(t.Context(), clients[:rapid.IntRange(0, len(clients)).Draw(rt, "whose deltas")], rapid.IntRange(1, 20).Draw(rt, "deltas")); err != nil {
					rt.Fatalf("CompactRollups = %v", err)
				}
			}
			for range 5 {
				wantStats(rt, db, rapid.SampledFrom(clients).Draw(rt, "whose"), drawQuery(rt))
			}
			wantSpans(rt, db, rapid.SampledFrom(clients).Draw(rt, "whose over time"), drawSpans(rt))
		})
		wantReconciled(t, db, "unknown_key", "wrong_sub_account")
		compactAll(t, db)
		wantReconciled(t, db, "unknown_key", "wrong_sub_account")
		rapid.Check(t, func(rt *rapid.T) { wantStats(rt, db, clients[0], drawQuery(rt)) })
		if n := number(t, db, "SELECT COUNT(*) FROM rollup WHERE dimension = 'user'"); n == 0 && !testing.Short() { // fewer rows then
			t.Error("no dimension has grown")
		}
	})
}

// compactAll merges all deltas into pages.
func compactAll(t *testing.T, db *DB) {
	t.Helper()
	clients, err := db.DeltaClients(t.Context())
	must(t, err)
	for more := true; more; {
		more, err = db.CompactRollups(t.Context(), clients, 7)
		must(t, err)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM rollup_delta"); n != 0 {
		t.Errorf("%d deltas are left", n)
	}
}

// TestStatsOfTooManyValues come from the rows where rollups do not keep them.
func TestStatsOfTooManyValues(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		var rows []modelgate.UsageRow
		for n := range 1300 {
			r := row(client, n)
			r.At = noon.Add(-30*time.Hour + time.Duration(n)*time.Minute)
			r.Attribution = map[string]string{"call": fmt.Sprint(n), "some": fmt.Sprint(n % 1000)}
			rows = append(rows, r)
		}
		for part := range slices.Chunk(rows, 300) {
			book(t, db, "i", part...)
		}
		manyValues(t, db, client)
		compactAll(t, db)
		keys := row(client, 1300)
		keys.Attribution = map[string]string{}
		for n := range 16 * 5 {
			keys.Attribution[fmt.Sprint("k", n)] = "v"
		}
		book(t, db, "i", keys)
		for _, folded := range []bool{false, true, true} {
			if folded {
				compactAll(t, db)
				again := row(client, 2000+len(rows))
				again.At = rows[0].At
				again.Attribution = map[string]string{"call": "again", "k79": "w", "new": "x"}
				book(t, db, "i", again)
				rows = append(rows, again)
			}
			wantReconciled(t, db, "unknown_key")
			manyValues(t, db, client)
		}
		compactAll(t, db)
		if n := number(t, db, "SELECT COUNT(*) FROM rollup WHERE dimension = 'call' AND grain = 'day'"); n != stats.Parts {
			t.Errorf("%d pages of a dimension that has too many values on one day of two, want %d", n, stats.Parts)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM rollup WHERE dimension = 'some' AND grain = 'day'"); n != 2*stats.Parts {
			t.Errorf("%d pages of a dimension with just as many values as are kept, want %d", n, 2*stats.Parts)
		}
		wantReconciled(t, db, "unknown_key")
	})
}

// manyValues asks for dimensions of which not all is kept, and others.
func manyValues(t *testing.T, db *DB, client modelgate.ClientID) {
	t.Helper()
	for _, g := range []modelgate.GroupBy{"call", "some", "k1", "k79", "k63", "new", "nobody", "model", "day"} {
		for _, since := range []time.Duration{time.Minute, 90 * time.Minute, 26 * time.Hour, 100 * time.Hour} {
			wantStats(t, db, client, StatsQuery{GroupBy: g, Since: noon.Add(-since)})
		}
		wantStats(t, db, client, StatsQuery{GroupBy: g, Since: noon.Add(-26 * time.Hour), Provider: "openai"})
		if g != modelgate.ByDay {
			wantSpans(t, db, client, SpanQuery{StatsQuery: StatsQuery{GroupBy: g, Since: noon.Add(-26 * time.Hour)}, Step: time.Hour, Most: 2000})
		}
	}
}
