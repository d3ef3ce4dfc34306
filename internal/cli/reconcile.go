package cli

import (
	"fmt"
	"io"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/store"
)

// reconcileCommand is `modelgate reconcile`.
type reconcileCommand struct {
	operatorFlags
	Client string `name:"client" placeholder:"ID" help:"One organization only."`
}

// Run recomputes what is kept beside the usage rows and prints every
// difference. Any difference makes the command fail.
func (c *reconcileCommand) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		client := modelgate.ClientID(c.Client)
		found, err := db.Reconcile(env.Context, client)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if client != "" {
				if _, err := db.Client(env.Context, client); err != nil {
					return err // nothing differs because nothing is there
				}
			}
			return c.output(env).value(found, func(w io.Writer) {
				fmt.Fprintln(w, "No differences: every counter is the sum of its usage rows.")
			})
		}
		err = c.output(env).table(found, "CLIENT\tWHAT\tWHERE\tWANT\tHAVE", func(row func(...any)) {
			for _, d := range found {
				row(d.ClientID, d.What, d.Key, d.Want, d.Have)
			}
		})
		if err != nil {
			return err
		}
		return errQuiet
	})
}
