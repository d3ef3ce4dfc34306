// Package focus writes usage as a file of the FinOps Open Cost and Usage
// Specification (FOCUS) 1.3, as CSV.
//
// Usage rows are rounded one by one, the lines of a file are not: each cost is
// exactly the unit price times the quantity. A line of the category Adjustment for
// each group and period has the difference, so that the sum of a file is that of
// the rows to the nano-dollar.
package focus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"modelgate"
)

// MaxLines is how many lines a period has at most.
const MaxLines = 20_000

// Account is a customer of an organization as it is billed.
type Account struct {
	Name   string
	Markup modelgate.Markup
}

// Export is a file about one organization.
type Export struct {
	From, To time.Time // whole days or hours in UTC; To is not included
	Hourly   bool      // a period is an hour, else a day
	// Billed shows what sub-accounts pay to the organization, and leaves out its
	// own calls, for which nobody does. Otherwise a file shows what the
	// organization pays.
	Billed bool
	Tags   []string // attribution keys that lines are divided by

	OrganizationID, Organization string
	Brand                        string // the organization's product; "" for its name
	Issuer                       string // of the invoice to the organization; not empty
	Accounts                     map[modelgate.SubAccountID]Account
	Provider                     func(name string) string // how files call a provider; nil for its name
	Model                        func(slug string) string // display name, "" for none; nil for none at all

	// Rows visits the usage rows of [from, to), those of one sub-account if the
	// file is for one, in any order. It passes on the error of visit.
	Rows func(ctx context.Context, from, to time.Time, visit func(*modelgate.UsageRow) error) error
}

const day = 24 * time.Hour

// Window reads the window of a file: dates, or instants on whole hours in RFC
// 3339. It bounds its length: 92 days, or 31 where periods are hours.
func Window(from, to string, hourly bool) (first, last time.Time, err error) {
	if first, err = instant("from", from); err != nil {
		return first, last, err
	}
	if last, err = instant("to", to); err != nil {
		return first, last, err
	}
	switch span := last.Sub(first); {
	case span <= 0:
		return first, last, errors.New("to must be after from")
	case span > 92*day, hourly && span > 31*day:
		return first, last, errors.New("at most 92 days by day, 31 by hour")
	}
	return first, last, nil
}

func instant(name, text string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !t.Equal(t.Truncate(time.Hour)) {
		return t, fmt.Errorf("%s must be a date such as 2026-11-01, or a whole hour such as 2026-11-01T13:00:00Z", name)
	}
	return t.UTC(), nil
}

// Write writes the file, and with head the line of column names before it. Only
// one period is in memory at a time. It fails for a period with more than MaxLines.
func (e *Export) Write(ctx context.Context, w io.Writer, head bool) error {
	out := newTable(w)
	if head {
		out.write(columnNames())
	}
	step := day
	if e.Hourly {
		step = time.Hour
	}
	labels := labels{export: e, known: make(map[labelKey]*prices)}
	for from := e.From.UTC(); from.Before(e.To); from = from.Truncate(step).Add(step) {
		p := period{labels: &labels, from: from, to: from.Truncate(step).Add(step), groups: make(map[groupKey]*group)}
		if p.to.After(e.To) {
			p.to = e.To.UTC()
		}
		if err := e.Rows(ctx, p.from, p.to, p.add); err != nil {
			return err
		}
		p.write(out)
		if err := out.flush(); err != nil {
			return err
		}
	}
	return out.flush()
}

// add adds a row to its lines. Jobs that have not ended are left out.
func (p *period) add(r *modelgate.UsageRow) error {
	e := p.labels.export
	if r.ParseStatus == modelgate.ParseProvisional || e.Billed && r.SubAccountID == "" {
		return nil
	}
	prices := p.labels.of(r)
	parts := prices.parts(r)
	if len(parts) == 0 && r.Cost == 0 {
		return nil
	}
	g := p.group(r)
	if p.lines > MaxLines {
		return p.tooLong()
	}
	g.cost.Add(g.cost, big.NewInt(int64(r.Cost)))
	if parts == nil {
		g.whole.note(r)
		g.wholeCost.Add(g.wholeCost, big.NewInt(int64(r.Cost)))
		return nil
	}
	for _, part := range parts {
		l, there := g.lines[part.key]
		if !there {
			if p.lines++; p.lines > MaxLines {
				return p.tooLong()
			}
			l = &line{price: part.price}
			g.lines[part.key] = l
		}
		l.note(r)
		if l.quanta += part.quanta; l.quanta < 0 {
			return fmt.Errorf("%s: a quantity is past every number", p.from.Format(time.DateOnly))
		}
	}
	return nil
}

func (p *period) tooLong() error {
	return fmt.Errorf("the period of %s has more than %d lines; ask for fewer tags or for hours", p.from.Format(time.RFC3339), MaxLines)
}
