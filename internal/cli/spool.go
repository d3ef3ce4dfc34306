package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"modelgate/internal/server"
	"modelgate/internal/spool"
	"modelgate/internal/worker"
)

// spoolCommand groups the commands on spool directories.
type spoolCommand struct {
	Ship spoolShip `cmd:"" help:"Book what a lost instance left in its spool directory."`
}

type spoolShip struct {
	operatorFlags
	Dir string `arg:"" placeholder:"DIR" help:"The spool directory: spool in the instance's data_dir, or a copy of it."`
}

// shipped is what `modelgate spool ship` has done.
type shipped struct {
	Instance string `json:"instance"`
	// Rows are those that the database did not have yet.
	Rows int64 `json:"rows"`
	// Quarantined are damaged places and entries that could not be booked.
	Quarantined int64 `json:"quarantined"`
}

// Run is `modelgate spool ship`. It may be run any number of times. What the
// instance held of budgets is free once its calls are booked.
func (c *spoolShip) Run(env *Environment) (err error) {
	// Opening a spool makes its directory, which would hide a wrong name.
	if info, err := os.Stat(c.Dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", c.Dir)
	}
	cfg, db, err := c.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	log := server.NewLog(env.Stderr, cfg, new(slog.LevelVar))
	left, err := spool.Open(spool.Options{FS: spool.Dir(c.Dir), Log: log, ReadOnly: true})
	if errors.Is(err, spool.ErrLocked) {
		return fmt.Errorf("%s is in use: an instance is running on it and books it by itself", c.Dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, left.Close()) }()
	shipper := worker.NewShipper(left, db, log, nil)
	if err := shipper.Recover(env.Context); err != nil {
		return err
	}
	if err := db.EndSlices(env.Context, left.Instance()); err != nil {
		return err
	}
	done := shipped{left.Instance(), shipper.Stats().Rows, left.Stats().Quarantined + shipper.Stats().Quarantined}
	return c.output(env).value(done, func(w io.Writer) {
		fmt.Fprintf(w, "Booked %d usage rows of instance %s.\n", done.Rows, done.Instance)
		if done.Quarantined > 0 {
			fmt.Fprintf(w, "%d damaged places or entries were kept aside in %s.\n", done.Quarantined, filepath.Join(c.Dir, "quarantine"))
		}
	})
}
