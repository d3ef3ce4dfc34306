// Package jobs follows asynchronous jobs: work that a provider finishes after it
// has answered. It serves the requests of clients about a job (poll, download,
// cancel), and it polls the jobs that no client asks about. Whoever notices the
// end of a job first finishes it in the ledger, once.
//
// The request that creates a job is a call like any other; package gateway
// serves it and books the job together with the call.
package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"modelgate"
	"modelgate/internal/httpx"
)

// Ledger is where jobs are kept; *store.DB is one.
type Ledger interface {
	// Job finds an organization's job, at any provider for "". Errors:
	// modelgate.ErrNoTask.
	Job(ctx context.Context, client modelgate.ClientID, provider string, task modelgate.TaskID) (*modelgate.Job, error)
	// FinishJobs ends those of the jobs that are pending, and returns them.
	FinishJobs(context.Context, []modelgate.JobFinal) (ended []modelgate.JobFinal, err error)
}

// Options are what New needs. Those down to MaxBody are required.
type Options struct {
	Ledger Ledger
	// Flushed waits until the jobs that this instance has made are in the
	// ledger.
	Flushed func(context.Context) error
	// Ended is called with every job that a request has ended.
	Ended func(*modelgate.JobFinal)
	// Unreached is called with a request to a provider that got no reply.
	Unreached func(request modelgate.UUID, provider string, err error)
	Log       *slog.Logger
	Metrics   *Metrics
	MaxBody   int64 // bytes of a request body

	// Lag is how long a job that another instance has made may take to be in
	// the ledger; 0 where there is no other.
	Lag time.Duration
	// Memory bounds the memory of request bodies; nil has no bound.
	Memory *httpx.MemoryQuota
	// Lifetime bounds a download; 0 means one hour.
	Lifetime time.Duration
	// MaxReply bounds a download, in bytes; 0 means 1 GiB. A longer one is cut.
	MaxReply int64
	// Stuck is how long a client may take no byte of a download that has been
	// written; 0 means one minute.
	Stuck time.Duration
}

// Handler serves requests about jobs. It is safe for concurrent use.
type Handler struct {
	Options
	running context.Context // ends downloads under way
	cut     context.CancelFunc
}

// New makes a handler.
func New(o Options) *Handler {
	o.Lifetime = cmp.Or(o.Lifetime, time.Hour)
	o.MaxReply = cmp.Or(o.MaxReply, 1<<30)
	o.Stuck = cmp.Or(o.Stuck, time.Minute)
	h := &Handler{Options: o}
	h.running, h.cut = context.WithCancel(context.Background())
	return h
}

// Cut ends the downloads under way, for the end of a process.
func (h *Handler) Cut() { h.cut() }

// Metrics counts requests about jobs, and jobs that end.
type Metrics struct {
	requests, ended, cost *prometheus.CounterVec
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "modelgate_" + name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	return &Metrics{
		requests: counters("job_requests_total", "Polls, downloads and cancellations that clients asked for, by how the provider answered.", "provider", "does", "status"),
		ended:    counters("jobs_ended_total", "Asynchronous jobs that this instance saw end, by how.", "provider", "status"),
		cost:     counters("job_cost_usd_total", "Final cost of the jobs that this instance saw end, in USD.", "provider"),
	}
}

func (m *Metrics) answered(q *Request, status int) {
	m.requests.WithLabelValues(q.provider.Name(), string(q.role), strconv.Itoa(status)).Inc()
}

// Ended counts a job that has ended.
func (m *Metrics) Ended(f *modelgate.JobFinal) {
	m.ended.WithLabelValues(f.Job.Provider, string(f.Status)).Inc()
	m.cost.WithLabelValues(f.Job.Provider).Add(float64(f.Cost) / float64(modelgate.USD))
}
