package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"modelgate/internal/config"
	"modelgate/internal/server"
	"modelgate/internal/terminal"
)

// config groups the commands on the configuration file.
func (a *app) config() *cobra.Command {
	return a.group("config", "The configuration file", a.configCheck(), a.configSchema())
}

func (a *app) configCheck() *cobra.Command {
	var file string
	cmd := a.command("check", "Print every fault of a configuration file with its line", func([]string) error {
		file, err := a.configFile(file)
		if err != nil {
			return err
		}
		return a.checkConfig(file)
	})
	a.configFlag(cmd, &file)
	return cmd
}

func (a *app) checkConfig(file string) error {
	faults, warnings := config.Check(file, a.Lookup)
	if len(faults) == 0 {
		if cfg, err := config.Load(file, a.Lookup); err != nil {
			return err
		} else if _, err := server.NewSnapshot(cfg); err != nil {
			faults = append(faults, config.Fault{File: file, Message: err.Error()})
		}
	}
	report := struct {
		OK       bool           `json:"ok"`
		Faults   []config.Fault `json:"faults"`
		Warnings []config.Fault `json:"warnings"`
	}{len(faults) == 0, append([]config.Fault{}, faults...), append([]config.Fault{}, warnings...)}
	err := (&output{app: a}).value(report, func(w io.Writer) {
		line := func(state terminal.State, text any) {
			fmt.Fprintln(w, a.terminal(w).Paint(state, string(state)+":"), text)
		}
		for _, f := range faults {
			line("error", f)
		}
		for _, f := range warnings {
			line("warning", f)
		}
		if len(faults) == 0 {
			line("ok", file)
		}
	})
	if err == nil && len(faults) > 0 {
		return errQuiet
	}
	return err
}

func (a *app) configSchema() *cobra.Command {
	return a.command("schema", "Print the JSON Schema of the configuration file", func([]string) error {
		_, err := a.Stdout.Write(append(config.Schema(), '\n'))
		return err
	})
}
