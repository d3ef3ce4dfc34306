package modelgate

import (
	"slices"
	"time"
)

// Level is the kind of thing that a budget or a counter of spend belongs to
// (spec: Budget). The levels are hierarchical: client, sub_account, key.
type Level string

// The levels.
const (
	LevelClient     Level = "client"
	LevelSubAccount Level = "sub_account"
	LevelKey        Level = "key"
)

// Period is the length of a counter of spend.
type Period string

// The periods. Days and months are those of UTC. Total has no end; a budget
// of the client over Total is its prepaid balance.
const (
	Day   Period = "day"
	Month Period = "month"
	Total Period = "total"
)

// Start is the first instant of the period that holds t; the zero time for
// Total.
func (p Period) Start(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	switch p {
	case Total:
		return time.Time{}
	case Month:
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// End is the first instant after the period that holds t; the zero time for
// Total.
func (p Period) End(t time.Time) time.Time {
	start := p.Start(t)
	switch p {
	case Total:
		return start
	case Month:
		return start.AddDate(0, 1, 0)
	}
	return start.AddDate(0, 0, 1)
}

// MaxBudget is the largest limit of a budget.
const MaxBudget = 1_000_000_000 * USD

// Owner is who set a budget. An owner changes and removes its own budgets only.
type Owner string

// The owners. Sub-account is that of every key bound to it.
const (
	OwnerOperator     Owner = "operator"
	OwnerOrganization Owner = "organization"
	OwnerSubAccount   Owner = "sub_account"
)

// Budget limits what a level may spend in a period. An owner has at most one
// budget for a target and a period. All of them apply, so the smallest decides.
type Budget struct {
	Level  Level
	ID     string // of the client, sub-account or key
	Period Period
	Owner  Owner // "" is the organization; not set on the budgets of a Caller
	// Generation is the distance from the caller's key up to the key that the
	// budget is for: 0 for the caller's own key and for other levels, 1 for its
	// issuer.
	Generation int
	// Limit is more than 0 and at most MaxBudget. For a balance it is the sum
	// of all credits, 0 before the first.
	Limit Nano
	// Revision grows with each change of the limit, also when the budget is
	// removed and set again. The higher of two revisions is the newer limit.
	Revision int64
}

// Validate checks what a client can set. Errors are bad_request.
func (b *Budget) Validate() error {
	if !slices.Contains([]Level{LevelClient, LevelSubAccount, LevelKey}, b.Level) {
		return Errorf(BadRequest, "scope must be client, sub_account or key")
	}
	if b.Period != Day && b.Period != Month {
		return Errorf(BadRequest, "period must be month or day")
	}
	if b.Limit <= 0 || b.Limit > MaxBudget {
		return Errorf(BadRequest, "limit_usd must be more than 0 and at most %s", MaxBudget)
	}
	return nil
}

// IsBalance reports whether the budget is a client's prepaid balance.
func (b *Budget) IsBalance() bool { return b.Period == Total }

// Refusal is the error of a call that the budget stops.
func (b *Budget) Refusal() *Error {
	if b.IsBalance() {
		return ErrBalance
	}
	return ErrBudget
}

// compareBudgets sorts into the order in which refusals are answered: the
// balance, then from the client down, and the day before the month.
func compareBudgets(a, b Budget) int {
	rank := func(b *Budget) int {
		if b.IsBalance() {
			return -1
		}
		return int(b.hold())
	}
	return rank(&a) - rank(&b)
}

// SortBudgets sorts into the order in which refusals are answered: the
// balance, then from the client down, and the day before the month.
func SortBudgets(list []Budget) { slices.SortFunc(list, compareBudgets) }

// Holds is the set of budgets on which a call has money reserved: one bit for
// each level and period, and for each ancestor of its key and period. The cost
// of the call is settled against these reservations of its instance.
type Holds uint16

// hold is the budget's bit: two periods of a level beside each other, the
// balance, then the ancestors.
func (b *Budget) hold() Holds {
	bit := 0
	switch {
	case b.Period == Total:
		return 1 << 6
	case b.Level == LevelSubAccount:
		bit = 2
	case b.Level == LevelKey && b.Generation > 0:
		bit = 5 + 2*b.Generation
	case b.Level == LevelKey:
		bit = 4
	}
	if b.Period == Month {
		bit++
	}
	return 1 << bit
}

// Add is h with the budget.
func (h Holds) Add(b *Budget) Holds { return h | b.hold() }

// Has reports whether money is reserved at the level for the period.
func (h Holds) Has(l Level, p Period) bool {
	b := Budget{Level: l, Period: p}
	return h&b.hold() != 0
}

// HasAbove reports the same for the ancestor of the key that stands so many
// generations above it, 1 for its issuer.
func (h Holds) HasAbove(generation int, p Period) bool {
	b := Budget{Level: LevelKey, Period: p, Generation: generation}
	return h&b.hold() != 0
}

// Counter identifies the spend of one level in one period: a row of spend. It
// is comparable.
type Counter struct {
	ClientID ClientID
	Level    Level
	ID       string
	Period   Period
	Start    int64 // unix microseconds, see Period.Start; 0 for Total
}

// Counter is the budget's counter for the period that holds t.
func (b *Budget) Counter(c ClientID, t time.Time) Counter {
	k := Counter{ClientID: c, Level: b.Level, ID: b.ID, Period: b.Period}
	if b.Period != Total {
		k.Start = b.Period.Start(t).UnixMicro()
	}
	return k
}

// Ask is the request of an instance to reserve more of a budget.
type Ask struct {
	Counter Counter
	// Least is the smallest amount worth granting and Most the largest wanted;
	// 0 < Least ≤ Most.
	Least, Most Nano
	// Plenty is how much must be left for Most to be granted, where that is
	// more than Most itself.
	Plenty Nano
	// Room is how much must be left for Least to be granted: Least itself, or
	// less so that one call may cross the limit; 0 < Room ≤ Least.
	Room Nano
	// Seq numbers the changes that the instance makes to its reservation on the
	// counter. A change whose answer was lost is sent again under its number;
	// it is not applied twice, and the answer is the first one.
	Seq int64
}

// Held is the result of an Ask.
type Held struct {
	Granted Nano // 0: refused, unless Gone
	// Gone: the budget does not exist any more, so there is nothing to reserve.
	// A balance is never gone.
	Gone bool
	// Left is limit - settled - reserved after the grant; below 0 where the
	// limit was passed or lowered.
	Left Nano
}

// Return gives back the unused part of an instance's reservation on a budget.
type Return struct {
	Counter Counter
	Amount  Nano // ≥ 0
	// Close gives the whole reservation back, for an instance without open
	// calls on the counter. Amount and Seq are not set then.
	Close bool
	Seq   int64 // see Ask
}
