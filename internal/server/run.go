package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"modelgate/internal/config"
	"modelgate/internal/worker"
)

const (
	// streamGrace is how long open calls may go on once the listener is closed,
	// and closeGrace how long the remaining entries may take to be booked then.
	streamGrace = 30 * time.Second
	closeGrace  = 10 * time.Second
)

// Run serves until the context ends, then drains: it takes new calls for
// drain_delay, waits for open ones for streamGrace, and books what is left.
// It calls ready once the listener is open, and ends if that fails. It calls Close
// at the end.
func (s *Server) Run(ctx context.Context, ready func(addr net.Addr) error) error {
	cfg := s.Config
	listener, err := net.Listen("tcp", cfg.Server.Listen)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	listener = boundConnections(listener, cfg.Server.ProxyNetworks())
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	failed := make(chan error, 4)
	s.startLoops(background, failed)
	go func() { failed <- s.serve(listener, cfg) }()
	if s.admin != nil {
		go func() { failed <- s.admin.ListenAndServe() }()
	}
	if s.operator != nil {
		go func() { failed <- s.serveOperator(cfg) }()
	}
	err = ready(listener.Addr())
	s.log.Info("listening", "addr", listener.Addr().String(), "base_url", BaseURL(cfg, listener.Addr().String()), "version", s.Version,
		"providers", len(cfg.Providers), "models", len(cfg.Catalog))
	s.memory.tuneCollector(s.Lookup)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	s.drain(cfg)
	stop()
	s.loops.Wait()
	return errors.Join(err, s.Close())
}

// startLoops starts the background loops. They end with the context; failed
// takes the error of one that cannot go on.
func (s *Server) startLoops(ctx context.Context, failed chan<- error) {
	loops := []func(context.Context){
		s.keys.Run, s.sessions.Run, s.limiter.Run, s.watchReload, s.alerter.Run, s.exporter.Run, s.pruner.Run, s.expirer.Run, s.chains.Run, s.poller.Run,
		s.budgets.Run, s.tellOthers, s.bills.Run,
		(&worker.Compactor{Ledger: s.db, Log: s.log}).Run,
		(&worker.CounterPruner{Store: s.db, Log: s.log, Now: time.Now}).Run,
		func(ctx context.Context) {
			if err := s.shipper.Run(ctx); err != nil {
				failed <- fmt.Errorf("shipper: %w", err)
			}
		},
	}
	if s.traces != nil {
		loops = append(loops, s.traces.Run)
	}
	for _, run := range loops {
		s.loops.Go(func() { run(ctx) })
	}
}

func (s *Server) serve(l net.Listener, cfg *config.Config) error {
	var err error
	switch {
	case cfg.Server.TLS.CertFile != "":
		err = s.http.ServeTLS(l, cfg.Server.TLS.CertFile, cfg.Server.TLS.KeyFile)
	case cfg.Server.HTTP == config.ServerStandard:
		err = s.http.Serve(l)
	default:
		err = s.front.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain stops taking calls and waits for those under way.
func (s *Server) drain(cfg *config.Config) {
	s.health.draining.Store(true)
	s.log.Info("draining", "delay", cfg.Server.DrainDelay)
	time.Sleep(cfg.Server.DrainDelay)
	ctx, cancel := context.WithTimeout(context.Background(), streamGrace)
	defer cancel()
	if err := s.front.Shutdown(ctx); err != nil {
		s.log.Warn("shutdown timeout, aborting open calls", "grace", streamGrace)
		s.gateway.Cut()
		_ = s.front.Close() // what it could not close is ending anyway
	}
	s.gateway.Wait()
	if s.operator != nil {
		_ = s.operator.Shutdown(ctx) // a change is completed in its transaction, or not made
	}
	if s.admin != nil {
		_ = s.admin.Close() // holds nothing that could be lost
	}
}

// Close books what it can and closes what New opened.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := s.shipper.Drain(ctx); err != nil {
		s.log.Warn("usage stays in the spool until the next start", "error", err)
	} else if err := s.budgets.End(ctx); err != nil {
		s.log.Warn("what this instance holds of budgets is free at its next start", "error", err)
	}
	for _, p := range s.snapshot.Load().Providers {
		p.Close()
	}
	s.identities.Close()
	return errors.Join(s.spool.Close(), s.db.Close(), s.yielder.Close())
}
