// Package cli is the command line of modelgate: the gateway and the operator's
// tools in one program.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"modelgate/internal/terminal"
)

// Environment is the outside world a command sees, so that a test can run the
// whole program in its own process.
type Environment struct {
	// Context ends the command.
	Context context.Context
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Lookup reads the environment, as os.LookupEnv does.
	Lookup func(string) (string, bool)
	// Program is what the program was called as, such as bin/modelgate. Commands
	// that a command prints begin with it, so that they work when pasted.
	Program string
}

// The exit codes of every command.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// errQuiet ends a command with exitError when it has already said why.
var errQuiet = errors.New("already reported")

// exitWith ends a command, which has said why, with a code of its own.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that cannot be run.
type usageError string

func (e usageError) Error() string { return string(e) }

// app is one run of the program.
type app struct {
	*Environment
	json, noColour bool
	// started says that a command runs: cobra's errors before that are about the
	// command line.
	started bool
}

// Run parses the arguments and runs the command; it returns the exit code.
func Run(env *Environment, args []string) int {
	a := &app{Environment: env}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(env.Context)
	if err == nil {
		return exitOK
	}
	if code, ok := errors.AsType[exitWith](err); ok {
		return int(code)
	}
	if errors.Is(err, errQuiet) {
		return exitError
	}
	fmt.Fprintln(env.Stderr, "modelgate:", err)
	if advice := hint(err); advice != "" && !strings.Contains(err.Error(), "\n") {
		fmt.Fprintln(env.Stderr, advice)
	}
	if _, usage := errors.AsType[usageError](err); a.started && !usage {
		return exitError
	}
	fmt.Fprintf(env.Stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	if cmd.CommandPath() == verifyPath {
		return exitVerifyUsage
	}
	return exitUsage
}

// Root is the whole command line, for tools that describe it.
func Root() *cobra.Command {
	nothing := func(string) (string, bool) { return "", false }
	root := (&app{Environment: &Environment{Context: context.Background(), Stdout: io.Discard, Stderr: io.Discard, Lookup: nothing}}).root()
	root.InitDefaultCompletionCmd()
	return root
}

// The groups of the commands in the help.
const (
	groupRun    = "run"
	groupManage = "manage"
	groupBooks  = "books"
	groupOther  = "other"
)

// root makes the command line, each time anew: flags hold the values of one run.
func (a *app) root() *cobra.Command {
	root := a.group("modelgate", "A self-hosted gateway between clients and model providers")
	root.Version = buildVersion()
	root.SetVersionTemplate("modelgate {{.Version}} " + goVersion() + "\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run the gateway:"},
		&cobra.Group{ID: groupManage, Title: "Organizations, keys and money:"},
		&cobra.Group{ID: groupBooks, Title: "Books, evidence and databases:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	root.SetHelpCommand(a.help())
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one JSON value and nothing else")
	flags.BoolVar(&a.noColour, "no-color", false, "print no colours")
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRun, a.dev(), a.serve(), a.config(), a.provider())
	add(groupManage, a.client(), a.ceiling(), a.key(), a.token(), a.person(), a.session(), a.subAccount(), a.budget(), a.limit(), a.balance(), a.wallet(), a.job(), a.catalog(), a.export(), a.focus(), a.operatorTokens())
	add(groupBooks, a.audit(), a.evidence(), a.invoice(), a.margin(), a.reconcile(), a.spool(), a.database(), a.masterKey())
	add(groupOther, a.version())
	return root
}

// group makes a command that only holds others.
func (a *app) group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0:
			return unknownCommand(cmd, args[0])
		case cmd.HasParent():
			return usageError("a command is missing after " + cmd.CommandPath())
		}
		return cmd.Help()
	}}
	// An unknown command is the fault to name, and not a flag that it would have.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return err
	})
	cmd.AddCommand(commands...)
	return cmd
}

// help is `modelgate help`. Cobra's own succeeds for a command that there is not.
func (a *app) help() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if found, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
				for _, c := range found.Commands() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	for i, near := range cmd.SuggestionsFor(name) {
		if i == 0 {
			text += "; did you mean " + near
		} else {
			text += " or " + near
		}
	}
	return usageError(text)
}

// terminal is how a writer shows text for people.
func (a *app) terminal(w io.Writer) terminal.Terminal { return terminal.New(w, a.Lookup, a.noColour) }
