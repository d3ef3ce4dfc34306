package store

import (
	"testing"
	"time"

	"modelgate"
)

// fileLimits are limits of a configuration file by the day.
func fileLimits(t testing.TB, scopes ...modelgate.Level) (out []*modelgate.RateLimit) {
	for _, l := range scopes {
		out = append(out, &modelgate.RateLimit{Level: l, Unit: modelgate.UnitRequests, Window: "day", Limit: 3, Owner: modelgate.OwnerOperator, Number: -5})
	}
	return append(out, &modelgate.RateLimit{
		Level: modelgate.LevelKey, Unit: modelgate.UnitTokens, Window: "hour", Match: match(t, "tag:end_user=*"), Limit: 1000, Owner: modelgate.OwnerOperator, Number: -6,
	})
}

// Limits of the configuration file count the calls of each target by itself, and
// those of the gateway all.
func TestFileLimits(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		one, two := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, one, 3).ID
		keys := map[string]modelgate.KeyID{"a": issue(t, db, one, "", 21).ID, "b": issue(t, db, one, sub, 22).ID, "c": issue(t, db, two, "", 23).ID}
		clients := map[string]modelgate.ClientID{"a": one, "b": one, "c": two}
		n := 0
		call := func(key string, rules ...int64) {
			n++
			r := row(clients[key], n)
			r.At, r.KeyID, r.Rules = noon, keys[key], rules
			if key == "b" {
				r.SubAccountID = sub
			}
			r.Usage = modelgate.Usage{Input: 10, Output: 5}
			r.Attribution = map[string]string{"end_user": "u1", "key_id": string(keys[key])}
			book(t, db, "i", r)
		}
		must(t, db.PutFileLimits(t.Context(), nil))
		call("a") // from before the limits: it does not count
		set := fileLimits(t, modelgate.LevelGateway, modelgate.LevelClient, modelgate.LevelSubAccount, modelgate.LevelKey)
		must(t, db.PutFileLimits(t.Context(), set))
		rules := func(number int) (out map[string]*modelgate.Budget) {
			c, err := db.Caller(t.Context(), digest(number), nil)
			must(t, err)
			out = make(map[string]*modelgate.Budget)
			for _, b := range c.Rules {
				if !b.InFile() {
					t.Errorf("%+v is not of the file", b)
				}
				out[string(b.Level)+" "+string(b.Unit)] = b
			}
			if len(c.Rules) > 0 && c.Rules[0].Level != modelgate.LevelGateway {
				t.Errorf("the gateway's limit does not come first: %+v", c.Rules)
			}
			return out
		}
		first := rules(22)
		if len(first) != 5 || len(rules(21)) != 4 {
			t.Fatalf("a key of a sub-account has %v", first)
		}
		since := first["client requests"].CountedSince
		if since.IsZero() {
			t.Errorf("counted since %v", since)
		}
		for _, key := range []string{"a", "b", "b", "c"} {
			n++
			r := row(clients[key], n)
			r.At, r.KeyID = since.Add(time.Duration(n)*time.Microsecond), keys[key]
			if key == "b" {
				r.SubAccountID = sub
			}
			r.Usage = modelgate.Usage{Input: 10, Output: 5}
			r.Attribution = map[string]string{"end_user": "u1"}
			book(t, db, "i", r)
		}
		used := func(name, key string, want modelgate.Nano) {
			t.Helper()
			b := first[name]
			call := modelgate.Traits{KeyID: keys[key], Attribution: map[string]string{"end_user": "u1"}}
			if key == "b" {
				call.SubAccountID = sub
			}
			value, counts := b.Counts(&call)
			if !counts {
				t.Fatalf("%s does not count a call of %s", name, key)
			}
			got, err := db.Use(t.Context(), b.ValueCounter(clients[key], since, value))
			must(t, err)
			if got != want {
				t.Errorf("%s, key %s: %d used, want %d", name, key, got, want)
			}
		}
		used("gateway requests", "a", 4)
		used("client requests", "a", 3)
		used("client requests", "c", 1)
		used("sub_account requests", "b", 2)
		used("key requests", "a", 1)
		used("key requests", "b", 2)
		used("key tokens", "b", 30)
		used("key tokens", "c", 15)
		reconciled(t, db, one)
		reconciled(t, db, two)
		// What is left is lent, and settled with the call that has reserved it.
		gateway := first["gateway requests"]
		ask := modelgate.Ask{Counter: gateway.Counter(one, since), Least: 1, Most: 1, Room: 1, Seq: 1}
		if held, err := db.Lease(t.Context(), "i", []modelgate.Ask{ask}); err != nil || held[0].Granted != 0 || held[0].Left != -1 {
			t.Errorf("of a limit that is passed: %+v, %v", held, err)
		}
		own := first["client requests"]
		ask.Counter = own.Counter(two, since)
		if held, err := db.Lease(t.Context(), "i", []modelgate.Ask{ask}); err != nil || held[0].Granted != 1 || held[0].Left != 1 {
			t.Errorf("of a limit with something left: %+v, %v", held, err)
		}
		fresh := modelgate.Ask{Counter: own.Counter(two, since.AddDate(0, 0, 1)), Least: 3, Most: 3, Room: 3, Seq: 1}
		if held, err := db.Lease(t.Context(), "i", []modelgate.Ask{fresh}); err != nil || held[0].Granted != 3 {
			t.Errorf("of the next day: %+v, %v", held, err)
		}
		reconciled(t, db, two)
		// Another limit keeps what is counted, and the same changes nothing.
		set[1].Limit = 7
		must(t, db.PutFileLimits(t.Context(), set))
		must(t, db.PutFileLimits(t.Context(), set))
		changed := rules(22)["client requests"]
		if changed.Limit != 7 || changed.Rule != own.Rule || changed.Revision <= own.Revision || !changed.CountedSince.Equal(since) {
			t.Errorf("after a change %+v, before %+v", changed, own)
		}
		// The operator's own for a target replaces the file's there.
		l := modelgate.RateLimit{Level: modelgate.LevelKey, ID: string(keys["b"]), Unit: modelgate.UnitRequests, Window: "day", Limit: 9, Owner: modelgate.OwnerOperator}
		must(t, db.PutRateLimit(t.Context(), one, "", l, audit("limit.put")))
		c, err := db.Caller(t.Context(), digest(22), nil)
		must(t, err)
		for _, b := range c.Rules {
			if b.Level == modelgate.LevelKey && b.Unit == modelgate.UnitRequests && b.InFile() {
				t.Errorf("the file's limit still binds: %+v", b)
			}
		}
		list, err := db.RateLimits(t.Context(), "", "")
		if err != nil || len(list) != 1 {
			t.Errorf("limits of organizations: %+v, %v", list, err)
		}
		must(t, db.DeleteRateLimit(t.Context(), one, "", l, audit("limit.delete")))
		// Without them nothing binds, and calls that had reserved are booked.
		must(t, db.PutFileLimits(t.Context(), nil))
		if left := rules(21); len(left) != 0 {
			t.Errorf("after they are gone: %v", left)
		}
		call("c", own.Rule)
		must(t, db.EndLeases(t.Context(), "i"))
		reconciled(t, db, two)
		if clients, err := db.ClientsWithRules(t.Context()); err != nil || len(clients) != 3 {
			t.Errorf("clients with counters: %v, %v", clients, err)
		}
	})
}
