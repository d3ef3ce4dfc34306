package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate/internal/config"
	"modelgate/internal/httpx"
	"modelgate/internal/operator"
)

// newOperator is the server of the operator's API.
func (s *Server) newOperator(cfg *config.Config, o operator.Options) *http.Server {
	if host, _, err := net.SplitHostPort(cfg.Operator.Listen); err == nil && cfg.Operator.TLS.CertFile == "" && !Loopback(cfg.Operator.Listen) {
		s.log.Warn("operator.listen speaks plain HTTP and other machines can reach it; set operator.tls, or put a proxy with TLS before it", "host", host)
	}
	opened := prometheus.NewCounter(prometheus.CounterOpts{Name: "modelgate_break_glass_total", Help: "Sessions of the operator's console that a one-time link has opened."})
	s.metrics.MustRegister(opened)
	o.BreakGlass, o.Secure = opened.Inc, strings.HasPrefix(cfg.Operator.Address(), "https:")
	return &http.Server{
		Addr:              cfg.Operator.Listen,
		Handler:           httpx.Wrap(httpx.Options{IDs: o.IDs, Log: s.log, MaxBody: o.MaxBody}, operator.New(o)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    hardHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
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
