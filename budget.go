package modelgate

import (
	"cmp"
	"slices"
	"time"
)

// Level is the kind of thing that a budget or a counter of spend belongs to. The
// levels are hierarchical: client, sub_account, key.
type Level string

// The levels.
const (
	LevelClient     Level = "client"
	LevelSubAccount Level = "sub_account"
	LevelKey        Level = "key"
	LevelToken      Level = "token" // a browser token; it has its cap alone
)

// Period is the length of a counter of spend.
type Period string

// The periods. Hours, days, weeks and months are those of UTC, and a week begins
// on Monday. Total and Ever have no end; a budget over Total is the prepaid balance
// of the client, or a sub-account's wallet, and Ever is the window "total" of
// other budgets. Hour is one of rate limits only.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
	Total Period = "total"
	Ever  Period = "ever"
)

// Start is the first instant of the period that holds t; the zero time for
// Total and Ever.
func (p Period) Start(t time.Time) time.Time {
	t = t.UTC()
	y, m, d := t.Date()
	switch p {
	case Total, Ever:
		return time.Time{}
	case Hour:
		return t.Truncate(time.Hour)
	case Week:
		d -= int(t.Weekday()+6) % 7
	case Month:
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// End is the first instant after the period that holds t; the zero time for
// Total and Ever.
func (p Period) End(t time.Time) time.Time {
	start := p.Start(t)
	switch p {
	case Total, Ever:
		return start
	case Hour:
		return start.Add(time.Hour)
	case Week:
		return start.AddDate(0, 0, 7)
	case Month:
		return start.AddDate(0, 1, 0)
	}
	return start.AddDate(0, 0, 1)
}

// StartMicros is Start in unix microseconds; 0 where the period has no end.
func (p Period) StartMicros(t time.Time) int64 {
	if p == Total || p == Ever {
		return 0
	}
	return p.Start(t).UnixMicro()
}

// Window is the period as the wire names it beside the two of plain budgets:
// week or total; "" for any other.
func (p Period) Window() string {
	switch p {
	case Week:
		return "week"
	case Ever:
		return "total"
	}
	return ""
}

// ParsePeriod reads the period and the window of a budget, of which one is
// given. A window that is nil is not given. Errors are bad_request.
func ParsePeriod(period string, window *string) (Period, error) {
	switch {
	case window == nil && (period == string(Day) || period == string(Month)):
		return Period(period), nil
	case window == nil:
		return "", Errorf(BadRequest, "period must be month or day")
	case period != "":
		return "", Errorf(BadRequest, "period and window exclude each other")
	case *window == "week":
		return Week, nil
	case *window == "total":
		return Ever, nil
	}
	return "", Errorf(BadRequest, "window must be week or total")
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

// Mode says what a budget does once it is used up.
type Mode string

// The modes. A soft budget counts and alerts, and refuses nothing. "" is hard.
const (
	Hard Mode = "hard"
	Soft Mode = "soft"
)

// MaxAlerts is how many percentages a budget alerts at.
const MaxAlerts = 8

// DefaultAlerts are the percentages of the limit at which a budget alerts that
// names none.
func DefaultAlerts() []int { return []int{50, 80, 100} }

// Budget limits what a level may spend in a period, or with a Unit what it may
// use. An owner has at most one budget for a target, a period, a match and a
// unit. All of them apply, so the smallest decides.
type Budget struct {
	Level  Level
	ID     string // of the client, sub-account or key
	Period Period
	// Match says which calls count; nil: all.
	Match *Match
	// Unit is that of a rate limit over an hour or a day, which has a counter as
	// a budget does and admits the call that crosses it. "" is a budget, in money.
	Unit LimitUnit
	Mode Mode
	// Alerts are percentages of the limit, 1 to 200, at most MaxAlerts; nil is
	// DefaultAlerts, and without any there are none.
	Alerts []int
	// Rule is the number of a budget with counters of its own, from 1 up within
	// its organization, below 0 where it is InFile. It is 0 for a plain one, whose
	// counter is its target's.
	Rule int64
	// CountedSince is the instant from which on calls count; zero: as far back
	// as they are known.
	CountedSince time.Time
	Owner        Owner // "" is the organization; not set on the plain budgets of a Caller
	// Generation is the distance from the caller's key up to the key that the
	// budget is for: 0 for the caller's own key and for other levels, 1 for its
	// issuer.
	Generation int
	// Limit is more than 0 and at most MaxBudget. For a balance it is the sum
	// of all credits, 0 before the first; for a wallet the credit line too, and
	// below 0 while it is blocked; for a rate limit requests, tokens or nano-USD.
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
	if !slices.Contains([]Period{Day, Week, Month, Ever}, b.Period) {
		return Errorf(BadRequest, "period must be month or day")
	}
	if b.Mode != "" && b.Mode != Hard && b.Mode != Soft {
		return Errorf(BadRequest, "mode must be hard or soft")
	}
	if len(b.Alerts) > MaxAlerts || slices.ContainsFunc(b.Alerts, func(p int) bool { return p < 1 || p > 200 }) {
		return Errorf(BadRequest, "alerts must be at most %d percentages from 1 to 200", MaxAlerts)
	}
	if b.Limit <= 0 || b.Limit > MaxBudget {
		return Errorf(BadRequest, "limit_usd must be more than 0 and at most %s", MaxBudget)
	}
	return nil
}

// IsBalance reports whether the budget is a client's prepaid balance or a wallet.
func (b *Budget) IsBalance() bool { return b.Period == Total }

// ValueSpend is what calls with one value have spent, of a budget that counts
// each value by itself.
type ValueSpend struct {
	Value string `json:"value"`
	Spend Nano   `json:"spend_usd"`
}

// IsPlain reports whether the budget is of the kind that shares the counter of
// its target: over a day or a month, of all calls, hard, and with the usual
// alerts.
func (b *Budget) IsPlain() bool {
	return (b.Period == Day || b.Period == Month) && b.Match == nil && b.Unit == "" && b.Mode != Soft && b.Alerts == nil
}

// Usual is the budget without what it says that is so anyway: mode hard, and the
// alerts at DefaultAlerts.
func (b Budget) Usual() Budget {
	if b.Mode == Hard {
		b.Mode = ""
	}
	if len(b.Alerts) > 0 {
		b.Alerts = slices.Compact(slices.Sorted(slices.Values(b.Alerts)))
	}
	if slices.Equal(b.Alerts, DefaultAlerts()) {
		b.Alerts = nil
	}
	return b
}

// AlertPercents are the percentages of the limit at which the budget alerts.
// One with a counter for each value alerts from 100 up only.
func (b *Budget) AlertPercents() []int {
	if b.Unit != "" {
		return nil
	}
	percents := b.Alerts
	if percents == nil {
		percents = DefaultAlerts()
	}
	if b.Match.Each() {
		percents = slices.DeleteFunc(slices.Clone(percents), func(p int) bool { return p < 100 })
	}
	return percents
}

// InUnits is an amount of the budget's as answers show it: of money as it is,
// else as WholeUnits.
func (b *Budget) InUnits(n Nano) Nano {
	if b.Unit == "" || b.Unit == UnitUSD {
		return n
	}
	return WholeUnits(int64(n))
}

// Refusal is the error of a call that the budget stops.
func (b *Budget) Refusal() *Error {
	if b.Unit != "" {
		return ErrRateLimited
	}
	if b.IsBalance() {
		return ErrBalance
	}
	return ErrBudget
}

// compareBudgets sorts into the order in which refusals are answered: rate
// limits, the balance, the wallet, then from the client down to the key and on to its
// issuers; at one level those of all calls before those with a match, and the
// shorter period before the longer.
func compareBudgets(a, b *Budget) int {
	if c := a.Place() - b.Place(); c != 0 {
		return c
	}
	return cmp.Compare(a.Rule, b.Rule)
}

// Place is where the budget stands among others: the one with the smaller place
// refuses first.
func (b *Budget) Place() int {
	switch {
	case b.IsWallet():
		return -1
	case b.IsBalance():
		return -2
	}
	place := 0
	switch b.Level {
	case LevelGateway:
		place = -1
	case LevelSubAccount:
		place = 1
	case LevelKey:
		place = 2 + b.Generation
	}
	place *= 2
	if b.Match != nil {
		place++
	}
	place *= 4
	if b.Unit != "" {
		place -= 100
	}
	switch b.Period {
	case Day:
		if b.Unit != "" {
			return place + 1
		}
	case Week:
		return place + 1
	case Month:
		return place + 2
	case Ever:
		return place + 3
	}
	return place
}

// SortBudgets sorts into the order in which refusals are answered: the
// balance, then from the client down, and the shorter period before the longer.
func SortBudgets(list []Budget) {
	slices.SortFunc(list, func(a, b Budget) int { return compareBudgets(&a, &b) })
}

// SortRules is SortBudgets for budgets with counters of their own.
func SortRules(list []*Budget) { slices.SortFunc(list, compareBudgets) }

// Holds is the set of plain budgets on which a call has money reserved: one bit for
// each level and period, for each ancestor of its key and period, and for the
// cap of its browser token. The cost
// of the call is settled against these reservations of its instance.
type Holds uint16

// hold is the budget's bit: two periods of a level beside each other, the
// balance, then the ancestors, the wallet last.
func (b *Budget) hold() Holds {
	bit := 0
	switch {
	case b.IsWallet():
		return 1 << 15
	case b.Period == Total:
		return 1 << 6
	case b.Level == LevelToken:
		return 1 << 15
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

// LevelRule is the level of the counters of budgets with counters of their own.
const LevelRule Level = "rule"

// Counter identifies a sum of costs: the spend of one level in one period, or
// one value's of a rule. It is a row of spend, and comparable.
type Counter struct {
	ClientID ClientID
	Level    Level  // LevelRule: a rule's
	ID       string // of the level; of a rule its value, "" for its only counter
	Period   Period
	Start    int64 // unix microseconds, see Period.StartMicros
	Rule     int64 // the rule's number; 0 for a level's counter
}

// Counter is the budget's counter for the period that holds t.
func (b *Budget) Counter(c ClientID, t time.Time) Counter { return b.ValueCounter(c, t, "") }

// ValueCounter is the counter of calls with a value, for the period that holds t;
// only a match of each value has several.
func (b *Budget) ValueCounter(c ClientID, t time.Time, value string) Counter {
	if b.Level == LevelGateway {
		c = FileClient
	}
	if b.Rule != 0 {
		return Counter{ClientID: c, Level: LevelRule, ID: value, Period: b.Period, Start: b.Period.StartMicros(t), Rule: b.Rule}
	}
	return Counter{ClientID: c, Level: b.Level, ID: b.ID, Period: b.Period, Start: b.Period.StartMicros(t)}
}

// Ask is the request of an instance to reserve more of a budget.
type Ask struct {
	Counter Counter // of money, requests or tokens
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
	// A balance or a wallet is never gone.
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
