//go:build unix

package testkit

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// StripeMock starts Stripe's own mock server, which checks every request
// against Stripe's description of its API, and returns its address. It keeps
// nothing. It ends with the test.
func StripeMock(t testing.TB) string {
	t.Helper()
	notShort(t)
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stripe-mock")
	cmd := exec.Command("go", "build", "-modfile=tools/go.mod", "-o", path, "github.com/stripe/stripe-mock")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the tests, so that packages are compiled once
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build stripe-mock: %v\n%s", err, out)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	address := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	server, err := program{
		name: "stripe",
		command: func(_ string, port int) ([]string, error) {
			// Without an address for TLS it would listen on all of this machine's.
			secure, err := freePort()
			return []string{path, "-http-addr", address(port), "-https-addr", address(secure)}, err
		},
		ready: func(_ string, port int) error {
			resp, err := client.Get("http://" + address(port))
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.Header.Get("Stripe-Mock-Version") == "" {
				return fmt.Errorf("another server listens on port %d", port)
			}
			return nil
		},
	}.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	return "http://" + address(server.port)
}
