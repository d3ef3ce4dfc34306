package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/quota"
	"modelgate/internal/ratelimit"
	"modelgate/internal/store/spend"
)

// quotaView lists what binds a call of the key, in the order in which refusals
// are answered.
type quotaView struct {
	Limits []quota.State `json:"limits"`
}

// quotaCall is the query of GET /gw/quota.
type quotaCall struct{ traits modelgate.Traits }

func (q *quotaCall) read(x *exchange) (err error) {
	model, _ := x.query.Text("model")
	pairs, _ := x.query.Text("attribution")
	q.traits, err = quota.Call(x.Caller, model, pairs)
	return err
}

// quota lists the limits that bind a call of the caller's and that it may see. A
// budget that counts each value by itself is left out.
func (a *API) quota(ctx context.Context, by actor, in quotaCall) (quotaView, error) {
	out := quotaView{Limits: []quota.State{}}
	for _, l := range ratelimit.CallerStates(a.Limiter, by.Caller) {
		out.Limits = append(out.Limits, quota.StateOf(l))
	}
	for _, shown := range a.Rates.State(by.Caller, &in.traits) {
		l := quota.StateOf(shown.State)
		l.Owner = by.shownOwner(shown.Rule.Owner)
		out.Limits = append(out.Limits, l)
	}
	bound := by.SeenBudgets(&in.traits)
	if len(bound) == 0 {
		return out, nil
	}
	a.settle(ctx)
	at := a.Now()
	if by.Token != nil { // it sees its cap alone
		used, err := a.Store.TokenSpend(ctx, by.ClientID, by.Token.ID)
		out.Limits = append(out.Limits, quota.StateOf(by.StateOf(bound[0], used, 0, at)))
		return out, err
	}
	set, err := a.Store.Budgets(ctx, by.ClientID, spend.BudgetList{SubAccountID: by.SubAccountID, At: at, Limits: true})
	if err != nil {
		return quotaView{}, err
	}
	for _, b := range bound {
		switch {
		case b.IsWallet():
			w, err := a.Store.Wallet(ctx, by.walletOf(by.SubAccountID))
			if err != nil {
				return quotaView{}, err
			}
			credited := *b
			credited.Limit = w.Limit()
			out.Limits = append(out.Limits, quota.StateOf(by.StateOf(&credited, credited.Limit-w.Available, 0, at)))
		case b.IsBalance():
			balance, _, err := a.Store.Balance(ctx, by.ClientID, 1)
			if err != nil {
				return quotaView{}, err
			}
			credited := *b
			credited.Limit = balance.Credited
			out.Limits = append(out.Limits, quota.StateOf(by.StateOf(&credited, balance.Spent+balance.Held, 0, at)))
		case b.InFile():
			value, _ := b.Value(&in.traits)
			used, err := a.Store.Use(ctx, b.ValueCounter(by.ClientID, at, value))
			if err != nil {
				return quotaView{}, err
			}
			l := quota.StateOf(by.StateOf(b, used, 0, at))
			l.Owner = by.shownOwner(b.Owner)
			out.Limits = append(out.Limits, l)
		default:
			out.Limits = append(out.Limits, by.quotasOf(b, set, at)...)
		}
	}
	return out, nil
}

// quotasOf are the budgets that owners have set where b binds the caller.
func (by actor) quotasOf(b *modelgate.Budget, set []spend.BudgetSpend, at time.Time) (list []quota.State) {
	for i := range set {
		s := &set[i]
		if s.Level != b.Level || s.ID != b.ID || s.Period != b.Period || s.Rule != b.Rule {
			continue
		}
		l := quota.StateOf(by.StateOf(&s.Budget, s.Spend+s.Held, 0, at))
		l.Owner = by.shownOwner(s.Owner)
		if s.Mode == modelgate.Soft {
			l.Mode = s.Mode
		}
		list = append(list, l)
	}
	return list
}
