package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/cli/bill"
	"modelgate/internal/config"
	"modelgate/internal/server"
)

// exitOpen says that a check is printed, but a day's bill is missing or may still
// change.
const exitOpen = 3

// invoice groups the commands on providers' bills.
func (a *app) invoice() *cobra.Command {
	return a.group("invoice", "The bills of providers", a.invoiceFetch(), a.invoiceImport(), a.invoiceCheck(), a.invoiceShow())
}

// billed makes a command on the bill of a provider of the configuration.
func (a *app) billed(use, short string, c *bill.Command, run func(op *operation) error) *cobra.Command {
	cmd := a.operator(use, short, func(op *operation) error {
		known := func(p config.Provider) bool { return p.Name == c.Provider }
		if c.Provider != "" && !slices.ContainsFunc(op.cfg.Providers, known) {
			return usageError(fmt.Sprintf("the configuration has no provider %q", c.Provider))
		}
		c.Context, c.Table, c.Stdout, c.Stderr, c.JSON = op.ctx, op.out.table, a.Stdout, a.Stderr, a.json
		c.Service = server.Bills(op.db, func() *config.Config { return op.cfg }, slog.New(slog.DiscardHandler))
		c.Audit = func(action string) modelgate.Audit { return audit("invoice "+use, action, "", "", nil) }
		err := run(op)
		if usage, ok := errors.AsType[bill.UsageError](err); ok {
			return usageError(usage)
		}
		return err
	})
	cmd.Flags().StringVar(&c.Provider, "provider", "", "the `NAME` of a provider of the configuration")
	_ = cmd.RegisterFlagCompletionFunc("provider", a.completeProviders) // the flag is there
	return cmd
}

func billDays(cmd *cobra.Command, c *bill.Command) {
	cmd.Flags().StringVar(&c.From, "from", "", "the first `DATE`, in UTC")
	cmd.Flags().StringVar(&c.To, "to", "", "the `DATE` after the last")
}

func (a *app) invoiceFetch() *cobra.Command {
	var c bill.Command
	cmd := a.billed("fetch", "Read a provider's bill from its API and store it", &c, func(*operation) error { return c.Fetch() })
	cmd.Long = cmd.Short + ", all days or none. Without dates, the last eight days that have ended. Days that are there are replaced."
	billDays(cmd, &c)
	required(cmd, "provider")
	return cmd
}

func (a *app) invoiceImport() *cobra.Command {
	var c bill.Command
	cmd := a.billed("import FILE", "Read a provider's bill from a file and store it", &c, func(op *operation) error { return c.Import(op.args[0]) })
	cmd.Long = cmd.Short + ", all days or none.\n\nThe file is FOCUS 1.0 to 1.3, or CSV with the columns date, model, unit, quantity and amount; .gz is unpacked."
	cmd.Flags().BoolVar(&c.Replace, "replace", false, "replace days that are there already")
	cmd.ValidArgsFunction = nil // files
	required(cmd, "provider")
	return cmd
}

func (a *app) invoiceCheck() *cobra.Command {
	var c bill.Command
	short := "Compare a provider's stored bill with the usage rows, and name the causes of differences"
	cmd := a.billed("check", short, &c, func(*operation) error {
		outcome, err := c.Check()
		switch {
		case err != nil:
			return err
		case outcome == bill.Wrong:
			return errQuiet
		case outcome == bill.Open:
			return exitWith(exitOpen)
		}
		return nil
	})
	cmd.Long = short + ".\n\nThe command ends with 1 if the bill has other prices or if more of it is unexplained than --tolerance, " +
		"else with 3 if a day's bill is missing or not final. It changes no rows."
	choiceFlag(cmd, &c.By, "by", "also show parts of the bill", "day", "model", "project", "line", "organization")
	cmd.Flags().StringVar(&c.Tolerance, "tolerance", "0.01", "how much may be unexplained, in `USD`")
	billDays(cmd, &c)
	required(cmd, "provider", "from", "to")
	return cmd
}

func (a *app) invoiceShow() *cobra.Command {
	var c bill.Command
	cmd := a.billed("show", "Show which days of bills are stored, and what the newest have come to", &c, func(*operation) error { return c.Show() })
	cmd.Long = cmd.Short + ". With --provider the days of one: missing, fetched or final."
	billDays(cmd, &c)
	return cmd
}

// margin prints what calls earn.
func (a *app) margin() *cobra.Command {
	var c bill.Command
	client := ""
	short := "Show what calls cost, what the operator pays for them by contract, and what resellers bill"
	cmd := a.list("margin", short, func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		c.Context, c.Table = op.ctx, op.out.table
		err = c.Margin(op.db, clients, server.ContractFactors(op.cfg))
		if usage, ok := errors.AsType[bill.UsageError](err); ok {
			return usageError(usage)
		}
		return err
	})
	cmd.Long = short + ".\n\nContract is the cost times contract_factor of the provider on the day. Billed is at the present markups of sub-accounts. Sums are exact and rounded once."
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	choiceFlag(cmd, &c.By, "by", "what is summed (default provider)", bill.By()...)
	c.By = "provider"
	billDays(cmd, &c)
	required(cmd, "from", "to")
	return cmd
}
