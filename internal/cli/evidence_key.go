package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"modelgate/internal/evidence"
	"modelgate/internal/server"
	"modelgate/internal/signing"
	"modelgate/internal/terminal"
)

// evidenceKey prints the signing keys, and groups the commands on them. Where
// there is no key yet it makes the first, as serve does.
func (a *app) evidenceKey() *cobra.Command {
	cmd := a.list("key", "Print the verifier keys; the last one signs", func(op *operation) error {
		keys, err := op.signing()
		if err != nil {
			return err
		}
		if _, err := keys.Signer(op.ctx); err != nil {
			return err
		}
		return op.showSigning()
	})
	cmd.AddCommand(a.evidenceKeyNew(), a.evidenceKeyRotate())
	return cmd
}

// signing is what knows the signing keys.
func (op *operation) signing() (*signing.Signing, error) {
	master, err := server.MasterKeys(op.cfg)
	if err != nil {
		return nil, err
	}
	return server.NewSigning(op.cfg, op.db, master)
}

func (op *operation) showSigning() error {
	keys, err := op.db.EvidenceKeys(op.ctx)
	if err != nil {
		return err
	}
	return op.out.table(keys, "VERIFIER KEY\tSINCE\tSTATE", func(row func(...any)) {
		for i, k := range keys {
			state := terminal.State("signed before")
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

func (a *app) evidenceKeyNew() *cobra.Command {
	name := "modelgate/evidence"
	cmd := a.command("new", "Print a new signing key for the configuration; it changes nothing", func([]string) error {
		key, err := evidence.NewKey(name)
		if err != nil {
			return err
		}
		return (&output{app: a}).value(struct {
			SigningKey string `json:"signing_key"`
			VKey       string `json:"vkey"`
		}{key.Reveal(), key.VKey()}, func(w io.Writer) {
			fmt.Fprintf(w, "signing key, secret: %s\nverifier key, public: %s\n", key.Reveal(), key.VKey())
		})
	})
	cmd.Flags().StringVar(&name, "name", name, "whose key it is, such as gate.example.com/evidence")
	return cmd
}

// evidenceKeyRotate: a running service signs with the new key from its next export
// on.
func (a *app) evidenceKeyRotate() *cobra.Command {
	lost := false
	cmd := a.operator("rotate", "Let a new key follow the one that signs", func(op *operation) error {
		keys, err := op.signing()
		if err != nil {
			return err
		}
		how := signing.HandOver
		if lost {
			how = signing.LostKey
		}
		if err := keys.Rotate(op.ctx, how); err != nil {
			return err
		}
		return op.showSigning()
	})
	cmd.Flags().BoolVar(&lost, "lost", false,
		"the key that signs is lost: let the new one follow without its statement; every verifier has to be told the new key")
	return cmd
}
