package modelgate

import (
	"slices"
	"time"
)

// Level is what a budget or a counter of spend belongs to (spec: Budget). The
// levels are hierarchical: client, then sub_account, then key.
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

// MaxBudget is the largest limit of a budget.
const MaxBudget = 1_000_000_000 * USD

// Owner is who has set a budget. Each changes and removes its own alone.
type Owner string

// The owners. Sub-account is that of every key bound to it.
const (
	OwnerOperator     Owner = "operator"
	OwnerOrganization Owner = "organization"
	OwnerSubAccount   Owner = "sub_account"
)

// Budget is a limit of what a level may spend in a period. Each owner has at
// most one for a target and a period; all of them apply, so the smallest binds.
type Budget struct {
	Level  Level
	ID     string // of the client, sub-account or key
	Period Period
	Owner  Owner // "" is the organization; not said of what binds a Caller
	// Generation is how far above its caller the key stands that the budget is
	// for; 0 for the caller's own and for all other levels.
	Generation int
	// Limit is more than 0 and at most MaxBudget. That of a balance is what
	// was ever credited, 0 before the first credit.
	Limit Nano
	// Revision grows with each change of the limit, also over a removal. It
	// tells the newer of two limits.
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

// Refusal is what a call gets that the budget does not let pass.
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

// Holds says for which budgets of its caller a call has money reserved: one
// bit for each level and period, and for each ancestor of its key and period.
// A call remembers it, because its cost then comes out of what its instance
// holds.
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

// Counter names what one level spends in one period: a row of spend. It is
// comparable.
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

// Ask is what an instance wants to hold of a budget, beside what it holds
// already.
type Ask struct {
	Counter Counter
	// Least is what there must be, Most what is taken where there is as much;
	// 0 < Least ≤ Most.
	Least, Most Nano
	// Plenty is what must be left for Most to be granted, where that is more
	// than Most itself.
	Plenty Nano
	// Room is what must be left for Least to be granted: Least itself, or less
	// to let one call cross the limit; 0 < Room ≤ Least.
	Room Nano
	// Seq numbers the changes of what the instance holds of the counter. One
	// that was made already is not made again but answered as it was: where an
	// answer was lost, the change is sent once more under its number.
	Seq int64
}

// Held is the answer to an Ask.
type Held struct {
	Granted Nano // 0: refused, unless Gone
	// Gone: there is no such budget any more, and nothing to reserve. A
	// balance is never gone.
	Gone bool
	// Left is limit - settled - held after it; below 0 where the limit was
	// passed or lowered.
	Left Nano
}

// Return gives back what an instance holds of a budget and does not need.
type Return struct {
	Counter Counter
	Amount  Nano // ≥ 0
	// Close gives back all there is, for an instance that has nothing under
	// way on the counter; it has no Amount and no Seq.
	Close bool
	Seq   int64 // see Ask
}
