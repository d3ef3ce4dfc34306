//go:build unix

package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is the URL of a database behind PgBouncer, which gives connections out
// by the transaction, each time another one. One PgBouncer, which this process
// starts, serves all databases of a cluster.
func Pooler(t testing.TB, database string) string {
	t.Helper()
	notShort(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	poolers.Lock()
	defer poolers.Unlock()
	p := poolers.of[u.Host]
	if p == nil {
		if p, err = startPooler(u); err != nil {
			t.Fatal(err)
		}
		poolers.of[u.Host] = p
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d", p.port)
	u.RawQuery = "sslmode=disable"
	return u.String()
}

// poolers are those of this process, by the cluster they are for.
var poolers = struct {
	sync.Mutex
	of map[string]*pooler
}{of: make(map[string]*pooler)}

type pooler struct {
	port int
	dog  *watchdog // ends it with the process
}

// startPooler starts PgBouncer for the cluster of a database.
func startPooler(u *url.URL) (*pooler, error) {
	program := program("pgbouncer", "/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin")
	if program == "" {
		return nil, fmt.Errorf("these tests need PgBouncer: install it (apt-get install pgbouncer, brew install pgbouncer)")
	}
	who, err := findOwner()
	if err != nil {
		return nil, err
	}
	for range portAttempts {
		var p *pooler
		if p, err = who.pool(program, u); err == nil {
			return p, nil
		}
	}
	return nil, err
}

const poolerConfig = `[databases]
* = host=%s port=%s user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 16
max_client_conn = 4000
server_round_robin = 1
server_idle_timeout = 5
ignore_startup_parameters = extra_float_digits
`

// pool starts PgBouncer on a port and returns when it answers.
func (o owner) pool(program string, u *url.URL) (*pooler, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gate-pool-")
	if err != nil {
		return nil, err
	}
	password := ""
	if text, set := u.User.Password(); set {
		password = " password='" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(poolerConfig, u.Hostname(), u.Port(), u.User.Username(), password, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	for _, path := range []string{dir, file} {
		if err := os.Chown(path, o.uid, o.gid); err != nil {
			return nil, err
		}
	}
	p := &pooler{port: port}
	command := append(slices.Clone(o.prefix), program, file)
	p.dog, err = watch(`cd /; "$@" >"$0/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid; rm -rf "$0"`, dir, command)
	if err != nil {
		return nil, err
	}
	ours := *u
	ours.Host, ours.RawQuery = "127.0.0.1:"+strconv.Itoa(port), "sslmode=disable"
	if err := answers(ours.String()); err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		p.dog.stop()
		return nil, fmt.Errorf("pgbouncer does not answer: %w\n%s", err, said)
	}
	return p, nil
}

// answers asks a database until it answers; there is no signal to wait for.
func answers(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, address)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
