package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"modelgate/internal/cloud"
	"modelgate/internal/config"
	"modelgate/internal/gateway"
	"modelgate/internal/provider"
)

// NewSnapshot makes the part of a configuration that a reload replaces, for one
// look at it. Its error is a fault of the configuration.
func NewSnapshot(cfg *config.Config) (*gateway.Snapshot, error) {
	snapshot, _, err := newSnapshot(cfg, cloud.NewSet(slog.New(slog.DiscardHandler)))
	return snapshot, err
}

// newSnapshot is NewSnapshot with the identities of the providers, which are to be
// used before it is.
func newSnapshot(cfg *config.Config, identities *cloud.Set) (*gateway.Snapshot, *cloud.Next, error) {
	catalog, err := cfg.NewCatalog()
	if err != nil {
		return nil, nil, err
	}
	next, err := identities.Next(identityConfigs(cfg))
	if err != nil {
		return nil, nil, err
	}
	providers := make(map[string]*provider.Provider, len(cfg.Providers))
	for i := range cfg.Providers {
		p, err := newProvider(&cfg.Providers[i], next)
		if err != nil {
			return nil, nil, err
		}
		providers[p.Name()] = p
	}
	return gateway.NewSnapshot(catalog, providers), next, nil
}

func newProvider(c *config.Provider, identities *cloud.Next) (*provider.Provider, error) {
	out := provider.Config{
		Name: c.Name, Format: c.Format, BaseURL: c.BaseURL, Region: c.Region, ModelRegions: c.RegionsOfModels(),
		Project: c.Project, Location: c.Location,
		CredentialFile: c.CredentialFile, CAFile: c.CAFile, AllowStoredObjects: c.AllowStoredObjects, HTTP2: c.HTTP2, Standard: c.Transport == config.TransportStandard,
		Paths: c.Paths, Allow: c.Allow, AllowQuery: c.AllowQuery, Headers: c.Headers,
		Timeouts:     provider.Timeouts(c.Timeouts),
		OnDisconnect: provider.Disconnect(c.OnDisconnect),
		StatedCost:   provider.StatedCostUse(c.StatedCost),
	}
	if identity := identities.Of(c.Name); identity != nil {
		out.Identity = identity
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
func (s *Server) watchReload(ctx context.Context) {
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

func (s *Server) reload() error {
	if s.ConfigFile == "" {
		return errors.New("this instance has no configuration file")
	}
	old := s.config.Load()
	cfg, err := LoadConfig(s.ConfigFile, s.Lookup, s.Stderr)
	if err != nil {
		return err
	}
	snapshot, identities, err := newSnapshot(cfg, s.identities)
	if err != nil {
		return err
	}
	peopleConfig, err := newPeopleConfig(cfg)
	if err != nil {
		return err
	}
	if err := s.changeFileLimits(old, cfg); err != nil {
		return err
	}
	if keys := config.RestartNeeded(old, cfg); len(keys) > 0 {
		s.log.Warn("some changes need a restart", "keys", strings.Join(keys, ", "))
	}
	if err := s.configureOperators(cfg); err != nil {
		return err
	}
	s.config.Store(cfg)
	hash := s.hashConfig()
	s.configHash.Store(&hash)
	s.people.Configure(peopleConfig)
	s.limiter.configure(cfg)
	s.level.Set(cfg.Log.Level)
	identities.Use()
	before := s.snapshot.Swap(snapshot)
	for _, p := range snapshot.Providers {
		p.InUse()
	}
	for _, p := range before.Providers {
		p.Close() // calls under way keep their connections
	}
	s.log.Info("configuration reloaded", "models", len(snapshot.Catalog.Models()), "providers", len(snapshot.Providers))
	return nil
}
