package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"modelgate"
	"modelgate/internal/auth"
	"modelgate/internal/budget"
	"modelgate/internal/config"
	"modelgate/internal/gateway"
	"modelgate/internal/giveway"
	"modelgate/internal/http1server"
	"modelgate/internal/httpx"
	"modelgate/internal/openapi"
	"modelgate/internal/secrets"
	"modelgate/internal/selfservice"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/tracing"
	"modelgate/internal/worker"
)

const (
	// streamGrace is how long open calls get once the listener is closed, and
	// closeGrace how long the books then get.
	streamGrace = 30 * time.Second
	closeGrace  = 10 * time.Second
	// hardHeader lies above the bound of the web package, which answers
	// larger headers with the envelope.
	hardHeader = 64 << 10
)

// server is one running instance.
type server struct {
	env      *environment
	path     string // of the configuration file; "" for none
	log      *slog.Logger
	level    *slog.LevelVar
	config   atomic.Pointer[config.Config]
	live     atomic.Pointer[gateway.Snapshot]
	master   *secrets.Keys    // nil without a master key
	way      *giveway.Yielder // of work beside the calls
	db       *store.DB
	spool    *spool.Spool
	shipper  *worker.Shipper
	purse    *budget.Enforcer // nil where nothing is enforced
	alerter  *worker.Alerter
	poller   *worker.Poller
	exporter *worker.Exporter
	keeper   *worker.RetentionPruner
	signing  *signing
	chains   *worker.Sequencer
	traces   *tracing.Exporter // nil where nothing is traced
	keys     *auth.Authenticator
	sessions *auth.Sessions
	relay    *gateway.Gateway
	health   *health
	memory   memory
	http     *http.Server
	lane     *http1server.Server // in front of http, where the gateway does not end TLS itself
	admin    *http.Server        // nil without admin_listen
	metrics  *prometheus.Registry
	reloads  *prometheus.CounterVec
	limiter  *liveLimiter
	loops    sync.WaitGroup
	fail     failpoints
	withheld *withheld
}

// newServer opens what an instance needs, in the order in which one thing
// needs another, and recovers what an earlier life left.
func newServer(env *environment, cfg *config.Config) (*server, error) {
	harden()
	s := &server{env: env, level: new(slog.LevelVar), metrics: prometheus.NewRegistry(), fail: newFailpoints(env.lookup), way: giveway.New()}
	s.config.Store(cfg)
	s.log = newLog(env, cfg, s.level)
	s.withheld = &withheld{log: s.log}
	log.SetOutput(s.withheld)
	var err error
	if s.master, err = masterKeys(cfg); err != nil {
		return nil, err
	}
	live, err := newLive(cfg)
	if err != nil {
		return nil, err
	}
	s.live.Store(live)
	if err := os.MkdirAll(cfg.Server.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	if s.db, err = openStore(env, cfg, store.Exclusive, s.way); err != nil {
		return nil, err
	}
	s.warnOfSecrets()
	if err := s.openBooks(cfg); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	if err := s.mount(cfg); err != nil {
		return nil, errors.Join(err, s.spool.Close(), s.db.Close())
	}
	return s, nil
}

// openBooks opens the spool and books what is left in it.
func (s *server) openBooks(cfg *config.Config) error {
	var err error
	s.spool, err = spool.Open(s.fail.spool(spool.Options{
		FS:          spool.Dir(filepath.Join(cfg.Server.DataDir, "spool")),
		Log:         s.log,
		Fsync:       spool.Fsync(cfg.Metering.Fsync),
		Bound:       int64(cfg.Metering.SpoolMaxBytes),
		NewInstance: func() string { return modelgate.NewIDs(time.Now).New().String() },
		Fatal: func(err error) {
			s.log.Error("the spool's disk failed; ending, so that nothing is served that is not booked", "error", err)
			os.Exit(exitError)
		},
	}))
	if err != nil {
		return err
	}
	s.shipper = worker.NewShipper(s.spool, s.fail.ledger(s.db), s.log, s.way)
	if err := s.shipper.Recover(s.env.ctx); err != nil {
		return errors.Join(fmt.Errorf("recover the spool: %w", err), s.spool.Close())
	}
	if err := s.openPurse(cfg); err != nil {
		return errors.Join(fmt.Errorf("budgets: %w", err), s.spool.Close())
	}
	s.alerter = s.newAlerter(cfg)
	s.keeper = s.newKeeper(cfg)
	if err := s.openEvidence(cfg); err != nil {
		return errors.Join(err, s.spool.Close())
	}
	return nil
}

// mount puts the surfaces together.
func (s *server) mount(cfg *config.Config) error {
	ids := modelgate.NewIDs(time.Now)
	s.memory = measureMemory(s.env.lookup, availableMemory)
	maxBody := int64(cfg.Server.MaxRequestBytes)
	proxies := httpx.Proxies(cfg.Server.ProxyNetworks())
	room := httpx.NewRoom(s.memory.bodies, maxBody)
	if s.memory.bodies < 2*maxBody {
		s.log.Warn("memory is too small for the largest request bodies; lower server.max_request_bytes, or raise the container's memory or GOMEMLIMIT",
			"max_request_bytes", maxBody, "memory_for_bodies", s.memory.bodies)
	}
	cursorKey, err := cursorKey(cfg, s.log)
	if err != nil {
		return err
	}
	if s.limiter, err = newLimiter(cfg, ids, s.log); err != nil {
		return err
	}
	s.keys = auth.New(auth.Options{
		Source: callers{s.db, cfg.Enforcement}, Unreachable: store.Unreachable, Touch: s.db.TouchKeys, Now: time.Now, Log: s.log,
		Client: proxies.Client,
	})
	s.sessions = auth.NewSessions(auth.SessionOptions{Source: s.db, Unreachable: store.Unreachable, Now: time.Now, Log: s.log, Client: proxies.Client})
	together := giveway.NewWriteBatcher()
	s.relay = gateway.New(gateway.Options{
		Live: s.live.Load, Keys: s.keys, Limiter: s.limiter, Books: s.fail.books(spool.NewCalls(s.spool)), Log: s.log,
		Metrics: gateway.NewMetrics(s.metrics), MaxBody: maxBody, Memory: room, Budgets: s.purse, Tracing: s.openTracing(cfg),
		Jobs: s.db, Flushed: s.shipper.Flush, Lag: s.lag(), Writes: together,
	})
	client := newProcessor(cfg)
	s.exporter = s.newExporter(client)
	checkout := newCheckout(cfg)
	s.poller = s.newPoller()
	api := selfservice.New(selfservice.Options{
		Store: s.db, Keys: s.keys, Limiter: s.limiter, Catalog: func() *modelgate.Catalog { return s.live.Load().Catalog },
		Flushed: s.shipper.Flush, Cursors: httpx.NewCursors(cursorKey), IDs: ids, Now: time.Now, Log: s.log,
		MaxBody: maxBody, Memory: room, Processor: client, Master: s.master, Checkout: checkout, Signer: s.signing.Signer,
		Door: s.relay.DoorOf,
	})
	s.registerMetrics()
	s.health = newHealth(s.keys.LastRead, s.metrics)
	s.health.shared = cfg.Server.AdminListen == ""
	front := &router{manage: api, webhook: checkout.Offered(), relay: s.relay, live: s.live.Load, health: s.health, api: openapi.NewHandler(),
		maxBody: maxBody, cors: newCORS(cfg.Server.CORS)}
	if front.pages, err = s.newPages(cfg, ids, front.enter, proxies.OverTLS); err != nil {
		return err
	}
	handler := httpx.Wrap(httpx.Options{IDs: ids, Log: s.log, MaxBody: maxBody, Proxies: proxies, CrossOrigin: front.crossOrigin}, front)
	s.http = &http.Server{
		Handler:           s.fail.handler(s.closing(handler)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    hardHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// Left to itself the server answers OPTIONS * without the request id.
		DisableGeneralOptionsHandler: true,
	}
	s.lane = http1server.New(s.http, together)
	if cfg.Server.AdminListen != "" {
		s.admin = &http.Server{Addr: cfg.Server.AdminListen, Handler: s.adminSurface(), ReadHeaderTimeout: 10 * time.Second}
	}
	return nil
}

// adminSurface is what only the operator reaches: the metrics, and profiles
// of the running process.
func (s *server) adminSurface() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.health.metrics)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// closing tells clients to come back on a new connection while the instance
// drains.
func (s *server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.health.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// run serves until the environment's context ends, then drains: new calls for
// drain_delay, open ones for streamGrace, then the books.
func (s *server) run(ready func(addr net.Addr)) error {
	cfg := s.config.Load()
	listener, err := net.Listen("tcp", cfg.Server.Listen)
	if err != nil {
		return errors.Join(err, s.close())
	}
	listener = boundConnections(listener, cfg.Server.ProxyNetworks())
	loops, stopLoops := context.WithCancel(context.WithoutCancel(s.env.ctx))
	defer stopLoops()
	failed := make(chan error, 3)
	s.loops.Go(func() { s.keys.Run(loops) })
	s.loops.Go(func() { s.sessions.Run(loops) })
	s.loops.Go(func() { s.limiter.Run(loops) })
	s.loops.Go(func() {
		if err := s.shipper.Run(loops); err != nil {
			failed <- fmt.Errorf("shipper: %w", err)
		}
	})
	s.loops.Go(func() { s.watchReload(loops) })
	s.loops.Go(func() { s.alerter.Run(loops) })
	s.loops.Go(func() { s.exporter.Run(loops) })
	s.loops.Go(func() { s.keeper.Run(loops) })
	s.loops.Go(func() { s.chains.Run(loops) })
	s.loops.Go(func() { (&worker.Compactor{Ledger: s.db, Log: s.log}).Run(loops) })
	if s.traces != nil {
		s.loops.Go(func() { s.traces.Run(loops) })
	}
	s.loops.Go(func() { s.poller.Run(loops) })
	if s.purse != nil {
		s.loops.Go(func() { s.purse.Run(loops) })
	}
	go func() { failed <- s.serve(listener, cfg) }()
	if s.admin != nil {
		go func() { failed <- s.admin.ListenAndServe() }()
	}
	ready(listener.Addr())
	s.loops.Go(func() { tuneRuntime(loops, s.memory.heap, s.env.lookup) })
	select {
	case <-s.env.ctx.Done():
	case err = <-failed:
	}
	s.drain(cfg)
	stopLoops()
	s.loops.Wait()
	return errors.Join(err, s.close())
}

func (s *server) serve(l net.Listener, cfg *config.Config) error {
	var err error
	switch {
	case cfg.Server.TLS.CertFile != "":
		err = s.http.ServeTLS(l, cfg.Server.TLS.CertFile, cfg.Server.TLS.KeyFile)
	case cfg.Server.HTTP == config.ServerStandard:
		err = s.http.Serve(l)
	default:
		err = s.lane.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain stops taking calls and waits for those under way.
func (s *server) drain(cfg *config.Config) {
	s.health.draining.Store(true)
	s.log.Info("draining", "delay", cfg.Server.DrainDelay)
	if d := cfg.Server.DrainDelay; d > 0 {
		time.Sleep(d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), streamGrace)
	defer cancel()
	if err := s.lane.Shutdown(ctx); err != nil {
		s.log.Warn("calls were cut at the end of the grace", "grace", streamGrace)
		s.relay.Cut()
		_ = s.lane.Close() // what it could not close is ending anyway
	}
	s.relay.Wait()
	if s.admin != nil {
		_ = s.admin.Close() // holds nothing that could be lost
	}
}

// close books what it can and closes what newServer opened.
func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	if err := s.shipper.Drain(ctx); err != nil {
		s.log.Warn("usage stays in the spool until the next start", "error", err)
	} else if s.purse != nil {
		if err := s.purse.End(ctx); err != nil {
			s.log.Warn("what this instance holds of budgets is free at its next start", "error", err)
		}
	}
	for _, p := range s.live.Load().Providers {
		p.Close()
	}
	return errors.Join(s.spool.Close(), s.db.Close(), s.way.Close())
}

func (s *server) registerMetrics() {
	s.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelgate_config_reloads_total", Help: "Reloads of the configuration, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"applied", "refused"} {
		s.reloads.WithLabelValues(outcome) // a rise from nothing is not seen by rate()
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	counter := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
	}
	s.metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.reloads,
		gauge("modelgate_spool_bytes", "Bytes the spool has allocated.", func() float64 { return float64(s.spool.Stats().Bytes) }),
		gauge("modelgate_spool_open_calls", "Calls begun and not ended.", func() float64 { return float64(s.spool.Stats().Open) }),
		gauge("modelgate_spool_backlog_bytes", "Bytes of entries not yet booked in the database.", func() float64 { return float64(s.shipper.Backlog()) }),
		gauge("modelgate_spool_oldest_seconds", "Age of the oldest finished call that is not booked; 0 while the database keeps up.", func() float64 { return s.shipper.Stats().FailingFor.Seconds() }),
		gauge("modelgate_spool_last_fsync_seconds", "Duration of the last sync.", func() float64 { return s.spool.Stats().LastSync.Seconds() }),
		counter("modelgate_spool_quarantined_total", "Damaged places and entries kept aside.", func() float64 {
			return float64(s.spool.Stats().Quarantined + s.shipper.Stats().Quarantined)
		}),
		counter("modelgate_limiter_fallbacks_total", "Requests whose limits this instance judged alone, because Redis did not answer.", s.limiter.fallbacks),
		gauge("modelgate_evidence_lag_seconds", "Age of the oldest record of evidence that is in no chain yet.", func() float64 { return s.chains.Stats().Lag.Seconds() }),
		counter("modelgate_evidence_records_total", "Records of evidence chained by this process.", func() float64 { return float64(s.chains.Stats().Records) }),
		counter("modelgate_log_lines_withheld_total", "Lines that libraries wrote to the standard logger.", func() float64 { return float64(s.withheld.lines.Load()) }),
		counter("modelgate_rows_booked_total", "Usage rows booked by this process.", func() float64 { return float64(s.shipper.Stats().Rows) }),
	)
}

// loopback reports whether an address, with a port, is this machine's own.
func loopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}
