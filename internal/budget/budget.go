// Package budget lets calls spend within budgets. An instance holds leases of
// the budgets it serves, reserved in the database, and reserves calls from
// them in memory; near a limit a lease is one call. No lease admits more than
// it holds, so that no limit is passed at any concurrency and on any number of
// instances.
//
// The way of the money: Reserve takes an amount at every level, Reservation.Settle
// gives back what the call did not cost. The cost itself stays in the lease
// until the usage row is booked, which moves it from held to settled in the
// row's own transaction. What nobody has used for a while goes back.
package budget

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"modelgate"
)

// Mode says when a call is admitted.
type Mode string

// The modes. Estimate admits while something is left, so that the call that
// crosses the limit completes; Strict admits only what surely fits.
const (
	Estimate Mode = "estimate"
	Strict   Mode = "strict"
)

// LeaseStore reserves money in the database; *store.DB is one. An error means that
// there was no answer: the change may or may not have been made.
type LeaseStore interface {
	// Lease grants all of the asks or, where an answer refuses, none.
	Lease(ctx context.Context, instance string, asks []modelgate.Ask) ([]modelgate.Held, error)
	GiveBack(ctx context.Context, instance string, returns []modelgate.Return) error
	// RenewLeases keeps the instance's leases for an hour from now. It reports
	// whether it had them all until now.
	RenewLeases(ctx context.Context, instance string) (kept bool, err error)
	EndLeases(ctx context.Context, instance string) error
	EndExpiredLeases(ctx context.Context) error
}

// Options are what New needs; all fields are required.
type Options struct {
	Store LeaseStore
	// Instance owns the leases: the id of the spool that the calls are
	// recorded in.
	Instance string
	Mode     Mode
	// Flushed waits until all calls are booked whose END was written before
	// it was called.
	Flushed func(context.Context) error
	// Unreachable reports whether an error of the store's says that no account
	// can be served at the moment.
	Unreachable func(error) bool
	Now         func() time.Time // with a monotonic reading
	Log         *slog.Logger
}

// Enforcer reserves money for calls. Safe for concurrent use. Start comes first,
// Run beside the calls, End after the last of them.
type Enforcer struct {
	Options
	start time.Time
	valid atomic.Int64 // nanoseconds since start until which leases surely are ours
	month atomic.Pointer[month]

	mu       sync.RWMutex
	accounts map[modelgate.ClientID]*account

	asks, returns, refusals, failures atomic.Int64
}

// account is the money of one client. It stays for good, so that there is
// never a second one.
type account struct {
	// storeTurn has a token while nobody talks to the store for the client.
	storeTurn chan struct{}

	mu     sync.Mutex
	leases map[modelgate.Counter]*counterLease
	failed time.Time // when the store last gave no answer; zero: it did
}

// month is the span of a month in unix microseconds.
type month struct{ from, to int64 }

// New makes a enforcer.
func New(o Options) *Enforcer {
	return &Enforcer{Options: o, start: o.Now(), accounts: make(map[modelgate.ClientID]*account)}
}

// errNoStore answers where no lease has enough and the database does not
// answer.
var errNoStore = &modelgate.Error{Kind: modelgate.Unavailable, Message: "budgets cannot be checked right now; retry shortly"}

// MaxCounters is how many counters one call is reserved on at most. A call to
// which more budgets apply is refused: none is ever skipped.
const MaxCounters = 24

// errTooMany answers such a call.
var errTooMany = &modelgate.Error{Kind: modelgate.Forbidden, Message: "more than 24 budgets and limits apply to this call"}

// Reservation is what a call has reserved. It is used by one goroutine at a time; the
// zero value holds nothing.
type Reservation struct {
	enforcer *Enforcer
	account  *account
	leases   [MaxCounters]*counterLease
	count    int
	needs
	holds modelgate.Holds
}

// needs is how much a call reserves.
type needs struct {
	amount modelgate.Nano
	wallet modelgate.Markup // at which a wallet among the leases pays
}

// of is how much that is of a lease: for a wallet the billed price.
func (n *needs) of(t *counterLease) modelgate.Nano { return n.in(t, n.amount) }

// in is a cost in the unit of a lease.
func (n *needs) in(t *counterLease, cost modelgate.Nano) modelgate.Nano {
	if t.counter.IsWallet() {
		return n.wallet.Debit(cost)
	}
	return cost
}

// Holds says which plain budgets the call has reserved on, for its BEGIN.
func (r *Reservation) Holds() modelgate.Holds { return r.holds }

// Rules are the numbers of the rules that the call has reserved on, likewise.
func (r *Reservation) Rules() (numbers []int64) {
	for _, t := range r.leases[:r.count] {
		if n := t.counter.Rule; n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Amount is how much the call has reserved of each of its budgets.
func (r *Reservation) Amount() modelgate.Nano {
	if r.count == 0 {
		return 0
	}
	return r.amount
}

// Settle ends the reservation of a call that was booked at a cost, what its
// job keeps reserved included. It comes after the END is written, and does
// nothing the second time. A cost above MaxBudget counts as that.
func (r *Reservation) Settle(cost modelgate.Nano) { r.end(min(cost, modelgate.MaxBudget)) }

// Release ends the reservation of a call that was never begun.
func (r *Reservation) Release() { r.end(0) }

func (r *Reservation) end(cost modelgate.Nano) {
	a := r.account
	if a == nil {
		return
	}
	r.account = nil
	now := r.enforcer.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range r.count {
		t := r.leases[i]
		t.put(r.of(t), r.in(t, cost), now)
	}
}

// Reserve holds an amount, at least 1 nano-USD, of every budget of the caller
// that applies to a call, in the periods of the instant at. More than MaxBudget
// fits into none: strict refuses it, and an estimate counts as MaxBudget, so that
// sums of amounts stay in range. Errors: insufficient_balance or budget_exceeded,
// the first in the order of the budgets; forbidden for more than MaxCounters;
// unavailable where the store has to be asked and does not answer.
func (e *Enforcer) Reserve(ctx context.Context, c *modelgate.Caller, call *modelgate.Traits, at time.Time, amount modelgate.Nano) (Reservation, error) {
	r := reserveRequest{enforcer: e, account: e.account(c.ClientID), caller: c, at: at}
	if c.WalletMarkup != nil {
		r.wallet = *c.WalletMarkup
	}
	if !r.apply(call) {
		e.refusals.Add(1)
		return Reservation{}, errTooMany
	}
	if n := r.count; e.Mode == Strict && amount > modelgate.MaxBudget && n > 0 {
		e.refusals.Add(1)
		return Reservation{}, r.applied[n-1].Refusal() // a balance, which comes first, may be larger
	}
	r.amount = min(max(amount, 1), modelgate.MaxBudget)
	r.day, r.month = e.calendar(at)
	if h, ok := r.fast(); ok {
		return h, nil
	}
	h, err := r.slow(ctx)
	if err != nil && modelgate.KindOf(err) != modelgate.Unavailable && modelgate.KindOf(err) != modelgate.Internal {
		e.refusals.Add(1)
	}
	return h, err
}

func (e *Enforcer) account(id modelgate.ClientID) *account {
	e.mu.RLock()
	a := e.accounts[id]
	e.mu.RUnlock()
	if a != nil {
		return a
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if a = e.accounts[id]; a == nil {
		a = &account{storeTurn: make(chan struct{}, 1), leases: make(map[modelgate.Counter]*counterLease)}
		a.storeTurn <- struct{}{}
		e.accounts[id] = a
	}
	return a
}

// dayLength is that of a day in microseconds.
const dayLength = 24 * 60 * 60 * 1_000_000

// weekOf is the start of the week, a Monday, that holds the day which begins at
// an instant. All are in unix microseconds; day 0 was a Thursday.
func weekOf(day int64) int64 { return day - (day/dayLength+3)%7*dayLength }

// calendar is the start of the day and of the month that hold an instant.
func (e *Enforcer) calendar(at time.Time) (day, start int64) {
	us := at.UnixMicro()
	m := e.month.Load()
	if m == nil || us < m.from || us >= m.to {
		first := modelgate.Month.Start(at)
		m = &month{first.UnixMicro(), first.AddDate(0, 1, 0).UnixMicro()}
		e.month.Store(m)
	}
	return us - us%dayLength, m.from
}

// Stats are figures since the start.
type Stats struct {
	Asks     int64 // transactions that asked the database for money
	Returns  int64 // transactions that gave some back
	Refusals int64 // calls refused
	Failures int64 // transactions without an answer
}

// Stats are the enforcer's figures.
func (e *Enforcer) Stats() Stats {
	return Stats{e.asks.Load(), e.returns.Load(), e.refusals.Load(), e.failures.Load()}
}

// Leases is of how many budgets this instance holds money at the moment, and
// how much of it no call has reserved.
func (e *Enforcer) Leases() (held int, free modelgate.Nano) {
	for _, a := range e.list() {
		a.mu.Lock()
		for _, t := range a.leases {
			if t.free > 0 || t.open > 0 {
				held++
			}
			free += max(t.free, 0)
		}
		a.mu.Unlock()
	}
	return held, free
}
