package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/test/testkit"
)

// TestCatalogImport reviews a list, writes it, and serves by it.
func TestCatalogImport(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{More: "catalog_files: [\"catalog.d/*.yaml\"]\n"})
	dir := filepath.Dir(b.ConfigFile)
	list := filepath.Join(dir, "api.json")
	write := func(price string) {
		t.Helper()
		text := `{"openai":{"models":{
		  "gpt-5-mini":{"id":"gpt-5-mini","cost":{"input":9,"output":9},"limit":{"context":1}},
		  "gpt-7":{"id":"gpt-7","name":"GPT-7","release_date":"2026-10-01","cost":{"input":` + price + `,"output":4},"limit":{"context":1000000,"output":64000}}}}}`
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, string, int) {
		return b.Run(append([]string{"catalog", "import", "--config", b.ConfigFile, "--from", list}, args...)...)
	}
	write("2")
	stdout, stderr, code := run()
	if code != 0 || !strings.Contains(stdout, "Not approved: openai/gpt-7: input: only models.dev states 2; output: only models.dev states 4 (--approve all, or openai/gpt-7)\n") ||
		strings.Contains(stdout, "gpt-5-mini") || !strings.Contains(stdout, "Nothing is changed: ") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if stdout, _, code = run("--write"); code != 0 || strings.Contains(stdout, "Written") {
		t.Errorf("one list wrote a price: exit %d\n%s", code, stdout)
	}
	if stdout, stderr, code = run("--approve", "all"); code != 0 || !strings.Contains(stdout, "@@ openai/gpt-7\n") || !strings.Contains(stdout, "Nothing is changed yet") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "catalog.d")); err == nil {
		t.Error("a review has written something")
	}
	if stdout, stderr, code = run("--write", "--provider", "openai", "--approve", "openai/gpt-7"); code != 0 || !strings.Contains(stdout, "Written to") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	write("2.5")
	if stdout, _, _ = run("--write", "--approve", "all"); !strings.Contains(stdout, "-    input: 2\n") || !strings.Contains(stdout, "+    input: 2.5\n") {
		t.Errorf("the change is shown as\n%s", stdout)
	}
	check := func() (string, int) {
		stdout, _, code := b.Run("catalog", "check", "--config", b.ConfigFile, "--from", list, "--json")
		return strings.Join(strings.Fields(stdout), ""), code
	}
	if found, code := check(); code != 1 || !strings.Contains(found, `"openai/gpt-5-mini"`) || strings.Contains(found, "gpt-7") {
		t.Errorf("check: exit %d\n%s", code, found)
	}
	write("9")
	if stdout, _, _ = run("--write", "--approve", "all"); !strings.Contains(stdout, "input moves from 2.5 to 9 (--approve openai/gpt-7)") {
		t.Errorf("a price that moves far:\n%s", stdout)
	}
	if found, code := check(); code != 1 || !strings.Contains(found, `"ours":"2.5","lists":[{"name":"models.dev","value":"9"}],"finding":"differs"`) {
		t.Errorf("check: exit %d\n%s", code, found)
	}
	write("2.5")
	if stdout, _, _ = run(); stdout != "No change.\n" {
		t.Errorf("no change is shown as\n%s", stdout)
	}
	b.Kill()
	b.Start()
	resp, answer := b.post(t, "/v1/chat/completions", `{"model":"openai/gpt-7","messages":[{"role":"user","content":"one two [[words=3]]"}]}`)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	if _, rows := b.get(t, "/gw/usage"); !strings.Contains(rows, `"cost_usd":0.000017`) {
		t.Errorf("rows %s", rows)
	}
	if _, stderr, code := run("--provider", "cohere"); code != 1 || !strings.Contains(stderr, "--provider cohere=NAME-IN-THE-LIST") {
		t.Errorf("exit %d %s", code, stderr)
	}
	if _, stderr, code := run("--into", "modelgate.yaml"); code != 1 || !strings.Contains(stderr, "was not written by this command") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

// TestMoveToPostgres moves a service with its books: stop, copy, start.
func TestMoveToPostgres(t *testing.T) {
	t.Parallel()
	dir, database := t.TempDir(), testkit.Postgres(t)
	b := newBench(t, testkit.GatewayOptions{Dir: dir})
	call := `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hi"}]}`
	for range 20 {
		b.post(t, "/v1/chat/completions", call)
	}
	copyArgs := []string{"db", "copy", "--config", b.ConfigFile, "--to", database}
	if _, stderr, code := b.Run(copyArgs...); code != 1 || !strings.Contains(stderr, "another server is using this database") {
		t.Fatalf("beside a running service: exit %d %s", code, stderr)
	}
	b.Stop()
	if stdout, stderr, code := b.Run(copyArgs...); code != 0 || !strings.Contains(stdout, "usage_row") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := b.Run(copyArgs...); code != 1 || !strings.Contains(stderr, "the target is in use") {
		t.Fatalf("a second time: exit %d %s", code, stderr)
	}
	b.Configure(testkit.GatewayOptions{Dir: dir, Database: database})
	b.Start()
	if resp, answer := b.post(t, "/v1/chat/completions", call); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, answer)
	}
	if _, rows := b.get(t, "/gw/usage"); strings.Count(rows, `"id"`) != 21 {
		t.Errorf("rows %s", rows)
	}
	if stdout, stderr, code := b.Run("reconcile", "--config", b.ConfigFile); code != 0 {
		t.Errorf("reconcile: exit %d\n%s%s", code, stdout, stderr)
	}
}
