package store

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// TestUsageRoundTrip keeps every field of a row, and texts that only one
// engine would take in a form that both do.
func TestUsageRoundTrip(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		full := modelgate.Row(modelgate.CallBegin{
			ID: uuid(9), At: uuid(9).Time(), ClientID: client, KeyID: "k", SubAccountID: "s", Provider: "p", Model: "m",
			Slug: "a/m", Author: "a", Kind: modelgate.Video, Region: "eu-west", Door: "/v1/videos", ViaSDK: true,
			Attribution: map[string]string{"team": "søk", "quote": `"\`},
		}, modelgate.CallEnd{
			StatusCode: 502, ParseStatus: modelgate.ParsePartial, Cost: 1<<62 + 1, PriceLabel: "second=0.1", LatencyMS: 9, FirstByteMS: 8,
			Usage: modelgate.Usage{Input: 1, CachedInput: 2, CacheWrite: 3, CacheWrite1h: 4, Output: 5, AudioInput: 6,
				AudioOutput: 7, Images: 8, Seconds: 9, Characters: 10, Searches: 11, Megapixels: 12, Size: "1x1",
				Quality: "hd", ServiceTier: "flex", Speed: "fast", InferenceGeo: "us"},
		})
		stated := modelgate.Nano(0)
		full.StatedCost = &stated
		foul := row(client, 8)
		foul.CallBegin.Model, foul.Usage.Size = "a\x00b\xff", "\xfe"
		foul.Attribution = map[string]string{"x": "\x00"}
		book(t, db, "i", full, foul)

		foul.CallBegin.Model, foul.Usage.Size = "a\uFFFDb\uFFFD", "\uFFFD"
		foul.Attribution = map[string]string{"x": "\uFFFD"}
		got, _, err := db.Usage(t.Context(), client, UsageList{})
		must(t, err)
		if d := cmp.Diff([]modelgate.UsageRow{full, foul}, got); d != "" {
			t.Errorf("Usage (-want +got):\n%s", d)
		}
		if total := number(t, db, "SELECT total_tokens FROM usage_row WHERE id = $1", id(9)); total != 28 {
			t.Errorf("total_tokens = %d, want 28", total)
		}
	})
}

func TestUsageFilters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		plain := row(client, 1)
		routed := row(client, 2) // an author's model that another provider serves
		routed.SubAccountID, routed.CallBegin.Provider, routed.Author = "s", "azure", "openai"
		bare := row(client, 3) // not in the catalog
		bare.SubAccountID, bare.CallBegin.Provider, bare.Slug, bare.Author = "s", "azure", "", ""
		bare.ParseStatus = modelgate.ParseUnknown
		book(t, db, "i", plain, routed, bare, row(other, 4))
		midnight := noon.Truncate(24 * time.Hour)

		for name, c := range map[string]struct {
			list UsageList
			want []int
		}{
			"all":                           {UsageList{}, []int{3, 2, 1}},
			"provider":                      {UsageList{Provider: "azure"}, []int{3, 2}},
			"provider nobody has":           {UsageList{Provider: "x' OR 1=1"}, nil},
			"parse status":                  {UsageList{ParseStatus: "unknown"}, []int{3}},
			"since":                         {UsageList{Since: midnight.Add(2 * time.Second)}, []int{3, 2}},
			"sub-account":                   {UsageList{SubAccountID: "s"}, []int{3, 2}},
			"author, sub-account":           {UsageList{SubAccountID: "s", Provider: "openai"}, []int{2}},
			"route, sub-account":            {UsageList{SubAccountID: "s", Provider: "azure"}, []int{3}},
			"unknown sub-account":           {UsageList{SubAccountID: "x"}, nil},
			"id":                            {UsageList{ID: modelgate.UsageID(id(2))}, []int{2}},
			"id of another organization":    {UsageList{ID: modelgate.UsageID(id(4))}, nil},
			"id of another sub-account":     {UsageList{ID: modelgate.UsageID(id(1)), SubAccountID: "s"}, nil},
			"id and another provider":       {UsageList{ID: modelgate.UsageID(id(1)), Provider: "azure"}, nil},
			"id and author, sub-account":    {UsageList{ID: modelgate.UsageID(id(2)), SubAccountID: "s", Provider: "openai"}, []int{2}},
			"id and the hidden route":       {UsageList{ID: modelgate.UsageID(id(2)), SubAccountID: "s", Provider: "azure"}, nil},
			"id and another status":         {UsageList{ID: modelgate.UsageID(id(1)), ParseStatus: "partial"}, nil},
			"id and since":                  {UsageList{ID: modelgate.UsageID(id(1)), Since: noon}, nil},
			"id, after a cursor behind it":  {UsageList{ID: modelgate.UsageID(id(1)), After: &sqldb.Cursor{At: midnight}}, nil},
			"id, after a cursor before it":  {UsageList{ID: modelgate.UsageID(id(1)), After: &sqldb.Cursor{At: noon}}, []int{1}},
			"after the cursor's own row":    {UsageList{After: &sqldb.Cursor{At: midnight.Add(2 * time.Second), ID: id(2)}}, []int{1}},
			"sub-account, after the cursor": {UsageList{SubAccountID: "s", After: &sqldb.Cursor{At: midnight.Add(3 * time.Second), ID: id(3)}}, []int{2}},
		} {
			rows, more, err := db.Usage(t.Context(), client, c.list)
			must(t, err)
			var got []int
			for _, r := range rows {
				for n := range 5 {
					if r.CallBegin.ID == uuid(n) {
						got = append(got, n)
					}
				}
			}
			if !slices.Equal(got, c.want) || more {
				t.Errorf("%s: rows %v, more %t, want %v and false", name, got, more, c.want)
			}
		}
	})
}

// TestUsagePages walks rows of which many share an instant.
func TestUsagePages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		var rows []modelgate.UsageRow
		var want []modelgate.UUID
		for n := range 25 {
			r := row(client, n)
			r.At = noon.Add(time.Duration(n/10) * time.Millisecond)
			rows = append(rows, r)
			want = append([]modelgate.UUID{r.CallBegin.ID}, want...)
		}
		book(t, db, "i", rows...)
		var got []modelgate.UUID
		l := UsageList{Limit: 4}
		for more, pages := true, 0; more; pages++ {
			var part []modelgate.UsageRow
			var err error
			part, more, err = db.Usage(t.Context(), client, l)
			must(t, err)
			for _, r := range part {
				got = append(got, r.CallBegin.ID)
				l.After = &sqldb.Cursor{At: r.At, ID: r.CallBegin.ID.String()}
			}
			if len(part) > 4 || pages > 7 {
				t.Fatalf("page %d has %d rows", pages, len(part))
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages (-want +got):\n%s", d)
		}
	})
}

// TestUsageText is what encoding/json makes of it.
func TestUsageText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "<&>", "\"\\\n", "\u2028"}), rapid.String().Filter(func(s string) bool { return sqldb.Clean(s) == s }))
		count := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64())
		u := modelgate.Usage{}
		v := reflect.ValueOf(&u).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String {
				f.SetString(word.Draw(rt, "text"))
			} else {
				f.SetInt(count.Draw(rt, "count"))
			}
		}
		written, err := appendUsage(nil, &u)
		var read modelgate.Usage
		if err != nil || json.Unmarshal(written, &read) != nil || read != u {
			rt.Fatalf("%+v became %s (%v)", u, written, err)
		}
		pairs := rapid.MapOf(word, word).Draw(rt, "pairs")
		written, err = appendPairs(nil, pairs)
		back := map[string]string{}
		if err != nil || json.Unmarshal(written, &back) != nil || !maps.Equal(back, pairs) {
			rt.Fatalf("%q became %s (%v)", pairs, written, err)
		}
	})
}
