//go:build unix

package testkit

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	path string
	port int
	used atomic.Int64
	dog  *watchdog
}

// NewRedisServer starts a server for one test. It ends with the test.
func NewRedisServer(t testing.TB) *RedisServer {
	t.Helper()
	s, err := startRedis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
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
	if s.dog != nil {
		s.dog.stop()
		s.dog = nil
	}
}

// Start starts a stopped server and returns when it answers.
func (s *RedisServer) Start(t testing.TB) {
	t.Helper()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func startRedis() (*RedisServer, error) {
	folders := []string{"/opt/homebrew/bin", "/usr/local/bin"}
	path := program("redis-server", folders...)
	if path == "" {
		path = program("valkey-server", folders...)
	}
	if path == "" {
		return nil, fmt.Errorf("these tests need Redis or Valkey: install one (apt-get install redis-server, brew install redis) or name a server in %s", redisEnv)
	}
	s := &RedisServer{path: path}
	var err error
	for range portAttempts {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func (s *RedisServer) start() error {
	dir, err := os.MkdirTemp("", "gate-redis-")
	if err != nil {
		return err
	}
	command := []string{
		s.path, "--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", dir, "--databases", strconv.Itoa(redisDatabases),
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	s.dog, err = watch(`cd /; "$@" >"$0/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid; rm -rf "$0"`, dir, command)
	if err != nil {
		os.RemoveAll(dir)
		return err
	}
	if err := s.ready(dir); err != nil {
		said, _ := os.ReadFile(dir + "/log")
		s.Stop()
		return fmt.Errorf("redis does not answer: %w\n%s", err, said)
	}
	return nil
}

// ready asks until the server answers; there is no signal to wait for.
func (s *RedisServer) ready(dir string) error {
	const redisStart = time.Minute // on a busy machine
	ctx, cancel := context.WithTimeout(context.Background(), redisStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ping(ctx, dir)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// ping is nil when the server on the port is the one that was started in dir:
// another process may have taken the port first.
func (s *RedisServer) ping(ctx context.Context, dir string) error {
	client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", s.port), MaxRetries: -1})
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
		return fmt.Errorf("the server on port %d runs in %q, not in %q", s.port, got["dir"], dir)
	}
	return nil
}
