package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"modelgate/internal/config"
	"modelgate/internal/gateway"
	"modelgate/internal/giveway"
	"modelgate/internal/provider"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
)

// newLive makes the part of a configuration that can change at run time.
func newLive(cfg *config.Config) (*gateway.Snapshot, error) {
	catalog, err := cfg.NewCatalog()
	if err != nil {
		return nil, err
	}
	providers := make(map[string]*provider.Provider, len(cfg.Providers))
	for i := range cfg.Providers {
		p, err := newProvider(&cfg.Providers[i])
		if err != nil {
			return nil, err
		}
		providers[p.Name()] = p
	}
	return gateway.NewLive(catalog, providers), nil
}

func newProvider(c *config.Provider) (*provider.Provider, error) {
	out := provider.Config{
		Name: c.Name, Format: c.Format, BaseURL: c.BaseURL, Region: c.Region,
		CredentialFile: c.CredentialFile, CAFile: c.CAFile, AllowStoredObjects: c.AllowStoredObjects, HTTP2: c.HTTP2, Standard: c.Transport == config.TransportStandard,
		Paths: c.Paths, Allow: c.Allow, AllowQuery: c.AllowQuery, Headers: c.Headers,
		Timeouts:     provider.Timeouts(c.Timeouts),
		OnDisconnect: provider.Disconnect(c.OnDisconnect),
	}
	if c.Auth != nil {
		out.Auth = &provider.Auth{Header: c.Auth.Header, Prefix: c.Auth.Prefix, Query: c.Auth.Query}
	}
	if !c.Credential.Empty() {
		out.Credentials = append(out.Credentials, c.Credential.Reveal())
	}
	for _, s := range c.Credentials {
		out.Credentials = append(out.Credentials, s.Reveal())
	}
	for _, s := range c.PreviousCredentials {
		out.PreviousCredentials = append(out.PreviousCredentials, s.Reveal())
	}
	return provider.New(out)
}

// watchReload reads the configuration again on SIGHUP. A file with faults
// changes nothing.
func (s *server) watchReload(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			if err := s.reload(); err != nil {
				s.reloads.WithLabelValues("refused").Inc()
				s.log.Error("configuration not reloaded; the old one stays", "error", err)
				continue
			}
			s.reloads.WithLabelValues("applied").Inc()
		}
	}
}

func (s *server) reload() error {
	if s.path == "" {
		return errors.New("this instance has no configuration file")
	}
	old := s.config.Load()
	cfg, err := loadConfig(s.env, s.path)
	if err != nil {
		return err
	}
	live, err := newLive(cfg)
	if err != nil {
		return err
	}
	if keys := config.RestartNeeded(old, cfg); len(keys) > 0 {
		s.log.Warn("some changes need a restart", "keys", strings.Join(keys, ", "))
	}
	s.config.Store(cfg)
	s.limiter.configure(cfg)
	s.level.Set(cfg.Log.Level)
	before := s.live.Swap(live)
	for _, p := range live.Providers {
		p.InUse()
	}
	for _, p := range before.Providers {
		p.Close() // calls under way keep their connections
	}
	s.log.Info("configuration reloaded", "models", len(live.Catalog.Models()), "providers", len(live.Providers))
	return nil
}

// loadConfig reads a configuration file and logs its warnings.
func loadConfig(env *environment, path string) (*config.Config, error) {
	cfg, err := config.Load(path, env.lookup)
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(env.stderr, "warning:", w)
	}
	return cfg, nil
}

// masterKeys are the configuration's, nil without any.
func masterKeys(cfg *config.Config) (*secrets.Keys, error) {
	var previous []string
	for _, s := range cfg.PreviousMasterKeys {
		previous = append(previous, s.Reveal())
	}
	return secrets.New(cfg.MasterKey.Reveal(), previous...)
}

const openTimeout = 30 * time.Second

// openStore opens the database of a configuration. Where no calls are served
// way is nil.
func openStore(env *environment, cfg *config.Config, mode store.Mode, way *giveway.Yielder) (*store.DB, error) {
	ctx, cancel := context.WithTimeout(env.ctx, openTimeout)
	defer cancel()
	return store.Open(ctx, store.Options{
		URL: cfg.Database.URL.Reveal(), Pooled: pooled(cfg), DataDir: cfg.Server.DataDir, Mode: mode,
		Log: slog.New(slog.NewTextHandler(env.stderr, nil)), Software: buildVersion(), Yielder: way,
	})
}

// pooled reports whether a pooler gives connections of PostgreSQL out by the
// transaction.
func pooled(cfg *config.Config) bool { return cfg.Database.Pooler == config.PoolerTransaction }

// newLog makes the service's logger on standard error.
func newLog(env *environment, cfg *config.Config, level *slog.LevelVar) *slog.Logger {
	level.Set(cfg.Log.Level)
	options := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == config.LogJSON || cfg.Log.Format == config.LogAuto && !terminal(env.stderr) {
		return slog.New(slog.NewJSONHandler(env.stderr, options))
	}
	return slog.New(slog.NewTextHandler(env.stderr, options))
}

func terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// strictJSON decodes an operator's JSON: unknown and repeated members are
// errors.
func strictJSON(text []byte, into any) error {
	return json.Unmarshal(text, into, json.RejectUnknownMembers(true))
}
