package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"modelgate/test/testkit"
)

// TestClients runs the suites of the clients, each from outside, against the
// gateway: the Go client, which is a module of its own, and the TypeScript
// client compiled.
func TestClients(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	for name, c := range map[string]struct {
		dir      string
		prepare  [][]string
		commands []string
	}{
		"go": {"../../client", nil, []string{"go", "test", "-count=1", "./..."}},
		"typescript": {"../../clients/typescript", [][]string{{"npm", "ci", "--no-fund", "--no-audit"}, {"npx", "tsc"}},
			[]string{"node", "--test", "test/client.test.mjs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, _ := b.NewKey(b.NewClient("clients in " + name))
			if _, err := os.Stat(filepath.Join(c.dir, "node_modules", "typescript")); err == nil && c.prepare != nil {
				c.prepare = c.prepare[1:]
			}
			for _, command := range append(c.prepare, c.commands) {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+key)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatal(fmt.Errorf("%v: %w\n%s", command, err, out))
				}
			}
		})
	}
}
