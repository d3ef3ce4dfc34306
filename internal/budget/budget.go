// Package budget lets calls spend within budgets, and use what rate limits over
// an hour or a day leave. An instance holds leases of
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

// Options are what New needs; all fields but Refused are required.
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
	// Refused counts a call that a rate limit refused; nil counts none.
	Refused func(*modelgate.Budget)
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
	above *Reservation // on limits of all organizations together; nil where none applies
}

// needs is what a call reserves.
type needs struct {
	money  modelgate.Nano    // of budgets
	use    modelgate.Amounts // of rate limits
	wallet modelgate.Markup  // at which a wallet among the leases pays
}

// of is what is reserved of a lease: for a wallet the billed price, for a rate
// limit at least 1.
func (n *needs) of(t *counterLease) modelgate.Nano {
	switch {
	case t.unit != "":
		return min(max(modelgate.Nano(n.use.Of(t.unit)), 1), modelgate.MaxBudget)
	case t.counter.IsWallet():
		return n.wallet.Debit(n.money)
	}
	return n.money
}

// used is what a call has used in the unit of a lease.
func (n *needs) used(t *counterLease, a *modelgate.Amounts) modelgate.Nano {
	switch cost := min(a.Cost, modelgate.MaxBudget); {
	case t.unit != "":
		return min(modelgate.Nano(a.Of(t.unit)), modelgate.MaxBudget)
	case t.counter.IsWallet():
		return n.wallet.Debit(cost)
	default:
		return cost
	}
}

// Holds says which plain budgets the call has reserved on, for its BEGIN.
func (r *Reservation) Holds() modelgate.Holds { return r.holds }

// Rules are the numbers of the rules that the call has reserved on, likewise.
func (r *Reservation) Rules() (numbers []int64) {
	if r.above != nil {
		numbers = r.above.Rules()
	}
	for _, t := range r.leases[:r.count] {
		if n := t.counter.Rule; n != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Any reports whether the call has reserved anything.
func (r *Reservation) Any() bool { return r.count > 0 || r.above != nil }

// Amount is how much money the call has reserved: of its budgets, without any of
// rate limits in dollars.
func (r *Reservation) Amount() (n modelgate.Nano) {
	if r.above != nil {
		n = r.above.Amount()
	}
	for _, t := range r.leases[:r.count] {
		switch t.unit {
		case "":
			return r.money
		case modelgate.UnitUSD:
			n = r.of(t)
		}
	}
	return n
}

// Left is about how much is left of a rate limit on which the call has reserved.
func (r *Reservation) Left(rule int64) (left modelgate.Nano, reserved bool) {
	if r.account == nil {
		return 0, false
	}
	for _, t := range r.leases[:r.count] {
		if t.counter.Rule == rule {
			r.account.mu.Lock()
			defer r.account.mu.Unlock()
			left = max(t.free, 0)
			if t.known {
				left += max(t.left, 0)
			}
			return left, true
		}
	}
	return 0, false
}

// Settle ends the reservation of a call that was booked with this use. What its
// job keeps reserved is part of the cost. It comes after the END is written, and
// does nothing the second time. More than MaxBudget counts as that.
func (r *Reservation) Settle(used *modelgate.Amounts) { r.end(used) }

// Release ends the reservation of a call that was never begun.
func (r *Reservation) Release() {
	if r.account != nil {
		r.end(new(modelgate.Amounts))
	}
}

func (r *Reservation) end(used *modelgate.Amounts) {
	a := r.account
	if a == nil {
		return
	}
	r.account = nil
	if r.above != nil {
		r.above.end(used)
	}
	now := r.enforcer.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range r.count {
		t := r.leases[i]
		t.put(r.of(t), r.used(t, used), now)
	}
}

// Demand is what a call asks for.
type Demand struct {
	At time.Time // whose periods count
	// Money is reserved of every budget; less than 1 nano-USD counts as that.
	// More than MaxBudget fits into none: strict refuses it, and an estimate
	// counts as MaxBudget, so that sums stay in range.
	Money modelgate.Nano
	// Use is what the call will probably use, which is reserved of rate limits.
	Use modelgate.Amounts
	// Free says that the call can cost nothing: rate limits on requests apply,
	// and nothing else.
	Free bool
}

// Reserve holds what a call demands of every budget and rate limit of the caller
// that applies to it. Rate limits admit as Estimate does in both modes. Errors:
// rate_limited, insufficient_balance or budget_exceeded, the first in the order
// of the budgets; forbidden for more than MaxCounters; unavailable where the
// store has to be asked and does not answer.
func (e *Enforcer) Reserve(ctx context.Context, c *modelgate.Caller, call *modelgate.Traits, d *Demand) (Reservation, error) {
	if len(c.Rules) == 0 || c.Rules[0].Level != modelgate.LevelGateway { // which come first
		return e.reserve(ctx, c, call, d, c.ClientID)
	}
	above, err := e.reserve(ctx, c, call, d, modelgate.FileClient)
	if err != nil {
		return Reservation{}, err
	}
	own, err := e.reserve(ctx, c, call, d, c.ClientID)
	if err != nil {
		above.Release()
		return Reservation{}, err
	}
	if above.count > 0 {
		own.above = &above
	}
	return own, nil
}

// reserve is Reserve for the counters of an organization, or for those of all
// together.
func (e *Enforcer) reserve(ctx context.Context, c *modelgate.Caller, call *modelgate.Traits, d *Demand, of modelgate.ClientID) (Reservation, error) {
	r := reserveRequest{enforcer: e, account: e.account(of), caller: c, at: d.At, free: d.Free, gateway: of == modelgate.FileClient}
	if c.WalletMarkup != nil {
		r.wallet = *c.WalletMarkup
	}
	if !r.apply(call) {
		e.refusals.Add(1)
		return Reservation{}, errTooMany
	}
	if n := r.count; e.Mode == Strict && d.Money > modelgate.MaxBudget && n > 0 && r.applied[n-1].Unit == "" {
		e.refusals.Add(1)
		return Reservation{}, r.applied[n-1].Refusal() // a balance, which comes first, may be larger
	}
	r.money, r.use = min(max(d.Money, 1), modelgate.MaxBudget), d.Use
	r.day, r.month = e.calendar(d.At)
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

// hourLength and dayLength are those of an hour and a day in microseconds.
const (
	hourLength = 60 * 60 * 1_000_000
	dayLength  = 24 * hourLength
)

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

// mode is that of a counter in a unit.
func (e *Enforcer) mode(u modelgate.LimitUnit) Mode {
	if u != "" {
		return Estimate
	}
	return e.Mode
}

// Leases is of how many budgets and rate limits this instance holds something at
// the moment, and how much money of it no call has reserved.
func (e *Enforcer) Leases() (held int, free modelgate.Nano) {
	for _, a := range e.list() {
		a.mu.Lock()
		for _, t := range a.leases {
			if t.free > 0 || t.open > 0 {
				held++
			}
			if t.unit == "" || t.unit == modelgate.UnitUSD {
				free += max(t.free, 0)
			}
		}
		a.mu.Unlock()
	}
	return held, free
}
