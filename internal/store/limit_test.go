package store

import (
	"fmt"
	"testing"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/store/spend"
)

// A limit over an hour or a day counts the calls of its window from before it and
// those after it, in its unit.
func TestLimitsCount(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		n := 0
		call := func(slug, user string) {
			n++
			r := row(client, n)
			r.At, r.KeyID, r.Slug, r.Attribution = noon, key, slug, map[string]string{"end_user": user, "key_id": string(key)}
			r.Usage = modelgate.Usage{Input: 10, CachedInput: 3, Output: 5, Reasoning: 2, AdvisorOutput: 100} // an advisor's are another model's
			book(t, db, "i", r)
		}
		units := map[modelgate.LimitUnit]modelgate.Nano{modelgate.UnitRequests: 1, modelgate.UnitInputTokens: 13, modelgate.UnitOutputTokens: 7,
			modelgate.UnitTokens: 20, modelgate.UnitUSD: 1000}
		call("openai/gpt-5", "ann")
		call("acme/chat", "bob")
		for u := range units {
			for _, text := range []string{"", "model:openai/*", "tag:end_user=bob", "tag:end_user=*"} {
				for _, window := range []string{"hour", "day"} {
					l := modelgate.RateLimit{Level: modelgate.LevelKey, ID: string(key), Unit: u, Window: window, Match: match(t, text), Limit: 1}
					if text == "tag:end_user=bob" {
						l.Level, l.ID = modelgate.LevelClient, string(client)
					}
					must(t, db.PutRateLimit(t.Context(), client, "", l, audit("limit.put")))
				}
			}
		}
		check := func(when string, openai, bob, all modelgate.Nano) {
			t.Helper()
			reconciled(t, db, client)
			list, err := db.Budgets(t.Context(), client, spend.BudgetList{At: noon, Limits: true})
			must(t, err)
			if len(list) != 5*4*2 {
				t.Fatalf("%s: %d limits", when, len(list))
			}
			want := map[string]modelgate.Nano{"": all, "model:openai/*": openai, "tag:end_user=bob": bob, "tag:end_user=*": all}
			for _, b := range list {
				if b.Spend != want[b.Match.String()]*units[b.Unit] {
					t.Errorf("%s: %s %s %s has %d, want %d of %d", when, b.Match, b.Unit, b.Period, b.Spend, want[b.Match.String()], units[b.Unit])
				}
			}
			if plain, err := db.Budgets(t.Context(), client, spend.BudgetList{At: noon}); err != nil || len(plain) != 0 {
				t.Errorf("%s: limits are listed as budgets: %v, %v", when, plain, err)
			}
		}
		check("before", 1, 1, 2)
		call("openai/gpt-5", "bob")
		check("after", 2, 2, 3)
	})
}

// Calls leave their unit's counter as they have reserved it, a job counts once
// with what it has used in the end, and limits are one owner's beside others'.
func TestLimitsAreReserved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		for _, u := range []modelgate.LimitUnit{modelgate.UnitRequests, modelgate.UnitOutputTokens, modelgate.UnitUSD} {
			l := modelgate.RateLimit{Level: modelgate.LevelClient, ID: string(client), Unit: u, Window: "day", Limit: 9_000_000_000}
			if u == modelgate.UnitRequests {
				l.Limit = 2
			}
			must(t, db.PutRateLimit(t.Context(), client, "", l, audit("limit.put")))
		}
		c, err := db.Caller(t.Context(), digest(21), nil)
		must(t, err)
		if len(c.Rules) != 3 || len(c.RateLimits) != 0 {
			t.Fatalf("a caller with %d rules and %d limits", len(c.Rules), len(c.RateLimits))
		}
		var asks []modelgate.Ask
		var numbers []int64
		for _, b := range c.Rules {
			numbers = append(numbers, b.Rule)
			n := map[modelgate.LimitUnit]modelgate.Nano{modelgate.UnitRequests: 2, modelgate.UnitOutputTokens: 500, modelgate.UnitUSD: 5 * modelgate.USD}[b.Unit]
			asks = append(asks, modelgate.Ask{Counter: b.Counter(client, uuid(1).Time()), Least: n, Most: n, Room: n, Seq: 1})
		}
		held, err := db.Lease(t.Context(), "i", asks)
		must(t, err)
		for _, h := range held {
			if h.Granted == 0 {
				t.Fatalf("refused: %+v", held)
			}
		}
		for i := range asks {
			asks[i].Seq++
		}
		if held, err = db.Lease(t.Context(), "i", asks); err != nil || held[0].Granted != 0 && held[1].Granted != 0 && held[2].Granted != 0 {
			t.Errorf("two calls more than the limit: %+v, %v", held, err)
		}
		plain, job := row(client, 2), film(client, 1)
		for _, r := range []*modelgate.UsageRow{&plain, &job} {
			r.KeyID, r.Rules = key, numbers
		}
		job.Job.Reserve = modelgate.USD
		book(t, db, "i", plain, job)
		reconciled(t, db, client)
		f, _ := pricing.FinishJob(jobOf(t, db, client, 1), modelgate.JobNews{Event: modelgate.JobFails})
		f.Usage.Output = 7
		_, err = db.FinishJobs(t.Context(), []modelgate.JobFinal{f})
		must(t, err)
		reconciled(t, db, client)
		list, err := db.Budgets(t.Context(), client, spend.BudgetList{At: uuid(1).Time(), Limits: true})
		must(t, err)
		got := map[string]string{}
		for _, b := range list {
			got[string(b.Unit)] = fmt.Sprint(int64(b.Spend), " ", b.Unit != modelgate.UnitUSD && b.Held == 0 || b.Held > 0)
		}
		if got["requests"] != "2 true" || got["output_tokens"] != "12 true" {
			t.Errorf("used: %v", got)
		}
		must(t, db.EndLeases(t.Context(), "i"))
		reconciled(t, db, client)
		l := modelgate.RateLimit{Level: modelgate.LevelClient, ID: string(client), Unit: modelgate.UnitRequests, Window: "day", Owner: modelgate.OwnerOperator}
		wantKind(t, "the operator's", db.DeleteRateLimit(t.Context(), client, "", l, audit("limit.delete")), modelgate.NotFound)
		l.Owner = ""
		must(t, db.DeleteRateLimit(t.Context(), client, "", l, audit("limit.delete")))
		wantKind(t, "again", db.DeleteRateLimit(t.Context(), client, "", l, audit("limit.delete")), modelgate.NotFound)
		reconciled(t, db, client)
	})
}
