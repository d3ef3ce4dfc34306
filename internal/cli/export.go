package cli

import (
	"fmt"
	"io"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/store"
)

// exportCommand groups the commands on billing events.
type exportCommand struct {
	Resend exportResend `cmd:"" help:"Send a failed billing event again, even one that may have been counted."`
	Doubt  exportDoubt  `cmd:"" help:"After a backup was restored: take every event that is not sent for one that may have been counted."`
}

type exportResend struct {
	operatorFlags
	ID string `arg:"" help:"The usage row's id."`
}

// Run is `modelgate export resend`.
func (c *exportResend) Run(env *Environment) error {
	id, ok := modelgate.ParseUUID(c.ID)
	if !ok {
		return fmt.Errorf("%q is not the id of a usage row", c.ID)
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		record := audit("export resend", "processor.event.resend", "usage_row", id.String(), nil)
		if err := db.ResendEvent(env.Context, id, record); err != nil {
			return err
		}
		queued := struct {
			ID       string    `json:"usage_record_id"`
			QueuedAt time.Time `json:"queued_at"`
		}{id.String(), time.Now().UTC()}
		return c.output(env).value(queued, func(w io.Writer) {
			fmt.Fprintf(w, "%s is queued. Where the processor has counted it more than a day ago, it is counted twice.\n", queued.ID)
		})
	})
}

type exportDoubt struct {
	operatorFlags
}

// Run is `modelgate export doubt`.
func (c *exportDoubt) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		doubted, err := db.DoubtEvents(env.Context, audit("export doubt", "processor.event.doubt", "", "", nil))
		if err != nil {
			return err
		}
		value := struct {
			Doubted int64 `json:"doubted"`
		}{doubted}
		return c.output(env).value(value, func(w io.Writer) {
			fmt.Fprintf(w, "%d events may have been counted: those of calls of the last 23 hours are sent, the others fail as ambiguous.\n", doubted)
		})
	})
}
