package cli

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedDatabase overwrites the file, and then has one that is no database.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no database":  "this is a text file and no database, however long it may be made to look\n",
		"a torn start": "SQLite format 3\x00" + strings.Repeat("\xff", 8192),
	} {
		b := newBooks(t)
		file := filepath.Join(b.dir, "modelgate.db")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if err := os.RemoveAll(file + suffix); err != nil {
				t.Fatal(err)
			}
		}
		got := b.command(t, exitError, nil, "client", "list")
		first, advice, _ := strings.Cut(got, "\n")
		if !strings.Contains(first, file+": the database file is damaged, or is no database") {
			t.Errorf("%s: %s", name, got)
		}
		if want := "Stop the service, keep the file aside, and restore a backup. What the spool holds is booked at the next start.\n"; advice != want {
			t.Errorf("%s: advice %q, want %q", name, advice, want)
		}
	}
}

// TestTakenPort starts a gateway and dev where another program listens.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir, address := t.TempDir(), taken.Addr().String()
	file := filepath.Join(dir, "modelgate.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "server: {listen: %q, data_dir: .}\n", address), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "serve", "--config", file)
	want := "modelgate: listen tcp " + address + ": bind: address already in use\nStop the other program, or choose another address in server.listen.\n"
	if code != exitError || !strings.HasSuffix(stderr, want) {
		t.Errorf("serve: exit %d: %s", code, stderr)
	}
	data := filepath.Join(dir, "dev")
	stdout, stderr, code := run(t, "dev", "--data", data, "--listen", address, "--operator-listen", "127.0.0.1:0")
	want = "modelgate: listen tcp " + address + ": bind: address already in use\nListen on another port: modelgate dev --listen " + nextPort(nextPort(address)) + "\n"
	if code != exitError || !strings.HasSuffix(stderr, want) {
		t.Errorf("dev: exit %d: %s, want %s", code, stderr, want)
	}
	if strings.Contains(stdout, "gw_live_") {
		t.Errorf("dev printed a key that nobody can use: %s", stdout)
	}
	// The key was not made either: the next start prints it.
	_, stderr, code = run(t, "key", "list", "--config", filepath.Join(data, "modelgate.yaml"))
	if code != exitOK || stderr != "" {
		t.Errorf("key list: exit %d: %s", code, stderr)
	}
	if stdout, _, _ := run(t, "key", "list", "--json", "--config", filepath.Join(data, "modelgate.yaml")); stdout != "[]\n" {
		t.Errorf("keys of a dev that could not start: %s", stdout)
	}
}

const priceList = `{"openai": {"id": "openai", "models": {"gpt-5-nano": {"id": "gpt-5-nano", "name": "GPT-5 nano",
  "cost": {"input": 0.05, "cache_read": 0.005, "output": 0.4}, "limit": {"context": 400000, "output": 128000}}}}}`

// TestImportFromAnAddress reads a price list over HTTP, and says what is wrong
// where it cannot.
func TestImportFromAnAddress(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api.json":
			fmt.Fprint(w, priceList)
		case "/page":
			fmt.Fprint(w, "<html>")
		case "/moved":
			http.Redirect(w, r, "/api.json", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	b := newEmptyBooks(t)
	text := "server: {data_dir: .}\nproviders:\n  - {name: openai, format: openai, base_url: \"https://api.openai.com\", credential: sk}\ncatalog_files: [catalog.d/*.yaml]\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var done imported
	b.command(t, exitOK, &done, "catalog", "import", "--from", server.URL+"/api.json", "--write", "--approve", "all")
	written, err := os.ReadFile(filepath.Join(b.dir, "catalog.d", "imported.yaml"))
	if err != nil || !done.Written || !strings.Contains(string(written), "slug: openai/gpt-5-nano") {
		t.Errorf("%v, %+v\n%s", err, done, written)
	}
	for path, want := range map[string]string{
		server.URL + "/none":    "modelgate: " + server.URL + "/none answered 404 Not Found\n",
		server.URL + "/page":    "modelgate: ",
		server.URL + "/moved":   "modelgate: " + server.URL + "/moved answered 302 Found\n",
		"http://192.0.2.1/x":    "modelgate: http://192.0.2.1/x: a price list is fetched with https only; download it by other means and name the file\n",
		"http://127.0.0.1:1/x":  "modelgate: Get \"http://127.0.0.1:1/x\": dial tcp 127.0.0.1:1: connect: connection refused; download the list by other means and name the file\n",
		b.dir + "/no-such.json": "modelgate: open " + b.dir + "/no-such.json: no such file or directory\n",
	} {
		if got := b.command(t, exitError, nil, "catalog", "import", "--from", path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestDamagedMasterKeyOfDev keeps what is sealed under it from being given up.
func TestDamagedMasterKeyOfDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "master.key"), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "dev", "--data", dir, "--listen", "127.0.0.1:0")
	if code != exitError || !strings.HasPrefix(stderr, "modelgate: "+filepath.Join(dir, "master.key")+" is damaged: ") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
