//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"modelgate/test/testkit"
)

// usageOf is what a process and its database have used.
type usageOf struct {
	cpu          time.Duration // of the gateway
	written      float64       // bytes it wrote
	rows, size   float64       // usage rows, and bytes of all tables with their indexes
	transactions float64
	commands     float64 // of Redis
}

// cpuOf is the CPU time of a process so far.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int64 // hundredths of a second
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (w *world) used(conn *pgx.Conn, cache *redis.Client) (u usageOf) {
	w.t.Helper()
	u.cpu = cpuOf(w.t, w.Pid())
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", w.Pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, line := range strings.Split(string(io), "\n") {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			if _, err := fmt.Sscan(value, &u.written); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	const query = `SELECT (SELECT COUNT(*) FROM usage_row)::float8,
		(SELECT SUM(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)::float8,
		(SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())::float8`
	if err := conn.QueryRow(context.Background(), query).Scan(&u.rows, &u.size, &u.transactions); err != nil {
		w.t.Fatal(err)
	}
	info, err := cache.Info(context.Background(), "stats").Result()
	if err != nil {
		w.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "total_commands_processed:")
	if _, err := fmt.Sscan(rest, &u.commands); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// TestScaleUnitCosts measures what one call costs each part, for docs/scale.md.
func TestScaleUnitCosts(t *testing.T) {
	t.Parallel()
	if !*full {
		t.Skip("measures for the documentation: make prove-scale")
	}
	cache := testkit.NewRedisServer(t)
	w := newWorld(t, testkit.GatewayOptions{Database: testkit.NewPostgresCluster(t).Database(t), More: fmt.Sprintf("redis: {url: %q}\n", cache.URL())})
	secret, id := w.NewKey(w.client)
	w.Admin(nil, "key", "limits", string(id), "--rps", "100000", "--burst", "100000", "--concurrency", "5000")
	w.key = secret
	conn, err := pgx.Connect(t.Context(), w.source)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	options, err := redis.ParseURL(cache.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()

	const calls = 40_000
	calm := mix{only: whole}
	w.load(&load{calls: 2000, mix: calm}).run(t.Context())
	before, began := w.used(conn, client), time.Now()
	w.load(&load{calls: calls, first: 10_000, mix: calm}).run(t.Context())
	took := time.Since(began)
	w.eventually("all rows are booked", patience, func() bool { return w.metrics()["modelgate_spool_backlog_bytes"] == 0 })
	time.Sleep(2 * time.Second) // PostgreSQL reports its statistics a moment later
	after := w.used(conn, client)
	per := func(from, to float64) float64 { return (to - from) / calls }
	t.Logf("per call, of %d in %v: gateway CPU %.0f µs, written %.0f B, rows %.3f, database %.0f B and %.4f transactions, Redis commands %.2f",
		calls, took, per(float64(before.cpu.Microseconds()), float64(after.cpu.Microseconds())), per(before.written, after.written),
		per(before.rows, after.rows), per(before.size, after.size), per(before.transactions, after.transactions), per(before.commands, after.commands))
}
