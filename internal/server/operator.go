package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/config"
	"modelgate/internal/httpx"
	"modelgate/internal/operator"
	"modelgate/internal/people"
	"modelgate/internal/store/access"
)

// newOperator is the server of the operator's API.
func (s *Server) newOperator(cfg *config.Config, o operator.Options, secret []byte) (*http.Server, error) {
	var err error
	if host, _, err := net.SplitHostPort(cfg.Operator.Listen); err == nil && cfg.Operator.TLS.CertFile == "" && !Loopback(cfg.Operator.Listen) {
		s.log.Warn("operator.listen speaks plain HTTP and other machines can reach it; set operator.tls, or put a proxy with TLS before it", "host", host)
	}
	opened := prometheus.NewCounter(prometheus.CounterOpts{Name: "modelgate_break_glass_total", Help: "Sessions of the operator's console that a one-time link has opened."})
	s.metrics.MustRegister(opened)
	o.BreakGlass, o.Secure = opened.Inc, strings.HasPrefix(cfg.Operator.Address(), "https:")
	o.Accounts, err = people.New(people.Options{
		BaseURL: strings.TrimRight(cfg.Operator.Address(), "/"), Root: "/operator", Secret: secret, Store: s.db, Keys: s.keys, Sessions: s.sessions,
		IDs: o.IDs, Now: o.Now, Log: s.log, Metrics: s.metrics,
	})
	if err != nil {
		return nil, err
	}
	s.console = operator.New(o)
	if err := s.configureOperators(cfg); err != nil {
		return nil, err
	}
	return &http.Server{
		Addr:              cfg.Operator.Listen,
		Handler:           httpx.Wrap(httpx.Options{IDs: o.IDs, Log: s.log, MaxBody: o.MaxBody}, s.console),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    hardHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, nil
}

// configureOperators takes over how operators sign in.
func (s *Server) configureOperators(cfg *config.Config) error {
	if s.console == nil {
		return nil
	}
	c, err := newPeopleConfig(cfg)
	if err != nil {
		return err
	}
	c.Providers = slices.DeleteFunc(c.Providers, func(p people.Provider) bool { return p.Name != cfg.Operator.SignIn })
	for i := range c.Providers {
		c.Providers[i].Rules, c.Providers[i].Groups = nil, true
	}
	signIn := operator.SignIn{Idle: cfg.Operator.Idle, Absolute: cfg.Operator.Absolute}
	for _, r := range cfg.Operator.Roles {
		signIn.Roles = append(signIn.Roles, operator.RoleRule{Group: r.Group, Role: access.Role(r.Role)})
	}
	s.console.Accounts.Configure(c)
	s.console.Configure(signIn)
	return nil
}

// serveOperator serves the operator's API until the server is shut down.
func (s *Server) serveOperator(cfg *config.Config) error {
	var err error
	switch {
	case cfg.Operator.TLS.CertFile != "":
		err = s.operator.ListenAndServeTLS(cfg.Operator.TLS.CertFile, cfg.Operator.TLS.KeyFile)
	case s.Operator != nil:
		err = s.operator.Serve(s.Operator)
	default:
		err = s.operator.ListenAndServe()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
