package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"modelgate/internal/store"
	"modelgate/internal/terminal"
)

// copyVariable names the database to copy into where no flag does: its address
// may hold a password.
const copyVariable = "MODELGATE_COPY_TO"

// database groups the commands on whole databases.
func (a *app) database() *cobra.Command {
	return a.group("db", "Databases", a.databaseCopy())
}

func (a *app) databaseCopy() *cobra.Command {
	var to string
	short := "Copy everything into a database that is not in use yet, such as from SQLite to PostgreSQL"
	cmd := a.configured("copy", short, func(op *operation) error {
		if to == "" {
			to, _ = a.Lookup(copyVariable)
		}
		if to == "" {
			return usageError("no database to copy into: use --to URL or set " + copyVariable)
		}
		return op.copyTo(to)
	})
	cmd.Flags().StringVar(&to, "to", "", "the new database, postgres://user:password@host:5432/name or sqlite:FILE: `URL` (default $"+copyVariable+")")
	return cmd
}

// copyTo copies the database. The service must be stopped: with SQLite that is
// checked. All arrives or nothing, and it is compared before it stays.
func (op *operation) copyTo(url string) error {
	var meter terminal.Meter
	from, err := op.open(store.Options{Mode: store.Exclusive, Progress: meter.Set})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := op.open(store.Options{URL: url, Mode: store.Exclusive, Progress: meter.Set})
	if err != nil {
		return err
	}
	defer to.Close()
	stop := op.app.terminal(op.app.Stderr).Watch("rows", meter.Sample)
	defer stop()
	copied, err := from.Copy(op.ctx, to)
	if err != nil {
		return err
	}
	differences, err := to.Reconcile(op.ctx, "")
	if err != nil {
		return fmt.Errorf("everything is copied, but could not be reconciled: %w", err)
	}
	stop()
	if len(differences) > 0 {
		fmt.Fprintf(op.app.Stderr, "warning: %d differences in the books, in the old database as in the new one; modelgate reconcile lists them\n", len(differences))
	}
	return op.out.table(copied, "TABLE\tROWS", func(row func(...any)) {
		for _, t := range copied {
			row(t.Table, t.Rows)
		}
	})
}
