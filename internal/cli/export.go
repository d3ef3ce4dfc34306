package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
)

// export groups the commands on billing events.
func (a *app) export() *cobra.Command {
	return a.group("export", "Billing events", a.exportResend(), a.exportDoubt())
}

func (a *app) exportResend() *cobra.Command {
	return a.operator("resend ROW", "Send a failed billing event again, even one that may have been counted; ROW is the usage row's id", func(op *operation) error {
		id, ok := modelgate.ParseUUID(op.args[0])
		if !ok {
			return fmt.Errorf("%q is not the id of a usage row", op.args[0])
		}
		record := audit("export resend", "processor.event.resend", "usage_row", id.String(), nil)
		if err := op.db.ResendEvent(op.ctx, id, true, record); err != nil {
			return err
		}
		queued := struct {
			ID       string    `json:"usage_record_id"`
			QueuedAt time.Time `json:"queued_at"`
		}{id.String(), time.Now().UTC()}
		return op.out.value(queued, func(w io.Writer) {
			fmt.Fprintf(w, "%s is queued. Where the processor has counted it more than a day ago, it is counted twice.\n", queued.ID)
		})
	})
}

func (a *app) exportDoubt() *cobra.Command {
	short := "After a backup was restored: take every event that is not sent for one that may have been counted"
	return a.operator("doubt", short, func(op *operation) error {
		doubted, err := op.db.DoubtEvents(op.ctx, audit("export doubt", "processor.event.doubt", "", "", nil))
		if err != nil {
			return err
		}
		value := struct {
			Doubted int64 `json:"doubted"`
		}{doubted}
		return op.out.value(value, func(w io.Writer) {
			fmt.Fprintf(w, "%d events may have been counted: those of calls of the last 23 hours are sent, the others fail as ambiguous.\n", doubted)
		})
	})
}
