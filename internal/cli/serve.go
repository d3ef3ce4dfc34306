package cli

import (
	"fmt"
	"io"
	"net"
	"os"

	"modelgate/internal/config"
	"modelgate/internal/server"
)

// serveCommand is `modelgate serve`.
type serveCommand struct {
	ConfigFile string `name:"config" env:"MODELGATE_CONFIG" required:"" placeholder:"FILE" help:"The configuration file."`
}

// Run serves until a signal ends the process.
func (c *serveCommand) Run(env *Environment) error {
	cfg, err := env.loadConfig(c.ConfigFile)
	if err != nil {
		return err
	}
	s, err := server.New(env.Context, env.serverOptions(cfg, c.ConfigFile))
	if err != nil {
		return err
	}
	return s.Run(env.Context, func(net.Addr) {})
}

// serverOptions are those of an instance that this process runs.
func (e *Environment) serverOptions(cfg *config.Config, file string) server.Options {
	return server.Options{
		Config: cfg, ConfigFile: file, Version: buildVersion(), Stderr: e.Stderr, Lookup: e.Lookup,
		Exit: func() { os.Exit(exitError) },
	}
}

func (e *Environment) loadConfig(file string) (*config.Config, error) {
	return server.LoadConfig(file, e.Lookup, e.Stderr)
}

// configCommand groups the commands on the configuration file.
type configCommand struct {
	Check  configCheck  `cmd:"" help:"Print every fault of a configuration file with its line."`
	Schema configSchema `cmd:"" help:"Print the JSON Schema of the configuration file."`
}

type configCheck struct {
	ConfigFile string `name:"config" env:"MODELGATE_CONFIG" required:"" placeholder:"FILE" help:"The configuration file."`
	JSON       bool   `name:"json" help:"Print one JSON value and nothing else."`
}

// Run is `modelgate config check`.
func (c *configCheck) Run(env *Environment) error {
	faults, warnings := config.Check(c.ConfigFile, env.Lookup)
	if len(faults) == 0 {
		if cfg, err := config.Load(c.ConfigFile, env.Lookup); err != nil {
			return err
		} else if _, err := server.NewSnapshot(cfg); err != nil {
			faults = append(faults, config.Fault{File: c.ConfigFile, Message: err.Error()})
		}
	}
	report := struct {
		OK       bool           `json:"ok"`
		Faults   []config.Fault `json:"faults"`
		Warnings []config.Fault `json:"warnings"`
	}{len(faults) == 0, append([]config.Fault{}, faults...), append([]config.Fault{}, warnings...)}
	err := output{env.Stdout, c.JSON}.value(report, func(w io.Writer) {
		for _, f := range faults {
			fmt.Fprintln(w, "error:", f)
		}
		for _, f := range warnings {
			fmt.Fprintln(w, "warning:", f)
		}
		if len(faults) == 0 {
			fmt.Fprintln(w, "ok:", c.ConfigFile)
		}
	})
	if err == nil && len(faults) > 0 {
		return errQuiet
	}
	return err
}

type configSchema struct{}

// Run is `modelgate config schema`.
func (configSchema) Run(env *Environment) error {
	_, err := env.Stdout.Write(append(config.Schema(), '\n'))
	return err
}
