package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"modelgate/internal/evidence"
	"modelgate/internal/terminal"
)

// exitVerifyUsage is for `evidence verify` what exitUsage is for the others,
// because 2 says something about the file there.
const exitVerifyUsage = 64

// verifyPath is that command.
const verifyPath = "modelgate evidence verify"

// evidence groups the commands on evidence.
func (a *app) evidence() *cobra.Command {
	return a.group("evidence", "Evidence: files, and the keys that sign them", a.evidenceVerify(), a.evidenceKey())
}

// verification is `modelgate evidence verify`. It needs no database, no
// configuration and no network.
type verification struct {
	app   *app
	vkeys []string
	state string
	file  string
}

func (a *app) evidenceVerify() *cobra.Command {
	v := &verification{app: a}
	cmd := a.command("verify FILE", "Verify an exported file, or - for standard input", func(args []string) error {
		v.file = args[0]
		return v.run()
	})
	cmd.Long = "Verify an exported file, or - for standard input.\n\n" +
		"Exit codes: 0 ok, 1 tampered, 2 truncated, gap or stale, 3 unknown key or bad signature, 64 usage."
	cmd.ValidArgsFunction = nil // files
	cmd.Flags().StringArrayVar(&v.vkeys, "vkey", nil, "a verifier `KEY` that is trusted, as the gateway's operator published it; may be repeated")
	cmd.Flags().StringVar(&v.state, "state", "", "`FILE` that holds where the last good file left the chain; made and kept up to date")
	return cmd
}

func (v *verification) run() error {
	stderr := v.app.Stderr
	report, err := v.verify()
	if err != nil {
		fmt.Fprintln(stderr, "modelgate:", err)
		return exitWith(exitVerifyUsage)
	}
	if report.Class == evidence.OK && v.state != "" {
		if err := evidence.NewState(&report).Write(v.state); err != nil {
			fmt.Fprintln(stderr, "modelgate:", err)
			return exitWith(exitVerifyUsage)
		}
	}
	if report.Class == evidence.OK && !report.Trusted {
		fmt.Fprintf(stderr, "modelgate: without --vkey this proves that the file is whole, and not whose it is; it says it was signed with %s\n", report.Key)
	}
	err = (&output{app: v.app}).value(struct {
		evidence.Report
		OK   bool `json:"ok"`
		Exit int  `json:"exit"`
	}{report, report.Class == evidence.OK, report.Class.Exit()}, func(w io.Writer) { describe(w, &report) })
	if code := report.Class.Exit(); err == nil && code != exitOK {
		return exitWith(code)
	}
	return err
}

func (v *verification) verify() (evidence.Report, error) {
	options := evidence.Options{VKeys: v.vkeys}
	if v.state != "" {
		var err error
		if options.State, err = evidence.ReadState(v.state); err != nil {
			return evidence.Report{}, err
		}
	}
	in := &terminal.Reader{R: v.app.Stdin, Part: "verify"}
	if v.file != "-" {
		f, err := os.Open(v.file)
		if err != nil {
			return evidence.Report{}, err
		}
		defer f.Close()
		in.R = f
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			in.Total = info.Size()
		}
	}
	defer v.app.terminal(v.app.Stderr).Watch("bytes", in.Sample)()
	return evidence.Verify(in, options)
}

// describe says what was found in words.
func describe(w io.Writer, r *evidence.Report) {
	if r.Class != evidence.OK {
		fmt.Fprintf(w, "%s: line %d: %s\n", r.Class, r.Line, r.Reason)
		return
	}
	fmt.Fprintf(w, "ok: records %d to %d of %d, exported %s\n", r.From, r.To, r.Latest, r.ExportedAt)
	fmt.Fprintf(w, "organization %s\nsigned with   %s\n", r.Org, r.Key)
	fmt.Fprintf(w, "%d calls, %d final costs, %d changes, %d others; %s USD\n", r.Usage, r.Finals, r.Audit, r.Other, r.Cost)
	fmt.Fprintf(w, "head %d %s\n", r.To, r.Hash)
}
