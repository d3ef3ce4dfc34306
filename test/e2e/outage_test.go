package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"modelgate/test/testkit"
)

// outage is a load of a steady rate over a database in trouble.
type outage struct {
	*world
	cluster *testkit.PostgresCluster
	l       *load
	stop    context.CancelFunc
	made    chan []*call
}

// callsPerSecond is the rate of every outage.
const callsPerSecond = 300

func newOutage(t *testing.T, way func(*testing.T, string) string) *outage {
	t.Helper()
	o := &outage{cluster: testkit.NewPostgresCluster(t), made: make(chan []*call, 1)}
	database := o.cluster.Database(t)
	through := database
	if way != nil {
		through = way(t, database)
	}
	o.world = newWorld(t, testkit.GatewayOptions{Database: through})
	o.source = database
	o.l = o.load(&load{rate: callsPerSecond, mix: mix{leaving: 0.02, slow: 0.1}, reached: make(chan int64)})
	var ctx context.Context
	ctx, o.stop = context.WithCancel(t.Context())
	go func() { o.made <- o.l.run(ctx) }()
	o.l.until(t.Context(), callsPerSecond/2) // keys are known
	return o
}

// lasts lets the load go on for a while: for as many calls as belong to it.
func (o *outage) lasts(d time.Duration) {
	o.l.until(o.t.Context(), o.l.done.Load()+int64(d.Seconds()*callsPerSecond))
}

// backlog is how many bytes of finished calls are not booked.
func (o *outage) backlog() float64 { return o.metrics()["modelgate_spool_backlog_bytes"] }

// drained waits until as many rows are booked as calls have ended until now;
// the load goes on.
func (o *outage) drained() time.Duration {
	ended := float64(o.l.done.Load())
	return o.eventually("the backlog is booked", size(patience, 10*time.Second), func() bool {
		return o.metrics()["modelgate_rows_booked_total"] >= ended
	})
}

// end ends the load, and judges: no call may have failed.
func (o *outage) end(title string, more ...string) {
	o.t.Helper()
	o.stop()
	calls := <-o.made
	o.settle()
	v := o.verdict(calls)
	if v.failed > 0 {
		i := slices.IndexFunc(calls, (*call).failed)
		o.t.Errorf("%d calls of a known key failed, such as %d: status %d, %v", v.failed, calls[i].mark, calls[i].status, calls[i].err)
	}
	slices.SortFunc(calls, func(a, b *call) int { return int(a.took - b.took) })
	p := func(share float64) string {
		return fmt.Sprintf("%.1f ms", calls[int(share*float64(len(calls)-1))].took.Seconds()*1e3)
	}
	v.table(o.t.Output(), title, append(more, "call p50", p(0.5), "call p99", p(0.99), "call at most", p(1))...)
}

func TestBooksDatabaseStopped(t *testing.T) {
	t.Parallel()
	o := newOutage(t, nil)
	away := size(8*time.Second, 60*time.Second)
	o.cluster.Stop(t)
	o.lasts(away)
	backlog := o.backlog()
	o.cluster.Start(t)
	took := o.drained()
	if backlog == 0 {
		t.Error("nothing was left to book: the database was not away")
	}
	o.end(fmt.Sprintf("PostgreSQL stopped for %v at %d calls/s", away, callsPerSecond),
		"backlog KiB", fmt.Sprintf("%.0f", backlog/1024), "drained after s", fmt.Sprintf("%.2f", took.Seconds()))
}

// TestBooksEndWithoutDatabase ends the gateway while the database is away:
// what is not booked waits for the next start.
func TestBooksEndWithoutDatabase(t *testing.T) {
	t.Parallel()
	o := newOutage(t, nil)
	o.cluster.Stop(t)
	o.lasts(time.Second)
	o.stop()
	calls := <-o.made
	began := time.Now()
	o.Stop()
	ended := time.Since(began)
	o.cluster.Start(t)
	before := len(readRows(t, o.driver, o.source))
	o.restart()
	o.settle()
	v := o.verdict(calls)
	if before == v.rows {
		t.Error("nothing was left for the next start")
	}
	if v.failed > 0 || v.exact != v.rows {
		t.Errorf("%d calls failed, %d of %d rows are exact", v.failed, v.exact, v.rows)
	}
	v.table(t.Output(), "SIGTERM with PostgreSQL away", "ended after s", fmt.Sprintf("%.2f", ended.Seconds()), "rows before the next start", fmt.Sprint(before))
}

func TestBooksDatabaseFlaps(t *testing.T) {
	t.Parallel()
	o := newOutage(t, nil)
	times := size(3, 30)
	for range times {
		o.cluster.Stop(t)
		o.lasts(500 * time.Millisecond)
		o.cluster.Start(t)
		o.lasts(500 * time.Millisecond)
	}
	took := o.drained()
	o.end(fmt.Sprintf("PostgreSQL stopped and started %d times", times), "drained after s", fmt.Sprintf("%.2f", took.Seconds()))
}

func TestBooksDatabaseReadOnly(t *testing.T) {
	t.Parallel()
	o := newOutage(t, nil)
	away := size(3*time.Second, 30*time.Second)
	o.administer("ALTER SYSTEM SET default_transaction_read_only = on")
	o.lasts(away)
	backlog := o.backlog()
	o.administer("ALTER SYSTEM RESET default_transaction_read_only")
	took := o.drained()
	if backlog == 0 {
		t.Error("nothing was left to book: the database took writes")
	}
	o.end(fmt.Sprintf("PostgreSQL read-only for %v", away),
		"backlog KiB", fmt.Sprintf("%.0f", backlog/1024), "drained after s", fmt.Sprintf("%.2f", took.Seconds()))
}

func (o *outage) administer(statement string) {
	o.t.Helper()
	conn, err := pgx.Connect(o.t.Context(), o.source)
	if err != nil {
		o.t.Fatal(err)
	}
	defer conn.Close(o.t.Context())
	for _, s := range []string{"SET default_transaction_read_only = off", statement, "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(o.t.Context(), s); err != nil {
			o.t.Fatalf("%s: %v", s, err)
		}
	}
}

func TestBooksDatabaseSlow(t *testing.T) {
	t.Parallel()
	var d delay
	o := newOutage(t, d.through)
	slow := size(5*time.Second, 60*time.Second)
	d.late.Store(int64(300 * time.Millisecond))
	o.lasts(slow)
	backlog := o.backlog()
	d.late.Store(0)
	took := o.drained()
	o.end(fmt.Sprintf("PostgreSQL 300 ms late for %v", slow),
		"backlog KiB", fmt.Sprintf("%.0f", backlog/1024), "drained after s", fmt.Sprintf("%.2f", took.Seconds()))
}
