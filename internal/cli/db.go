package cli

import (
	"fmt"

	"modelgate/internal/store"
)

// dbCommand groups the commands on whole databases.
type dbCommand struct {
	Copy dbCopy `cmd:"" help:"Copy everything into a database that is not in use yet, such as from SQLite to PostgreSQL."`
}

type dbCopy struct {
	operatorFlags
	To string `name:"to" required:"" placeholder:"URL" env:"MODELGATE_COPY_TO" help:"The new database: postgres://user:password@host:5432/name or sqlite:FILE."`
}

// Run is `modelgate db copy`. The service must be stopped: with SQLite that
// is checked. All arrives or nothing, and it is compared before it stays.
func (c *dbCopy) Run(env *Environment) error {
	cfg, err := env.loadConfig(c.ConfigFile)
	if err != nil {
		return err
	}
	from, err := env.openStore(cfg, store.Options{Mode: store.Exclusive})
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := env.openStore(cfg, store.Options{URL: c.To, Mode: store.Exclusive})
	if err != nil {
		return err
	}
	defer to.Close()
	copied, err := from.Copy(env.Context, to)
	if err != nil {
		return err
	}
	differences, err := to.Reconcile(env.Context, "")
	if err != nil {
		return fmt.Errorf("everything is copied, but could not be reconciled: %w", err)
	}
	if len(differences) > 0 {
		fmt.Fprintf(env.Stderr, "warning: %d differences in the books, in the old database as in the new one; modelgate reconcile lists them\n", len(differences))
	}
	return c.output(env).table(copied, "TABLE\tROWS", func(row func(...any)) {
		for _, t := range copied {
			row(t.Table, t.Rows)
		}
	})
}
