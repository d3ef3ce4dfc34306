//go:build unix

package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// postgresEnv names a cluster to use in place of one of our own; its user must
// be allowed to create databases.
const postgresEnv = "MODELGATE_TEST_POSTGRES_URL"

// Postgres is the URL of a fresh, empty database that is dropped with the test.
// It is in the cluster that the environment variable MODELGATE_TEST_POSTGRES_URL
// names, else in one that this process starts and all its tests share.
func Postgres(t testing.TB) string {
	t.Helper()
	notShort(t)
	cluster := os.Getenv(postgresEnv)
	if cluster == "" {
		c, err := sharedCluster()
		if err != nil {
			t.Fatal(err)
		}
		cluster = c.url()
	}
	address, name := createDatabase(t, cluster)
	t.Cleanup(func() {
		if err := execute(cluster, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return address
}

// sharedCluster is the one cluster of the process; its watchdog ends it.
var sharedCluster = sync.OnceValues(startCluster)

// PostgresCluster is a Postgres server that a test may stop and start. Its
// port stays the same.
type PostgresCluster struct {
	dir   string
	port  int
	ctl   string
	owner owner
	dog   *watchdog
}

// NewPostgresCluster starts a cluster for one test. It is removed with the test.
func NewPostgresCluster(t testing.TB) *PostgresCluster {
	t.Helper()
	c, err := startCluster()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.dog.stop)
	return c
}

// StartPostgres starts a cluster for a program that is not a test and returns
// the URL of its empty database. End stops and removes it, as the end of the
// program does.
func StartPostgres() (address string, end func(), err error) {
	c, err := startCluster()
	if err != nil {
		return "", nil, err
	}
	return c.url(), c.dog.stop, nil
}

// Database is the URL of a fresh, empty database; it goes with the cluster.
func (c *PostgresCluster) Database(t testing.TB) string {
	t.Helper()
	url, _ := createDatabase(t, c.url())
	return url
}

// Stop ends the server at once, as a crash does: connections break and new ones
// are refused when it returns.
func (c *PostgresCluster) Stop(t testing.TB) {
	t.Helper()
	if err := c.owner.run(c.dir, c.ctl, "stop", "-D", c.data(), "-m", "immediate", "-w"); err != nil {
		t.Fatal(err)
	}
}

// Start starts a stopped server and returns when it answers.
func (c *PostgresCluster) Start(t testing.TB) {
	t.Helper()
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
}

func (c *PostgresCluster) data() string { return filepath.Join(c.dir, "data") }

func (c *PostgresCluster) url() string {
	return fmt.Sprintf("postgres://gate@127.0.0.1:%d/postgres?sslmode=disable", c.port)
}

func startCluster() (*PostgresCluster, error) {
	folders := []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/usr/pgsql-*/bin"}
	initdb, ctl := findProgram("initdb", folders...), findProgram("pg_ctl", folders...)
	if initdb == "" || ctl == "" {
		return nil, fmt.Errorf("these tests need Postgres: install it (apt-get install postgresql, brew install postgresql) or name a cluster in %s", postgresEnv)
	}
	who, err := findOwner()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gate-pg-")
	if err != nil {
		return nil, err
	}
	c := &PostgresCluster{dir: dir, ctl: ctl, owner: who}
	stop := append(append([]string{}, who.prefix...), ctl, "stop", "-D", c.data(), "-m", "immediate")
	c.dog, err = watch(`read -r _; cd /; "$@" >/dev/null 2>&1; rm -rf "$0"`, dir, stop)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := c.prepare(initdb); err != nil {
		c.dog.stop()
		return nil, err
	}
	return c, nil
}

// prepare makes the data folder and starts the server for the first time.
func (c *PostgresCluster) prepare(initdb string) error {
	if err := c.owner.own(c.dir); err != nil {
		return err
	}
	// Syncing the empty cluster protects nothing; the server itself syncs.
	err := c.owner.run(c.dir, initdb, "-D", c.data(), "-U", "gate", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	for range portAttempts {
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.start(); err == nil {
			return nil
		}
	}
	return err
}

func (c *PostgresCluster) start() error {
	options := fmt.Sprintf("-p %d -k %s -h 127.0.0.1 -c max_connections=300", c.port, c.dir)
	log := filepath.Join(c.dir, "log")
	err := c.owner.run(c.dir, c.ctl, "start", "-D", c.data(), "-w", "-t", strconv.Itoa(int(startTimeout.Seconds())), "-l", log, "-o", options)
	if err != nil {
		said, _ := os.ReadFile(log)
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// createDatabase makes a database in a cluster.
func createDatabase(t testing.TB, cluster string) (address, name string) {
	t.Helper()
	u, err := url.Parse(cluster)
	if err != nil {
		t.Fatal(err)
	}
	name = "gate_" + strings.ToLower(rand.Text())
	if err := execute(cluster, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String(), name
}

// execute runs a statement on a connection of its own.
func execute(cluster, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, cluster)
	if err != nil {
		return fmt.Errorf("connect to the test cluster: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
