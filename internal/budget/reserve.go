package budget

import (
	"context"
	"time"

	"modelgate"
)

// storePatience bounds one transaction with the store. It does not end with the
// call that caused it: others wait for the same money.
const storePatience = 5 * time.Second

// reservation is one call of Reserve.
type reservation struct {
	enforcer   *Enforcer
	account    *account
	caller     *modelgate.Caller
	amount     modelgate.Nano
	day, month int64
}

// counter is the counter of a budget in the period of the call.
func (r *reservation) counter(b *modelgate.Budget) modelgate.Counter {
	k := modelgate.Counter{ClientID: r.caller.ClientID, Level: b.Level, ID: b.ID, Period: b.Period}
	switch b.Period {
	case modelgate.Day:
		k.Start = r.day
	case modelgate.Month:
		k.Start = r.month
	}
	return k
}

// fast reserves from the slices at hand.
func (r *reservation) fast() (Hold, bool) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	return r.take()
}

// take reserves where every lease has enough. The account is locked.
func (r *reservation) take() (Hold, bool) {
	h := Hold{enforcer: r.enforcer, account: r.account, amount: r.amount}
	now := r.enforcer.Now()
	if now.Sub(r.enforcer.start) >= time.Duration(r.enforcer.valid.Load()) {
		return Hold{}, false
	}
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.account.leases[r.counter(b)]
		switch {
		case t == nil || t.stale(b):
			return Hold{}, false
		case t.gone:
			continue
		case t.free < r.amount, t.crossed():
			return Hold{}, false
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

func (h *Hold) add(b *modelgate.Budget, t *counterLease) {
	if h.count < maxHolds {
		h.leases[h.count] = t
	} else {
		h.more = append(h.more, t)
	}
	h.count++
	h.holds = h.holds.Add(b)
}

// slow asks the store for what is missing. One call of a client does so at a
// time; the others wait, and find more than they need or ask in turn.
func (r *reservation) slow(ctx context.Context) (Hold, error) {
	lacking, err := r.queue()
	if err != nil {
		return Hold{}, err
	}
	select {
	case <-r.account.exchange:
	case <-ctx.Done():
		r.leave(lacking)
		return Hold{}, errNoStore
	}
	r.leave(lacking)
	defer func() { r.account.exchange <- struct{}{} }()
	for {
		if h, ok := r.fast(); ok {
			return h, nil
		}
		if err := r.refusal(); err != nil {
			return Hold{}, err
		}
		if r.enforcer.lapsed() {
			if err := r.enforcer.renew(ctx); err != nil {
				return Hold{}, errNoStore
			}
		}
		h, whole, err := r.requestLease(ctx)
		if whole || err != nil {
			return h, err
		}
	}
}

// queue joins those that wait for money, unless a refusal is known.
func (r *reservation) queue() (lacking []*counterLease, err error) {
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

// leave leaves the queue.
func (r *reservation) leave(lacking []*counterLease) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for _, t := range lacking {
		t.waiting -= r.amount
	}
}

// lease is the lease of a budget, made where there is none. The account is
// locked.
func (r *reservation) lease(b *modelgate.Budget) *counterLease {
	k := r.counter(b)
	t := r.account.leases[k]
	if t == nil {
		t = newLease(k, b, r.enforcer.Now())
		r.account.leases[k] = t
	}
	return t
}

// refusal is the answer where it is known without the store.
func (r *reservation) refusal() error {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	now := r.enforcer.Now()
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.account.leases[r.counter(b)]
		if t != nil && !t.stale(b) && !t.gone && t.free < r.amount && t.refuses(r.amount, r.enforcer.Mode, now) {
			return r.refused(b, t.left)
		}
	}
	if f := r.account.failed; !f.IsZero() && now.Sub(f) < refusalAge {
		return errNoStore
	}
	return nil
}

// requestLease is one exchange with the store. The token of the account is held. It
// is not whole where the answer to an older ask was not enough.
func (r *reservation) requestLease(ctx context.Context) (h Hold, whole bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	if err := r.enforcer.pay(ctx, r.account, r.overdue()); err != nil {
		return Hold{}, false, errNoStore
	}
	h, asks, asking, ok := r.reserve()
	if !ok {
		return Hold{}, false, nil
	}
	if len(asks) == 0 { // all are gone, or money came back meanwhile
		h.admit()
		return h, true, nil
	}
	r.enforcer.asks.Add(1)
	answers, err := r.enforcer.Store.Hold(ctx, r.enforcer.Instance, asks)
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	if err != nil {
		r.enforcer.fault(r.account, "reserve", err)
		for _, t := range asking {
			t.state = askLost
		}
		h.undo()
		return Hold{}, false, errNoStore
	}
	r.account.failed = time.Time{}
	if refused(answers) {
		h.undo()
		for i, t := range asking {
			t.denied(answers[i], r.amount, r.enforcer.Now())
		}
		return Hold{}, false, r.first(asking, answers)
	}
	for i, t := range asking {
		t.granted(answers[i])
	}
	return r.without(&h)
}

// overdue are the returns that must be made before anything else: those whose
// answer was lost, and what was granted under an older limit or past this one.
func (r *reservation) overdue() (due []debt) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		t := r.lease(b)
		if again, ok := t.again(); ok {
			due = append(due, debt{t, again})
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
			due = append(due, debt{t, t.giveBack()})
		}
	}
	return due
}

// reserve takes the amount from every lease and lists what that lacks. It is not
// ok where something is to be returned first.
func (r *reservation) reserve() (h Hold, asks []modelgate.Ask, asking []*counterLease, ok bool) {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	now := r.enforcer.Now()
	h = Hold{enforcer: r.enforcer, account: r.account, amount: r.amount}
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
func (r *reservation) first(asking []*counterLease, answers []modelgate.Held) error {
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

// refused is the refusal of a budget. The client is not told whether nothing is
// left of it, or less than the call may cost.
func (r *reservation) refused(b *modelgate.Budget, left modelgate.Nano) error {
	r.enforcer.Log.Debug("budget refuses a call", "client_id", r.caller.ClientID, "key_id", r.caller.KeyID, "scope", b.Level, "id", b.ID,
		"period", b.Period, "limit_usd", b.Limit, "left_usd", left, "reserve_usd", r.amount)
	return b.Refusal()
}

// admit notes that the reservation stands.
func (h *Hold) admit() {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	for i := range h.count {
		h.lease(i).admit(h.enforcer.Now())
	}
}

// undo takes the reservation back. The account is locked.
func (h *Hold) undo() {
	for i := range h.count {
		h.lease(i).undo(h.amount)
	}
}

// without is the hold less what budgets have that are gone; it is whole where
// every lease has what it needs, else undone. The account is locked.
func (r *reservation) without(h *Hold) (Hold, bool, error) {
	out := Hold{enforcer: h.enforcer, account: h.account, amount: h.amount}
	for i := range h.count {
		if t := h.lease(i); t.free < 0 && !t.gone {
			h.undo()
			return Hold{}, false, nil
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
