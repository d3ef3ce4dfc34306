package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// TestHistoryStats asks for statistics and pages of a long history, and again
// when there is twice as much of it: neither may cost more, wherever a page
// lies and whatever it is filtered by.
func TestHistoryStats(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		rows, bound := size(15_000, 10_000_000), 50*time.Millisecond
		if database == "" {
			rows, bound = size(15_000, 2_000_000), 100*time.Millisecond
		}
		h := newHistory(t, database, size(40, 400))
		h.add(rows)
		once := h.measure(bound)
		h.check()
		h.add(rows)
		twice := h.measure(bound)
		h.check()
		if *full && twice > once*13/10+2*time.Millisecond {
			t.Errorf("the slowest median grew from %v to %v with twice the history", once, twice)
		}
	})
}

// newHistory makes an organization without usage, with one end customer.
func newHistory(t *testing.T, database string, days int) *history {
	t.Helper()
	w := newWorld(t, testkit.GatewayOptions{Database: database, Limits: "requests_per_second: 0"})
	h := &history{t: t, world: w, now: time.Now().Truncate(time.Microsecond), days: days}
	var sub struct{ ID string }
	w.manage("POST", "/gw/subaccounts", `{"name":"Globex","slug":"globex"}`, &sub)
	w.manage("PATCH", "/gw/subaccounts/"+sub.ID, `{"markup_pct":50}`, nil)
	var key struct{ Key string }
	w.manage("POST", "/gw/keys", `{"scopes":["stats:read"],"sub_account_id":"`+sub.ID+`"}`, &key)
	h.customer, h.custKey = sub.ID, key.Key
	w.Stop()
	h.db = w.openStore()
	return h
}

// manage calls the API with the organization's key.
func (w *world) manage(method, path, body string, into any) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		w.t.Fatalf("%s %s = %s %s (%v)", method, path, resp.Status, text, err)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			w.t.Fatal(err)
		}
	}
}

// slack is what a bound is multiplied with where the machine is shared.
func slack(bound time.Duration) time.Duration { return size(6*bound, bound) }

// measure asks the gateway for statistics by every dimension, and the store
// for pages; it returns the slowest of the statistics.
func (h *history) measure(bound time.Duration) time.Duration {
	h.t.Helper()
	h.world.restart()
	fmt.Fprintf(h.t.Output(), "\n%s, %d rows over %d days; %s of %d\n", h.world.driver, h.rows, h.days, size("least", "medians"), historyAsks())
	var slowest time.Duration
	for _, who := range []struct{ name, key string }{{"organization", h.world.key}, {"end customer", h.custKey}} {
		for _, filter := range []string{"", "&provider=provider-2", "&provider=author-3"} {
			for _, by := range []string{"provider", "model", "model_slug", "author", "day", "region", "team", "user", "feature", "key_id", "sub_account_id", "nobody"} {
				took, buckets := h.ask(who.key, "/gw/stats?since=30d&group_by="+by+filter, slack(bound))
				fmt.Fprintf(h.t.Output(), "stats  %-12s by %-14s%-22s %8.2f ms, %4d buckets\n", who.name, by, filter, ms(took), buckets)
				if slowest = max(slowest, took); took > slack(bound) {
					h.t.Errorf("statistics by %s%s for the %s: %v, want at most %v", by, filter, who.name, took, slack(bound))
				}
			}
		}
	}
	h.world.Stop()
	h.pages()
	return slowest
}

func historyAsks() int { return size(3, 21) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// ask is the judged time of an answer, and how many buckets it has.
func (h *history) ask(key, path string, bound time.Duration) (time.Duration, int) {
	h.t.Helper()
	var answer []byte
	took := h.timed(bound, func() {
		r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.world.URL+path, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			h.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			h.t.Fatalf("%s = %s %s (%v)", path, resp.Status, text, err)
		}
		answer = text
	})
	var buckets []json.RawMessage
	if err := json.Unmarshal(answer, &buckets); err != nil {
		h.t.Fatalf("%s = %s (%v)", path, answer, err)
	}
	return took, len(buckets)
}

// timed is the median of what asking takes, once it was asked. In the suite,
// where other tests run meanwhile and the machine may be slow, it is the least,
// and it is asked until that is within the bound, a hundred times if need be.
func (h *history) timed(bound time.Duration, ask func()) time.Duration {
	h.t.Helper()
	ask()
	var times []time.Duration
	for len(times) < historyAsks() || !*full && times[0] > bound && len(times) < 100 {
		began := time.Now()
		ask()
		times = append(times, time.Since(began))
		slices.Sort(times)
	}
	return times[size(0, len(times)/2)]
}

// pages reads pages of usage near the beginning, in the middle and at the end
// of the history, with every filter.
func (h *history) pages() {
	h.t.Helper()
	const bound = 10 * time.Millisecond
	span := time.Duration(h.days) * 24 * time.Hour
	for _, sub := range []modelgate.SubAccountID{"", modelgate.SubAccountID(h.customer)} {
		for _, f := range []store.UsageList{
			{}, {Provider: "provider-0"}, {Provider: "provider-3"}, {Provider: "author-3"}, {Provider: "nobody"},
			{ParseStatus: "ok"}, {ParseStatus: "partial"}, {ParseStatus: "unknown"}, {ParseStatus: "expired"},
			{Provider: "provider-0", ParseStatus: "unknown"}, {Provider: "provider-3", ParseStatus: "unknown"},
			{Provider: "provider-0", ParseStatus: "ok", Since: h.now.Add(-time.Minute)},
		} {
			f.SubAccountID, f.Limit = sub, 100
			line, n := "", 0
			for _, depth := range []float64{0, 0.01, 0.5, 0.99} {
				f.After = &store.Cursor{At: h.now.Add(-time.Duration(depth * float64(span)))}
				took := h.timed(slack(bound), func() {
					rows, _, err := h.db.Usage(h.t.Context(), h.world.client, f)
					if err != nil {
						h.t.Fatal(err)
					}
					n = len(rows)
				})
				line += fmt.Sprintf(" %7.2f", ms(took))
				if took > slack(bound) {
					h.t.Errorf("a page of %+v at %v of the history: %v, want at most %v", f, depth, took, slack(bound))
				}
			}
			fmt.Fprintf(h.t.Output(), "pages  sub-account %-5t provider %-11s status %-8s %s ms at 0, 0.01, 0.5 and 0.99; %d rows at the end\n",
				sub != "", f.Provider, f.ParseStatus, line, n)
		}
	}
}

// check holds statistics against sums that the database makes of the rows.
func (h *history) check() {
	h.t.Helper()
	for _, g := range []modelgate.GroupBy{modelgate.ByProvider, modelgate.ByModel} {
		since := h.now.Add(-30*24*time.Hour - 17*time.Minute)
		got, err := h.db.Stats(h.t.Context(), h.world.client, store.StatsQuery{GroupBy: g, Since: since})
		if err != nil {
			h.t.Fatal(err)
		}
		want := h.sums(string(g), since)
		if len(got) != len(want) || len(got) == 0 {
			h.t.Errorf("statistics by %s have %d buckets, want %d", g, len(got), len(want))
		}
		for _, b := range got {
			if want[b.Key] != b {
				h.t.Errorf("statistics by %s: %+v, want %+v", g, b, want[b.Key])
			}
		}
	}
}

// sums are statistics as the database makes them of the rows.
func (h *history) sums(column string, since time.Time) map[string]modelgate.StatsBucket {
	h.t.Helper()
	raw := h.world.openRaw()
	defer raw.Close()
	rows, err := raw.Query("SELECT "+column+", COUNT(*), CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cost) AS BIGINT) FROM usage_row "+
		"WHERE client_id = $1 AND created_at >= $2 GROUP BY "+column, string(h.world.client), since.UnixMicro())
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]modelgate.StatsBucket{}
	for rows.Next() {
		var b modelgate.StatsBucket
		if err := rows.Scan(&b.Key, &b.Requests, &b.TotalTokens, &b.Cost); err != nil {
			h.t.Fatal(err)
		}
		out[b.Key] = b
	}
	if err := rows.Err(); err != nil {
		h.t.Fatal(err)
	}
	return out
}
