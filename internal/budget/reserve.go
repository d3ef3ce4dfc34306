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
	enforcer *Enforcer
	account  *account
	caller   *modelgate.Caller
	needs
	free       bool      // the call costs nothing
	gateway    bool      // reserve on limits of all organizations together only; else on the others
	at         time.Time // whose periods count
	day, month int64
	began      time.Time // once the leases at hand were not enough
	// applied are the budgets that apply to the call, in the order in which
	// they refuse, and the values of those that count each value by itself.
	applied [MaxCounters]*modelgate.Budget
	values  [MaxCounters]string
	count   int
	others  int // that apply and are reserved by another request
}

// apply finds the budgets that apply to a call; false where they are too many.
func (r *reserveRequest) apply(call *modelgate.Traits) bool {
	rules := r.caller.Rules
	if r.free {
		return r.applyRequests(call)
	}
	if r.gateway {
		r.others = len(r.caller.Budgets)
		return r.applyRules(rules, call)
	}
	for i := range r.caller.Budgets {
		b := &r.caller.Budgets[i]
		for place := b.Place(); len(rules) > 0 && rules[0].Place() < place; {
			if !r.applyRule(rules[0], call) {
				return false
			}
			rules = rules[1:]
		}
		if r.count+r.others == MaxCounters {
			return false
		}
		r.applied[r.count] = b
		r.count++
	}
	return r.applyRules(rules, call)
}

func (r *reserveRequest) applyRules(rules []*modelgate.Budget, call *modelgate.Traits) bool {
	for _, b := range rules {
		if !r.applyRule(b, call) {
			return false
		}
	}
	return true
}

// applyRequests is apply for a call that costs nothing.
func (r *reserveRequest) applyRequests(call *modelgate.Traits) bool {
	for _, b := range r.caller.Rules {
		if b.Unit == modelgate.UnitRequests && !r.applyRule(b, call) {
			return false
		}
	}
	return true
}

// applyRule is apply for one rule. A soft one reserves nothing.
func (r *reserveRequest) applyRule(b *modelgate.Budget, call *modelgate.Traits) bool {
	if b.Mode == modelgate.Soft {
		return true
	}
	value, counts := b.Counts(call)
	if !counts || b.InFile() && r.at.Before(b.CountedSince) {
		return true
	}
	if r.count+r.others == MaxCounters {
		return false
	}
	if r.gateway != (b.Level == modelgate.LevelGateway) {
		r.others++
		return true
	}
	r.applied[r.count], r.values[r.count] = b, value
	r.count++
	return true
}

// counter is the counter of the i-th budget that applies, in the period of the
// call.
func (r *reserveRequest) counter(i int) modelgate.Counter {
	b := r.applied[i]
	k := modelgate.Counter{ClientID: r.caller.ClientID, Level: b.Level, ID: b.ID, Period: b.Period}
	if r.gateway {
		k.ClientID = modelgate.FileClient
	}
	if b.Rule != 0 {
		k.Level, k.ID, k.Rule = modelgate.LevelRule, r.values[i], b.Rule
	}
	switch b.Period {
	case modelgate.Hour:
		us := r.at.UnixMicro()
		k.Start = us - us%hourLength
	case modelgate.Day:
		k.Start = r.day
	case modelgate.Week:
		k.Start = weekOf(r.day)
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
	h := Reservation{enforcer: r.enforcer, account: r.account, needs: r.needs}
	now := r.enforcer.Now()
	if now.Sub(r.enforcer.start) >= time.Duration(r.enforcer.valid.Load()) {
		return Reservation{}, false
	}
	for i, b := range r.applied[:r.count] {
		t := r.account.leases[r.counter(i)]
		switch {
		case t == nil || t.stale(b):
			return Reservation{}, false
		case t.gone:
			continue
		case t.free < r.of(t), t.crossed():
			return Reservation{}, false
		}
		h.add(b, t)
	}
	for i := range h.count {
		t := h.leases[i]
		t.take(r.of(t))
		t.admit(now)
	}
	return h, true
}

func (r *Reservation) add(b *modelgate.Budget, t *counterLease) {
	r.leases[r.count] = t
	r.count++
	if b.Rule == 0 {
		r.holds = r.holds.Add(b)
	}
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
	for i := range r.count {
		if t := r.lease(i); t.free < r.of(t) {
			t.waiting += r.of(t)
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
		t.waiting -= r.of(t)
	}
}

// lease is the lease of the i-th budget, made where there is none. The account is
// locked.
func (r *reserveRequest) lease(i int) *counterLease {
	k := r.counter(i)
	t := r.account.leases[k]
	if t == nil {
		t = newLease(k, r.applied[i], r.enforcer.Now())
		r.account.leases[k] = t
	}
	return t
}

// refusal is the answer where it is known without the store. That of a budget is
// not as long as a rate limit may refuse before it.
func (r *reserveRequest) refusal() error {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	limited := false // perhaps
	for i, b := range r.applied[:r.count] {
		t := r.account.leases[r.counter(i)]
		switch {
		case t != nil && !t.stale(b) && (t.gone || t.free >= r.of(t)):
		case t != nil && !t.stale(b) && t.refuses(r.of(t), r.enforcer.mode(b.Unit), r.began):
			if !limited || b.Unit != "" {
				return r.refused(b, t.left)
			}
		case b.Unit != "":
			limited = true
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
			t.denied(answers[i], r.of(t), asked)
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
	for i, b := range r.applied[:r.count] {
		t := r.lease(i)
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
	h = Reservation{enforcer: r.enforcer, account: r.account, needs: r.needs}
	for i, b := range r.applied[:r.count] {
		t := r.lease(i)
		if t.gone && !t.stale(b) {
			continue
		}
		if t.crossed() && t.free > 0 && t.state != askLost { // a call has ended since overdue
			h.undo()
			return h, nil, nil, false
		}
		h.add(b, t)
		t.take(r.of(t))
		if t.free < 0 {
			asks = append(asks, t.ask(r.of(t), r.enforcer.mode(t.unit), now))
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
	for i, b := range r.applied[:r.count] {
		for n, t := range asking {
			if t.counter == r.counter(i) && answers[n].Granted == 0 && !answers[n].Gone {
				return r.refused(b, answers[n].Left)
			}
		}
	}
	return modelgate.ErrBudget
}

// refused is the refusal of a budget of which so much is left.
func (r *reserveRequest) refused(b *modelgate.Budget, left modelgate.Nano) error {
	if b.Unit != "" {
		if r.enforcer.Refused != nil {
			r.enforcer.Refused(b)
		}
	}
	needed := r.of(&counterLease{unit: b.Unit, counter: b.Counter(r.caller.ClientID, r.at)})
	r.enforcer.Log.Debug("budget refuses a call", "client_id", r.caller.ClientID, "key_id", r.caller.KeyID, "scope", b.Level, "id", b.ID,
		"period", b.Period, "limit_usd", b.Limit, "left_usd", left, "reserve_usd", needed, "match", b.Match.String(), "unit", b.Unit)
	return r.caller.Refuse(b, b.Limit-left, needed, r.at)
}

// admit notes that the reservation stands.
func (r *Reservation) admit() {
	r.account.mu.Lock()
	defer r.account.mu.Unlock()
	for i := range r.count {
		r.leases[i].admit(r.enforcer.Now())
	}
}

// undo takes the reservation back. The account is locked.
func (r *Reservation) undo() {
	for i := range r.count {
		r.leases[i].undo(r.of(r.leases[i]))
	}
}

// without is the hold less what budgets have that are gone; it is whole where
// every lease has what it needs, else undone. The account is locked.
func (r *reserveRequest) without(h *Reservation) (Reservation, bool, error) {
	out := Reservation{enforcer: h.enforcer, account: h.account, needs: h.needs}
	for i := range h.count {
		if t := h.leases[i]; t.free < 0 && !t.gone {
			h.undo()
			return Reservation{}, false, nil
		}
	}
	next := 0
	for i, b := range r.applied[:r.count] {
		if next == h.count || h.leases[next].counter != r.counter(i) {
			continue // it was gone before
		}
		t := h.leases[next]
		next++
		if t.gone {
			t.undo(h.of(t))
			continue
		}
		out.add(b, t)
		t.admit(h.enforcer.Now())
	}
	return out, true, nil
}
