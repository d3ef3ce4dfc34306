//go:build unix

package testkit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// redisEnv names a server to use in place of one of our own.
const redisEnv = "MODELGATE_TEST_REDIS_URL"

// redisDatabases is how many databases a server of ours has: one a test.
const redisDatabases = 10_000

// Redis is the URL of an empty database. It is in a server that this process
// starts and all its tests share, each with its own database. With the
// environment variable MODELGATE_TEST_REDIS_URL it is that URL: then tests
// share the database and keep apart by the names of their keys.
func Redis(t testing.TB) string {
	t.Helper()
	notShort(t)
	if server := os.Getenv(redisEnv); server != "" {
		return server
	}
	s, err := sharedRedis()
	if err != nil {
		t.Fatal(err)
	}
	return s.database(t)
}

// sharedRedis is the one server of the process; its watchdog ends it.
var sharedRedis = sync.OnceValues(startRedis)

// RedisServer is a Redis server that a test may stop and start. It keeps
// nothing when it stops. Its port stays the same.
type RedisServer struct {
	program
	*process
	used atomic.Int64
}

// NewRedisServer starts a server for one test. It ends with the test.
func NewRedisServer(t testing.TB) *RedisServer {
	t.Helper()
	s, err := startRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// URL is the server's first database.
func (s *RedisServer) URL() string { return fmt.Sprintf("redis://127.0.0.1:%d/0", s.port) }

func (s *RedisServer) database(t testing.TB) string {
	t.Helper()
	n := s.used.Add(1)
	if n >= redisDatabases {
		t.Fatalf("more than %d tests with a database in one process", redisDatabases)
	}
	return fmt.Sprintf("redis://127.0.0.1:%d/%d", s.port, n)
}

// Stop ends the server: connections break and new ones are refused when it
// returns. A second Stop does nothing.
func (s *RedisServer) Stop() {
	s.process.stop()
}

// Start starts a stopped server and returns when it answers.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	again, err := s.startOn(s.port)
	if err != nil {
		t.Fatal(err)
	}
	s.process = again
}

func startRedis() (*RedisServer, error) {
	folders := []string{"/opt/homebrew/bin", "/usr/local/bin"}
	path := cmp.Or(findProgram("redis-server", folders...), findProgram("valkey-server", folders...))
	if path == "" {
		return nil, fmt.Errorf("these tests need Redis or Valkey: install one (apt-get install redis-server, brew install redis) or name a server in %s", redisEnv)
	}
	server := program{
		name: "redis",
		command: func(dir string, port int) ([]string, error) {
			return []string{
				path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--databases", strconv.Itoa(redisDatabases),
				"--save", "", "--appendonly", "no", "--daemonize", "no",
			}, nil
		},
		ready: pingRedis,
	}
	running, err := server.start()
	return &RedisServer{program: server, process: running}, err
}

// pingRedis is nil when the server on the port is the one that was started in
// dir: another process may have taken the port first.
func pingRedis(dir string, port int) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), MaxRetries: -1})
	defer client.Close()
	got, err := client.ConfigGet(ctx, "dir").Result()
	if err != nil {
		return err
	}
	ours, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if theirs, err := os.Stat(got["dir"]); err != nil || !os.SameFile(ours, theirs) {
		return fmt.Errorf("the server on port %d runs in %q, not in %q", port, got["dir"], dir)
	}
	return nil
}
