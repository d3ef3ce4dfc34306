package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	// operator is where the operator's console listens, host:port; "" is nowhere.
	operator string
}

func (a *app) dev() *cobra.Command {
	d := &dev{app: a}
	cmd := a.command("dev", "Try Modelgate: embedded database, simulated providers, one organization", func([]string) error {
		return d.run()
	})
	cmd.Flags().StringVar(&d.data, "data", "modelgate-dev", "the `DIR` where keys and books are kept")
	cmd.Flags().StringVar(&d.listen, "listen", "127.0.0.1:8080", "the `ADDRESS` to listen on")
	cmd.Flags().StringVar(&d.operator, "operator-listen", "127.0.0.1:8081", "the `ADDRESS` of the operator's console; empty has none")
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
	options := d.app.serverOptions(cfg, "")
	if options.Operator = d.console(cfg); options.Operator != nil {
		defer options.Operator.Close()
	}
	if err := d.leaveConfig(); err != nil {
		return err
	}
	ctx := d.app.Context
	s, err := server.New(ctx, options)
	if errors.Is(err, store.ErrInUse) {
		return fmt.Errorf("%w\nIf another dev runs on %s, stop it or start this one apart: %s dev --data %s --listen %s",
			err, d.data, d.app.program(), d.data+"-2", d.anotherPort())
	}
	if err != nil {
		return err
	}
	err = s.Run(ctx, func(addr net.Addr) error {
		key, err := demoKey(ctx, s.Store(), s.Catalog())
		if err != nil {
			return err
		}
		link := consoleLink{}
		if options.Operator != nil {
			if link, err = newOperatorLink(ctx, s.Store(), cfg); err != nil {
				return err
			}
		}
		return d.greet(addr, key, len(cfg.Catalog), link.URL)
	})
	if portTaken(err) {
		return fmt.Errorf("%w\nListen on another port: %s dev --listen %s", err, d.app.program(), d.anotherPort())
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
	return cfg, nil
}

// anotherPort is an address for a second dev. The port after that of the first is
// where its console listens.
func (d *dev) anotherPort() string { return nextPort(nextPort(d.listen)) }

// console opens the listener of the operator's console. Where that is not possible
// dev goes on without, and says so.
func (d *dev) console(cfg *config.Config) net.Listener {
	if d.operator == "" {
		return nil
	}
	if d.operator == d.listen {
		d.operator = nextPort(d.listen)
	}
	l, err := net.Listen("tcp", d.operator)
	if err != nil {
		fmt.Fprintf(d.app.Stderr, "There is no operator's console: %v. Another place for it: --operator-listen %s\n", err, nextPort(d.operator))
		return nil
	}
	d.operator = l.Addr().String()
	cfg.Operator.Listen = d.operator
	return l
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

// greet tells a newcomer what there is and what to try.
func (d *dev) greet(addr net.Addr, key string, models int, console string) error {
	if !server.Loopback(addr.String()) {
		fmt.Fprintf(d.app.Stderr, "\nWARNING: dev listens on %s, which other machines can reach. It is made for trying things out:\nits key is printed below and its providers are simulated. Use `modelgate serve` for anything else.\n", addr)
	}
	base, data := "http://"+addr.String(), d.data
	if absolute, err := filepath.Abs(d.data); err == nil {
		data = absolute
	}
	g := demo.Greeting{URL: base, Dashboard: base + "/dashboard", Console: console, Models: models, Data: data, Config: d.configPath(), Client: demoName, Key: key}
	return (&output{app: d.app}).value(g, func(w io.Writer) { g.Text(w, d.app.program(), quoted(g.Config)) })
}

const devConfig = `# Written by "modelgate dev" so that the operator's commands find this data:
#   modelgate client list --config FILE
#   modelgate key issue --config FILE --client demo
server:
  data_dir: .
database:
  url: sqlite:modelgate.db
operator:
  listen: %q
`

// configPath is a configuration file for the operator's commands.
func (d *dev) configPath() string { return filepath.Join(d.data, "modelgate.yaml") }

func (d *dev) leaveConfig() error {
	if _, err := os.Stat(d.configPath()); err == nil {
		return nil
	}
	return os.WriteFile(d.configPath(), fmt.Appendf(nil, devConfig, d.operator), 0o600)
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
