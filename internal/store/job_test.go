package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/store/spend"
	"modelgate/internal/store/sqldb"
)

// film is the n-th call of a client, one that made a job of a dollar.
func film(client modelgate.ClientID, n int) modelgate.UsageRow {
	r := row(client, n)
	r.Kind, r.ParseStatus, r.Cost, r.Usage = modelgate.Video, modelgate.ParseProvisional, modelgate.USD, modelgate.Usage{Seconds: 10_000_000}
	r.Job = &modelgate.NewJob{TaskID: modelgate.TaskID(fmt.Sprint("task-", n)), Kind: modelgate.Video, Protocol: "videos", Credential: "f", Deadline: r.At.Add(24 * time.Hour)}
	return r
}

func jobOf(t testing.TB, db *DB, client modelgate.ClientID, n int) *modelgate.Job {
	t.Helper()
	j, err := db.Job(t.Context(), client, "", modelgate.TaskID(fmt.Sprint("task-", n)))
	must(t, err)
	return j
}

func clean0(t testing.TB, db *DB, client modelgate.ClientID) {
	t.Helper()
	found, err := db.Reconcile(t.Context(), client)
	must(t, err)
	found = slices.DeleteFunc(found, func(d Difference) bool { return d.What == "unknown_key" })
	if len(found) != 0 {
		t.Errorf("reconcile: %+v", found)
	}
}

func TestJobComesWithItsRow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 900), createClient(t, db, 901)
		r := film(client, 1)
		book(t, db, "i", r)
		book(t, db, "i", r) // shipped again
		j := jobOf(t, db, client, 1)
		if j.ID != r.CallBegin.ID || j.Status != modelgate.JobPending || j.Provisional != modelgate.USD || j.Final != 0 || j.Provider != "openai" ||
			j.Attribution["team"] != "search" || j.Usage.Seconds != 10_000_000 || !j.Deadline.Equal(r.Job.Deadline) || !j.FinalizedAt.IsZero() {
			t.Errorf("job %+v", j)
		}
		for _, look := range []struct {
			client   modelgate.ClientID
			provider string
			task     modelgate.TaskID
		}{{other, "", "task-1"}, {client, "eu", "task-1"}, {client, "", "task-2"}, {client, "", ""}} {
			if _, err := db.Job(t.Context(), look.client, look.provider, look.task); !errors.Is(err, modelgate.ErrNoTask) {
				t.Errorf("Job(%v) = %v, want ErrNoTask", look, err)
			}
		}
		clean0(t, db, client)
		if n, oldest, err := db.PendingJobs(t.Context()); n != 1 || !oldest.Equal(r.At) || err != nil {
			t.Errorf("PendingJobs() = %d, %v, %v", n, oldest, err)
		}
	})
}

// A provider that names a second job like the first leaves it unfollowed.
func TestJobOfTheSameName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		first, second := film(client, 1), film(client, 2)
		second.Job.TaskID = first.Job.TaskID
		book(t, db, "i", first, second)
		rows, _, err := db.Usage(t.Context(), client, UsageList{})
		must(t, err)
		if len(rows) != 2 || rows[0].ParseStatus != modelgate.ParsePartial || rows[1].ParseStatus != modelgate.ParseProvisional {
			t.Errorf("rows %+v", rows)
		}
		if j := jobOf(t, db, client, 1); j.ID != first.CallBegin.ID {
			t.Errorf("the job is that of %s", j.ID)
		}
		clean0(t, db, client)
	})
}

// What such a job was to keep reserved is the budget's again, as its call has
// given it up.
func TestJobOfTheSameNameHoldsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Day, Limit: 20 * modelgate.USD}
		must(t, db.PutBudget(t.Context(), client, "", b, audit("budget.put")))
		k := b.Counter(client, uuid(1).Time())
		_, err := db.Lease(t.Context(), "i", []modelgate.Ask{{Counter: k, Least: 9 * modelgate.USD, Most: 9 * modelgate.USD, Room: 9 * modelgate.USD, Seq: 1}})
		must(t, err)
		var films []modelgate.UsageRow
		for n := 1; n <= 2; n++ {
			r := film(client, n)
			r.Holds = r.Holds.Add(&b)
			r.Job.TaskID, r.Job.Reserve = "task-1", 3*modelgate.USD
			films = append(films, r)
		}
		book(t, db, "i", films...)
		clean0(t, db, client)
		// Each of the two has cost a dollar, and the first holds three more: of
		// the nine that the instance had, one is left to it.
		if left := number(t, db, "SELECT granted FROM slice"); left != int64(modelgate.USD) {
			t.Errorf("the lease has %s, want 1", modelgate.Nano(left))
		}
		if held := number(t, db, "SELECT held FROM spend WHERE scope = 'client' AND period = 'day'"); held != int64(4*modelgate.USD) {
			t.Errorf("%s are held, want 4", modelgate.Nano(held))
		}
	})
}

// Of many who end a job one does, and the money moves once.
func TestFinishJobsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		const jobs, racers = 20, 6
		var rows []modelgate.UsageRow
		for n := range jobs {
			rows = append(rows, film(client, n))
		}
		book(t, db, "i", rows...)
		var mu sync.Mutex
		ended := map[modelgate.UUID]modelgate.Nano{}
		var wg sync.WaitGroup
		var all [racers][]modelgate.JobFinal // made while every job is pending
		for racer := range racers {
			for n := range jobs {
				news := modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: modelgate.Nano(racer+1) * modelgate.USD}
				f, ok := pricing.FinishJob(jobOf(t, db, client, n), news)
				if !ok {
					t.Fatal("a pending job does not end")
				}
				all[racer] = append(all[racer], f)
			}
		}
		for racer, finals := range all {
			if racer%2 == 1 {
				slices.Reverse(finals)
			}
			wg.Go(func() {
				for part := range slices.Chunk(finals, 1+racer) {
					done, err := db.FinishJobs(t.Context(), part)
					if err != nil {
						t.Errorf("FinishJobs: %v", err)
					}
					mu.Lock()
					for _, f := range done {
						if _, twice := ended[f.Job.ID]; twice {
							t.Errorf("job %s has ended twice", f.Job.ID)
						}
						ended[f.Job.ID] = f.Cost
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		var sum modelgate.Nano
		for _, cost := range ended {
			sum += cost
		}
		spent, err := db.Spend(t.Context(), client, modelgate.LevelClient, string(client), spend.Period{Period: modelgate.Day, Start: modelgate.Day.Start(noon)})
		must(t, err)
		if len(ended) != jobs || spent != sum {
			t.Errorf("%d jobs have ended, spend %s, want %s", len(ended), spent, sum)
		}
		for n := range jobs {
			if j := jobOf(t, db, client, n); j.Status != modelgate.JobSucceeded || j.Final != ended[j.ID] || !j.FinalizedAt.Equal(noon) {
				t.Errorf("job %+v", j)
			}
		}
		if n := number(t, db, "SELECT COUNT(*) FROM usage_row WHERE parse_status = 'provisional'"); n != 0 {
			t.Errorf("%d rows are provisional", n)
		}
		clean0(t, db, client)
	})
}

// The end of a job is one transaction with all that is kept about its row:
// where any of it cannot be written, nothing is.
func TestFinishJobIsOneTransaction(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		b := newBilling(t, db)
		r := film(b.client, 1)
		r.SubAccountID = b.sub
		book(t, db, "i", r)
		f, _ := pricing.FinishJob(jobOf(t, db, b.client, 1), modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: 2 * modelgate.USD})
		rename := func(from, to string) {
			t.Helper()
			_, err := db.write.Exec("ALTER TABLE " + from + " RENAME TO " + to)
			must(t, err)
		}
		for _, table := range []string{"usage_row", "rollup_delta", "latency_histogram", "spend", "processor_event", "evidence_batch", "evidence_pending"} {
			rename(table, "away")
			ended, err := db.FinishJobs(t.Context(), []modelgate.JobFinal{f})
			rename("away", table)
			if err == nil || len(ended) != 0 {
				t.Fatalf("without the table %s: %d have ended, %v", table, len(ended), err)
			}
			if j := jobOf(t, db, b.client, 1); j.Status != modelgate.JobPending || j.Final != 0 || !j.FinalizedAt.IsZero() {
				t.Errorf("without the table %s the job is %+v", table, j)
			}
			if n := number(t, db, "SELECT COUNT(*) FROM usage_row WHERE parse_status = 'provisional' AND cost = $1", int64(modelgate.USD)); n != 1 {
				t.Errorf("without the table %s the row has changed", table)
			}
			clean0(t, db, b.client)
		}
		if ended, err := db.FinishJobs(t.Context(), []modelgate.JobFinal{f}); err != nil || len(ended) != 1 {
			t.Errorf("in the end: %d have ended, %v", len(ended), err)
		}
		if l := b.list(""); len(l.Events) != 1 {
			t.Errorf("%d events, want 1", len(l.Events))
		}
		clean0(t, db, b.client)
	})
}

// What a job may cost beyond its provisional cost stays held, also when its
// instance is gone, until the job is final.
func TestJobHolds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Day, Limit: 10 * modelgate.USD}
		must(t, db.PutBudget(t.Context(), client, "", b, audit("budget.put")))
		k := b.Counter(client, uuid(1).Time())
		ask := func(seq int64, least modelgate.Nano) modelgate.Held {
			t.Helper()
			held, err := db.Lease(t.Context(), "i", []modelgate.Ask{{Counter: k, Least: least, Most: least, Room: least, Seq: seq}})
			must(t, err)
			return held[0]
		}
		ask(1, 4*modelgate.USD)
		r := film(client, 1)
		r.Holds = r.Holds.Add(&b)
		r.Job.Reserve = 3 * modelgate.USD
		book(t, db, "i", r)
		clean0(t, db, client)
		must(t, db.EndLeases(t.Context(), "i"))
		clean0(t, db, client)
		if h := ask(2, 7*modelgate.USD); h.Granted != 0 || h.Left != 6*modelgate.USD {
			t.Errorf("of 10, 1 is spent and 3 are held: %+v", h)
		}
		f, _ := pricing.FinishJob(jobOf(t, db, client, 1), modelgate.JobNews{Event: modelgate.JobFails})
		_, err := db.FinishJobs(t.Context(), []modelgate.JobFinal{f})
		must(t, err)
		clean0(t, db, client)
		if h := ask(3, 10*modelgate.USD); h.Granted != 10*modelgate.USD {
			t.Errorf("a job that has failed still holds something: %+v", h)
		}
	})
}

// A claim is a lease; its length grows, and ends at the deadline.
func TestClaimJobs(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		now := uuid(100).Time()
		db.now = func() time.Time { return now }
		var rows []modelgate.UsageRow
		for n := range 40 {
			rows = append(rows, film(client, n))
		}
		late := film(client, 99)
		late.Job.Deadline = now.Add(time.Minute)
		book(t, db, "i", append(rows, late)...)
		got := map[modelgate.UUID]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for {
					jobs, err := db.ClaimJobs(t.Context(), 8)
					if err != nil || len(jobs) == 0 {
						if err != nil {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					for _, j := range jobs {
						got[j.ID]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for id, n := range got {
			if n != 1 {
				t.Errorf("job %s was claimed %d times", id, n)
			}
		}
		if len(got) != 40 { // the late one is too young
			t.Errorf("%d jobs were claimed, want 40", len(got))
		}
		var waits []time.Duration
		for range 12 {
			from := now
			for len(waits) < 100 {
				now = now.Add(time.Second)
				jobs, err := db.ClaimJobs(t.Context(), 100)
				must(t, err)
				if slices.ContainsFunc(jobs, func(j modelgate.Job) bool { return j.ID == rows[7].CallBegin.ID }) {
					break
				}
				if now.Sub(from) > 10*time.Minute {
					t.Fatal("the job never came again")
				}
			}
			waits = append(waits, now.Sub(from))
		}
		if waits[0] < 4*time.Second || waits[0] > 8*time.Second || waits[11] < 5*time.Minute || waits[11] > 7*time.Minute {
			t.Errorf("pauses %v, want 5 s to 5 min and up to a quarter more", waits)
		}
		if j := jobOf(t, db, client, 99); number(t, db, "SELECT next_poll FROM async_job WHERE id = $1", j.ID.String()) < sqldb.Micros(late.Job.Deadline) {
			t.Error("a job whose deadline has passed is not due")
		}
	})
}

func TestJobLists(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 900), createClient(t, db, 901)
		var rows []modelgate.UsageRow
		for n := range 30 {
			r := film(client, n)
			r.KeyID = modelgate.KeyID(id(n % 3))
			if n%3 == 2 {
				r.SubAccountID = "sub"
			}
			if n%5 == 0 {
				r.Job.Kind = modelgate.Image
			}
			rows = append(rows, r)
		}
		book(t, db, "i", append(rows, film(other, 50))...)
		for _, c := range []struct {
			list JobList
			want int
		}{
			{JobList{}, 30}, {JobList{KeyID: modelgate.KeyID(id(1))}, 10}, {JobList{SubAccountID: "sub"}, 10}, {JobList{Kind: modelgate.Image}, 6},
			{JobList{Status: modelgate.JobPending}, 30}, {JobList{Status: "Pending"}, 0},
			{JobList{CreatedAfter: rows[9].At}, 20}, {JobList{CreatedBefore: rows[9].At}, 9}, {JobList{CreatedAfter: rows[9].At, CreatedBefore: rows[20].At}, 10},
		} {
			c.list.Limit = 7
			var seen []modelgate.UUID
			for {
				jobs, more, err := db.Jobs(t.Context(), client, c.list)
				must(t, err)
				for _, j := range jobs {
					seen = append(seen, j.ID)
				}
				if !more {
					break
				}
				last := jobs[len(jobs)-1]
				c.list.After = &sqldb.Cursor{At: last.CreatedAt, ID: last.ID.String()}
			}
			if len(seen) != c.want || !slices.IsSortedFunc(seen, func(a, b modelgate.UUID) int { return slices.Compare(b[:], a[:]) }) {
				t.Errorf("%+v: %d jobs, want %d, the newest first", c.list, len(seen), c.want)
			}
		}
	})
}

// Reconcile sees what jobs and rows disagree about, in both directions.
func TestReconcileJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 900)
		book(t, db, "i", film(client, 1), film(client, 2), film(client, 3))
		f, _ := pricing.FinishJob(jobOf(t, db, client, 3), modelgate.JobNews{Event: modelgate.JobOverdue})
		_, err := db.FinishJobs(t.Context(), []modelgate.JobFinal{f})
		must(t, err)
		for _, broken := range []string{
			"DELETE FROM async_job WHERE task_id = 'task-1'", "UPDATE async_job SET status = 'failed' WHERE task_id = 'task-2'",
			"UPDATE async_job SET final_cost = 5 WHERE task_id = 'task-3'",
		} {
			_, err := db.write.Exec(broken)
			must(t, err)
		}
		found, err := db.Reconcile(t.Context(), client)
		must(t, err)
		wrong := 0
		for _, d := range found {
			if d.What == "job" {
				wrong++
			}
		}
		if wrong != 3 {
			t.Errorf("%d jobs are wrong, want 3: %+v", wrong, found)
		}
	})
}

// Jobs go with their rows; one that is pending keeps both, and all that is
// younger.
func TestPruneJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 900), createClient(t, db, 901)
		films := func(client modelgate.ClientID, from, days int) (rows []modelgate.UsageRow) {
			for n := range days {
				r := film(client, from+n)
				r.ID = uuid(from - n*24*60*60) // a day earlier each
				r.At = r.ID.Time()
				rows = append(rows, r)
			}
			return rows
		}
		book(t, db, "i", append(films(client, 0, 20), films(other, 50, 20)...)...)
		finish := func(client modelgate.ClientID, n int) {
			t.Helper()
			f, ok := pricing.FinishJob(jobOf(t, db, client, n), modelgate.JobNews{Event: modelgate.JobSucceeds})
			if !ok {
				t.Fatalf("job %d is final", n)
			}
			_, err := db.FinishJobs(t.Context(), []modelgate.JobFinal{f})
			must(t, err)
		}
		for n := range 20 {
			if n != 15 {
				finish(client, n)
			}
			finish(other, 50+n)
		}
		prune := func(want int64) {
			t.Helper()
			for more, steps := true, 0; more && steps < 100; steps++ {
				var err error
				_, more, err = db.Prune(t.Context(), client, noon.Add(-10*24*time.Hour), 3)
				must(t, err)
			}
			for _, table := range []string{"async_job", "usage_row"} {
				if n := number(t, db, "SELECT COUNT(*) FROM "+table+" WHERE client_id = $1", string(client)); n != want {
					t.Errorf("%d of %s are left, want %d", n, table, want)
				}
			}
			clean0(t, db, client)
		}
		prune(16) // those of the 15 days since, and the one that is pending
		finish(client, 15)
		prune(11)
		if _, err := db.Job(t.Context(), client, "", "task-15"); !errors.Is(err, modelgate.ErrNoTask) {
			t.Errorf("a job that is pruned: %v", err)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM async_job WHERE client_id = $1", string(other)); n != 20 {
			t.Errorf("%d of another organization are left, want 20", n)
		}
	})
}
