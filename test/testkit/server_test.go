//go:build unix

package testkit_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"modelgate/test/testkit"
)

// childEnv makes the test binary start its servers, print where they are, and
// wait to be killed.
const childEnv = "MODELGATE_TEST_SERVERS_CHILD"

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func one[T any](t *testing.T, conn *pgx.Conn, query string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func TestPostgresIsFreshAndDurable(t *testing.T) {
	t.Parallel()
	first, second := testkit.Postgres(t), testkit.Postgres(t)
	if first == second {
		t.Fatalf("two databases are one: %s", first)
	}
	conn := connect(t, first)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE a (n int)"); err != nil {
		t.Fatal(err)
	}
	const tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	if got := one[int](t, connect(t, second), tables); got != 0 {
		t.Errorf("the other database has %d tables, want 0", got)
	}
	if got := one[string](t, conn, "SHOW fsync"); got != "on" {
		t.Errorf("fsync = %s, want on", got)
	}
}

func TestPostgresIsDropped(t *testing.T) {
	t.Parallel()
	var dropped string
	t.Run("user", func(t *testing.T) { dropped = testkit.Postgres(t) })
	if conn, err := pgx.Connect(t.Context(), dropped); err == nil {
		conn.Close(t.Context())
		t.Errorf("%s is still there after its test", dropped)
	}
}

func TestPostgresClusterStopsAndStarts(t *testing.T) {
	t.Parallel()
	c := testkit.NewPostgresCluster(t)
	db := c.Database(t)
	conn := connect(t, db)
	if _, err := conn.Exec(t.Context(), "CREATE TABLE a AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	c.Stop(t)
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlived the server")
	}
	if _, err := pgx.Connect(t.Context(), db); err == nil {
		t.Error("a stopped server took a connection")
	}
	c.Start(t)
	if got := one[int](t, connect(t, db), "SELECT n FROM a"); got != 7 {
		t.Errorf("after the crash n = %d, want 7", got)
	}
}

func redisClient(t *testing.T, url string) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestRedisDatabasesAreApart(t *testing.T) {
	t.Parallel()
	if os.Getenv("MODELGATE_TEST_REDIS_URL") != "" {
		t.Skip("a given server is not divided among tests")
	}
	a, b := redisClient(t, testkit.Redis(t)), redisClient(t, testkit.Redis(t))
	if err := a.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("the other database has %d keys k, %v, want 0", n, err)
	}
}

func TestRedisServerStopsAndStarts(t *testing.T) {
	t.Parallel()
	s := testkit.NewRedisServer(t)
	c := redisClient(t, s.URL())
	if err := c.Set(t.Context(), "k", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("a stopped server answered")
	}
	s.Start(t)
	if n, err := c.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("after the restart %d keys k, %v, want 0", n, err)
	}
}

// TestServersEndWithAKilledProcess runs this binary as a child, kills it, and
// sees its servers go.
func TestServersEndWithAKilledProcess(t *testing.T) {
	if os.Getenv(childEnv) != "" {
		fmt.Println("at", testkit.NewPostgresCluster(t).Database(t))
		fmt.Println("at", testkit.NewRedisServer(t).URL())
		select {}
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersEndWithAKilledProcess$")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(out); len(addresses) < 2 && lines.Scan(); {
		if at, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			u, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, u.Host)
		} else {
			t.Log(lines.Text())
		}
	}
	for _, a := range addresses {
		if conn, err := net.Dial("tcp", a); err != nil {
			t.Errorf("the child's server does not listen: %v", err)
		} else {
			conn.Close()
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(addresses) != 2 {
		t.Fatalf("the child started %v, want two servers", addresses)
	}
	for _, a := range addresses {
		awaitRefusal(t, a)
	}
}

func awaitRefusal(t *testing.T, address string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s still listens after its process was killed", address)
		}
	}
}
