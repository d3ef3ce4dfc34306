package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"modelgate/internal/config"
	"modelgate/internal/server"
	"modelgate/internal/store"
)

// command makes a command. The words behind the first of use name its arguments;
// all are required.
func (a *app) command(use, short string, run func(args []string) error) *cobra.Command {
	names := strings.Fields(use)[1:]
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < len(names):
				return usageError("the argument " + names[len(args)] + " is missing")
			case len(args) > len(names) && cmd.HasAvailableSubCommands():
				return unknownCommand(cmd, args[len(names)])
			case len(args) > len(names):
				return usageError(fmt.Sprintf("the argument %q is one too many", args[len(names)]))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			a.started = true
			return run(args)
		},
	}
}

// operation is what a command on the database of a service, running or not, works
// with.
type operation struct {
	ctx  context.Context
	app  *app
	file string // the configuration file
	cfg  *config.Config
	db   *store.DB
	out  *output
	args []string
}

// configured makes a command that reads the configuration and opens nothing.
func (a *app) configured(use, short string, run func(*operation) error) *cobra.Command {
	op := &operation{ctx: a.Context, app: a, out: &output{app: a}}
	cmd := a.command(use, short, func(args []string) error {
		var err error
		if op.file, err = a.configFile(op.file); err != nil {
			return err
		}
		if op.cfg, err = a.loadConfig(op.file); err != nil {
			return err
		}
		op.args = args
		return run(op)
	})
	a.configFlag(cmd, &op.file)
	return cmd
}

// operator makes a command that works on the database beside a running service.
func (a *app) operator(use, short string, run func(*operation) error) *cobra.Command {
	return a.configured(use, short, func(op *operation) (err error) {
		if op.db, err = op.open(store.Options{Mode: store.Shared}); err != nil {
			return err
		}
		defer op.db.Close()
		return run(op)
	})
}

// list makes an operator's command that prints rows, and can print them as CSV.
func (a *app) list(use, short string, run func(*operation) error) *cobra.Command {
	asCSV := false
	cmd := a.operator(use, short, func(op *operation) error {
		if op.out.csv = asCSV; asCSV && a.json {
			return usageError("--csv and --json exclude each other")
		}
		return run(op)
	})
	csvFlag(cmd, &asCSV)
	return cmd
}

func csvFlag(cmd *cobra.Command, asCSV *bool) {
	cmd.Flags().BoolVar(asCSV, "csv", false, "print comma-separated values, with a header")
}

// open opens the database of the configuration, or the one at o.URL.
func (op *operation) open(o store.Options) (*store.DB, error) {
	o.Log, o.Software = slog.New(slog.NewTextHandler(op.app.Stderr, nil)), buildVersion()
	return server.OpenStore(op.ctx, op.cfg, o)
}

// configVariable names the configuration file where no flag does.
const configVariable = "MODELGATE_CONFIG"

func (a *app) configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "the service's configuration `FILE` (default $"+configVariable+")")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // the flag is there
}

// configFile is the file that the flag or the environment names.
func (a *app) configFile(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if file, _ := a.Lookup(configVariable); file != "" {
		return file, nil
	}
	return "", usageError("no configuration file: use --config FILE or set " + configVariable)
}

func (a *app) loadConfig(file string) (*config.Config, error) {
	return server.LoadConfig(file, a.Lookup, a.Stderr)
}

// required marks flags that must be there.
func required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		_ = cmd.MarkFlagRequired(name) // the flag is there
	}
}

// optional is the value of a flag, nil where it is left out.
func optional[T any](flags *pflag.FlagSet, name string, value *T) *T {
	if !flags.Changed(name) {
		return nil
	}
	return value
}

// choice is a flag that takes one of several words.
type choice struct {
	value   *string
	choices []string
}

// choiceFlag adds a flag that takes one of the choices, and completes them.
func choiceFlag(cmd *cobra.Command, value *string, name, usage string, choices ...string) {
	cmd.Flags().Var(choice{value, choices}, name, usage+": `"+strings.Join(choices, "|")+"`")
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (c choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Set takes one of the choices.
func (c choice) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("want one of %s", strings.Join(c.choices, ", "))
	}
	*c.value = text
	return nil
}

// Type is how the help calls the value.
func (c choice) Type() string { return "word" }
