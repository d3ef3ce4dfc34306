package selfservice

import (
	"context"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

// quotaView lists what binds a call of the key, in the order in which refusals
// are answered.
type quotaView struct {
	Limits []quotaLimit `json:"limits"`
}

// quotaLimit is a limit as error.limit shows it, without what a call needs of it.
type quotaLimit struct {
	Kind      modelgate.LimitKind `json:"kind"`
	Scope     modelgate.Level     `json:"scope"`
	ID        string              `json:"id,omitempty"`
	Unit      modelgate.LimitUnit `json:"unit"`
	Period    modelgate.Period    `json:"period,omitempty"`
	Window    string              `json:"window,omitempty"`
	Limit     modelgate.Nano      `json:"limit"`
	Used      modelgate.Nano      `json:"used"`
	Remaining modelgate.Nano      `json:"remaining"`
	ResetsAt  *time.Time          `json:"resets_at"`
	// Owner is "" for the caller's own budgets, and for what is no budget.
	Owner modelgate.Owner `json:"owner,omitempty"`
}

func quotaOf(l modelgate.LimitState) quotaLimit {
	return quotaLimit{
		Kind: l.Kind, Scope: l.Scope, ID: l.ID, Unit: l.Unit, Period: l.Period, Window: l.Window,
		Limit: l.Limit, Used: l.Used, Remaining: l.Remaining, ResetsAt: l.ResetsAt,
	}
}

// quota lists the limits that bind the caller and that it may see.
func (a *API) quota(ctx context.Context, by actor, _ nothing) (quotaView, error) {
	out := quotaView{Limits: []quotaLimit{}}
	for _, l := range a.Limiter.State(by.KeyID, by.Limits) {
		out.Limits = append(out.Limits, quotaOf(l))
	}
	bound := slices.ContainsFunc(by.Budgets, func(b modelgate.Budget) bool { return by.Sees(&b) })
	if !bound {
		return out, nil
	}
	a.settle(ctx)
	at := a.Now()
	set, err := a.Store.Budgets(ctx, by.ClientID, spend.BudgetList{SubAccountID: by.SubAccountID, At: at})
	if err != nil {
		return quotaView{}, err
	}
	for i := range by.Budgets {
		b := &by.Budgets[i]
		switch {
		case !by.Sees(b):
		case b.IsBalance():
			balance, _, err := a.Store.Balance(ctx, by.ClientID, 1)
			if err != nil {
				return quotaView{}, err
			}
			credited := *b
			credited.Limit = balance.Credited
			out.Limits = append(out.Limits, quotaOf(by.StateOf(&credited, balance.Spent+balance.Held, 0, at)))
		default:
			out.Limits = append(out.Limits, by.quotasOf(b, set, at)...)
		}
	}
	return out, nil
}

// quotasOf are the budgets that owners have set where b binds the caller.
func (by actor) quotasOf(b *modelgate.Budget, set []spend.BudgetSpend, at time.Time) (list []quotaLimit) {
	for i := range set {
		s := &set[i]
		if s.Level != b.Level || s.ID != b.ID || s.Period != b.Period {
			continue
		}
		l := quotaOf(by.StateOf(&s.Budget, s.Spend+s.Held, 0, at))
		if s.Owner != by.owner() {
			l.Owner = s.Owner
			if by.SubAccountID != "" {
				l.Owner = resellers
			}
		}
		list = append(list, l)
	}
	return list
}
