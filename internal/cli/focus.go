package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/focus"
	"modelgate/internal/focus/source"
	"modelgate/internal/server"
)

// focus groups the commands on FOCUS files.
func (a *app) focus() *cobra.Command {
	return a.group("focus", "FOCUS files: usage for tools of cost management", a.focusExport())
}

// focusFlags are what a FOCUS file is about.
type focusFlags struct {
	client, from, to, granularity, format, view, out string
	all                                              bool
	tags                                             []string
}

func (a *app) focusExport() *cobra.Command {
	var f focusFlags
	cmd := a.operator("export", "Write the usage of an organization, or of all, as a FOCUS 1.3 file", func(op *operation) error { return f.export(op) })
	cmd.Long = cmd.Short + ".\n\nThe sum of BilledCost is that of the usage rows. Jobs that have not ended are left out."
	a.clientFlag(cmd, &f.client, "one organization: its `ID or name`")
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "all organizations, one after the other")
	flags.StringVar(&f.from, "from", "", "the first `DATE`, or a whole hour such as 2026-11-01T13:00:00Z, in UTC")
	flags.StringVar(&f.to, "to", "", "the `DATE` or hour after the last")
	choiceFlag(cmd, &f.granularity, "granularity", "how long a period is (default day)", "day", "hour")
	choiceFlag(cmd, &f.format, "format", "how the file is written (default csv)", "csv")
	choiceFlag(cmd, &f.view, "view", "what organizations pay (default), or what they bill to their sub-accounts", "cost", "billed")
	flags.StringSliceVar(&f.tags, "tags", nil, "attribution `KEYS` that lines are divided by, comma separated")
	flags.StringVar(&f.out, "out", "", "the `FILE` that is written; one that is there is replaced once all is written")
	_ = cmd.MarkFlagFilename("out", "csv") // the flag is there
	required(cmd, "from", "to", "out")
	return cmd
}

func (f *focusFlags) export(op *operation) error {
	if f.all == (f.client != "") {
		return usageError("use either --client or --all")
	}
	from, to, err := focus.Window(f.from, f.to, f.granularity == "hour")
	if err != nil {
		return usageError(err.Error())
	}
	clients, err := op.clients(f.client)
	if err != nil {
		return err
	}
	catalog, err := op.cfg.NewCatalog()
	if err != nil {
		return err
	}
	err = writeBeside(f.out, func(w io.Writer) error {
		for i, c := range clients {
			e, err := source.Export(op.ctx, op.db, server.FocusNames(op.cfg), catalog, c.ID, "")
			if err != nil {
				return err
			}
			e.From, e.To, e.Hourly, e.Billed, e.Tags = from, to, f.granularity == "hour", f.view == "billed", f.tags
			if err := op.focusFile(c.ID, e, w, i == 0); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	written := struct {
		File    string `json:"file"`
		Clients int    `json:"clients"`
	}{f.out, len(clients)}
	return op.out.value(written, func(w io.Writer) { fmt.Fprintf(w, "%s: %d organizations\n", written.File, written.Clients) })
}

// focusFile writes what a file has of one organization, and records it.
func (op *operation) focusFile(client modelgate.ClientID, e *focus.Export, w io.Writer, head bool) error {
	pruned, _, err := op.db.UsageBounds(op.ctx, client)
	if err != nil {
		return err
	}
	if e.From.Before(pruned) {
		return fmt.Errorf("usage before %s is pruned", pruned.Format(time.DateOnly))
	}
	if err := e.Write(op.ctx, w, head); err != nil {
		return err
	}
	change := map[string]any{"from": e.From, "to": e.To, "billed": e.Billed}
	return op.db.AddAudit(op.ctx, client, audit("focus export", "focus.export", "client", string(client), change))
}

// writeBeside writes a file that may be large: beside its place, and into it when
// all is written.
func writeBeside(path string, write func(io.Writer) error) (err error) {
	beside, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = beside.Close()
			_ = os.Remove(beside.Name()) // the first error says more
		}
	}()
	buffered := bufio.NewWriter(beside)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if err := beside.Sync(); err != nil {
		return err
	}
	if err := beside.Close(); err != nil {
		return err
	}
	return os.Rename(beside.Name(), path)
}
