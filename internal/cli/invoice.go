package cli

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/cli/bill"
	"modelgate/internal/config"
	"modelgate/internal/invoice"
)

// invoice groups the commands on providers' bills.
func (a *app) invoice() *cobra.Command {
	return a.group("invoice", "The bills of providers", a.invoiceCheck())
}

// span is a range of UTC days.
type span struct{ from, to string }

func (s *span) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.from, "from", "", "the first `DATE`, in UTC")
	cmd.Flags().StringVar(&s.to, "to", "", "the `DATE` after the last")
	required(cmd, "from", "to")
}

// maxSpan bounds a range.
const maxSpan = 92 * 24 * time.Hour

func (s *span) days() (from, to time.Time, err error) {
	if from, err = time.Parse(time.DateOnly, s.from); err == nil {
		to, err = time.Parse(time.DateOnly, s.to)
	}
	switch {
	case err != nil:
		return from, to, usageError("--from and --to must be dates such as 2026-11-01")
	case !to.After(from):
		return from, to, usageError("--to must be after --from")
	case to.Sub(from) > maxSpan:
		return from, to, usageError("at most 92 days")
	}
	return from, to, nil
}

// checkFlags are those of `modelgate invoice check`.
type checkFlags struct {
	span
	provider, file string
}

func (a *app) invoiceCheck() *cobra.Command {
	var f checkFlags
	short := "Compare a provider's bill with the usage rows, and name the causes of differences"
	cmd := a.operator("check", short, func(op *operation) error { return f.check(op) })
	cmd.Long = short + ".\n\nThe bill comes from the provider's API or from a file, as `invoice` of the provider in the configuration says. " +
		"The command fails if the bill has other prices, or if more of it is unexplained than invoices.alert_unexplained_percent. It changes nothing."
	cmd.Flags().StringVar(&f.provider, "provider", "", "the `NAME` of a provider of the configuration")
	cmd.Flags().StringVar(&f.file, "file", "", "a bill as a `FILE`: FOCUS 1.0 to 1.3, or CSV with date, model, unit, quantity and amount; .gz is unpacked")
	_ = cmd.RegisterFlagCompletionFunc("provider", a.completeProviders) // the flags are there
	_ = cmd.MarkFlagFilename("file", "csv", "gz")
	f.add(cmd)
	required(cmd, "provider")
	return cmd
}

func (f *checkFlags) check(op *operation) error {
	from, to, err := f.days()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(op.cfg.Providers, func(p config.Provider) bool { return p.Name == f.provider })
	if at < 0 {
		return usageError(fmt.Sprintf("the configuration has no provider %q", f.provider))
	}
	p := &op.cfg.Providers[at]
	lines, err := bill.Read(op.ctx, p, f.file, from, to)
	if err != nil {
		return err
	}
	books, err := bill.Rows(op.ctx, op.db, p.Name, from, to)
	if err != nil {
		return err
	}
	factor := big.NewRat(int64(p.ContractFactor), int64(modelgate.USD))
	report := invoice.Compare(lines, books, invoice.Scope{
		Provider: p.Name, From: from, To: to, Projects: p.Invoice.Projects, Keys: p.Invoice.APIKeys,
		Factor: func(string) *big.Rat { return factor },
	})
	if err := op.printReport(report); err != nil {
		return err
	}
	if now := time.Now().UTC(); to.After(now.Add(-24 * time.Hour)) {
		fmt.Fprintln(op.app.Stderr, "The bill of the last 24 hours may still change.")
	}
	most := float64(op.cfg.Invoices.AlertUnexplainedPercent) / float64(modelgate.USD)
	if report.WrongPrice() || most > 0 && report.UnexplainedPercent > most {
		return errQuiet
	}
	return nil
}

// printReport prints the outcome of a check.
func (op *operation) printReport(r *invoice.Report) error {
	err := op.out.table(r, "CAUSE\tUSD\tCELLS\tEXPLAINED", func(row func(...any)) {
		row("rows", r.Own, "", "")
		for _, c := range r.Causes {
			row(c.Name, c.USD, c.Cells, c.Explained)
		}
		row("bill", r.Invoiced, "", fmt.Sprintf("%.4f %%", r.ExplainedPercent))
	})
	if err != nil || op.app.json || len(r.Cells) == 0 {
		return err
	}
	fmt.Fprintln(op.app.Stdout)
	return op.out.table(r, "DAY\tMODEL\tUNIT\tVARIANT\tBILL\tROWS\tBILL RATE\tOWN RATE\tCAUSES", func(row func(...any)) {
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
