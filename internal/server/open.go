package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/focus/source"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
)

// LoadConfig reads a configuration file and prints its warnings.
func LoadConfig(path string, lookup func(string) (string, bool), warnings io.Writer) (*config.Config, error) {
	cfg, err := config.Load(path, lookup)
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(warnings, "warning:", w)
	}
	return cfg, nil
}

// MasterKeys are the configuration's, nil without any.
func MasterKeys(cfg *config.Config) (*secrets.Keys, error) {
	var previous []string
	for _, s := range cfg.PreviousMasterKeys {
		previous = append(previous, s.Reveal())
	}
	return secrets.New(cfg.MasterKey.Reveal(), previous...)
}

const openTimeout = 30 * time.Second

// OpenStore opens the database of a configuration, or the one at o.URL. The
// options say everything that the configuration does not.
func OpenStore(ctx context.Context, cfg *config.Config, o store.Options) (*store.DB, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if o.URL == "" {
		o.URL = cfg.Database.URL.Reveal()
	}
	o.Pooled, o.DataDir = cfg.Database.Pooler == config.PoolerTransaction, cfg.Server.DataDir
	return store.Open(ctx, o)
}

// NewLog makes the logger that the configuration asks for.
func NewLog(w io.Writer, cfg *config.Config, level *slog.LevelVar) *slog.Logger {
	level.Set(cfg.Log.Level)
	options := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == config.LogJSON || cfg.Log.Format == config.LogAuto && !terminal(w) {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// BaseURL is where people reach the gateway, without a slash at its end: as
// configured, else at an address that it listens on.
func BaseURL(cfg *config.Config, listen string) string {
	switch {
	case cfg.Server.BaseURL != "":
		return strings.TrimRight(cfg.Server.BaseURL, "/")
	case cfg.Server.TLS.CertFile != "":
		return "https://" + listen
	}
	return "http://" + listen
}

// Audit begins the record of a change that an actor makes now.
func Audit(actor modelgate.Actor, action string) modelgate.Audit {
	return modelgate.Audit{ID: modelgate.NewIDs(time.Now).New().String(), At: time.Now().UTC(), Action: action, Actor: actor}
}

// FocusNames is how FOCUS files name things by a configuration.
func FocusNames(cfg *config.Config) source.Names {
	return source.Names{Issuer: cfg.Focus.IssuerName, ProviderNames: cfg.Focus.ProviderNames}
}
