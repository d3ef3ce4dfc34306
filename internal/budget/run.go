package budget

import (
	"context"
	"maps"
	"slices"
	"time"

	"modelgate"
)

const (
	// idleAge is how long money lies unused before it goes back.
	idleAge = 2 * time.Second
	tickAge = 500 * time.Millisecond
	// renewAge is between two signs of life, validAge how long one counts: less
	// than the hour after which others may take what an instance holds.
	renewAge = 10 * time.Minute
	validAge = 50 * time.Minute
	// expireAge is between two looks for what dead instances held.
	expireAge = time.Minute
	// fillAtOnce bounds how many leases of one account are filled up in one
	// transaction.
	fillAtOnce = 100
	// flushPatience bounds the wait for bookings before a lease is closed.
	flushPatience = 2 * time.Second
)

// Start frees what an earlier life of the instance held. Its calls must all
// be booked. It fails where the database does not answer.
func (e *Enforcer) Start(ctx context.Context) error { return e.renew(ctx) }

// End gives everything back, once no call is under way and all are booked.
func (e *Enforcer) End(ctx context.Context) error { return e.Store.EndLeases(ctx, e.Instance) }

// Run returns what is not used, fills up and renews what is, until the context
// ends.
func (e *Enforcer) Run(ctx context.Context) {
	tick := time.NewTicker(tickAge)
	defer tick.Stop()
	renew := time.NewTicker(renewAge)
	defer renew.Stop()
	expire := time.NewTicker(expireAge)
	defer expire.Stop()
	for {
		select {
		case <-tick.C:
			e.returnIdle(ctx)
		case <-renew.C:
			if err := e.renew(ctx); err != nil && ctx.Err() == nil {
				e.Log.Warn("budgets: leases not renewed", "error", err)
			}
		case <-expire.C:
			if err := e.Store.EndExpiredLeases(ctx); err != nil && ctx.Err() == nil {
				e.Log.Warn("budgets: what dead instances held is not freed yet", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// lapsed reports whether others may have taken what this instance holds.
func (e *Enforcer) lapsed() bool {
	return e.Now().Sub(e.start) >= time.Duration(e.valid.Load())
}

// renew gives a sign of life. Where the last one was too long ago, or the
// database has given the instance up, everything is begun anew: calls under way keep what they are, and are booked without
// what was reserved for them.
func (e *Enforcer) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	lapsed, asked := e.lapsed(), e.Now()
	kept, err := e.Store.RenewLeases(ctx, e.Instance)
	if err != nil {
		return err
	}
	if lapsed || !kept {
		if err := e.Store.EndLeases(ctx, e.Instance); err != nil {
			return err
		}
		for _, a := range e.list() {
			a.mu.Lock()
			clear(a.leases)
			a.mu.Unlock()
		}
	}
	e.valid.Store(int64(asked.Add(validAge).Sub(e.start)))
	return nil
}

func (e *Enforcer) list() []*account {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Collect(maps.Values(e.accounts))
}

// idle is a lease that nobody used for a while, and how often it had been used.
type idle struct {
	account *account
	lease   *counterLease
	uses    int64
	ended   bool // no call was open: the books have them all once they are flushed
}

// returnIdle fills up leases that are in use and gives back what is not used. A lease
// without calls is closed once what it was used for is booked: whatever a lost
// answer left in its lease goes back with it. While the database is away, what
// is held keeps calls going: the first account that finds it so is the last, and
// the next time the first.
func (e *Enforcer) returnIdle(ctx context.Context) {
	found, low := e.idleAndLow()
	for _, a := range failedFirst(low) {
		err := e.fillUp(ctx, a, low[a]) // it is logged, and tried again
		if err != nil && e.Unreachable(err) {
			return
		}
	}
	if len(found) == 0 {
		return
	}
	flush, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	booked := e.Flushed(flush) == nil
	byAccount := make(map[*account][]idle)
	for _, i := range found {
		byAccount[i.account] = append(byAccount[i.account], i)
	}
	for _, a := range failedFirst(byAccount) {
		err := e.returnIdleOf(ctx, a, byAccount[a], booked) // it is logged, and tried again
		if err != nil && e.Unreachable(err) {
			return
		}
	}
}

// failedFirst are the accounts, those first whose last exchange with the store
// failed.
func failedFirst[T any](byAccount map[*account]T) []*account {
	var suspects, others []*account
	for a := range byAccount {
		a.mu.Lock()
		if a.failed.IsZero() {
			others = append(others, a)
		} else {
			suspects = append(suspects, a)
		}
		a.mu.Unlock()
	}
	return append(suspects, others...)
}

// idleAndLow finds the leases that are not used, and those to be filled up.
func (e *Enforcer) idleAndLow() (found []idle, low map[*account][]*counterLease) {
	now := e.Now()
	low = make(map[*account][]*counterLease)
	for _, a := range e.list() {
		a.mu.Lock()
		for _, t := range a.leases {
			switch unused := now.Sub(t.used) >= idleAge; {
			case unused && t.waiting == 0 && (t.open == 0 || t.free > 0):
				found = append(found, idle{a, t, t.uses, t.open == 0})
			case !unused && t.low(now) && len(low[a]) < fillAtOnce:
				low[a] = append(low[a], t)
			}
		}
		a.mu.Unlock()
	}
	return found, low
}

// fillUp fills up the leases of an account that are still low.
func (e *Enforcer) fillUp(ctx context.Context, a *account, low []*counterLease) error {
	select {
	case <-a.storeTurn:
		defer func() { a.storeTurn <- struct{}{} }()
	default:
		return nil // somebody is using it
	}
	if e.lapsed() {
		return nil
	}
	var asks []modelgate.Ask
	var asking []*counterLease
	a.mu.Lock()
	now := e.Now()
	for _, t := range low {
		if a.leases[t.counter] == t && t.low(now) {
			asks, asking = append(asks, t.fill(now)), append(asking, t)
		}
	}
	a.mu.Unlock()
	if len(asks) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	e.asks.Add(1)
	answers, err := e.Store.Lease(ctx, e.Instance, asks)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		e.fault(a, "fill up", err)
		for _, t := range asking {
			t.state = askLost
		}
		return err
	}
	a.failed = time.Time{}
	all := !refused(answers)
	for i, t := range asking {
		if all {
			t.granted(answers[i])
		} else {
			t.ungranted(answers[i])
		}
	}
	return nil
}

// dueReturn is a return that is due.
type dueReturn struct {
	lease *counterLease
	modelgate.Return
}

func (e *Enforcer) returnIdleOf(ctx context.Context, a *account, list []idle, booked bool) error {
	select {
	case <-a.storeTurn:
		defer func() { a.storeTurn <- struct{}{} }()
	default:
		return nil // somebody is using it
	}
	var due []dueReturn
	a.mu.Lock()
	for _, i := range list {
		t := i.lease
		again, lost := t.again()
		switch {
		case t.uses != i.uses || t.waiting > 0 || a.leases[t.counter] != t:
		case i.ended && booked:
			due = append(due, dueReturn{t, t.close()})
		case lost:
			due = append(due, dueReturn{t, again})
		case t.free > 0 && t.state == noExchange:
			due = append(due, dueReturn{t, t.giveBack()})
		}
	}
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	return e.sendReturns(ctx, a, due)
}

// sendReturns makes returns. Leases that are closed are forgotten, unless they have
// been used meanwhile. The token of the account is held.
func (e *Enforcer) sendReturns(ctx context.Context, a *account, due []dueReturn) error {
	if len(due) == 0 {
		return nil
	}
	returns := make([]modelgate.Return, len(due))
	for i := range due {
		returns[i] = due[i].Return
	}
	e.returns.Add(1)
	err := e.Store.GiveBack(ctx, e.Instance, returns)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		e.fault(a, "give back", err)
	} else {
		a.failed = time.Time{}
	}
	for _, d := range due {
		switch {
		case err != nil:
			d.lease.lost(d.Return)
		case d.Close && d.lease.open == 0 && d.lease.waiting == 0:
			delete(a.leases, d.Counter)
		default:
			d.lease.state = noExchange
		}
	}
	return err
}

// fault notes that the store gave no answer. The account is locked.
func (e *Enforcer) fault(a *account, what string, err error) {
	e.failures.Add(1)
	if a.failed.IsZero() {
		e.Log.Warn("budgets: the database does not answer", "operation", what, "error", err)
	}
	a.failed = e.Now()
}
