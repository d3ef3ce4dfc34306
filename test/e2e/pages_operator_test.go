package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"modelgate/test/testkit"
)

// TestConsole drives the operator's console in a real browser. Pictures of it are
// left in test/browser/screenshots.
func TestConsole(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	g := testkit.StartGateway(t, testkit.GatewayOptions{More: fmt.Sprintf("\noperator: {listen: %q}\n", address)})
	const name = "Globex"
	key, _ := g.NewKey(g.NewClient(name, "--billing", "manual"))
	g.NewKey(g.NewClient("Initech"))
	var link struct{ URL string }
	g.Admin(&link, "operator", "link")
	var auditor struct{ Token string }
	g.Admin(&auditor, "operator", "token", "create", "--name", "eve", "--role", "auditor")
	given, err := json.Marshal(map[string]string{"url": "http://" + address, "link": link.URL, "auditor": auditor.Token, "name": name, "key": key})
	if err != nil {
		t.Fatal(err)
	}
	if err := installBrowserTests(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "operator.mjs")
	cmd.Dir = browserTests
	cmd.Env = append(os.Environ(), "CHROMIUM="+testkit.Chromium(t), "CONSOLE="+string(given))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
