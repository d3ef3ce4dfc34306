//go:build unix

package testkit

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// StripeMock starts Stripe's own mock server, which checks every request
// against Stripe's description of its API, and returns its address. It keeps
// nothing. It ends with the test.
func StripeMock(t testing.TB) string {
	t.Helper()
	notShort(t)
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	dir, err := os.MkdirTemp("", "gate-stripe-")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "stripe-mock")
	cmd := exec.Command("go", "build", "-modfile=tools/go.mod", "-o", path, "github.com/stripe/stripe-mock")
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build stripe-mock: %v\n%s", err, out)
	}
	for range portAttempts {
		if address := startStripeMock(t, dir, path); address != "" {
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock does not start")
	return ""
}

// startStripeMock is "" where another process took the port first.
func startStripeMock(t testing.TB, dir, path string) string {
	t.Helper()
	plain, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	secure, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", plain)
	// Without an address for TLS it would listen on all of this machine's.
	command := []string{path, "-http-addr", address, "-https-addr", fmt.Sprintf("127.0.0.1:%d", secure)}
	dog, err := watch(`cd /; "$@" >"$0/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid; rm -f "$0/log"`, dir, command)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 { // ten seconds
		if resp, err := client.Get("http://" + address); err == nil {
			resp.Body.Close()
			if resp.Header.Get("Stripe-Mock-Version") == "" {
				break // whoever took the port
			}
			t.Cleanup(func() {
				dog.stop()
				os.RemoveAll(dir)
			})
			return address
		}
		<-tick.C
	}
	dog.stop()
	return ""
}
