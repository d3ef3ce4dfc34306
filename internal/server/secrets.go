package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/dashboard"
	"modelgate/internal/httpx"
)

// onSQLite reports whether the instance is the only one, so that a secret may
// lie beside its database.
func onSQLite(cfg *config.Config) bool {
	return strings.HasPrefix(cfg.Database.URL.Reveal(), "sqlite:")
}

// cursorKey is the key that signs page cursors. With SQLite it lies in the
// data directory; instances on PostgreSQL derive theirs from the database's
// address, which they have in common.
func cursorKey(cfg *config.Config, log *slog.Logger) ([]byte, error) {
	if !onSQLite(cfg) {
		return []byte(cfg.Database.URL.Reveal()), nil
	}
	return GeneratedKey(cfg, "cursor.key", func(path string) {
		log.Warn("cursor.key is damaged; a new one is made, and page cursors handed out so far end", "file", path)
	})
}

// GeneratedKey is a key of 32 bytes in a file of the data directory, made
// where there is none that can be read.
func GeneratedKey(cfg *config.Config, name string, damaged func(path string)) ([]byte, error) {
	path := filepath.Join(cfg.Server.DataDir, name)
	text, err := os.ReadFile(path)
	if err == nil {
		if key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err == nil && len(key) == 32 {
			return key, nil
		}
		damaged(path)
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails (crypto/rand)
	return key, os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"), 0o600)
}

// warnOfSecrets says which of the stored secrets no configured key opens.
func (s *Server) warnOfSecrets(ctx context.Context) {
	counts, err := s.db.CountSecrets(ctx)
	if err != nil {
		s.log.Warn("whether all secrets can be read is not known", "error", err)
	}
	for _, c := range counts {
		if !slices.Contains(s.master.IDs(), c.KeyID) {
			s.log.Warn("secrets cannot be read: their master key is not configured", "key_id", c.KeyID, "secrets", c.Count)
		}
	}
}

// newDashboard makes the dashboard and the portals.
func (s *Server) newDashboard(cfg *config.Config, ids *modelgate.IDs, enter func(http.ResponseWriter, *http.Request, dashboard.Visit), proxies httpx.Proxies) (*dashboard.Pages, error) {
	return dashboard.New(dashboard.Options{
		BaseURL: cfg.Server.BaseURL, Keys: s.keys, Sessions: s.sessions, Store: s.db, People: s.people, Limiter: s.limiter, IDs: ids,
		Enter: enter, OverTLS: proxies.OverTLS, Client: proxies.Client, Now: time.Now, Log: s.log,
		KeySession: func() time.Duration { return s.config.Load().SignIn.KeySession },
	})
}
