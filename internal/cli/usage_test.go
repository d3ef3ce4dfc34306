package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// run runs a command that needs no database.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &Environment{Context: t.Context(), Stdout: &out, Stderr: &errs, Lookup: func(string) (string, bool) { return "", false }}
	code = Run(env, args)
	return out.String(), errs.String(), code
}

// TestUsageErrors holds what a wrong command line is answered with.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"clents", 2, "unknown command \"clents\" for \"modelgate\"; did you mean client\nRun 'modelgate --help' for usage."},
		{"clents --json", 2, "unknown command \"clents\" for \"modelgate\"; did you mean client\nRun 'modelgate --help' for usage."},
		{"client lst", 2, "unknown command \"lst\" for \"modelgate client\"; did you mean list or set\nRun 'modelgate client --help' for usage."},
		{"help nothing", 2, "unknown command \"nothing\" for \"modelgate\"\nRun 'modelgate help --help' for usage."},
		{"client", 2, "a command is missing after modelgate client\nRun 'modelgate client --help' for usage."},
		{"key revoke", 2, "the argument KEY is missing\nRun 'modelgate key revoke --help' for usage."},
		{"key revoke a b", 2, "the argument \"b\" is one too many\nRun 'modelgate key revoke --help' for usage."},
		{"key issue", 2, "required flag(s) \"client\" not set\nRun 'modelgate key issue --help' for usage."},
		{"key list --frob", 2, "unknown flag: --frob\nRun 'modelgate key list --help' for usage."},
		{"key list --status odd", 2, "invalid argument \"odd\" for \"--status\" flag: want one of active, expired, revoked\nRun 'modelgate key list --help' for usage."},
		{"job list --limit many", 2, "invalid argument \"many\" for \"--limit\" flag: strconv.ParseInt: parsing \"many\": invalid syntax\nRun 'modelgate job list --help' for usage."},
		{"subaccount set x --client demo", 2, "required flag(s) \"status\" not set\nRun 'modelgate subaccount set --help' for usage."},
		{"client list", 2, "no configuration file: use --config FILE or set MODELGATE_CONFIG\nRun 'modelgate client list --help' for usage."},
		{"evidence verify", 64, "the argument FILE is missing\nRun 'modelgate evidence verify --help' for usage."},
		{"client list --config /nowhere.yaml", 1, "/nowhere.yaml: cannot be opened: no such file or directory"},
	} {
		stdout, stderr, code := run(t, strings.Fields(tt.args)...)
		if want := "modelgate: " + tt.want + "\n"; code != tt.code || stdout != "" || stderr != want {
			t.Errorf("modelgate %s: exit %d, %q, standard error\n%s\nwant exit %d and\n%s", tt.args, code, stdout, stderr, tt.code, want)
		}
	}
}

func TestCSVAndJSONExcludeEachOther(t *testing.T) {
	t.Parallel()
	b := newEmptyBooks(t)
	want := "modelgate: --csv and --json exclude each other\nRun 'modelgate client list --help' for usage.\n"
	if got := b.command(t, exitUsage, nil, "client", "list", "--csv", "--json"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestHelpSucceeds asks for the help in every way that there is.
func TestHelpSucceeds(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                     "Organizations, keys and money:",
		"--help":               "Organizations, keys and money:",
		"help":                 "Organizations, keys and money:",
		"help key issue":       "modelgate key issue [flags]",
		"key issue --help":     "modelgate key issue [flags]",
		"help key":             "Issue a key",
		"help completion bash": "bash-completion",
		"--version":            "modelgate devel",
		"version":              "modelgate devel",
		"completion bash":      "__start_modelgate",
		"completion zsh":       "#compdef modelgate",
		"completion fish":      "complete -c modelgate",
		"config schema --json": "json-schema.org",
	} {
		if stdout, stderr, code := run(t, strings.Fields(args)...); code != 0 || stderr != "" || !strings.Contains(stdout, want) {
			t.Errorf("modelgate %s: exit %d, no %q in\n%s%s", args, code, want, stdout, stderr)
		}
	}
}

// TestEveryCommandExplainsItself has each command say what it does, and each flag
// what it is for.
func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	for _, cmd := range every(Root()) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: %q wants to be a phrase", cmd.CommandPath(), cmd.Short)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no description", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// TestTabInYAML names the line, what is wrong with it and what to write.
func TestTabInYAML(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "modelgate.yaml")
	if err := os.WriteFile(file, []byte("server:\n\tlisten: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, code := run(t, "config", "check", "--config", file)
	if want := "error: " + file + ":2:1: is indented with a tab; YAML wants spaces\n"; code != exitError || stdout != want {
		t.Errorf("exit %d: %q, want %q", code, stdout, want)
	}
	_, stderr, code := run(t, "client", "list", "--config", file)
	if want := "modelgate: " + file + ":2:1: is indented with a tab; YAML wants spaces\n"; code != exitError || stderr != want {
		t.Errorf("exit %d: %q, want %q", code, stderr, want)
	}
}
