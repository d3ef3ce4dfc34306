//go:build unix

package testkit

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
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
	return pooled(*u, p.port)
}

// pooled is the address of a database behind the pooler on a port.
func pooled(database url.URL, port int) string {
	database.Host, database.RawQuery = fmt.Sprintf("127.0.0.1:%d", port), "sslmode=disable"
	return database.String()
}

// poolers are those of this process, by the cluster they are for.
var poolers = struct {
	sync.Mutex
	of map[string]*process
}{of: make(map[string]*process)}

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

// startPooler starts PgBouncer for the cluster of a database.
func startPooler(u *url.URL) (*process, error) {
	path := findProgram("pgbouncer", "/usr/sbin", "/opt/homebrew/bin", "/usr/local/bin")
	if path == "" {
		return nil, fmt.Errorf("these tests need PgBouncer: install it (apt-get install pgbouncer, brew install pgbouncer)")
	}
	who, err := findOwner()
	if err != nil {
		return nil, err
	}
	password := ""
	if text, set := u.User.Password(); set {
		password = " password='" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return program{
		name: "pgbouncer",
		command: func(dir string, port int) ([]string, error) {
			file := filepath.Join(dir, "pgbouncer.ini")
			text := fmt.Sprintf(poolerConfig, u.Hostname(), u.Port(), u.User.Username(), password, port)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				return nil, err
			}
			return append(slices.Clone(who.prefix), path, file), who.own(dir, file)
		},
		ready: func(_ string, port int) error { return execute(pooled(*u, port), "SELECT 1") },
	}.start()
}
