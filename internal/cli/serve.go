package cli

import (
	"net"
	"os"

	"github.com/spf13/cobra"

	"modelgate/internal/config"
	"modelgate/internal/server"
)

// serve runs the gateway until a signal ends the process.
func (a *app) serve() *cobra.Command {
	cmd := a.configured("serve", "Run the gateway", func(op *operation) error {
		if a.json {
			op.cfg.Log.Format = config.LogJSON
		}
		s, err := server.New(op.ctx, a.serverOptions(op.cfg, op.file))
		if err != nil {
			return err
		}
		return s.Run(op.ctx, func(net.Addr) error { return nil })
	})
	cmd.Long = "Run the gateway. With --json the lines of its log are JSON, whatever log.format says."
	return cmd
}

// serverOptions are those of an instance that this process runs.
func (a *app) serverOptions(cfg *config.Config, file string) server.Options {
	return server.Options{
		Config: cfg, ConfigFile: file, Version: buildVersion(), Stderr: a.Stderr, Lookup: a.Lookup,
		Exit: func() { os.Exit(exitError) },
	}
}
