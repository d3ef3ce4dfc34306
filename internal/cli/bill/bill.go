// Package bill is what the commands on providers' bills do and print.
package bill

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/bill"
)

// Command is one run of a command.
type Command struct {
	Context context.Context
	Service *bill.Service
	// Table prints a value as JSON, or rows under a head.
	Table          func(v any, head string, rows func(row func(cells ...any))) error
	Stdout, Stderr io.Writer
	JSON           bool
	Audit          func(action string) modelgate.Audit

	From, To, Provider, By, Tolerance string // flags
	Replace                           bool
}

// UsageError is a command line that cannot be run.
type UsageError string

func (e UsageError) Error() string { return string(e) }

// The outcomes of a check besides that all is well.
const (
	Wrong = iota + 1 // another price, or too much unexplained
	Open             // a day's bill is missing or not final
)

// days is the range of the flags.
func (c *Command) days() (from, to time.Time, err error) {
	if from, err = time.Parse(time.DateOnly, c.From); err == nil {
		to, err = time.Parse(time.DateOnly, c.To)
	}
	switch {
	case err != nil:
		return from, to, UsageError("--from and --to must be dates such as 2026-11-01")
	case !to.After(from):
		return from, to, UsageError("--to must be after --from")
	case to.Sub(from) > bill.MaxDays*24*time.Hour:
		return from, to, UsageError(fmt.Sprintf("at most %d days", bill.MaxDays))
	}
	return from, to, nil
}

// Fetch reads a bill from its API: of the last eight days that have ended where
// there are no flags.
func (c *Command) Fetch() error {
	if c.From == "" && c.To == "" {
		today := time.Now().UTC().Truncate(24 * time.Hour)
		c.From, c.To = today.AddDate(0, 0, -8).Format(time.DateOnly), today.Format(time.DateOnly)
	}
	from, to, err := c.days()
	if err != nil {
		return err
	}
	read, err := c.Service.Fetch(c.Context, c.Provider, from, to, c.Audit("invoice.fetch"))
	return c.read(read, err)
}

// Import reads a bill from a file.
func (c *Command) Import(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	text := io.Reader(file)
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	read, err := c.Service.Import(c.Context, c.Provider, text, c.Replace, c.Audit("invoice.import"))
	if modelgate.KindOf(err) == modelgate.Conflict {
		err = fmt.Errorf("%w; use --replace", err)
	}
	return c.read(read, err)
}

func (c *Command) read(r *bill.Read, err error) error {
	if err != nil {
		return err
	}
	return c.Table(r, "PROVIDER\tFROM\tTO\tDAYS\tLINES\tUSD\tCHANGED", func(row func(...any)) {
		row(r.Provider, r.From, r.To, r.Days, r.Lines, r.Invoiced, strings.Join(r.Changed, ","))
	})
}

// Check compares a bill. The outcome is 0, Wrong or Open.
func (c *Command) Check() (outcome int, err error) {
	from, to, err := c.days()
	if err != nil {
		return 0, err
	}
	tolerance, err := modelgate.ParseUSD(c.Tolerance)
	if err != nil {
		return 0, UsageError("--tolerance: " + err.Error())
	}
	r, err := c.Service.Check(c.Context, c.Provider, from, to, bill.By(c.By))
	if err != nil {
		return 0, err
	}
	if err := c.report(r); err != nil {
		return 0, err
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(c.Stderr, "Not compared, without a bill or rows: %s\n", strings.Join(r.Missing, ", "))
	} else if !r.Final {
		fmt.Fprintln(c.Stderr, "The bill may still change.")
	}
	switch {
	case r.WrongPrice() || r.Unexplained > tolerance:
		return Wrong, nil
	case !r.Final:
		return Open, nil
	}
	return 0, nil
}

// report prints the outcome of a check.
func (c *Command) report(r *bill.Report) error {
	err := c.Table(r, "CAUSE\tUSD\tCELLS\tEXPLAINED", func(row func(...any)) {
		row("rows", r.Own, "", "")
		for _, cause := range r.Causes {
			row(cause.Name, cause.USD, cause.Cells, cause.Explained)
		}
		row("bill", r.Invoiced, "", fmt.Sprintf("%.4f %%", r.ExplainedPercent))
	})
	if err == nil && !c.JSON && len(r.Groups) > 0 {
		fmt.Fprintln(c.Stdout)
		err = c.Table(nil, "GROUP\tBILL\tROWS", func(row func(...any)) {
			for _, g := range r.Groups {
				row(g.Group, orDash(g.Invoiced, modelgate.Nano.String), orDash(g.Own, modelgate.Nano.String))
			}
		})
	}
	if err != nil || c.JSON || len(r.Cells) == 0 {
		return err
	}
	fmt.Fprintln(c.Stdout)
	return c.Table(nil, "DAY\tMODEL\tUNIT\tVARIANT\tBILL\tROWS\tBILL RATE\tOWN RATE\tCAUSES", func(row func(...any)) {
		for _, cell := range r.Cells[:min(len(r.Cells), 20)] {
			names := make([]string, 0, len(cell.Causes))
			for name := range cell.Causes {
				names = append(names, name)
			}
			slices.Sort(names)
			row(cell.Day, cell.Model, cell.Unit, cell.Variant, cell.Invoiced, cell.Own, cell.InvoicedRate, cell.OwnRate, strings.Join(names, ","))
		}
	})
}

// Show prints how all bills stand, or the days of one.
func (c *Command) Show() error {
	if c.Provider != "" {
		return c.showDays()
	}
	list, err := c.Service.Status(c.Context)
	if err != nil {
		return err
	}
	return c.Table(list, "PROVIDER\tSOURCE\tSCHEDULED\tLAST DAY\tFINAL\tEXPLAINED\tFAILURE", func(row func(...any)) {
		for _, st := range list {
			explained := orDash(st.Outcome, func(o bill.Outcome) string { return fmt.Sprintf("%.4f %%", o.ExplainedPercent) })
			row(st.Provider, st.Source, st.Scheduled, st.LastDay, st.Final, explained, st.Failure)
		}
	})
}

func (c *Command) showDays() error {
	now := time.Now()
	from, to := now.AddDate(0, 0, -30), now
	if c.From != "" || c.To != "" {
		var err error
		if from, to, err = c.days(); err != nil {
			return err
		}
	}
	days, err := c.Service.Days(c.Context, c.Provider, from, to)
	if err != nil {
		return err
	}
	return c.Table(days, "DAY\tSTATE\tFETCHED\tROWS\tSEALED\tDIGEST", func(row func(...any)) {
		for _, d := range days {
			row(d.Day, d.State, orDash(d.FetchedAt, func(t time.Time) string { return t.Format(time.RFC3339) }), orDash(d.Own, modelgate.Nano.String), d.Sealed,
				d.Digest[:min(len(d.Digest), 12)])
		}
	})
}

// orDash is what a pointer points to, or a dash.
func orDash[T any](p *T, text func(T) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}
