// Package server puts a gateway together and runs it: listeners, router,
// probes, metrics, reload of the configuration, shutdown. Package cli is the
// command line in front of it.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/atomicfile"
	"modelgate/internal/auth"
	"modelgate/internal/bill"
	"modelgate/internal/budget"
	"modelgate/internal/cloud"
	"modelgate/internal/config"
	"modelgate/internal/gateway"
	"modelgate/internal/http1server"
	"modelgate/internal/httpx"
	"modelgate/internal/jobs"
	"modelgate/internal/openapi"
	"modelgate/internal/operator"
	"modelgate/internal/people"
	"modelgate/internal/provider"
	"modelgate/internal/secrets"
	"modelgate/internal/selfservice"
	"modelgate/internal/signing"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/tracing"
	"modelgate/internal/worker"
	"modelgate/internal/yield"
)

// hardHeader bounds the header of a request, in bytes. It lies above the bound
// of httpx, which answers larger headers with the error envelope.
const hardHeader = 64 << 10

// Options are what New needs. All fields but ConfigFile and Operator are required.
type Options struct {
	Config *config.Config
	// ConfigFile is read again on SIGHUP; "" means that there is none to read.
	ConfigFile string
	Version    string // of the program
	Stderr     io.Writer
	// Operator is the open listener of operator.listen; nil opens one.
	Operator net.Listener
	// Lookup reads the environment, as os.LookupEnv does.
	Lookup func(string) (string, bool)
	// Exit ends the process at once, with an exit code that says so. It is called
	// when the spool's disk has failed.
	Exit func()
}

// Server is one running instance.
type Server struct {
	Options
	log        *slog.Logger
	level      *slog.LevelVar
	config     atomic.Pointer[config.Config]
	configHash atomic.Pointer[string] // of the file that config was read from
	snapshot   atomic.Pointer[gateway.Snapshot]
	identities *cloud.Set
	master     *secrets.Keys       // nil without a master key
	yielder    *yield.Yielder      // nil without cooperative_yield
	batcher    *yield.WriteBatcher // so is this
	db         *store.DB
	spool      *spool.Spool
	shipper    *worker.Shipper
	budgets    *budget.Enforcer
	alerter    *worker.Alerter
	poller     *jobs.Poller
	exporter   *worker.Exporter
	pruner     *worker.RetentionPruner
	expirer    *worker.CreditExpirer
	bills      *bill.Service
	signing    *signing.Signing
	chains     *worker.Sequencer
	traces     *tracing.Exporter // nil where nothing is traced
	keys       *auth.Authenticator
	sessions   *auth.Sessions
	people     *people.Service
	gateway    *gateway.Gateway
	health     *health
	memory     memory
	http       *http.Server
	front      *http1server.Server // in front of http, where the gateway does not terminate TLS itself
	admin      *http.Server        // nil without admin_listen
	operator   *http.Server        // nil without operator.listen
	console    *operator.API       // that it serves
	metrics    registry
	reloads    *prometheus.CounterVec
	limiter    *liveLimiter
	loops      sync.WaitGroup
	fail       failpoints
	withheld   *withheld
}

// New opens what an instance needs, in the order in which one thing needs
// another, and books what an earlier process left in the spool. Run or Close
// must follow.
func New(ctx context.Context, o Options) (*Server, error) {
	harden()
	cfg := o.Config
	s := &Server{Options: o, level: new(slog.LevelVar), metrics: registry{prometheus.NewRegistry()}, fail: newFailpoints(o.Lookup)}
	if cfg.Server.CooperativeYield {
		s.yielder, s.batcher = yield.New(), yield.NewWriteBatcher()
	}
	s.config.Store(cfg)
	hash := s.hashConfig()
	s.configHash.Store(&hash)
	s.log = NewLog(o.Stderr, cfg, s.level)
	s.withheld = &withheld{log: s.log}
	log.SetOutput(s.withheld)
	var err error
	if s.master, err = MasterKeys(cfg); err != nil {
		return nil, err
	}
	s.identities = cloud.NewSet(s.log)
	snapshot, identities, err := newSnapshot(cfg, s.identities)
	if err != nil {
		return nil, err
	}
	s.snapshot.Store(snapshot)
	if err := atomicfile.MakeDir(cfg.Server.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	s.db, err = OpenStore(ctx, cfg, store.Options{Mode: store.Exclusive, Log: textLog(o.Stderr), Software: o.Version, Yielder: s.yielder})
	if err != nil {
		return nil, err
	}
	s.warnOfSecrets(ctx)
	if err := s.openBooks(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	if err := s.mount(cfg); err != nil {
		return nil, errors.Join(err, s.spool.Close(), s.db.Close())
	}
	identities.Use()
	return s, nil
}

// Store is the database.
func (s *Server) Store() *store.DB { return s.db }

// Catalog is the catalog of the configuration in force.
func (s *Server) Catalog() *modelgate.Catalog { return s.snapshot.Load().Catalog }

// openBooks opens the spool and books what is left in it.
func (s *Server) openBooks(ctx context.Context, cfg *config.Config) error {
	var err error
	s.spool, err = spool.Open(s.fail.spool(spool.Options{
		FS:          spool.Dir(filepath.Join(cfg.Server.DataDir, "spool")),
		Log:         s.log,
		Fsync:       spool.Fsync(cfg.Metering.Fsync),
		Bound:       int64(cfg.Metering.SpoolMaxBytes),
		NewInstance: func() string { return modelgate.NewIDs(time.Now).New().String() },
		Fatal: func(err error) {
			s.log.Error("the spool's disk failed; ending, so that nothing is served that is not booked", "error", err)
			s.Exit()
		},
	}))
	if err != nil {
		return err
	}
	s.shipper = worker.NewShipper(s.spool, s.fail.ledger(s.db), s.log, s.yielder)
	if err := s.shipper.Recover(ctx); err != nil {
		return errors.Join(fmt.Errorf("recover the spool: %w", err), s.spool.Close())
	}
	if err := s.openBudgets(ctx, cfg); err != nil {
		return errors.Join(fmt.Errorf("budgets: %w", err), s.spool.Close())
	}
	s.alerter = s.newAlerter(cfg)
	s.pruner = s.newPruner(cfg)
	s.expirer = s.newExpirer()
	s.bills = s.newBills()
	if err := s.openEvidence(ctx, cfg); err != nil {
		return errors.Join(err, s.spool.Close())
	}
	return nil
}

// mount connects the surfaces to the listeners.
func (s *Server) mount(cfg *config.Config) error {
	ids := modelgate.NewIDs(time.Now)
	s.memory = measureMemory(s.Lookup, availableMemory)
	maxBody := int64(cfg.Server.MaxRequestBytes)
	proxies := httpx.Proxies(cfg.Server.ProxyNetworks())
	quota := httpx.NewMemoryQuota(s.memory.bodies, maxBody)
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
	callers := callers{s.db, cfg.Enforcement}
	s.keys = auth.New(auth.Options{
		Source: callers, Tokens: callers, Unreachable: store.Unreachable, Touch: s.db.TouchKeys, Now: time.Now, Log: s.log,
		Client: proxies.Client,
	})
	s.sessions = auth.NewSessions(auth.SessionOptions{Source: s.db, Unreachable: store.Unreachable, Now: time.Now, Log: s.log, Client: proxies.Client})
	s.gateway = s.newGateway(cfg, quota, proxies)
	client, checkout := newProcessor(cfg), newCheckout(cfg)
	s.exporter = s.newExporter(client)
	s.poller = s.newPoller()
	if err := s.openPeople(cfg, ids, cursorKey); err != nil {
		return err
	}
	api := selfservice.New(selfservice.Options{
		Store: s.db, Keys: s.keys, Limiter: s.limiter, Rates: s.limiter.rates, Catalog: s.Catalog,
		Flushed: s.shipper.Flush, Cursors: httpx.NewCursors(cursorKey), IDs: ids, Now: time.Now, Log: s.log,
		MaxBody: maxBody, Memory: quota, Processor: client, Master: s.master, Checkout: checkout, TopUps: s.newTopUps(cfg, client, ids), Signer: s.signing.Signer,
		Tokens: s.tokenBounds(cfg, proxies),
		Doors:  s.gateway.DoorsOf, Focus: FocusNames(cfg), People: s.people,
	})
	s.registerMetrics()
	s.health = newHealth(s.keys.LastRead, s.metrics.Registry)
	s.health.shared = cfg.Server.AdminListen == ""
	rt := &router{selfservice: api, webhook: checkout.Offered(), gateway: s.gateway, snapshot: s.snapshot.Load, health: s.health,
		openapi: openapi.NewHandler(), maxBody: maxBody, cors: newCORS(cfg.Server.CORS)}
	rt.keys = newPageKeys(cfg, s.metrics)
	if rt.dashboard, err = s.newDashboard(cfg, ids, rt.serveVisit, proxies); err != nil {
		return err
	}
	handler := httpx.Wrap(httpx.Options{IDs: ids, Log: s.log, MaxBody: maxBody, Proxies: proxies, CrossOrigin: rt.crossOrigin}, rt)
	s.makeListeners(cfg, handler)
	if cfg.Operator.Listen != "" {
		s.operator, err = s.newOperator(cfg, operator.Options{
			Store: s.db, Keys: s.keys, Limiter: s.limiter, Catalog: s.Catalog, Cursors: httpx.NewCursors(cursorKey), IDs: ids, Now: time.Now, Log: s.log,
			Providers: func() map[string]*provider.Provider { return s.snapshot.Load().Providers }, JobEnded: s.gateway.JobEnded, People: s.people,
			MaxBody: maxBody, Memory: quota, Console: http.HandlerFunc(rt.dashboard.Console), Fault: rt.dashboard.ConsoleFault,
		}, cursorKey)
		if err != nil {
			return err
		}
	}
	return nil
}

// newGateway is the gateway of the configuration, in front of what is open.
func (s *Server) newGateway(cfg *config.Config, quota *httpx.MemoryQuota, proxies httpx.Proxies) *gateway.Gateway {
	return gateway.New(gateway.Options{
		Live: s.snapshot.Load, Keys: s.keys, Limiter: s.limiter, Rates: s.limiter.rates, Books: s.fail.books(spool.NewCalls(s.spool)), Log: s.log,
		Metrics: gateway.NewMetrics(s.metrics), MaxBody: int64(cfg.Server.MaxRequestBytes), Memory: quota, Budgets: s.budgets, Tracing: s.openTracing(cfg),
		Jobs: s.db, Flushed: s.shipper.Flush, Lag: s.lag(), Writes: s.batcher, SharedRates: s.sharedRates(proxies),
		NoCostHeaders: cfg.Server.CostHeaders == config.CostHeadersOff,
	})
}

// makeListeners makes the server of the handler, and that of the operator's surface
// where it has an address of its own.
func (s *Server) makeListeners(cfg *config.Config, handler http.Handler) {
	s.http = &http.Server{
		Handler:           s.fail.handler(s.closing(handler)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    hardHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		// Left to itself the server answers OPTIONS * without the request id.
		DisableGeneralOptionsHandler: true,
	}
	if cfg.Server.HTTP == config.ServerStandard {
		// Some clients, those of AWS among them, speak HTTP/2 also without TLS.
		s.http.Protocols = new(http.Protocols)
		s.http.Protocols.SetHTTP1(true)
		s.http.Protocols.SetHTTP2(true)
		s.http.Protocols.SetUnencryptedHTTP2(true)
		s.http.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	}
	s.front = http1server.New(s.http, s.batcher)
	if cfg.Server.AdminListen != "" {
		s.admin = &http.Server{Addr: cfg.Server.AdminListen, Handler: s.adminSurface(), ReadHeaderTimeout: 10 * time.Second}
	}
}

// tokenBounds are those of the configuration, and count what is minted.
func (s *Server) tokenBounds(cfg *config.Config, proxies httpx.Proxies) selfservice.TokenBounds {
	minted := prometheus.NewCounter(prometheus.CounterOpts{Name: "modelgate_tokens_minted_total", Help: "Browser tokens minted by this process."})
	s.metrics.MustRegister(minted)
	t := cfg.Tokens
	return selfservice.TokenBounds{MaxTTL: t.MaxTTL, DefaultCap: t.DefaultMaxUSD, PerClient: t.PerClient, Minted: minted.Inc, SharedRates: s.sharedRates(proxies)}
}

// adminSurface is what only the operator reaches: the metrics, and profiles
// of the running process.
func (s *Server) adminSurface() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", s.health.metrics)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// closing asks clients to come back on a new connection while the instance
// drains.
func (s *Server) closing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.health.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
