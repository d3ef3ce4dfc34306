package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"modelgate/internal/server"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/terminal"
	"modelgate/internal/worker"
)

// spool groups the commands on spool directories.
func (a *app) spool() *cobra.Command {
	return a.group("spool", "Spool directories", a.spoolShip())
}

func (a *app) spoolShip() *cobra.Command {
	cmd := a.configured("ship DIR", "Book what a lost instance left in its spool directory", func(op *operation) error {
		return op.ship(op.args[0])
	})
	cmd.Long = "Book what a lost instance left in its spool directory: spool in its data_dir, or a copy of it."
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

// shipped is what `modelgate spool ship` has done.
type shipped struct {
	Instance string `json:"instance"`
	// Rows are those that the database did not have yet.
	Rows int64 `json:"rows"`
	// Quarantined are damaged places and entries that could not be booked.
	Quarantined int64 `json:"quarantined"`
}

// ship may be run any number of times. What the instance held of budgets is free
// once its calls are booked.
func (op *operation) ship(dir string) (err error) {
	// Opening a spool makes its directory, which would hide a wrong name.
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	db, err := op.open(store.Options{Mode: store.Shared})
	if err != nil {
		return err
	}
	defer db.Close()
	log := server.NewLog(op.app.Stderr, op.cfg, new(slog.LevelVar))
	left, err := spool.Open(spool.Options{FS: spool.Dir(dir), Log: log, ReadOnly: true})
	if errors.Is(err, spool.ErrLocked) {
		return fmt.Errorf("%s is in use: an instance is running on it and books it by itself", dir)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, left.Close()) }()
	shipper := worker.NewShipper(left, db, log, nil)
	if err := op.recoverSpool(shipper); err != nil {
		return err
	}
	if err := db.EndLeases(op.ctx, left.Instance()); err != nil {
		return err
	}
	done := shipped{left.Instance(), shipper.Stats().Rows, left.Stats().Quarantined + shipper.Stats().Quarantined}
	return op.out.value(done, func(w io.Writer) {
		fmt.Fprintf(w, "Booked %d usage rows of instance %s.\n", done.Rows, done.Instance)
		if done.Quarantined > 0 {
			fmt.Fprintf(w, "%d damaged places or entries were kept aside in %s.\n", done.Quarantined, filepath.Join(dir, "quarantine"))
		}
	})
}

// recoverSpool books what is left, and shows how far that is.
func (op *operation) recoverSpool(s *worker.Shipper) error {
	total := s.Backlog()
	defer op.app.terminal(op.app.Stderr).Watch("bytes", func() terminal.Sample {
		return terminal.Sample{Part: "book", Done: max(total-s.Backlog(), 0), Total: total}
	})()
	return s.Recover(op.ctx)
}
