package server

import (
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/people"
)

// openPeople makes what signs people in. The secret is one that all instances
// share.
func (s *Server) openPeople(cfg *config.Config, ids *modelgate.IDs, secret []byte) error {
	c, err := newPeopleConfig(cfg)
	if err != nil {
		return err
	}
	s.people, err = people.New(people.Options{
		BaseURL: strings.TrimRight(cfg.Server.BaseURL, "/"), Root: "/dashboard", Secret: secret, Store: s.db, Keys: s.keys, Sessions: s.sessions,
		IDs: ids, Now: time.Now, Log: s.log, Metrics: s.metrics,
	})
	if err == nil {
		s.people.Configure(c)
	}
	return err
}

// newPeopleConfig is the part of a configuration that says how people sign in.
func newPeopleConfig(cfg *config.Config) (people.Config, error) {
	c := people.Config{Idle: cfg.SignIn.Idle, Absolute: cfg.SignIn.Absolute}
	for i := range cfg.SignIn.Providers {
		p := &cfg.SignIn.Providers[i]
		next := people.Provider{
			Name: p.Name, Label: p.Label, Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret.Reveal(), Scopes: p.Scopes,
			Claims: people.Claims(p.Claims), TrustEmail: p.TrustEmail, Domains: p.Domains, MaxAge: p.MaxAge,
		}
		if p.ClientSecretFile != "" {
			text, err := os.ReadFile(p.ClientSecretFile)
			if err != nil {
				return c, fmt.Errorf("sign_in.providers[%d].client_secret_file: %w", i, err)
			}
			next.ClientSecret = strings.TrimSpace(string(text))
		}
		if p.CAFile != "" {
			pem, err := os.ReadFile(p.CAFile)
			if err != nil {
				return c, fmt.Errorf("sign_in.providers[%d].ca_file: %w", i, err)
			}
			if next.Roots = x509.NewCertPool(); !next.Roots.AppendCertsFromPEM(pem) {
				return c, fmt.Errorf("sign_in.providers[%d].ca_file: there is no certificate in it", i)
			}
		}
		for _, r := range p.Organizations {
			next.Rules = append(next.Rules, people.Rule{Organization: modelgate.ClientID(r.Organization), Group: r.Group, Role: r.Role})
		}
		c.Providers = append(c.Providers, next)
	}
	return c, nil
}
