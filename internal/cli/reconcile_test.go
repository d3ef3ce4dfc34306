package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// books is a database in a folder of its own, with one organization and key,
// and the configuration that names it.
type books struct {
	dir, config string
	client      modelgate.ClientID
	key         modelgate.KeyID
	ids         *modelgate.IDs
}

func newBooks(t *testing.T) *books {
	t.Helper()
	b := &books{dir: t.TempDir(), ids: modelgate.NewIDs(time.Now)}
	b.config = filepath.Join(b.dir, "modelgate.yaml")
	text := "server: {data_dir: .}\ndatabase: {url: \"sqlite:modelgate.db\"}\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var client modelgate.Client
	b.command(t, exitOK, &client, "client", "create", "--name", "acme")
	var issued modelgate.IssuedKey
	b.command(t, exitOK, &issued, "key", "issue", "--client", string(client.ID))
	b.client, b.key = client.ID, issued.APIKeyID
	return b
}

// command runs a command on the books and decodes its JSON, unless into is
// nil. It returns what was written to standard error.
func (b *books) command(t *testing.T, code int, into any, args ...string) string {
	t.Helper()
	args = append(args, "--config", b.config)
	if into != nil {
		args = append(args, "--json")
	}
	var stdout, stderr bytes.Buffer
	env := &Environment{Context: t.Context(), Stdout: &stdout, Stderr: &stderr, Lookup: os.LookupEnv}
	if got := Run(env, args); got != code {
		t.Fatalf("modelgate %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	if into == nil {
		return stdout.String() + stderr.String()
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		t.Fatalf("modelgate %s: %v\n%s", strings.Join(args, " "), err, &stdout)
	}
	return stderr.String()
}

func (b *books) begin() modelgate.CallBegin {
	id := b.ids.New()
	return modelgate.CallBegin{
		ID: id, At: id.Time(), ClientID: b.client, KeyID: b.key, Provider: "openai", Model: "gpt-5-mini",
		Slug: "openai/gpt-5-mini", Author: "openai", Kind: modelgate.LLM, Region: "us", Door: "/v1/chat/completions",
	}
}

// call is how every call of these tests came out.
func (b *books) call() modelgate.CallEnd {
	return modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 7, Output: 5}, Cost: 11750}
}

func TestReconcileCommand(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:modelgate.db", DataDir: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	batch := store.Batch{Instance: "i", Rows: []modelgate.UsageRow{modelgate.Row(b.begin(), b.call())}, Progress: store.Position{Segment: 1, Offset: 1}}
	if _, err := db.Record(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if out := b.command(t, exitOK, nil, "reconcile"); !strings.Contains(out, "No differences") {
		t.Errorf("reconcile of sound books prints %q", out)
	}
	none := []store.Difference{{}}
	b.command(t, exitOK, &none, "reconcile", "--client", string(b.client))
	if none == nil || len(none) != 0 {
		t.Errorf("reconcile --json of sound books = %v, want []", none)
	}
	if out := b.command(t, exitError, nil, "reconcile", "--client", "nobody"); !strings.Contains(out, "client not found") {
		t.Errorf("reconcile of an unknown client prints %q", out)
	}

	raw := testkit.OpenSQLite(t, filepath.Join(b.dir, "modelgate.db"))
	if _, err := raw.Exec("UPDATE spend SET settled = settled + 1 WHERE scope = 'key' AND period = 'day'"); err != nil {
		t.Fatal(err)
	}
	var found []store.Difference
	b.command(t, exitError, &found, "reconcile")
	if len(found) != 1 || found[0].What != "spend" || found[0].Want != 11750 || found[0].Have != 11751 {
		t.Errorf("reconcile of falsified books = %+v", found)
	}
	out := b.command(t, exitError, nil, "reconcile", "--client", string(b.client))
	for _, want := range []string{"WANT", "spend", "11750", "11751", string(b.key)} {
		if !strings.Contains(out, want) {
			t.Errorf("reconcile prints no %q:\n%s", want, out)
		}
	}
}

// lostSpool leaves a spool as a killed instance does: calls that ended, and
// one that did not.
func (b *books) lostSpool(t *testing.T, dir string, ended int) (release func()) {
	t.Helper()
	s, err := spool.Open(spool.Options{
		FS: spool.Dir(dir), Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
		NewInstance: func() string { return "lost" }, Fatal: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := spool.NewCalls(s)
	for i := range ended + 1 {
		begin, end := b.begin(), b.call()
		if err := calls.Begin(&begin); err != nil {
			t.Fatal(err)
		}
		if i == ended {
			break
		}
		if err := calls.End(begin.ID, &end); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSpoolShipCommand(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	dir := filepath.Join(t.TempDir(), "spool")
	release := b.lostSpool(t, dir, 300)
	if out := b.command(t, exitError, nil, "spool", "ship", dir); !strings.Contains(out, dir+" is in use") {
		t.Errorf("ship of a running instance's spool prints %q", out)
	}
	release()
	var done shipped
	b.command(t, exitOK, &done, "spool", "ship", dir)
	if want := (shipped{"lost", 301, 0}); done != want {
		t.Errorf("ship = %+v, want %+v", done, want)
	}
	if out := b.command(t, exitOK, nil, "spool", "ship", dir); !strings.Contains(out, "Booked 0 usage rows of instance lost") {
		t.Errorf("the second ship prints %q", out)
	}
	b.command(t, exitOK, nil, "reconcile")
	raw := testkit.OpenSQLite(t, filepath.Join(b.dir, "modelgate.db"))
	var exact, unknown int
	err := raw.QueryRow("SELECT SUM(status_code = 200 AND cost = 11750), SUM(status_code = 502 AND parse_status = 'unknown') FROM usage_row").Scan(&exact, &unknown)
	if err != nil || exact != 300 || unknown != 1 {
		t.Errorf("%d exact and %d interrupted rows, %v, want 300 and 1", exact, unknown, err)
	}
}

func TestSpoolShipOfNoSpool(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	missing := filepath.Join(b.dir, "missing")
	b.command(t, exitError, nil, "spool", "ship", missing)
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("a wrong name made a directory: %v", err)
	}
	if out := b.command(t, exitError, nil, "spool", "ship", b.config); !strings.Contains(out, "is not a directory") {
		t.Errorf("ship of a file prints %q", out)
	}
	if out := b.command(t, exitError, nil, "spool", "ship", b.dir); !strings.Contains(out, "no instance id") {
		t.Errorf("ship of a data directory prints %q", out)
	}
}
