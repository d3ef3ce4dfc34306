package store

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/store/spend"
)

// clientDay is the counter of a client's day.
func clientDay(c modelgate.ClientID) modelgate.Counter {
	b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(c), Period: modelgate.Day}
	return b.Counter(c, noon)
}

// putBudget sets a client's budget of the day.
func putBudget(t testing.TB, db *DB, c modelgate.ClientID, limit modelgate.Nano) {
	t.Helper()
	b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(c), Period: modelgate.Day, Limit: limit}
	must(t, db.PutBudget(t.Context(), c, "", b, audit("budget.put")))
}

func TestHoldGrantsTheMostThenTheLeast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		k := clientDay(client)
		hold := func(a modelgate.Ask) (modelgate.Held, error) {
			a.Counter = k
			got, err := db.Lease(ctx, "i", []modelgate.Ask{a})
			if len(got) != 1 {
				t.Fatalf("Hold = %v, %v", got, err)
			}
			return got[0], err
		}
		if got, err := hold(modelgate.Ask{Least: 1, Most: 1, Seq: 1, Room: 1}); err != nil || got.Granted != 0 || !got.Gone {
			t.Errorf("Hold without a budget = %v, %v, want it gone", got, err)
		}
		putBudget(t, db, client, 100)
		for i, c := range []struct {
			least, most, plenty, room modelgate.Nano
			granted, left             modelgate.Nano
		}{
			{1, 10, 101, 1, 1, 99},
			{1, 10, 99, 1, 10, 89},
			{9, 60, 0, 9, 60, 29},
			{1, 29, 1, 1, 29, 0},
			{1, 1, 0, 1, 0, 0},
			{-10, -10, 0, -10, -10, 10},
			{11, 60, 0, 11, 0, 10},
			{11, 60, 0, 10, 11, -1},
			{1, 1, 0, 1, 0, -1},
		} {
			if c.least < 0 { // given back
				must(t, db.GiveBack(ctx, "i", []modelgate.Return{{Counter: k, Amount: -c.least, Seq: int64(i + 2)}}))
				continue
			}
			got, err := hold(modelgate.Ask{Least: c.least, Most: c.most, Plenty: c.plenty, Room: c.room, Seq: int64(i + 2)})
			if got.Granted != c.granted || got.Left != c.left || err != nil {
				t.Errorf("ask %d: granted %d, left %d, %v; want %d, %d", i, got.Granted, got.Left, err, c.granted, c.left)
			}
		}
	})
}

// A level that refuses leaves nothing reserved at the others.
func TestHoldIsAllOrNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 2)
		putBudget(t, db, client, 100)
		small := modelgate.Budget{Level: modelgate.LevelKey, ID: string(key.ID), Period: modelgate.Month, Limit: 5}
		must(t, db.PutBudget(t.Context(), client, "", small, audit("budget.put")))
		got, err := db.Lease(t.Context(), "i", []modelgate.Ask{
			{Counter: small.Counter(client, noon), Least: 6, Most: 6, Seq: 1, Room: 6},
			{Counter: clientDay(client), Least: 6, Most: 6, Seq: 1, Room: 6},
		})
		if err != nil || got[0].Granted != 0 || got[0].Left != 5 || got[1].Granted == 0 {
			t.Errorf("Hold = %+v, %v; want only the key's refused, with 5 left", got, err)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM slice"); n != 0 {
			t.Errorf("%d leases are left of a refused hold", n)
		}
	})
}

// Two budgets of one limit, many holders at once: no moment beyond it.
func TestHoldNeverPassesALimit(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		putBudget(t, db, client, 1000)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var sum modelgate.Nano
		var seq atomic.Int64
		for w := range 8 {
			wg.Go(func() {
				for range 40 {
					got, err := db.Lease(t.Context(), fmt.Sprint("i", w%2), []modelgate.Ask{{Counter: clientDay(client), Least: 7, Most: 13, Seq: seq.Add(1), Room: 7}})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					sum += got[0].Granted
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if held := number(t, db, "SELECT held FROM spend WHERE scope = 'client' AND period = 'day'"); sum > 1000 || sum < 994 || held != int64(sum) {
			t.Errorf("granted %d of 1000, held %d", sum, held)
		}
	})
}

// ledger is what the tables of a client's day must say.
type ledger struct {
	limit, settled modelgate.Nano
	slices         map[string]*slice
}

type slice struct {
	granted, amount modelgate.Nano
	seq             int64
}

func (l *ledger) held() (sum modelgate.Nano) {
	for _, s := range l.slices {
		sum += max(s.granted, 0)
	}
	return sum
}

func (l *ledger) change(instance string, amount modelgate.Nano, seq int64) {
	s := l.slices[instance]
	if s == nil {
		s = &slice{}
		l.slices[instance] = s
	}
	s.granted, s.amount, s.seq = s.granted+amount, amount, seq
}

// TestSlicesFollowTheModel runs any order of what instances do against the
// rules written down once more, and checks every answer.
func TestSlicesFollowTheModel(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		n := 100
		rapid.Check(t, func(r *rapid.T) {
			n++
			client := createClient(t, db, n)
			l := ledger{slices: map[string]*slice{}}
			for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
				l.step(r, t, db, client, step+1)
				held := number(t, db, "SELECT COALESCE(SUM(held), 0) FROM spend WHERE client_id = $1", string(client))
				if held != int64(l.held()) {
					r.Fatalf("held %d, want %d", held, l.held())
				}
			}
			must(t, db.EndLeases(t.Context(), "a"))
			must(t, db.EndLeases(t.Context(), "b"))
			if held := number(t, db, "SELECT COALESCE(SUM(held), 0) FROM spend WHERE client_id = $1", string(client)); held != 0 {
				r.Fatalf("held %d at the end", held)
			}
			found, err := db.Reconcile(t.Context(), client)
			must(t, err)
			found = slices.DeleteFunc(found, func(d Difference) bool { return d.What == "unknown_key" })
			if len(found) > 0 {
				r.Fatalf("Reconcile = %v", found)
			}
		})
	})
}

func (l *ledger) step(r *rapid.T, t *testing.T, db *DB, client modelgate.ClientID, n int) {
	instance := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "instance")
	amount := modelgate.Nano(rapid.IntRange(1, 40).Draw(r, "amount"))
	k, seq, mine := clientDay(client), int64(n), l.slices[instance]
	if mine != nil && rapid.IntRange(0, 4).Draw(r, "again") == 0 {
		seq = mine.seq
	}
	switch rapid.SampledFrom([]string{"limit", "hold", "hold", "hold", "row", "row", "back", "close", "end"}).Draw(r, "op") {
	case "limit":
		putBudget(t, db, client, amount*3)
		l.limit = amount * 3
	case "hold":
		l.hold(r, db, instance, modelgate.Ask{Counter: k, Least: amount, Most: amount * 2,
			Plenty: rapid.SampledFrom([]modelgate.Nano{0, amount * 3}).Draw(r, "plenty"), Room: rapid.SampledFrom([]modelgate.Nano{1, amount}).Draw(r, "room"), Seq: seq})
	case "row":
		u := row(client, n)
		u.Cost = amount
		if rapid.Bool().Draw(r, "reserved") {
			u.Holds = u.Holds.Add(&modelgate.Budget{Level: modelgate.LevelClient, Period: modelgate.Day})
			if mine != nil {
				mine.granted -= amount
			}
		}
		l.settled += amount
		book(t, db, instance, u)
	case "back":
		if mine == nil {
			return
		}
		amount = min(amount, max(mine.granted, 0))
		must(t, db.GiveBack(t.Context(), instance, []modelgate.Return{{Counter: k, Amount: amount, Seq: seq}}))
		if seq != mine.seq {
			l.change(instance, -amount, seq)
		}
	case "close":
		must(t, db.GiveBack(t.Context(), instance, []modelgate.Return{{Counter: k, Close: true}}))
		delete(l.slices, instance)
	case "end":
		must(t, db.EndLeases(t.Context(), instance))
		delete(l.slices, instance)
	}
}

func (l *ledger) hold(r *rapid.T, db *DB, instance string, a modelgate.Ask) {
	var want modelgate.Held
	left := l.limit - l.settled - l.held()
	mine := l.slices[instance]
	switch {
	case mine != nil && mine.seq == a.Seq:
		want.Granted = mine.amount
	case l.limit > 0 && left >= max(a.Most, a.Plenty):
		want.Granted = a.Most
	case l.limit > 0 && left >= a.Room:
		want.Granted = a.Least
	}
	if want.Granted > 0 && (mine == nil || mine.seq != a.Seq) {
		l.change(instance, want.Granted, a.Seq)
	}
	want.Left = l.limit - l.settled - l.held()
	got, err := db.Lease(r.Context(), instance, []modelgate.Ask{a})
	if want.Granted <= 0 { // refused, or a return that has the number
		return
	}
	if err != nil || len(got) != 1 || got[0] != want {
		r.Fatalf("Hold(%+v) = %+v, %v, want %+v", a, got, err, want)
	}
}

// Only an instance that has been silent for spend.LeaseLife loses what it holds,
// however far apart the clocks are of those that look.
func TestExpiredSlicesAreFreed(t *testing.T) {
	t.Parallel()
	for _, engine := range engines {
		for _, apart := range []time.Duration{0, 90 * time.Second, -90 * time.Second, 48 * time.Hour, -48 * time.Hour} {
			t.Run(fmt.Sprint(engine, apart), func(t *testing.T) {
				t.Parallel()
				ctx, o := t.Context(), options(t, engine)
				db, observer := open(t, o), open(t, o)
				var passed time.Duration
				db.now = func() time.Time { return noon.Add(passed) }
				observer.now = func() time.Time { return noon.Add(apart + passed) }
				client := createClient(t, db, 1)
				putBudget(t, db, client, 100)
				for n, i := range []string{"dead", "alive"} {
					_, err := db.RenewLeases(ctx, i)
					must(t, err)
					_, err = db.Lease(ctx, i, []modelgate.Ask{{Counter: clientDay(client), Least: 40, Most: 40, Seq: int64(n + 1), Room: 40}})
					must(t, err)
				}
				held := func() int64 { return number(t, db, "SELECT SUM(held) FROM spend") }
				look := func(db *DB, until time.Duration) {
					t.Helper()
					for ; passed <= until; passed += time.Minute {
						if passed%(10*time.Minute) == 0 {
							kept, err := db.RenewLeases(ctx, "alive")
							must(t, err)
							if !kept {
								t.Errorf("after %v the instance that lives has lost what it holds", passed)
							}
						}
						must(t, observer.EndExpiredLeases(ctx))
					}
				}
				look(observer, 30*time.Minute)
				if held() != 80 {
					t.Errorf("held %d after half an hour, want 80", held())
				}
				// An observer that restarts goes on from what was noted.
				observer.spendStore = spend.NewStore(&observer.handle, observer.RecordAudit)
				look(observer, spend.LeaseLife-time.Minute)
				if held() != 80 {
					t.Errorf("held %d a minute before the life of a lease is over, want 80", held())
				}
				look(observer, spend.LeaseLife+time.Minute)
				if held() != 40 {
					t.Errorf("held %d, want the 40 of the instance that lives", held())
				}
				if kept, err := db.RenewLeases(ctx, "dead"); err != nil || kept {
					t.Errorf("the instance that was given up renews: kept %v, %v, want to begin anew", kept, err)
				}
			})
		}
	}
}

// An instance that shows itself while another gives it up keeps what it holds
// from then on.
func TestGivenUpInstanceComesBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		putBudget(t, db, client, 100)
		_, err := db.RenewLeases(ctx, "i")
		must(t, err)
		_, err = db.Lease(ctx, "i", []modelgate.Ask{{Counter: clientDay(client), Least: 40, Most: 40, Seq: 1, Room: 40}})
		must(t, err)
		must(t, db.EndExpiredLeases(ctx)) // sees the instance for the first time
		late := noon.Add(spend.LeaseLife)
		db.now = func() time.Time { // is asked once the instances are read
			_, err := db.RenewLeases(ctx, "i")
			must(t, err)
			return late
		}
		must(t, db.EndExpiredLeases(ctx))
		if n := number(t, db, "SELECT SUM(held) FROM spend"); n != 40 {
			t.Errorf("held %d, want 40: the instance lives", n)
		}
		for _, after := range []time.Duration{0, spend.LeaseLife} {
			db.now = func() time.Time { return late.Add(after) }
			must(t, db.EndExpiredLeases(ctx))
		}
		if n := number(t, db, "SELECT SUM(held) + (SELECT COUNT(*) FROM slice_holder) FROM spend"); n != 0 {
			t.Errorf("held %d, want nothing and no holder", n)
		}
	})
}

func TestBudgets(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, client, 11)
		bound, free := issue(t, db, client, sub.ID, 21), issue(t, db, client, "", 22)
		foreign := issue(t, db, other, "", 23)
		put := func(s modelgate.SubAccountID, l modelgate.Level, id string, p modelgate.Period, limit modelgate.Nano) error {
			return db.PutBudget(ctx, client, s, modelgate.Budget{Level: l, ID: id, Period: p, Limit: limit}, audit("budget.put"))
		}
		own := sub.ID
		for _, c := range []struct {
			what  string
			scope modelgate.SubAccountID
			level modelgate.Level
			id    string
			limit modelgate.Nano
			want  modelgate.Kind
		}{
			{"client", "", modelgate.LevelClient, string(client), 1, ""},
			{"another client", "", modelgate.LevelClient, string(other), 1, modelgate.NotFound},
			{"sub-account", "", modelgate.LevelSubAccount, string(sub.ID), 2, ""},
			{"no sub-account", "", modelgate.LevelSubAccount, id(99), 2, modelgate.NotFound},
			{"key", "", modelgate.LevelKey, string(free.ID), 3, ""},
			{"another client's key", "", modelgate.LevelKey, string(foreign.ID), 3, modelgate.NotFound},
			{"own key", own, modelgate.LevelKey, string(bound.ID), 4, ""},
			{"not its own key", own, modelgate.LevelKey, string(free.ID), 4, modelgate.NotFound},
			{"its client", own, modelgate.LevelClient, string(client), 4, modelgate.NotFound},
			{"nothing", "", modelgate.LevelClient, string(client), 0, modelgate.BadRequest},
			{"too much", "", modelgate.LevelClient, string(client), modelgate.MaxBudget + 1, modelgate.BadRequest},
		} {
			wantKind(t, c.what, put(c.scope, c.level, c.id, modelgate.Month, c.limit), c.want)
		}
		must(t, put("", modelgate.LevelClient, string(client), modelgate.Day, 9))
		must(t, put("", modelgate.LevelClient, string(client), modelgate.Month, 8)) // in place of 1
		r := row(client, 1)
		r.KeyID, r.SubAccountID = bound.ID, sub.ID
		book(t, db, "i", r)

		show := func(l spend.BudgetList) (out []string) {
			list, err := db.Budgets(ctx, client, l)
			must(t, err)
			for _, b := range list {
				out = append(out, fmt.Sprintf("%s/%s %d of %d", b.Level, b.Period, b.Spend, b.Limit))
			}
			slices.Sort(out)
			return out
		}
		all := []string{"client/day 1000 of 9", "client/month 1000 of 8", "key/month 0 of 3", "key/month 1000 of 4", "sub_account/month 1000 of 2"}
		if d := gocmp.Diff(all, show(spend.BudgetList{})); d != "" {
			t.Errorf("Budgets (-want +got):\n%s", d)
		}
		if d := gocmp.Diff([]string{"key/month 1000 of 4", "sub_account/month 1000 of 2"}, show(spend.BudgetList{SubAccountID: sub.ID})); d != "" {
			t.Errorf("Budgets of a sub-account (-want +got):\n%s", d)
		}
		if got := show(spend.BudgetList{At: noon.Add(24 * time.Hour)}); got[0] != "client/day 0 of 9" || got[1] != "client/month 0 of 8" {
			t.Errorf("the first of the next month shows %v", got[:2])
		}

		caller, err := db.Caller(ctx, digest(21), nil)
		must(t, err)
		var order []string
		for _, b := range caller.Budgets {
			order = append(order, string(b.Level)+"/"+string(b.Period))
		}
		if d := gocmp.Diff([]string{"client/day", "client/month", "sub_account/month", "key/month"}, order); d != "" {
			t.Errorf("a caller's budgets (-want +got):\n%s", d)
		}
		if a, b := caller.Budgets[0].Revision, caller.Budgets[1].Revision; a >= b || a == 0 {
			t.Errorf("revisions %d and %d do not grow", a, b)
		}

		del := func(s modelgate.SubAccountID, l modelgate.Level, id string) error {
			return db.DeleteBudget(ctx, client, s, modelgate.Budget{Level: l, ID: id, Period: modelgate.Month}, audit("budget.delete"))
		}
		wantKind(t, "delete", del("", modelgate.LevelKey, string(free.ID)), "")
		wantKind(t, "delete again", del("", modelgate.LevelKey, string(free.ID)), modelgate.NotFound)
		wantKind(t, "delete one that is not its own", del(own, modelgate.LevelSubAccount, string(sub.ID)), "")
		wantKind(t, "delete a foreign one", db.DeleteBudget(ctx, other, "", modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Day}, audit("budget.delete")), modelgate.NotFound)
	})
}

func TestBalance(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		must(t, db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.Billing = modelgate.Manual; return nil }, audit("client.set")))
		issue(t, db, client, "", 21)
		credit := func(n int, amount modelgate.Nano) error {
			return db.Credit(ctx, client, spend.BalanceEntry{ID: id(n), At: noon.Add(time.Duration(n) * time.Second), Amount: amount, Note: "top-up"}, audit("balance.credit"))
		}
		must(t, credit(1, 5000))
		must(t, credit(2, -500))
		wantKind(t, "the same entry", credit(2, 1), modelgate.Conflict)
		wantKind(t, "nothing", credit(3, 0), modelgate.BadRequest)
		wantKind(t, "nobody", db.Credit(ctx, "ghost", spend.BalanceEntry{ID: id(4), Amount: 1}, audit("balance.credit")), modelgate.NotFound)
		r := row(client, 1)
		r.KeyID = modelgate.KeyID(id(21))
		book(t, db, "i", r)
		got, entries, err := db.Balance(ctx, client, 0)
		must(t, err)
		if got.Left() != 3500 || got.Credited != 4500 || got.Spent != 1000 || len(entries) != 2 || entries[0].Amount != -500 {
			t.Errorf("Balance = %+v, %v", got, entries)
		}
		caller, err := db.Caller(ctx, digest(21), nil)
		must(t, err)
		if len(caller.Budgets) != 1 || !caller.Budgets[0].IsBalance() || caller.Budgets[0].Limit != 4500 {
			t.Errorf("a caller's balance is %+v", caller.Budgets)
		}
		wantReconciled(t, db)
		bill := func(b modelgate.Billing) {
			must(t, db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.Billing = b; return nil }, audit("client.set")))
		}
		bill(modelgate.Invoiced)
		for n := range 2 {
			r := row(client, 10+n)
			r.KeyID = modelgate.KeyID(id(21))
			book(t, db, "i", r)
		}
		if got, _, err := db.Balance(ctx, client, 1); err != nil || got.Left() != 3500 {
			t.Errorf("%d are left while the client is invoiced, %v; want what was left before", got.Left(), err)
		}
		bill(modelgate.Manual)
		bill(modelgate.Manual)
		if got, _, err := db.Balance(ctx, client, 1); err != nil || got.Left() != 3500 {
			t.Errorf("%d are left, %v; want what was left before the client was invoiced", got.Left(), err)
		}
		wantReconciled(t, db)
		_, err = db.write.Exec("DELETE FROM balance_entry WHERE amount < 0")
		must(t, err)
		found, err := db.Reconcile(ctx, client)
		must(t, err)
		if d := gocmp.Diff([]Difference{{ClientID: client, What: "balance", Key: string(client), Want: 7000, Have: 6500}}, found); d != "" {
			t.Errorf("Reconcile (-want +got):\n%s", d)
		}
	})
}

// Each part of a budget that is used up is noted once, whoever books it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		putBudget(t, db, client, 3001)
		claim := func() (out []int) {
			list, err := db.ClaimAlerts(ctx, spend.Operator, 10, 10, time.Minute)
			must(t, err)
			slices.SortFunc(list, func(a, b spend.Alert) int { return cmp.Compare(a.Percent, b.Percent) })
			for _, a := range list {
				out = append(out, a.Percent)
				if a.ClientID != client || a.Limit != 3001 || !a.Start.Equal(modelgate.Day.Start(noon)) || a.Tries != 1 {
					t.Errorf("alert %+v", a)
				}
				must(t, db.FinishAlert(ctx, a))
			}
			return out
		}
		for n, want := range [][]int{nil, {50}, {80}, {100}, nil} {
			cost := []modelgate.Nano{1500, 1, 900, 600, 5000}[n] // 1500, 1501, 2401, 3001, 8001
			r := row(client, n)
			r.Cost = cost
			book(t, db, fmt.Sprint("i", n%2), r)
			if got := claim(); !slices.Equal(got, want) {
				t.Errorf("after row %d: alerts %v, want %v", n, got, want)
			}
		}
	})
}

// A limit that is lowered below what is spent may stop all calls: no later one
// would note it. Each level has alerts of its own, and those of a key without a
// budget are none.
func TestAlertsOfALoweredLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key, other := issue(t, db, client, "", 21), issue(t, db, client, "", 22)
		put := func(l modelgate.Level, id string, p modelgate.Period, limit modelgate.Nano) {
			t.Helper()
			must(t, db.PutBudget(ctx, client, "", modelgate.Budget{Level: l, ID: id, Period: p, Limit: limit}, audit("budget.put")))
		}
		claim := func() (out []string) {
			t.Helper()
			list, err := db.ClaimAlerts(ctx, spend.Operator, 10, 10, time.Minute)
			must(t, err)
			for _, a := range list {
				out = append(out, fmt.Sprintf("%s %s %d%% of %d", a.Level, a.Period, a.Percent, a.Limit))
				must(t, db.FinishAlert(ctx, a))
			}
			slices.Sort(out)
			return out
		}
		put(modelgate.LevelKey, string(key.ID), modelgate.Month, 2000)
		put(modelgate.LevelClient, string(client), modelgate.Day, 10_000)
		mine, others := row(client, 1), row(client, 2)
		mine.KeyID, others.KeyID = key.ID, other.ID
		book(t, db, "i", mine, others) // each costs 1000
		for n, want := range [][]string{
			{"key month 50% of 2000"},
			{"client day 50% of 2400", "client day 80% of 2400"},
			{"key month 100% of 900", "key month 80% of 900"},
			nil,
		} {
			switch n {
			case 1:
				put(modelgate.LevelClient, string(client), modelgate.Day, 2400)
			case 2:
				put(modelgate.LevelKey, string(key.ID), modelgate.Month, 900)
			case 3:
				put(modelgate.LevelKey, string(key.ID), modelgate.Month, 800) // once in a period
			}
			if d := gocmp.Diff(want, claim()); d != "" {
				t.Errorf("step %d: alerts (-want +got):\n%s", n, d)
			}
		}
	})
}

// An organization is told of what is used up while it has a target, besides the
// operator, and few of its alerts are taken at once.
func TestAlertsOfAnOrganization(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		putBudget(t, db, client, 4000)
		putBudget(t, db, other, 1000)
		claim := func(to spend.Audience, share int) (out []string) {
			t.Helper()
			list, err := db.ClaimAlerts(ctx, to, 10, share, time.Minute)
			must(t, err)
			for _, a := range list {
				if a.Audience != to {
					t.Errorf("an alert for the %s is for the %s", to, a.Audience)
				}
				out = append(out, fmt.Sprint(a.ClientID == client, a.Percent))
				must(t, db.FinishAlert(ctx, a))
			}
			slices.Sort(out)
			return out
		}
		want := func(got []string, want ...string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("alerts %v, want %v", got, want)
			}
		}
		must(t, db.PutAlertTarget(ctx, other, spend.AlertTarget{URL: "https://b.example", KeyID: "k", Secret: []byte("s")}, audit("alerts.put")))
		book(t, db, "i", row(client, 1), row(client, 2), row(other, 3)) // each costs 1000
		want(claim(spend.Operator, 10), "false 100", "false 50", "false 80", "true 50")
		want(claim(spend.Organization, 2), "false 50", "false 80")
		want(claim(spend.Organization, 2), "false 100")

		target := spend.AlertTarget{URL: "https://a.example/hook", KeyID: "k", Secret: []byte("sealed")}
		must(t, db.PutAlertTarget(ctx, client, target, audit("alerts.put")))
		if got, err := db.AlertTarget(ctx, client); err != nil || !reflect.DeepEqual(got, target) {
			t.Errorf("the target is %+v, %v", got, err)
		}
		want(claim(spend.Organization, 10)) // nothing is booked
		book(t, db, "i", row(client, 4), row(client, 5))
		must(t, db.DeleteAlertTarget(ctx, client, audit("alerts.delete")))
		want(claim(spend.Organization, 10), "true 100", "true 50", "true 80") // also what was used up before
		if _, err := db.AlertTarget(ctx, client); modelgate.KindOf(err) != modelgate.NotFound {
			t.Errorf("after its removal: %v", err)
		}
		must(t, db.DeleteAlertTarget(ctx, client, audit("alerts.delete"))) // again: nothing happens
		if counts, err := db.CountSecrets(ctx); err != nil || len(counts) != 1 || counts[0].Count != 1 {
			t.Errorf("secrets that are left: %v, %v", counts, err)
		}
	})
}

// An alert that was claimed and not finished comes again, to one claimer.
func TestAlertsComeAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		putBudget(t, db, client, 1000)
		book(t, db, "i", row(client, 1))
		claim := func(want int) {
			t.Helper()
			list, err := db.ClaimAlerts(t.Context(), spend.Operator, 10, 10, time.Minute)
			must(t, err)
			if len(list) != want {
				t.Errorf("%d alerts, want %d", len(list), want)
			}
		}
		claim(3)
		claim(0)
		db.now = func() time.Time { return noon.Add(time.Minute) }
		claim(3)
	})
}
