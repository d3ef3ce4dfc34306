package cli

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/bill"
	"modelgate/internal/config"
	"modelgate/internal/server"
)

// invoice groups the commands on providers' bills.
func (a *app) invoice() *cobra.Command {
	return a.group("invoice", "The bills of providers", a.invoiceFetch(), a.invoiceImport(), a.invoiceCheck(), a.invoiceShow())
}

// span is a range of UTC days.
type span struct{ from, to string }

func (s *span) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.from, "from", "", "the first `DATE`, in UTC")
	cmd.Flags().StringVar(&s.to, "to", "", "the `DATE` after the last")
}

func (s *span) days() (from, to time.Time, err error) {
	if from, err = time.Parse(time.DateOnly, s.from); err == nil {
		to, err = time.Parse(time.DateOnly, s.to)
	}
	switch {
	case err != nil:
		return from, to, usageError("--from and --to must be dates such as 2026-11-01")
	case !to.After(from):
		return from, to, usageError("--to must be after --from")
	case to.Sub(from) > bill.MaxDays*24*time.Hour:
		return from, to, usageError(fmt.Sprintf("at most %d days", bill.MaxDays))
	}
	return from, to, nil
}

// billFlags are those of the commands on a bill.
type billFlags struct {
	span
	provider, by string
	tolerance    string
	replace      bool
}

// billed makes a command on the bill of a provider of the configuration.
func (a *app) billed(use, short string, f *billFlags, run func(*operation, *bill.Service) error) *cobra.Command {
	cmd := a.operator(use, short, func(op *operation) error {
		known := func(p config.Provider) bool { return p.Name == f.provider }
		if f.provider != "" && !slices.ContainsFunc(op.cfg.Providers, known) {
			return usageError(fmt.Sprintf("the configuration has no provider %q", f.provider))
		}
		return run(op, server.Bills(op.db, func() *config.Config { return op.cfg }, slog.New(slog.DiscardHandler)))
	})
	cmd.Flags().StringVar(&f.provider, "provider", "", "the `NAME` of a provider of the configuration")
	_ = cmd.RegisterFlagCompletionFunc("provider", a.completeProviders) // the flag is there
	return cmd
}

func (a *app) invoiceFetch() *cobra.Command {
	var f billFlags
	cmd := a.billed("fetch", "Read a provider's bill from its API and store it", &f, func(op *operation, s *bill.Service) error {
		if f.from == "" && f.to == "" { // the last eight days that have ended
			today := time.Now().UTC().Truncate(24 * time.Hour)
			f.from, f.to = today.AddDate(0, 0, -8).Format(time.DateOnly), today.Format(time.DateOnly)
		}
		from, to, err := f.days()
		if err != nil {
			return err
		}
		read, err := s.Fetch(op.ctx, f.provider, from, to, audit("invoice fetch", "invoice.fetch", "", "", nil))
		return op.printRead(read, err)
	})
	cmd.Long = cmd.Short + ", all days or none. Without dates, the last eight days that have ended. Days that are there are replaced."
	f.add(cmd)
	required(cmd, "provider")
	return cmd
}

func (a *app) invoiceImport() *cobra.Command {
	var f billFlags
	cmd := a.billed("import FILE", "Read a provider's bill from a file and store it", &f, func(op *operation, s *bill.Service) error {
		file, err := os.Open(op.args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		text := io.Reader(file)
		if strings.HasSuffix(op.args[0], ".gz") {
			if text, err = gzip.NewReader(file); err != nil {
				return fmt.Errorf("%s: %w", op.args[0], err)
			}
		}
		read, err := s.Import(op.ctx, f.provider, text, f.replace, audit("invoice import", "invoice.import", "", "", nil))
		if modelgate.KindOf(err) == modelgate.Conflict {
			err = fmt.Errorf("%w; use --replace", err)
		}
		return op.printRead(read, err)
	})
	cmd.Long = cmd.Short + ", all days or none.\n\nThe file is FOCUS 1.0 to 1.3, or CSV with the columns date, model, unit, quantity and amount; .gz is unpacked."
	cmd.Flags().BoolVar(&f.replace, "replace", false, "replace days that are there already")
	cmd.ValidArgsFunction = nil // files
	required(cmd, "provider")
	return cmd
}

// printRead prints what a reading has stored.
func (op *operation) printRead(r *bill.Read, err error) error {
	if err != nil {
		return err
	}
	return op.out.value(r, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d days from %s, %d lines, %s USD, %d days changed\n", r.Provider, r.Days, r.From, r.Lines, r.Invoiced, len(r.Changed))
	})
}

// exitOpen says that a check is printed, but a day's bill is missing or may still
// change.
const exitOpen = 3

func (a *app) invoiceCheck() *cobra.Command {
	var f billFlags
	short := "Compare a provider's stored bill with the usage rows, and name the causes of differences"
	cmd := a.billed("check", short, &f, func(op *operation, s *bill.Service) error { return f.check(op, s) })
	cmd.Long = short + ".\n\nThe command ends with 1 if the bill has other prices or if more of it is unexplained than --tolerance, " +
		"else with 3 if a day's bill is missing or not final. It changes no rows."
	choiceFlag(cmd, &f.by, "by", "also show parts of the bill", "day", "model", "project", "line", "organization")
	cmd.Flags().StringVar(&f.tolerance, "tolerance", "0.01", "how much may be unexplained, in `USD`")
	f.add(cmd)
	required(cmd, "provider", "from", "to")
	return cmd
}

func (f *billFlags) check(op *operation, s *bill.Service) error {
	from, to, err := f.days()
	if err != nil {
		return err
	}
	tolerance, err := modelgate.ParseUSD(f.tolerance)
	if err != nil {
		return usageError("--tolerance: " + err.Error())
	}
	r, err := s.Check(op.ctx, f.provider, from, to, bill.By(f.by))
	if err != nil {
		return err
	}
	if err := op.printReport(r); err != nil {
		return err
	}
	if len(r.Missing) > 0 {
		fmt.Fprintf(op.app.Stderr, "Not compared, without a bill or rows: %s\n", strings.Join(r.Missing, ", "))
	} else if !r.Final {
		fmt.Fprintln(op.app.Stderr, "The bill may still change.")
	}
	switch {
	case r.WrongPrice() || r.Unexplained > tolerance:
		return errQuiet
	case !r.Final:
		return exitWith(exitOpen)
	}
	return nil
}

// printReport prints the outcome of a check.
func (op *operation) printReport(r *bill.Report) error {
	err := op.out.table(r, "CAUSE\tUSD\tCELLS\tEXPLAINED", func(row func(...any)) {
		row("rows", r.Own, "", "")
		for _, c := range r.Causes {
			row(c.Name, c.USD, c.Cells, c.Explained)
		}
		row("bill", r.Invoiced, "", fmt.Sprintf("%.4f %%", r.ExplainedPercent))
	})
	if err == nil && !op.app.json && len(r.Groups) > 0 {
		fmt.Fprintln(op.app.Stdout)
		err = op.out.table(nil, "GROUP\tBILL\tROWS", func(row func(...any)) {
			for _, g := range r.Groups {
				row(g.Group, orDash(g.Invoiced, modelgate.Nano.String), orDash(g.Own, modelgate.Nano.String))
			}
		})
	}
	if err != nil || op.app.json || len(r.Cells) == 0 {
		return err
	}
	fmt.Fprintln(op.app.Stdout)
	return op.out.table(nil, "DAY\tMODEL\tUNIT\tVARIANT\tBILL\tROWS\tBILL RATE\tOWN RATE\tCAUSES", func(row func(...any)) {
		for _, c := range r.Cells[:min(len(r.Cells), 20)] {
			names := make([]string, 0, len(c.Causes))
			for name := range c.Causes {
				names = append(names, name)
			}
			slices.Sort(names)
			row(c.Day, c.Model, c.Unit, c.Variant, c.Invoiced, c.Own, c.InvoicedRate, c.OwnRate, strings.Join(names, ","))
		}
	})
}

func (a *app) invoiceShow() *cobra.Command {
	var f billFlags
	cmd := a.billed("show", "Show which days of bills are stored, and what the newest have come to", &f, func(op *operation, s *bill.Service) error {
		if f.provider != "" {
			return f.showDays(op, s)
		}
		list, err := s.Status(op.ctx)
		if err != nil {
			return err
		}
		return op.out.table(list, "PROVIDER\tSOURCE\tSCHEDULED\tLAST DAY\tFINAL\tEXPLAINED\tFAILURE", func(row func(...any)) {
			for _, st := range list {
				explained := ""
				if st.Outcome != nil {
					explained = fmt.Sprintf("%.4f %%", st.Outcome.ExplainedPercent)
				}
				row(st.Provider, st.Source, st.Scheduled, st.LastDay, st.Final, explained, st.Failure)
			}
		})
	})
	cmd.Long = cmd.Short + ". With --provider the days of one: missing, fetched or final."
	f.add(cmd)
	return cmd
}

func (f *billFlags) showDays(op *operation, s *bill.Service) error {
	now := time.Now()
	from, to := now.AddDate(0, 0, -30), now
	if f.from != "" || f.to != "" {
		var err error
		if from, to, err = f.days(); err != nil {
			return err
		}
	}
	days, err := s.Days(op.ctx, f.provider, from, to)
	if err != nil {
		return err
	}
	return op.out.table(days, "DAY\tSTATE\tFETCHED\tROWS\tSEALED\tDIGEST", func(row func(...any)) {
		for _, d := range days {
			row(d.Day, d.State, orDash(d.FetchedAt, stamp), orDash(d.Own, modelgate.Nano.String), d.Sealed, d.Digest[:min(len(d.Digest), 12)])
		}
	})
}
