package store

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// questions is how many random questions a property test asks each engine.
func questions() int {
	if *full {
		return 10_000
	}
	return 250
}

// someCalls books rows of few different values, over three days.
func someCalls(t *testing.T, db *DB, client, other modelgate.ClientID, random *rand.Rand) []modelgate.UsageRow {
	t.Helper()
	var rows []modelgate.UsageRow
	for n := range 400 {
		r := row(pick(random, client, client, client, other), n)
		r.At = noon.Add(-time.Duration(random.IntN(72*60)) * time.Minute) // many share an instant
		r.CallBegin.ID = modelgate.NewIDs(func() time.Time { return r.At }).New()
		r.At = r.CallBegin.ID.Time()
		r.KeyID = modelgate.KeyID(pick(random, "k1", "k2", "k3"))
		r.SubAccountID = modelgate.SubAccountID(pick(random, "", "", "s1", "s2"))
		r.CallBegin.Provider = pick(random, "openai", "azure")
		r.Slug, r.Author = pick(random, "openai/gpt-5", "meta/llama"), ""
		r.CallBegin.Model = pick(random, "gpt-5", "native", "openai/gpt-5")
		r.Author, _, _ = strings.Cut(r.Slug, "/")
		if random.IntN(4) == 0 {
			r.Slug, r.Author = "", pick(random, "", "openai")
		}
		r.Kind, r.Door = pick(random, modelgate.LLM, modelgate.Image), pick(random, "/v1/messages", "/openai/x", "/azure/x", "/openai")
		r.CallBegin.Region = pick(random, "", "eu-west", "us")
		r.StatusCode = pick(random, 200, 201, 400, 429, 500, 502)
		r.ParseStatus = pick(random, modelgate.ParseOK, modelgate.ParsePartial)
		r.Cost = modelgate.Nano(random.IntN(5) * 1000)
		r.LatencyMS, r.FirstByteMS = int64(random.IntN(6)*100), int64(random.IntN(4)*10)
		r.Usage = modelgate.Usage{Input: int64(random.IntN(4)), CachedInput: int64(random.IntN(2)), Output: int64(random.IntN(3))}
		r.ViaSDK = random.IntN(2) == 0
		r.Attribution = map[string]string{"team": pick(random, "search", "ads", `"team":"ads"`), "no.te": pick(random, "a", "A", ""), "7": pick(random, "x", "y")}
		rows = append(rows, modelgate.Row(r.CallBegin, r.CallEnd))
	}
	book(t, db, "i", rows...)
	return rows
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// someOf is a few of the values, mostly none.
func someOf[T any](random *rand.Rand, values ...T) (out []T) {
	if random.IntN(6) > 0 {
		return nil
	}
	for _, v := range values {
		if random.IntN(2) == 0 {
			out = append(out, v)
		}
	}
	return out
}

// randomFilter is a filter and a window.
func randomFilter(random *rand.Rand, client modelgate.ClientID, rows []modelgate.UsageRow) CallFilter {
	f := CallFilter{
		Client: client, SubAccountID: modelgate.SubAccountID(pick(random, "", "", "", "s1")),
		Models:  someOf(random, "openai/gpt-5", "native", "meta/llama"),
		Authors: someOf(random, "openai", "meta"), Providers: someOf(random, "openai", "azure", "meta"),
		Keys: someOf(random, "k1", "k2"), SubAccounts: someOf(random, "", "s1", "s2"),
		Statuses: someOf(random, StatusRange{0, 399}, StatusRange{500, 599}, StatusRange{429, 429}), ParseStatuses: someOf(random, "ok", "partial"),
		Doors: someOf(random, "/v1/messages", "/x", "/openai/x", "", "x"), Kinds: someOf(random, "llm", "image"),
		Tags: someOf(random, Tag{"team", "ads"}, Tag{"team", `"team":"ads"`}, Tag{"no.te", "a"}, Tag{"no.te", ""}, Tag{"key_id", "k1"}, Tag{"7", "x"}, Tag{"0", "x"}),
	}
	if random.IntN(3) == 0 { // across organizations
		f.Client, f.Everyone, f.SubAccountID = "", true, ""
		for i := range rows[:random.IntN(3)] {
			f.Clients = append(f.Clients, rows[i].ClientID)
		}
	}
	if random.IntN(2) == 0 {
		f.From = noon.Add(-time.Duration(random.IntN(72*60)) * time.Minute)
	}
	if random.IntN(3) == 0 {
		f.To = noon.Add(-time.Duration(random.IntN(72*60)) * time.Minute)
	}
	if random.IntN(8) == 0 {
		f.MinCost, f.MinLatencyMS = modelgate.Nano(random.IntN(4000)), int64(random.IntN(400))
	}
	if random.IntN(12) == 0 {
		f.IDs = []modelgate.UUID{rows[random.IntN(len(rows))].ID, rows[random.IntN(len(rows))].ID}
	}
	return f
}

// has is what a filter says, row by row.
func (f *CallFilter) has(r *modelgate.UsageRow) bool {
	model, provider, author := r.CallBegin.Model, r.CallBegin.Provider, ""
	if r.Slug != "" {
		model, author = r.Slug, r.Author
		if f.SubAccountID != "" {
			provider = r.Author
		}
	}
	door := r.Door
	if f.SubAccountID != "" {
		door = strings.TrimPrefix(r.Door, "/"+r.CallBegin.Provider)
	}
	var ids []string
	for _, id := range f.Clients {
		ids = append(ids, string(id))
	}
	is := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	return (f.Client == r.ClientID || f.Everyone && is(ids, string(r.ClientID))) && (f.SubAccountID == "" || r.SubAccountID == f.SubAccountID) && !r.At.Before(f.From) && (f.To.IsZero() || r.At.Before(f.To)) &&
		is(f.Models, model) && is(f.Authors, author) && is(f.Providers, provider) && is(f.Keys, string(r.KeyID)) &&
		is(f.SubAccounts, string(r.SubAccountID)) && is(f.ParseStatuses, string(r.ParseStatus)) && is(f.Doors, door) && is(f.Kinds, string(r.Kind)) &&
		(len(f.Statuses) == 0 || slices.ContainsFunc(f.Statuses, func(s StatusRange) bool { return r.StatusCode >= s.Least && r.StatusCode <= s.Most })) &&
		(len(f.Tags) == 0 || slices.ContainsFunc(f.Tags, func(t Tag) bool { v, there := r.Attribution[t.Name]; return there && v == t.Value })) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, r.ID)) && r.Cost >= f.MinCost && r.LatencyMS >= f.MinLatencyMS
}

// TestCallsOfNobody: a filter that names no organization selects no call.
func TestCallsOfNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		book(t, db, "i", row(createClient(t, db, 1), 1))
		for everyone, want := range map[bool]int{false: 0, true: 1} {
			found, _, err := db.Calls(t.Context(), CallList{CallFilter: CallFilter{Everyone: everyone}, Limit: 10})
			if err != nil || len(found) != want {
				t.Errorf("everyone %v: %d calls, %v", everyone, len(found), err)
			}
		}
	})
}

// TestCallsAgainstRows compares lists, page by page, with what Go finds among all
// rows.
func TestCallsAgainstRows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		all := someCalls(t, db, client, other, random)
		for range questions() {
			f := randomFilter(random, client, all)
			l := CallList{CallFilter: f, Order: pick(random, CallOrders()...), Limit: pick(random, 1, 7, 50, 1000), most: pick(random, 0, 0, 20, 150)}
			var want []string
			matching := slices.Clone(all)
			slices.SortFunc(matching, func(a, b modelgate.UsageRow) int {
				newest := cmp.Or(cmp.Compare(sqldb.Micros(b.At), sqldb.Micros(a.At)), cmp.Compare(b.ID.String(), a.ID.String()))
				if l.Order == CallsOldest {
					return -newest
				}
				return cmp.Or(cmp.Compare(l.Order.value(&b), l.Order.value(&a)), newest)
			})
			for i := range matching {
				if f.has(&matching[i]) {
					want = append(want, matching[i].ID.String())
				}
			}
			got, err := walkCalls(t, db, l)
			if errors.Is(err, ErrTooManyCalls) && l.Order.column() != "" && l.most > 0 {
				continue
			}
			must(t, err)
			if d := gocmp.Diff(want, got); d != "" {
				t.Fatalf("%+v (-want +got):\n%s", l, d)
			}
		}
	})
}

// walkCalls reads all pages of a list.
func walkCalls(t *testing.T, db *DB, l CallList) ([]string, error) {
	t.Helper()
	var ids []string
	for pages := 0; ; pages++ {
		rows, next, err := db.Calls(t.Context(), l)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			ids = append(ids, rows[i].ID.String())
		}
		switch {
		case next == nil:
			return ids, nil
		case len(rows) > l.Limit, pages > 1000, len(rows) < l.Limit && (l.most == 0 || l.Order.column() != ""):
			return nil, fmt.Errorf("page %d has %d rows of %d, and a next one", pages, len(rows), l.Limit)
		}
		l.After = next
	}
}

// TestUsageRevision changes with whatever an answer depends on.
func TestUsageRevision(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		createClient(t, db, 2)
		last, lastOfAll := "", ""
		revision := func(what string, same bool) {
			t.Helper()
			now, err := db.UsageRevision(t.Context(), client)
			must(t, err)
			if (now == last) != same {
				t.Errorf("after %s the revision is %s, before %s", what, now, last)
			}
			all, err := db.UsageRevision(t.Context(), "")
			must(t, err)
			if (all == lastOfAll) != same {
				t.Errorf("after %s the revision of all is %s, before %s", what, all, lastOfAll)
			}
			last, lastOfAll = now, all
		}
		revision("nothing", false)
		revision("nothing", true)
		book(t, db, "i", row(client, 1))
		revision("a call", false)
		compactAll(t, db)
		revision("merging", false)
		r := row(client, 2)
		book(t, db, "i", r)
		revision("another call", false)
		createSubAccount(t, db, client, 11)
		must(t, db.PatchSubAccount(t.Context(), client, modelgate.SubAccountID(id(11)), modelgate.SubAccountPatch{Markup: ptr(modelgate.Markup(5))}, audit("x")))
		revision("a markup", false)
		revision("nothing", true)
	})
}
