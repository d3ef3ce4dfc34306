package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"modelgate/internal/evidence"
	"modelgate/internal/server"
	"modelgate/internal/signing"
	"modelgate/internal/store"
)

// exitVerifyUsage is for `evidence verify` what exitUsage is for the others,
// because 2 says something about the file there.
const exitVerifyUsage = 64

// exitWith ends a command, which has said why, with a code of its own.
type exitWith int

func (e exitWith) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// evidenceCommand groups the commands on evidence.
type evidenceCommand struct {
	Verify evidenceVerify     `cmd:"" help:"Verify an exported file: 0 ok, 1 tampered, 2 truncated, gap or stale, 3 unknown key or bad signature, 64 usage."`
	Key    evidenceKeyCommand `cmd:"" help:"The keys that sign evidence: list, new, rotate."`
}

type evidenceVerify struct {
	VKey  []string `name:"vkey" placeholder:"KEY" help:"A verifier key that is trusted, as the gateway's operator published it. May be repeated."`
	State string   `name:"state" placeholder:"FILE" help:"Where the last good file left the chain; made and kept up to date."`
	JSON  bool     `name:"json" help:"Print one JSON value and nothing else."`
	File  string   `arg:"" placeholder:"FILE" help:"The file, or - for standard input."`
}

// Run is `modelgate evidence verify`. It needs no database, no configuration
// and no network.
func (c *evidenceVerify) Run(env *Environment) error {
	report, err := c.verify()
	if err != nil {
		fmt.Fprintln(env.Stderr, "modelgate:", err)
		return exitWith(exitVerifyUsage)
	}
	if report.Class == evidence.OK && c.State != "" {
		if err := evidence.NewState(&report).Write(c.State); err != nil {
			fmt.Fprintln(env.Stderr, "modelgate:", err)
			return exitWith(exitVerifyUsage)
		}
	}
	if report.Class == evidence.OK && !report.Trusted {
		fmt.Fprintf(env.Stderr, "modelgate: without --vkey this proves that the file is whole, and not whose it is; it says it was signed with %s\n", report.Key)
	}
	err = output{env.Stdout, c.JSON}.value(struct {
		evidence.Report
		OK   bool `json:"ok"`
		Exit int  `json:"exit"`
	}{report, report.Class == evidence.OK, report.Class.Exit()}, func(w io.Writer) { describe(w, &report) })
	if code := report.Class.Exit(); err == nil && code != exitOK {
		return exitWith(code)
	}
	return err
}

func (c *evidenceVerify) verify() (evidence.Report, error) {
	options := evidence.Options{VKeys: c.VKey}
	if c.State != "" {
		var err error
		if options.State, err = evidence.ReadState(c.State); err != nil {
			return evidence.Report{}, err
		}
	}
	if c.File == "-" {
		return evidence.Verify(os.Stdin, options)
	}
	f, err := os.Open(c.File)
	if err != nil {
		return evidence.Report{}, err
	}
	defer f.Close()
	return evidence.Verify(f, options)
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

// evidenceKeyCommand groups the commands on signing keys.
type evidenceKeyCommand struct {
	Show   evidenceKeyShow   `cmd:"" default:"withargs" help:"Print the verifier keys; the last one signs."`
	New    evidenceKeyNew    `cmd:"" help:"Print a new signing key for the configuration. It changes nothing."`
	Rotate evidenceKeyRotate `cmd:"" help:"Let a new key follow the one that signs."`
}

type evidenceKeyShow struct{ operatorFlags }

// Run is `modelgate evidence key`. Where there is no key yet it makes the
// first, as serve does.
func (c *evidenceKeyShow) Run(env *Environment) error {
	keys, db, err := c.openSigning(env)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := keys.Signer(env.Context); err != nil {
		return err
	}
	return c.showSigning(env, db)
}

// openSigning opens what knows the signing keys.
func (f *operatorFlags) openSigning(env *Environment) (*signing.Signing, *store.DB, error) {
	cfg, db, err := f.open(env)
	if err != nil {
		return nil, nil, err
	}
	master, err := server.MasterKeys(cfg)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	keys, err := server.NewSigning(cfg, db, master)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return keys, db, nil
}

func (f *operatorFlags) showSigning(env *Environment, db *store.DB) error {
	keys, err := db.EvidenceKeys(env.Context)
	if err != nil {
		return err
	}
	return f.output(env).table(keys, "VERIFIER KEY\tSINCE\tSTATE", func(row func(...any)) {
		for i, k := range keys {
			state := "signed before"
			if i == len(keys)-1 {
				state = "signs"
			}
			if i > 0 && k.Statement == "" {
				state += ", follows a lost key"
			}
			row(k.VKey, k.At.Format(time.RFC3339), state)
		}
	})
}

type evidenceKeyNew struct {
	Name string `name:"name" default:"modelgate/evidence" help:"Whose key it is, such as gate.example.com/evidence."`
	JSON bool   `name:"json" help:"Print one JSON value and nothing else."`
}

// Run is `modelgate evidence key new`.
func (c *evidenceKeyNew) Run(env *Environment) error {
	key, err := evidence.NewKey(c.Name)
	if err != nil {
		return err
	}
	return output{env.Stdout, c.JSON}.value(struct {
		SigningKey string `json:"signing_key"`
		VKey       string `json:"vkey"`
	}{key.Reveal(), key.VKey()}, func(w io.Writer) {
		fmt.Fprintf(w, "signing key, secret: %s\nverifier key, public: %s\n", key.Reveal(), key.VKey())
	})
}

type evidenceKeyRotate struct {
	operatorFlags
	Lost bool `name:"lost" help:"The key that signs is lost: let the new one follow without its statement. Every verifier has to be told the new key."`
}

// Run is `modelgate evidence key rotate`. A running service signs with the
// new key from its next export on.
func (c *evidenceKeyRotate) Run(env *Environment) error {
	keys, db, err := c.openSigning(env)
	if err != nil {
		return err
	}
	defer db.Close()
	how := signing.HandOver
	if c.Lost {
		how = signing.LostKey
	}
	if err := keys.Rotate(env.Context, how); err != nil {
		return err
	}
	return c.showSigning(env, db)
}
