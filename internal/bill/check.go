package bill

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/invoice"
	"modelgate/internal/store/bills"
)

// Report is the outcome of a check. Only days whose bill is there are compared.
type Report struct {
	invoice.Report
	Final     bool       `json:"final"`      // no day is missing, and no bill is expected to change
	FetchedAt *time.Time `json:"fetched_at"` // the oldest bill among them; null for none
	Missing   []string   `json:"missing"`    // days without a bill, or whose rows are pruned
	Groups    []Group    `json:"groups,omitempty"`
}

// Check compares the bill of the days [from, to) with the rows.
func (s *Service) Check(ctx context.Context, name string, from, to time.Time, by By) (*Report, error) {
	p, err := s.provider(name)
	if err != nil {
		return nil, err
	}
	if !inRange(from, to) {
		return nil, ErrRange
	}
	return s.check(ctx, p, from, to, by, 0)
}

// check pauses after so many rows as sumBatch, where pause is not 0.
func (s *Service) check(ctx context.Context, p *Provider, from, to time.Time, by By, pause time.Duration) (*Report, error) {
	stored, err := s.Ledger.Bills(ctx, p.Name, dateOf(from), dateOf(to))
	if err != nil {
		return nil, err
	}
	r := &Report{Final: true, Missing: []string{}}
	var lines []invoice.Line
	there := make(map[string]bool, len(stored))
	for _, b := range stored {
		some, err := invoice.LinesOf(b.Day, b.Lines)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
		there[b.Day] = true
		r.Final = r.Final && p.final(b.Day, b.FetchedAt)
		if r.FetchedAt == nil || b.FetchedAt.Before(*r.FetchedAt) {
			r.FetchedAt = &b.FetchedAt
		}
	}
	books, pruned, err := s.sums(ctx, p, from.Add(-day), to, pause) // the day before tells what has moved over midnight
	if err != nil {
		return nil, err
	}
	for at := from; at.Before(to); at = at.Add(day) {
		if d := dateOf(at); !there[d] || pruned[d] {
			r.Missing, r.Final = append(r.Missing, d), false
			delete(there, d)
		}
	}
	lines = slices.DeleteFunc(lines, func(l invoice.Line) bool { return !there[l.Day] })
	r.Report = *invoice.Compare(lines, books, invoice.Scope{
		Provider: p.Name, From: from, To: to, Projects: p.Projects, Keys: p.Keys, Factor: p.Factor,
		Compared: func(day string) bool { return there[day] },
	})
	if by != "" {
		r.Groups, err = s.groups(ctx, p, by, lines, books, there, from, to)
	}
	return r, err
}

// final reports whether a bill that was read then does not change any more.
func (p *Provider) final(date string, fetched time.Time) bool {
	return !fetched.Before(dayAt(date).Add(day + p.Lag))
}

// sumBatch is how many rows are read between two pauses, sumPause how long these
// are: 20,000 rows a second.
const (
	sumBatch = 5000
	sumPause = 250 * time.Millisecond
)

// sums are those of the rows of the days [from, to): as they are stored where they
// are sealed, else from the rows. What is summed is stored. Of pruned days there is
// neither.
func (s *Service) sums(ctx context.Context, p *Provider, from, to time.Time, pause time.Duration) (books *invoice.Books, pruned map[string]bool, err error) {
	stored, err := s.Ledger.Sums(ctx, p.Name, dateOf(from), dateOf(to))
	if err != nil {
		return nil, nil, err
	}
	oldest, err := s.oldest(ctx)
	if err != nil {
		return nil, nil, err
	}
	books, pruned = invoice.NewBooks(), make(map[string]bool)
	sealed := make(map[string]bool, len(stored))
	for _, d := range stored {
		if !d.Sealed {
			continue
		}
		sealed[d.Day] = true
		if err := books.Load(d.Day, d.Cells, invoice.DayTotal{Rows: d.Rows, Cost: d.Cost}); err != nil {
			return nil, nil, err
		}
	}
	for at := from; at.Before(to) && at.Before(oldest); at = at.Add(day) {
		if d := dateOf(at); !sealed[d] {
			sealed[d], pruned[d] = true, true
		}
	}
	for at := from; at.Before(to); {
		end := at
		for end.Before(to) && !sealed[dateOf(end)] {
			end = end.Add(day)
		}
		if end.Equal(at) {
			at = at.Add(day)
			continue
		}
		if err := s.sum(ctx, p, books, at, end, pause); err != nil {
			return nil, nil, err
		}
		at = end
	}
	return books, pruned, nil
}

// oldest is the day from which on no rows of any organization are pruned.
func (s *Service) oldest(ctx context.Context) (oldest time.Time, err error) {
	clients, err := s.Ledger.Clients(ctx)
	if err != nil {
		return oldest, err
	}
	for _, c := range clients {
		pruned, _, err := s.Ledger.UsageBounds(ctx, c.ID)
		if err != nil {
			return oldest, err
		}
		if pruned.After(oldest) {
			oldest = pruned
		}
	}
	return oldest, nil
}

// sum adds the rows of the days [from, to) over all organizations, and stores the
// sums.
func (s *Service) sum(ctx context.Context, p *Provider, books *invoice.Books, from, to time.Time, pause time.Duration) error {
	rows := 0
	err := s.rows(ctx, from, to, func(r *modelgate.UsageRow) error {
		if rows++; pause > 0 && rows%sumBatch == 0 {
			if err := s.Sleep(ctx, pause); err != nil {
				return err
			}
		}
		if r.CallBegin.Provider == p.Name {
			books.Add(r)
		}
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	var made []bills.Sums
	now := s.Now()
	for at := from; at.Before(to) && at.Add(day).Before(now); at = at.Add(day) {
		d := dateOf(at)
		total := books.Total(d)
		cells, err := books.Stored(d)
		if err != nil {
			return err
		}
		made = append(made, bills.Sums{Day: d, SummedAt: now, Sealed: total.Open == 0 && p.final(d, now), Rows: total.Rows, Cost: total.Cost, Cells: cells})
	}
	return s.Ledger.PutSums(ctx, p.Name, made)
}

// rows visits all rows of the days [from, to), of all providers.
func (s *Service) rows(ctx context.Context, from, to time.Time, visit func(*modelgate.UsageRow) error) error {
	clients, err := s.Ledger.Clients(ctx)
	if err != nil {
		return err
	}
	for _, c := range clients {
		if err := s.Ledger.UsageSpan(ctx, c.ID, "", from, to, visit); err != nil {
			return err
		}
	}
	return nil
}

// By is what the groups of a report are.
type By string

// The groups. Projects and lines are of the bill alone, organizations of the rows.
const (
	ByDay          By = "day"
	ByModel        By = "model"
	ByProject      By = "project"
	ByLine         By = "line"
	ByOrganization By = "organization"
)

// Group is both sides of a part of a bill, in USD. What a side does not know is null.
type Group struct {
	Group    string          `json:"group"`
	Invoiced *modelgate.Nano `json:"invoiced_usd"`
	Own      *modelgate.Nano `json:"own_usd"`
}

func (s *Service) groups(ctx context.Context, p *Provider, by By, lines []invoice.Line, books *invoice.Books, there map[string]bool, from, to time.Time) ([]Group, error) {
	invoiced, own := make(map[string]*big.Rat), make(map[string]*big.Rat)
	add := func(to map[string]*big.Rat, group string, amount *big.Rat) {
		if to[group] == nil {
			to[group] = new(big.Rat)
		}
		to[group].Add(to[group], amount)
	}
	switch by {
	case ByOrganization:
		clients, err := s.Ledger.Clients(ctx)
		if err != nil {
			return nil, err
		}
		names := make(map[modelgate.ClientID]string, len(clients))
		for _, c := range clients {
			names[c.ID] = c.Name
		}
		oldest, err := s.oldest(ctx)
		if err != nil {
			return nil, err
		}
		if from.Before(oldest) {
			return nil, fmt.Errorf("usage before %s is pruned", dateOf(oldest))
		}
		err = s.rows(ctx, from, to, func(r *modelgate.UsageRow) error {
			if r.CallBegin.Provider == p.Name && there[dateOf(r.At)] {
				add(own, names[r.CallBegin.ClientID], big.NewRat(int64(r.Cost), int64(modelgate.USD)))
			}
			return context.Cause(ctx)
		})
		if err != nil {
			return nil, err
		}
	case ByDay, ByModel:
		books.Each(func(c invoice.Cell, cost *big.Rat) {
			if there[c.Day] {
				add(own, map[By]string{ByDay: c.Day, ByModel: c.Model}[by], cost)
			}
		})
		fallthrough
	default:
		for _, l := range lines {
			add(invoiced, map[By]string{ByDay: l.Day, ByModel: l.Model, ByProject: l.Project, ByLine: l.Name}[by], l.Amount)
		}
	}
	var names []string
	for _, side := range []map[string]*big.Rat{invoiced, own} {
		for name := range side {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	groups := []Group{}
	for _, name := range slices.Compact(names) {
		g := Group{Group: name}
		for side, into := range map[*map[string]*big.Rat]**modelgate.Nano{&invoiced: &g.Invoiced, &own: &g.Own} {
			if amount := (*side)[name]; amount != nil {
				n := invoice.Nano(amount)
				*into = &n
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}
