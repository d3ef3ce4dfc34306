package budget

import (
	"context"
	"time"

	"modelgate"
)

// storePatience bounds one transaction with the store. It does not end with the
// call that caused it: others wait for the same money.
const storePatience = 5 * time.Second

// reserveRequest is one call of Reserve.
type reserveRequest struct {
	enforcer   *Enforcer
	account    *account
	caller     *modelgate.Caller
	amount     modelgate.Nano
	at         time.Time // whose periods count
	day, month int64
	began      time.Time // once the leases at hand were not enough
}

// counter is the counter of a budget in the period of the call.
func (r *reserveRequest) counter(b *modelgate.Budget) modelgate.Counter {
	k := modelgate.Counter{ClientID: r.caller.ClientID, Level: b.Level, ID: b.ID, Period: b.Period}
	switch b.Period {
	case modelgate.Day:
		k.Start = r.day
	case modelgate.Month:
		k.Start = r.month
	}
	return k
}

// fast reserves from the leases at hand.
func (r *reserveRequest) fast() (Reservation, bool) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	return r.take()
}

// take reserves where every lease has enough. The account is locked.
func (r *reserveRequest) take() (Reservation, bool) {
	h := Reservation{enforcer: r.enforcer, account: r.account, amount: r.amount}
	now := r.enforcer.Now()
	if now.Sub(r.enforcer.start) >= time.Duration(r.enforcer.valid.Load()) {
		return Reservation{}, false
	}
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.account.leases[r.counter(b)]
		switch {
		case t == nil || t.stale(b):
			return Reservation{}, false
		case t.gone:
			continue
		case t.free < r.amount, t.crossed():
			return Reservation{}, false
		}
		h.add(b, t)
	}
	for i := range h.count {
		t := h.lease(i)
		t.take(r.amount)
		t.admit(now)
	}
	return h, true
}

func (r *Reservation) add(b *modelgate.Budget, t *counterLease) {
	if r.count < maxBudgets {
		r.leases[r.count] = t
	} else {
		r.more = append(r.more, t)
	}
	r.count++
	r.holds = r.holds.Add(b)
}

// slow asks the store for what is missing. One call of a client does so at a
// time; the others wait, and find more than they need or ask in turn.
func (r *reserveRequest) slow(ctx context.Context) (Reservation, error) {
	r.began = r.enforcer.Now()
	lacking, err := r.startWaiting()
	if err != nil {
		return Reservation{}, err
	}
	select {
	case <-r.account.storeTurn:
	case <-ctx.Done():
		r.stopWaiting(lacking)
		return Reservation{}, errNoStore
	}
	r.stopWaiting(lacking)
	defer func() { r.account.storeTurn <- struct{}{} }()
	for {
		if h, ok := r.fast(); ok {
			return h, nil
		}
		if err := r.refusal(); err != nil {
			return Reservation{}, err
		}
		if r.enforcer.lapsed() {
			if err := r.enforcer.renew(ctx); err != nil {
				return Reservation{}, errNoStore
			}
		}
		h, whole, err := r.requestLease(ctx)
		if whole || err != nil {
			return h, err
		}
	}
}

// startWaiting joins those that wait for money, unless a refusal is known.
func (r *reserveRequest) startWaiting() (lacking []*counterLease, err error) {
	if err := r.refusal(); err != nil {
		return nil, err
	}
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.caller.Budgets {
		if t := r.lease(&r.caller.Budgets[i]); t.free < r.amount {
			t.waiting += r.amount
			lacking = append(lacking, t)
		}
	}
	return lacking, nil
}

// stopWaiting leaves them.
func (r *reserveRequest) stopWaiting(lacking []*counterLease) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for _, t := range lacking {
		t.waiting -= r.amount
	}
}

// lease is the lease of a budget, made where there is none. The account is
// locked.
func (r *reserveRequest) lease(b *modelgate.Budget) *counterLease {
	k := r.counter(b)
	t := r.account.leases[k]
	if t == nil {
		t = newLease(k, b, r.enforcer.Now())
		r.account.leases[k] = t
	}
	return t
}

// refusal is the answer where it is known without the store.
func (r *reserveRequest) refusal() error {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.account.leases[r.counter(b)]
		if t != nil && !t.stale(b) && !t.gone && t.free < r.amount && t.refuses(r.amount, r.enforcer.Mode, r.began) {
			return r.refused(b, t.left)
		}
	}
	if f := r.account.failed; !f.IsZero() && r.enforcer.Now().Sub(f) < refusalAge {
		return errNoStore
	}
	return nil
}

// requestLease is one exchange with the store. The token of the account is held. It
// is not whole where the answer to an older ask was not enough.
func (r *reserveRequest) requestLease(ctx context.Context) (h Reservation, whole bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	if err := r.enforcer.sendReturns(ctx, r.account, r.overdue()); err != nil {
		return Reservation{}, false, errNoStore
	}
	h, asks, asking, ok := r.reserve()
	if !ok {
		return Reservation{}, false, nil
	}
	if len(asks) == 0 { // all are gone, or money came back meanwhile
		h.admit()
		return h, true, nil
	}
	r.enforcer.asks.Add(1)
	asked := r.enforcer.Now()
	answers, err := r.enforcer.Store.Lease(ctx, r.enforcer.Instance, asks)
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	if err != nil {
		r.enforcer.fault(r.account, "reserve", err)
		for _, t := range asking {
			t.state = askLost
		}
		h.undo()
		return Reservation{}, false, errNoStore
	}
	r.account.failed = time.Time{}
	if refused(answers) {
		h.undo()
		for i, t := range asking {
			t.denied(answers[i], r.amount, asked)
		}
		return Reservation{}, false, r.first(asking, answers)
	}
	for i, t := range asking {
		t.granted(answers[i])
	}
	return r.without(&h)
}

// overdue are the returns that must be made before anything else: those whose
// answer was lost, and what was granted under an older limit or past this one.
func (r *reserveRequest) overdue() (due []dueReturn) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.lease(b)
		if again, ok := t.again(); ok {
			due = append(due, dueReturn{t, again})
			continue
		}
		if t.state == askLost {
			continue
		}
		if t.stale(b) {
			t.renew(b)
		} else if !t.crossed() {
			continue
		}
		if t.free > 0 {
			due = append(due, dueReturn{t, t.giveBack()})
		}
	}
	return due
}

// reserve takes the amount from every lease and lists what that lacks. It is not
// ok where something is to be returned first.
func (r *reserveRequest) reserve() (h Reservation, asks []modelgate.Ask, asking []*counterLease, ok bool) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	now := r.enforcer.Now()
	h = Reservation{enforcer: r.enforcer, account: r.account, amount: r.amount}
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.lease(b)
		if t.gone && !t.stale(b) {
			continue
		}
		if t.crossed() && t.free > 0 && t.state != askLost { // a call has ended since overdue
			h.undo()
			return h, nil, nil, false
		}
		h.add(b, t)
		t.take(r.amount)
		if t.free < 0 {
			asks = append(asks, t.ask(r.amount, r.enforcer.Mode, now))
			asking = append(asking, t)
		}
	}
	return h, asks, asking, true
}

func refused(answers []modelgate.Held) bool {
	for _, h := range answers {
		if h.Granted == 0 && !h.Gone {
			return true
		}
	}
	return false
}

// first is the refusal of the first budget that refuses.
func (r *reserveRequest) first(asking []*counterLease, answers []modelgate.Held) error {
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		for n, t := range asking {
			if t.counter == r.counter(b) && answers[n].Granted == 0 && !answers[n].Gone {
				return r.refused(b, answers[n].Left)
			}
		}
	}
	return modelgate.ErrBudget
}

// refused is the refusal of a budget of which so much is left.
func (r *reserveRequest) refused(b *modelgate.Budget, left modelgate.Nano) error {
	r.enforcer.Log.Debug("budget refuses a call", "client_id", r.caller.ClientID, "key_id", r.caller.KeyID, "scope", b.Level, "id", b.ID,
		"period", b.Period, "limit_usd", b.Limit, "left_usd", left, "reserve_usd", r.amount)
	return r.caller.Refuse(b, b.Limit-left, r.amount, r.at)
}

// admit notes that the reservation stands.
func (r *Reservation) admit() {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.count {
		r.lease(i).admit(r.enforcer.Now())
	}
}

// undo takes the reservation back. The account is locked.
func (r *Reservation) undo() {
	for i := range r.count {
		r.lease(i).undo(r.amount)
	}
}

// without is the hold less what budgets have that are gone; it is whole where
// every lease has what it needs, else undone. The account is locked.
func (r *reserveRequest) without(h *Reservation) (Reservation, bool, error) {
	out := Reservation{enforcer: h.enforcer, account: h.account, amount: h.amount}
	for i := range h.count {
		if t := h.lease(i); t.free < 0 && !t.gone {
			h.undo()
			return Reservation{}, false, nil
		}
	}
	next := 0
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		if next == h.count || h.lease(next).counter != r.counter(b) {
			continue // it was gone before
		}
		t := h.lease(next)
		next++
		if t.gone {
			t.undo(h.amount)
			continue
		}
		out.add(b, t)
		t.admit(h.enforcer.Now())
	}
	return out, true, nil
}
