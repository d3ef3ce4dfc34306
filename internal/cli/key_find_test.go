package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"modelgate"
)

// find runs key find with a standard input.
func (b *books) find(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Environment{Context: t.Context(), Stdin: stdin, Stdout: &out, Stderr: &errs, Lookup: os.LookupEnv}
	code = Run(env, append([]string{"key", "find", "--config", b.config}, args...))
	return out.String(), errs.String(), code
}

// issue issues another key and returns its plaintext.
func (b *books) issue(t *testing.T) modelgate.IssuedKey {
	t.Helper()
	var issued modelgate.IssuedKey
	b.command(t, exitOK, &issued, "key", "issue", "--client", "acme", "--name", " Nightly ")
	return issued
}

func TestKeyFind(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	key := b.issue(t)
	unknown := modelgate.NewSecret().Reveal()
	for name, tt := range map[string]struct {
		stdin string
		args  []string
		err   string // "" finds the key
		code  int
	}{
		"piped":             {key.Key + "\n", nil, "", exitOK},
		"without a newline": {" " + key.Key, nil, "", exitOK},
		"id":                {"", []string{"--id", string(key.APIKeyID)}, "", exitOK},
		"prefix":            {"", []string{"--prefix", key.Key[:16]}, "", exitOK},
		"nothing":           {"", nil, "modelgate: no key on standard input; pipe one in, or use --id or --prefix\n", exitError},
		"another's key":     {"sk-proj-abc\n", nil, "modelgate: not a gateway key, or mistyped: keys are gw_live_ and 48 hex digits, of which the last 8 are a checksum\n", exitError},
		"unknown secret":    {unknown + "\n", nil, "modelgate: key not found\n", exitError},
		"unknown id":        {"", []string{"--id", "nothing"}, "modelgate: key not found\n", exitError},
		"unknown prefix":    {"", []string{"--prefix", "gw_live_nothing"}, "modelgate: no key found\n", exitError},
		"both":              {"", []string{"--id", "x", "--prefix", "y"}, "modelgate: --id and --prefix exclude each other\nRun 'modelgate key find --help' for usage.\n", exitUsage},
	} {
		stdout, stderr, code := b.find(t, strings.NewReader(tt.stdin), append(tt.args, "--json")...)
		var rows []keyRow
		if code == exitOK {
			if err := json.Unmarshal([]byte(stdout), &rows); err != nil {
				t.Errorf("%s: %v\n%s", name, err, stdout)
			}
		}
		if code != tt.code || stderr != tt.err || code == exitOK && (len(rows) != 1 || rows[0].ID != key.APIKeyID || *rows[0].Name != "Nightly") {
			t.Errorf("%s: exit %d, %s, standard error %q; want exit %d, %q", name, code, stdout, stderr, tt.code, tt.err)
		}
		if strings.Contains(stdout+stderr, key.Key) {
			t.Errorf("%s printed the secret", name)
		}
	}
}

// TestKeyFindHidesWhatIsTyped answers the prompt on a terminal, which must not
// show the secret.
func TestKeyFindHidesWhatIsTyped(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	key := b.issue(t)
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var out bytes.Buffer
	ended := make(chan int)
	go func() {
		defer tty.Close()
		env := &Environment{Context: t.Context(), Stdin: tty, Stdout: &out, Stderr: tty, Lookup: os.LookupEnv}
		ended <- Run(env, []string{"key", "find", "--config", b.config})
	}()
	shown := ""
	for buffer := make([]byte, 256); !strings.Contains(shown, "Key (not shown): "); {
		n, err := master.Read(buffer)
		if err != nil {
			t.Fatalf("no prompt: %v %q", err, shown)
		}
		shown += string(buffer[:n])
	}
	if _, err := master.WriteString(key.Key + "\n"); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != exitOK || !strings.Contains(out.String(), string(key.APIKeyID)) {
		t.Errorf("exit %d: %s", code, &out)
	}
	rest, _ := io.ReadAll(master) // ends with an error once the other side is closed
	if strings.Contains(shown+string(rest), "gw_live_") {
		t.Errorf("the terminal shows %q", shown+string(rest))
	}
}
