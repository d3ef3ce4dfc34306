// Package cli is the command line of modelgate: the gateway and the operator's
// tools in one program.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// commands is the command line, one field a command.
type commands struct {
	Dev       devCommand       `cmd:"" help:"Try Modelgate: embedded database, simulated providers, one organization."`
	Serve     serveCommand     `cmd:"" help:"Run the gateway."`
	Config    configCommand    `cmd:"" help:"Check the configuration file or print its schema."`
	Client    clientCommand    `cmd:"" help:"Organizations: create, list, set."`
	Ceiling   ceilingCommand   `cmd:"" help:"What an organization's keys can at most be issued with."`
	Key       keyCommand       `cmd:"" help:"Keys: issue, revoke, limits."`
	Evidence  evidenceCommand  `cmd:"" help:"Evidence: verify a file, the keys that sign."`
	Reconcile reconcileCommand `cmd:"" help:"Recompute the books from the usage rows; fail on any difference."`
	Spool     spoolCommand     `cmd:"" help:"Book what a lost instance left."`
	Budget    budgetCommand    `cmd:"" help:"Budgets: list, remove."`
	Balance   balanceCommand   `cmd:"" help:"Prepaid balances: credit, show."`
	Catalog   catalogCommand   `cmd:"" help:"The catalog: import."`
	DB        dbCommand        `cmd:"" help:"Databases: copy."`
	Export    exportCommand    `cmd:"" help:"Billing events: resend."`
	MasterKey masterKeyCommand `cmd:"" name:"master-key" help:"The key that stored secrets are sealed under: rotate."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

// Environment is the outside world a command sees, so that a test can run the
// whole program in its own process.
type Environment struct {
	// Context ends the command.
	Context context.Context
	Stdout  io.Writer
	Stderr  io.Writer
	// Lookup reads the environment, as os.LookupEnv does.
	Lookup func(string) (string, bool)
}

// The exit codes of every command.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// errQuiet ends a command with exitError when it has already said why.
var errQuiet = errors.New("already reported")

// Run parses the arguments and runs the command; it returns the exit code.
func Run(env *Environment, args []string) int {
	var cli commands
	exited := -1
	parser, err := kong.New(&cli,
		kong.Name("modelgate"),
		kong.Description("A self-hosted gateway between clients and model providers."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.UsageOnError(),
	)
	if err != nil {
		fmt.Fprintln(env.Stderr, "modelgate:", err)
		return exitError
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 {
		return exited
	}
	if err != nil {
		fmt.Fprintln(env.Stderr, "modelgate:", err)
		if len(args) > 1 && args[0] == "evidence" && args[1] == "verify" {
			return exitVerifyUsage
		}
		return exitUsage
	}
	if err := command.Run(env); err != nil {
		if code, ok := errors.AsType[exitWith](err); ok {
			return int(code)
		}
		if !errors.Is(err, errQuiet) {
			fmt.Fprintln(env.Stderr, "modelgate:", err)
		}
		return exitError
	}
	return exitOK
}

// versionCommand is `modelgate version`.
type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run prints the version.
func (c *versionCommand) Run(env *Environment) error {
	out := output{env.Stdout, c.JSON}
	return out.value(struct {
		Version string `json:"version"`
		Go      string `json:"go"`
	}{buildVersion(), goVersion()}, func(w io.Writer) {
		fmt.Fprintln(w, "modelgate", buildVersion(), goVersion())
	})
}

// buildVersion is the module's version or, built from a checkout, the
// revision.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

func goVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.GoVersion
	}
	return "go"
}
