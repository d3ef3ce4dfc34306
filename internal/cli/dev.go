package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/cli/demo"
	"modelgate/internal/config"
	"modelgate/internal/secrets"
	"modelgate/internal/server"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// dev is `modelgate dev`.
type dev struct {
	app    *app
	data   string // directory
	listen string // host:port
}

func (a *app) dev() *cobra.Command {
	d := &dev{app: a}
	cmd := a.command("dev", "Try Modelgate: embedded database, simulated providers, one organization", func([]string) error {
		return d.run()
	})
	cmd.Flags().StringVar(&d.data, "data", "modelgate-dev", "the `DIR` where keys and books are kept")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:8080", "the `ADDRESS` to listen on")
	_ = cmd.MarkFlagDirname("data") // the flag is there
	return cmd
}

// run serves until a signal ends the process. The key is made once the gateway
// listens: it is shown only once, and must not be lost where the port is taken.
func (d *dev) run() error {
	if err := os.MkdirAll(d.data, 0o700); err != nil {
		return err
	}
	simulator, stop, err := demo.Serve()
	if err != nil {
		return err
	}
	defer stop()
	cfg, err := d.config(simulator)
	if err != nil {
		return err
	}
	ctx := d.app.Context
	s, err := server.New(ctx, d.app.serverOptions(cfg, ""))
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("%w\nIf another dev runs on %s, stop it or start this one apart: %s dev --data %s --listen %s",
			err, d.data, d.app.program(), d.data+"-2", nextPort(d.listen))
	}
	if err != nil {
		return err
	}
	err = s.Run(ctx, func(addr net.Addr) error {
		key, err := demoKey(ctx, s.Store(), s.Catalog())
		if err != nil {
			return err
		}
		return d.greet(addr, key, len(cfg.Catalog))
	})
	if portTaken(err) {
		return fmt.Errorf("%w\nListen on another port: %s dev --listen %s", err, d.app.program(), nextPort(d.listen))
	}
	return err
}

// config is the configuration of dev.
func (d *dev) config(simulator string) (*config.Config, error) {
	cfg := config.Default()
	cfg.Server.Listen, cfg.Server.DataDir, cfg.Server.DrainDelay = d.listen, d.data, 0
	cfg.Database.URL = config.NewSecret("sqlite:modelgate.db")
	if err := keepMasterKey(cfg); err != nil {
		return nil, err
	}
	if err := demo.Configure(cfg, simulator, d.app.Lookup); err != nil {
		return nil, err
	}
	return cfg, d.leaveConfig()
}

// keepMasterKey gives dev a master key that lies in its data directory, made
// at the first start, so that the key of a payment processor can be left there.
// A damaged one is a fault: what lies under it must not be given up in silence.
func keepMasterKey(cfg *config.Config) error {
	path := filepath.Join(cfg.Server.DataDir, "master.key")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := server.GeneratedKey(cfg, "master.key", func(string) {}); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err := secrets.ParseKey(string(text)); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	cfg.MasterKey = config.NewSecret(strings.TrimSpace(string(text)))
	return nil
}

const devConfig = `# Written by "modelgate dev" so that the operator's commands find this data:
#   modelgate client list --config FILE
#   modelgate key issue --config FILE --client demo
server:
  data_dir: .
database:
  url: sqlite:modelgate.db
`

// configPath is a configuration file for the operator's commands.
func (d *dev) configPath() string { return filepath.Join(d.data, "modelgate.yaml") }

func (d *dev) leaveConfig() error {
	if _, err := os.Stat(d.configPath()); err == nil {
		return nil
	}
	return os.WriteFile(d.configPath(), []byte(devConfig), 0o600)
}

// demoName is the organization that dev makes.
const demoName = "demo"

// demoKey makes the organization and its key on the first start with a data
// directory; the secret is empty later.
func demoKey(ctx context.Context, db *store.DB, catalog *modelgate.Catalog) (secret string, err error) {
	clients, err := db.Clients(ctx)
	if err != nil {
		return "", err
	}
	client := newClient(demoName, time.Now())
	if i := slices.IndexFunc(clients, func(c modelgate.Client) bool { return c.Name == demoName }); i >= 0 {
		client = clients[i]
		if keys, _, err := db.Keys(ctx, client.ID, access.KeyList{Limit: 1}); err != nil || len(keys) > 0 {
			return "", err
		}
	} else if err := db.CreateClient(ctx, client, audit("dev", "client.create", "client", string(client.ID), client)); err != nil {
		return "", err
	}
	issued, err := issueKey(ctx, db, client.ID, modelgate.KeyRequest{}, catalog)
	return issued.Key, err
}
