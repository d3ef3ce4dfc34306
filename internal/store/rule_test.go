package store

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

func match(t testing.TB, text string) *modelgate.Match {
	t.Helper()
	if text == "" {
		return nil
	}
	m, err := modelgate.ParseMatch(text)
	must(t, err)
	return m
}

// rule is a budget of the organization with counters of its own.
func rule(t testing.TB, client modelgate.ClientID, text string, p modelgate.Period, limit modelgate.Nano) modelgate.Budget {
	return modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: p, Match: match(t, text), Limit: limit, Mode: modelgate.Soft}
}

func putRule(t testing.TB, db *DB, client modelgate.ClientID, b modelgate.Budget) {
	t.Helper()
	must(t, db.PutBudget(t.Context(), client, "", b, audit("budget.put")))
}

// listed is what the list says of the rules: their match and period, and the sum.
func listed(t testing.TB, db *DB, client modelgate.ClientID) map[string]modelgate.Nano {
	t.Helper()
	list, err := db.Budgets(t.Context(), client, spend.BudgetList{At: noon})
	must(t, err)
	sums := make(map[string]modelgate.Nano)
	for _, b := range list {
		name := fmt.Sprintf("%s %s %s", b.Level, b.Match, b.Period)
		sums[name] = b.Spend
		for _, v := range b.Values {
			sums[name+" "+v.Value] = v.Spend
		}
	}
	return sums
}

func reconciled(t testing.TB, db *DB, client modelgate.ClientID) {
	t.Helper()
	found, err := db.Reconcile(t.Context(), client)
	if err != nil || len(found) > 0 {
		t.Errorf("reconcile: %+v, %v", found, err)
	}
}

// A rule counts the calls from before it and those after it, each once: in
// counters of its own, by the row alone.
func TestRulesCount(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11)
		key := issue(t, db, client, sub.ID, 21).ID
		n := 0
		call := func(slug, team string, at time.Time, cost modelgate.Nano) {
			n++
			r := row(client, n)
			r.SubAccountID, r.KeyID, r.Slug, r.Cost, r.At = sub.ID, key, slug, cost, at
			r.Attribution = map[string]string{"key_id": string(key), "sub_account_id": string(sub.ID)}
			if team != "" {
				r.Attribution["team"] = team
			}
			book(t, db, "i", r)
		}
		calls := func() {
			call("openai/gpt-5", "a", noon, 1)
			call("openai/gpt-5-mini", "b", noon, 10)
			call("anthropic/claude", "", noon, 100)
			call("openai/gpt-5", "a", modelgate.Week.Start(noon).Add(-time.Hour), 1000)
		}
		rules := []modelgate.Budget{
			rule(t, client, "", modelgate.Week, modelgate.USD), rule(t, client, "", modelgate.Ever, modelgate.USD),
			rule(t, client, "", modelgate.Day, modelgate.USD),
			rule(t, client, "model:openai/*", modelgate.Week, modelgate.USD), rule(t, client, "model:openai/*", modelgate.Ever, modelgate.USD),
			rule(t, client, "tag:team=a", modelgate.Day, modelgate.USD), rule(t, client, "tag:team=", modelgate.Week, modelgate.USD),
			rule(t, client, "tag:team=*", modelgate.Ever, modelgate.USD), rule(t, client, "tag:key_id="+string(key), modelgate.Week, modelgate.USD),
			{Level: modelgate.LevelSubAccount, ID: string(sub.ID), Period: modelgate.Ever, Limit: 1, Mode: modelgate.Soft},
			{Level: modelgate.LevelSubAccount, ID: string(sub.ID), Period: modelgate.Week, Limit: 1, Match: match(t, "tag:team=b")},
			{Level: modelgate.LevelKey, ID: string(key), Period: modelgate.Week, Limit: 1, Match: match(t, "model:openai/*")},
		}
		calls()
		for _, b := range rules {
			putRule(t, db, client, b)
		}
		check := func(when string, want map[string]modelgate.Nano) {
			t.Helper()
			got := listed(t, db, client)
			for name, sum := range want {
				if got[name] != sum {
					t.Errorf("%s: %s has %v, want %v", when, name, got[name], sum)
				}
			}
			reconciled(t, db, client)
		}
		once := map[string]modelgate.Nano{
			"client  week": 111, "client  ever": 1111, "client  day": 111,
			"client model:openai/* week": 11, "client model:openai/* ever": 1011,
			"client tag:team=a day": 1, "client tag:team= week": 100, "client tag:team=* ever": 11, // from noon, when it was made

			"client tag:key_id=" + string(key) + " week": 111,
			"sub_account  ever":                          1111, "sub_account tag:team=b week": 10, "key model:openai/* week": 11,
		}
		check("first", once)
		calls()
		twice := make(map[string]modelgate.Nano)
		for name, sum := range once {
			twice[name] = 2 * sum
		}
		twice["client tag:team=* ever a"], twice["client tag:team=* ever b"] = 2, 20
		check("then", twice)
		// An exact value takes over, and gives back.
		putRule(t, db, client, rule(t, client, "tag:team=a", modelgate.Ever, modelgate.USD))
		call("x/y", "a", noon, 5)
		check("taken over", map[string]modelgate.Nano{"client tag:team=* ever a": 0, "client tag:team=* ever": 20, "client tag:team=a ever": 2007})
		must(t, db.DeleteBudget(t.Context(), client, "", rule(t, client, "tag:team=a", modelgate.Ever, 0), audit("budget.delete")))
		check("given back", map[string]modelgate.Nano{"client tag:team=* ever a": 7, "client tag:team=* ever": 27})
		for _, b := range rules {
			must(t, db.DeleteBudget(t.Context(), client, "", b, audit("budget.delete")))
		}
		if left := number(t, db, "SELECT COUNT(*) FROM spend WHERE scope = 'rule'"); left != 0 || len(listed(t, db, client)) != 0 {
			t.Errorf("%d counters are left of no rules", left)
		}
		wantKind(t, "delete again", db.DeleteBudget(t.Context(), client, "", rules[0], audit("budget.delete")), modelgate.NotFound)
	})
}

// A plain budget and one of the same target and period that is not are one
// budget: either takes the other's place.
func TestPlainBudgetBecomesARule(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		issue(t, db, client, "", 21)
		plain := modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Day, Limit: 50}
		soft := plain
		soft.Mode = modelgate.Soft
		book(t, db, "i", row(client, 1))
		for _, b := range []modelgate.Budget{plain, soft, plain, soft} {
			putRule(t, db, client, b)
			list, err := db.Budgets(t.Context(), client, spend.BudgetList{At: noon})
			must(t, err)
			if len(list) != 1 || (list[0].Rule != 0) != (b.Mode == modelgate.Soft) || list[0].Spend != 1000 {
				t.Fatalf("after a budget of mode %q: %+v", b.Mode, list)
			}
			c, err := db.Caller(t.Context(), digest(21), nil)
			must(t, err)
			if len(c.Budgets)+len(c.Rules) != 1 {
				t.Fatalf("it binds by %+v and %+v", c.Budgets, c.Rules)
			}
		}
		must(t, db.DeleteBudget(t.Context(), client, "", plain, audit("budget.delete")))
		if got := listed(t, db, client); len(got) != 0 {
			t.Errorf("left: %v", got)
		}
	})
}

// The database admits on a rule's counter what its limit leaves, and frees of it
// what the call has not cost.
func TestLeaseOfARule(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		b := rule(t, client, "tag:end_user=*", modelgate.Week, 5000)
		b.Mode = modelgate.Hard
		putRule(t, db, client, b)
		c, err := db.Caller(ctx, digest(21), nil)
		must(t, err)
		if len(c.Rules) != 1 || c.Rules[0].Limit != 5000 || !c.Rules[0].Match.Each() {
			t.Fatalf("the caller's rules: %+v", c.Rules)
		}
		k := c.Rules[0].ValueCounter(client, noon, "u")
		ask := func(seq int64, amount modelgate.Nano) modelgate.Held {
			h, err := db.Lease(ctx, "i", []modelgate.Ask{{Counter: k, Least: amount, Most: amount, Room: amount, Seq: seq}})
			must(t, err)
			return h[0]
		}
		if h := ask(1, 3000); h.Granted != 3000 || h.Left != 2000 {
			t.Errorf("the first: %+v", h)
		}
		if h := ask(1, 3000); h.Granted != 3000 || h.Left != 2000 {
			t.Errorf("the first again: %+v", h)
		}
		if h := ask(2, 3000); h.Granted != 0 || h.Gone || h.Left != 2000 {
			t.Errorf("too much: %+v", h)
		}
		r := row(client, 1)
		r.At = noon
		r.KeyID, r.Attribution, r.Rules = key, map[string]string{"end_user": "u", "key_id": string(key)}, []int64{c.Rules[0].Rule}
		book(t, db, "i", r)
		if n := number(t, db, "SELECT held FROM spend WHERE scope = 'rule'"); n != 2000 {
			t.Errorf("%d is held, want what is left of 3000", n)
		}
		if got := listed(t, db, client)["client tag:end_user=* week u"]; got != 1000 {
			t.Errorf("spent %v", got)
		}
		reconciled(t, db, client)
		must(t, db.GiveBack(ctx, "i", []modelgate.Return{{Counter: k, Amount: 2000, Seq: 3}}))
		must(t, db.GiveBack(ctx, "i", []modelgate.Return{{Counter: k, Close: true}}))
		reconciled(t, db, client)
		must(t, db.DeleteBudget(ctx, client, "", b, audit("budget.delete")))
		if h := ask(4, 10); !h.Gone {
			t.Errorf("of a rule that is gone: %+v", h)
		}
		must(t, db.GiveBack(ctx, "i", []modelgate.Return{{Counter: k, Amount: 1, Seq: 5}, {Counter: k, Close: true}}))
		if n := number(t, db, "SELECT COUNT(*) FROM spend WHERE scope = 'rule'"); n != 0 {
			t.Errorf("%d counters of a rule that is gone", n)
		}
	})
}

// Each percentage of each value is told once a period.
func TestRuleAlerts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		own := rule(t, client, "", modelgate.Ever, 2000)
		own.Alerts = []int{40, 120}
		putRule(t, db, client, own)
		putRule(t, db, client, rule(t, client, "tag:team=*", modelgate.Week, 1000))
		none := rule(t, client, "tag:team=a", modelgate.Day, 1)
		none.Alerts = []int{}
		putRule(t, db, client, none)
		for n := range 3 {
			r := row(client, n+1)
			r.At, r.Attribution = noon, map[string]string{"team": "a"}
			book(t, db, "i", r)
		}
		alerts, err := db.ClaimAlerts(t.Context(), spend.Operator, 10, 10, time.Minute)
		must(t, err)
		var got []string
		for _, a := range alerts {
			got = append(got, fmt.Sprintf("%s %s %q %q %d %v %v", a.Level, a.Period, a.Match, a.Value, a.Percent, int64(a.Spend), a.Start.IsZero()))
			must(t, db.FinishAlert(t.Context(), a))
		}
		slices.Sort(got)
		want := []string{`client ever "" "" 120 3000 true`, `client ever "" "" 40 1000 true`, `client week "tag:team=*" "a" 100 1000 false`}
		if !slices.Equal(got, want) {
			t.Errorf("alerts %q, want %q", got, want)
		}
		// Nothing is left to tell, until a limit comes down.
		own.Limit, own.Alerts = 3001, []int{40, 120, 200}
		putRule(t, db, client, own)
		if alerts, err = db.ClaimAlerts(t.Context(), spend.Operator, 10, 10, time.Hour); err != nil || len(alerts) != 0 {
			t.Errorf("told again: %+v, %v", alerts, err)
		}
		own.Limit = 1500
		putRule(t, db, client, own)
		if alerts, err = db.ClaimAlerts(t.Context(), spend.Operator, 10, 10, time.Hour); err != nil || len(alerts) != 1 || alerts[0].Percent != 200 {
			t.Errorf("after the limit came down: %+v, %v", alerts, err)
		}
	})
}

// An owner has so many rules of a target at most, and may replace them then too.
func TestTooManyRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		put := func(n int, o modelgate.Owner) error {
			b := modelgate.Budget{Level: modelgate.LevelKey, ID: string(key), Period: modelgate.Day, Limit: 1, Owner: o, Match: match(t, fmt.Sprintf("tag:n=%d", n))}
			return db.PutBudget(t.Context(), client, "", b, audit("budget.put"))
		}
		for n := range 32 {
			must(t, put(n, ""))
		}
		must(t, put(0, ""))
		wantKind(t, "the 33rd", put(32, ""), modelgate.Conflict)
		must(t, put(32, modelgate.OwnerOperator))
	})
}

var cycles = flag.Int("rule-cycles", 50, "how often TestRulesWhileBooking sets and removes rules")

// Rules are set and removed while calls are booked, and at every instant each
// counter is the sum of its rows.
func TestRulesWhileBooking(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		ctx, stop := context.WithCancel(t.Context())
		var bookers sync.WaitGroup
		defer bookers.Wait()
		defer stop()
		for booker := range 3 {
			bookers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					var rows []modelgate.UsageRow
					for i := range 1 + n%3 {
						r := row(client, 1+booker*1_000_000+n*3+i)
						r.KeyID, r.Slug = key, []string{"openai/gpt-5", "anthropic/claude"}[i%2]
						r.Attribution = map[string]string{"key_id": string(key), "team": []string{"a", "b", "c"}[n%3]}
						r.Cost, r.At = modelgate.Nano(n%7), noon
						rows = append(rows, r)
					}
					_, err := db.Record(t.Context(), Batch{Instance: fmt.Sprint("i", booker), Rows: rows, Progress: Position{Segment: 1, Offset: int64(n)}})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		texts := []string{"model:openai/*", "tag:team=a", "tag:team=*", "", "tag:key_id=" + string(key)}
		for n := range *cycles {
			b := rule(t, client, texts[n%len(texts)], []modelgate.Period{modelgate.Week, modelgate.Ever, modelgate.Day}[n%3], modelgate.USD)
			putRule(t, db, client, b)
			reconciled(t, db, client)
			if n%4 > 0 {
				must(t, db.DeleteBudget(t.Context(), client, "", b, audit("budget.delete")))
			}
		}
		stop()
		bookers.Wait()
		reconciled(t, db, client)
		if n := number(t, db, "SELECT COUNT(*) FROM usage_row"); n < 10 {
			t.Errorf("only %d calls were booked meanwhile", n)
		}
	})
}
