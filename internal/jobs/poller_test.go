package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// duty is a ledger of jobs in memory: each is due once a second of the clock.
type duty struct {
	mu     sync.Mutex
	jobs   []modelgate.Job
	next   []time.Time
	now    time.Time
	claims int
	looks  int // calls of ClaimJobs, those in vain too
	ended  map[modelgate.TaskID]modelgate.JobFinal
	all    chan struct{} // closed when every job has ended
	broken error         // what FinishJobs fails with, for a batch of more than one
	away   error         // what it fails with always
	tries  int           // calls of FinishJobs
}

func newDuty(jobs ...modelgate.Job) *duty {
	d := &duty{jobs: jobs, next: make([]time.Time, len(jobs)), now: time.Unix(1_800_000_000, 0), ended: map[modelgate.TaskID]modelgate.JobFinal{}, all: make(chan struct{})}
	for i := range d.jobs {
		d.jobs[i].Status = modelgate.JobPending
		if d.jobs[i].Deadline.IsZero() {
			d.jobs[i].Deadline = d.now.Add(time.Hour)
		}
	}
	return d
}

func (d *duty) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *duty) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func (d *duty) ClaimJobs(_ context.Context, most int) (due []modelgate.Job, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	for i := range d.jobs {
		if len(due) < most && d.jobs[i].Status == modelgate.JobPending && !d.now.Before(d.next[i]) {
			d.next[i] = d.now.Add(pollLease)
			due = append(due, d.jobs[i])
		}
	}
	if len(due) > 0 {
		d.claims++
	}
	return due, nil
}

func (d *duty) FinishJobs(_ context.Context, finals []modelgate.JobFinal) (ended []modelgate.JobFinal, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.away != nil {
		return nil, d.away
	}
	if d.broken != nil && len(finals) > 1 {
		return nil, d.broken
	}
	for _, f := range finals {
		for i := range d.jobs {
			if d.jobs[i].TaskID == f.Job.TaskID && d.jobs[i].Status == modelgate.JobPending {
				d.jobs[i].Status = f.Status
				d.ended[f.Job.TaskID] = f
				ended = append(ended, f)
			}
		}
	}
	if len(d.ended) == len(d.jobs) && len(ended) > 0 {
		close(d.all)
	}
	return ended, nil
}

func (d *duty) PendingJobs(context.Context) (int64, time.Time, error) {
	return int64(len(d.jobs)), d.clock(), nil
}

// oracle answers for a provider.
type oracle func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error)

func (o oracle) Poll(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
	return o(ctx, j)
}

// poll runs a poller until every job has ended.
func poll(t *testing.T, d *duty, providers map[string]oracle) *Poller {
	t.Helper()
	var ended atomic.Int64
	p := &Poller{
		Ledger: d, Now: d.clock, Log: slog.New(slog.DiscardHandler),
		Ended: func(*modelgate.JobFinal) { ended.Add(1) }, Polled: func(string, string) {},
		Provider: func(name string) Prober {
			if o := providers[name]; o != nil {
				return o
			}
			return nil
		},
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	select {
	case <-d.all:
	case <-time.After(2 * time.Minute):
		d.mu.Lock()
		t.Errorf("%d of %d jobs have ended", len(d.ended), len(d.jobs))
		d.mu.Unlock()
	}
	stop()
	<-done
	if int(ended.Load()) != len(d.ended) {
		t.Errorf("told of %d ends, want %d", ended.Load(), len(d.ended))
	}
	return p
}

func jobsOf(provider string, n int) (list []modelgate.Job) {
	for i := range n {
		list = append(list, modelgate.Job{NewJob: modelgate.NewJob{TaskID: modelgate.TaskID(fmt.Sprint(provider, i))}, Provider: provider, Provisional: 7})
	}
	return list
}

func succeeds(context.Context, *modelgate.Job) (modelgate.JobNews, error) {
	return modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: 5}, nil
}

// Many jobs are asked for over few connections, and claimed many at once.
func TestPollerIsBounded(t *testing.T) {
	t.Parallel()
	d := newDuty(append(jobsOf("a", 2500), jobsOf("b", 2500)...)...)
	var now, most, polls atomic.Int64
	slow := func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
		polls.Add(1)
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		time.Sleep(time.Millisecond)
		return succeeds(ctx, j)
	}
	p := poll(t, d, map[string]oracle{"a": slow, "b": slow})
	if most.Load() > 50 || polls.Load() != 5000 || d.claims > 5000/pollBatch+20 {
		t.Errorf("%d polls, at most %d at once, %d claims", polls.Load(), most.Load(), d.claims)
	}
	if p.Stats().Pending != 5000 {
		t.Errorf("figures %+v", p.Stats())
	}
}

// Jobs that are polled one by one are not each followed by a look for more.
func TestPollerLooksOnceATick(t *testing.T) {
	t.Parallel()
	const n = 30
	d := newDuty(jobsOf("p", n)...)
	var nth atomic.Int64
	began := time.Now()
	poll(t, d, map[string]oracle{"p": func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
		time.Sleep(time.Duration(nth.Add(1)) * 5 * time.Millisecond) // one ends after the other
		return succeeds(ctx, j)
	}})
	if most := 3 + int(time.Since(began)/pollPause); d.looks > most {
		t.Errorf("%d looks for jobs that are due, want at most %d", d.looks, most)
	}
}

// A provider that hangs or fails keeps nobody from the others.
func TestPollerSurvivesAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	d := newDuty(append(jobsOf("away", 300), jobsOf("fine", 300)...)...)
	var failed atomic.Int64
	release := make(chan struct{})
	var once sync.Once
	away := func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
		failed.Add(1)
		select {
		case <-release:
			return succeeds(ctx, j)
		case <-ctx.Done():
			return modelgate.JobNews{}, ctx.Err()
		}
	}
	go func() {
		for {
			select {
			case <-d.all:
				return
			case <-time.After(20 * time.Millisecond):
				d.pass(time.Second)
			}
		}
	}()
	var fine atomic.Int64
	poll(t, d, map[string]oracle{"away": away, "fine": func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
		if fine.Add(1) >= 300 { // all of them, while every poll of the other hangs
			once.Do(func() { close(release) })
		}
		return succeeds(ctx, j)
	}})
	if len(d.ended) != 600 {
		t.Errorf("%d have ended", len(d.ended))
	}
}

// A provider that fails is let alone for a while, and asked again.
func TestPollerRests(t *testing.T) {
	t.Parallel()
	d := newDuty(jobsOf("p", 200)...)
	var asked atomic.Int64
	rested := make(chan struct{})
	go func() {
		<-rested
		for range 100 {
			d.pass(pollLease)
			select {
			case <-d.all:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	var fine atomic.Bool
	poll(t, d, map[string]oracle{"p": func(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
		if fine.Load() {
			return succeeds(ctx, j)
		}
		if asked.Add(1) == queueFaults {
			fine.Store(true)
			close(rested)
		}
		return modelgate.JobNews{}, errors.New("connection refused")
	}})
	if n := asked.Load(); n < queueFaults || n > queueFaults+queuePolls {
		t.Errorf("%d polls failed before the provider rested", n)
	}
}

// At its deadline a job is over, whether or not its provider can be asked.
func TestPollerDeadline(t *testing.T) {
	t.Parallel()
	list := append(jobsOf("runs", 2), append(jobsOf("away", 2), append(jobsOf("gone", 2), jobsOf("late", 1)...)...)...)
	d := newDuty(list...)
	for i := range d.jobs {
		d.jobs[i].Deadline = d.now
	}
	poll(t, d, map[string]oracle{
		"runs": func(context.Context, *modelgate.Job) (modelgate.JobNews, error) { return modelgate.JobNews{}, nil },
		"away": func(context.Context, *modelgate.Job) (modelgate.JobNews, error) {
			return modelgate.JobNews{}, errors.New("no route")
		},
		"late": succeeds,
	})
	for task, f := range d.ended {
		if f.Job.Provider == "late" {
			if f.Status != modelgate.JobSucceeded || f.Cost != 5 {
				t.Errorf("%s: %s at %s: a success in the last moment counts", task, f.Status, f.Cost)
			}
			continue
		}
		if f.Status != modelgate.JobExpired || f.Reason != modelgate.ReasonDeadline || f.Cost != 7 || f.ParseStatus != modelgate.ParseExpired {
			t.Errorf("%s: %+v", task, f)
		}
	}
}

// A job whose credential is gone is over; one refused batch does not keep
// its jobs from ending.
func TestPollerCredentialGone(t *testing.T) {
	t.Parallel()
	d := newDuty(jobsOf("p", 30)...)
	d.broken = errors.New("one of them is poisoned")
	poll(t, d, map[string]oracle{"p": func(context.Context, *modelgate.Job) (modelgate.JobNews, error) {
		return modelgate.JobNews{}, fmt.Errorf("ask: %w", modelgate.ErrCredentialGone)
	}})
	for task, f := range d.ended {
		if f.Status != modelgate.JobExpired || f.Reason != modelgate.ReasonRotated || f.Cost != 0 {
			t.Errorf("%s: %+v", task, f)
		}
	}
}

// A database that does not answer is asked once for each batch, and once in
// all when the poller is to end: it may take its time for every answer.
func TestPollerWithoutItsLedger(t *testing.T) {
	t.Parallel()
	ending, end := context.WithCancel(t.Context())
	end()
	for name, tt := range map[string]struct {
		ctx   context.Context
		away  error
		jobs  int
		tries int
	}{
		"away":                  {t.Context(), context.DeadlineExceeded, 2*finishBatch + 2, 3},
		"away at the end":       {ending, context.DeadlineExceeded, 2*finishBatch + 2, 1},
		"one of them is broken": {t.Context(), errors.New("no such column"), 3, 4},
	} {
		d := newDuty(jobsOf("p", tt.jobs)...)
		d.away = tt.away
		p := &Poller{Ledger: d, Log: slog.New(slog.DiscardHandler), finals: make(chan modelgate.JobFinal, tt.jobs)}
		for i := range d.jobs {
			f, _ := pricing.FinishJob(&d.jobs[i], modelgate.JobNews{Event: modelgate.JobFails})
			p.finals <- f
		}
		close(p.finals)
		p.recordEnds(tt.ctx)
		if d.tries != tt.tries {
			t.Errorf("%s: %d jobs in %d tries, want %d", name, tt.jobs, d.tries, tt.tries)
		}
	}
}
