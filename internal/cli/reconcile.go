package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/terminal"
)

func (a *app) reconcile() *cobra.Command {
	var client string
	var meter terminal.Meter
	asCSV := false
	cmd := a.configured("reconcile", "Recompute the books from the usage rows; fail on any difference", func(op *operation) (err error) {
		op.out.csv = asCSV
		if op.db, err = op.open(store.Options{Mode: store.Shared, Progress: meter.Set}); err != nil {
			return err
		}
		defer op.db.Close()
		var id modelgate.ClientID
		if client != "" {
			if id, err = op.client(client); err != nil {
				return err
			}
		}
		stop := a.terminal(a.Stderr).Watch("organizations", meter.Sample)
		found, err := op.db.Reconcile(op.ctx, id)
		stop()
		if err != nil {
			return err
		}
		return op.printDifferences(found)
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	csvFlag(cmd, &asCSV)
	return cmd
}

// printDifferences prints every difference. Any makes the command fail.
func (op *operation) printDifferences(found []store.Difference) error {
	if len(found) == 0 {
		return op.out.value(found, func(w io.Writer) {
			fmt.Fprintln(w, "No differences: every counter is the sum of its usage rows.")
		})
	}
	err := op.out.table(found, "CLIENT\tWHAT\tWHERE\tWANT\tHAVE", func(row func(...any)) {
		for _, d := range found {
			row(d.ClientID, d.What, d.Key, d.Want, d.Have)
		}
	})
	if err != nil {
		return err
	}
	return errQuiet
}
