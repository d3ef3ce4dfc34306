package cli

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the reference of commands")

const referenceIntro = "# Commands\n\n" +
	"Every command of `modelgate`, as `modelgate help COMMAND` prints it. This page is made from the commands by\n" +
	"`go test ./internal/cli -run Reference -update`. What all commands have in common:\n\n" +
	"- Commands for operators read the configuration file of the service (`--config` or `MODELGATE_CONFIG`) and work on its database, whether\n" +
	"  the service runs or not. A running service notices a change within about a second.\n" +
	"- An organization is named by its id, or by its name where only one has it.\n" +
	"- `--json` prints one JSON value and nothing else; lists also have `--csv`. Tables are cut to the width of a terminal, never in a pipe.\n" +
	"- Errors go to standard error with exit code 1, errors of the command line with 2 (`evidence verify`: 64).\n" +
	"- States have colours on a terminal, unless `NO_COLOR`, `TERM=dumb` or `--no-color` is set. Long work shows its progress there.\n" +
	"- `modelgate completion bash|zsh|fish` prints a script that completes commands, flags, ids and names; `modelgate help completion bash` says how\n" +
	"  to load it. Release archives carry these scripts and the manual pages.\n\n"

// every is a command and all below it that help shows, in the order of the help.
func every(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			all = append(all, every(c)...)
		}
	}
	return all
}

// TestReferenceFollowsTheCommands compares the published reference with the
// commands; -update writes it again.
func TestReferenceFollowsTheCommands(t *testing.T) {
	const path = "../../docs/reference/commands.md"
	var b strings.Builder
	b.WriteString(referenceIntro)
	for _, cmd := range every(Root()) {
		leaf := !cmd.HasAvailableSubCommands() && cmd.Name() != "help"
		completion := cmd.HasParent() && cmd.Parent().Name() == "completion"
		if leaf && !completion {
			fmt.Fprintf(&b, "## %s\n\n%s.\n\n```text\n%s\n%s```\n\n", cmd.CommandPath(), reason(cmd), cmd.UseLine(), cmd.LocalNonPersistentFlags().FlagUsages())
		}
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(have)); diff != "" {
		t.Errorf("%s is not what the commands say; run go test ./internal/cli -run Reference -update (-want +got):\n%s", path, diff)
	}
}

// reason is what a command does, without the full stop.
func reason(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return strings.TrimSuffix(cmd.Long, ".")
	}
	return cmd.Short
}

// TestEveryCommandTakesConfigOrNeedsNone keeps commands declared in the same way:
// whatever works on a database has --config, and lists have --csv.
func TestEveryCommandTakesConfigOrNeedsNone(t *testing.T) {
	t.Parallel()
	without := []string{"dev", "config schema", "evidence verify", "evidence key new", "master-key new", "version"}
	for _, cmd := range every(Root()) {
		if cmd.HasAvailableSubCommands() || cmd.Name() == "help" || strings.Contains(cmd.CommandPath(), " completion") {
			continue
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "modelgate ")
		if has := cmd.Flags().Lookup("config") != nil; has == slices.Contains(without, name) {
			t.Errorf("%s: --config is there: %v", name, has)
		}
		if cmd.Name() == "list" && cmd.Flags().Lookup("csv") == nil {
			t.Errorf("%s has no --csv", name)
		}
	}
}
