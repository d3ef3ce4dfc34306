package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"modelgate/internal/secrets"
	"modelgate/internal/server"
	"modelgate/internal/store"
)

// masterKey groups the commands on the master key.
func (a *app) masterKey() *cobra.Command {
	return a.group("master-key", "The key that stored secrets are sealed under",
		a.operator("rotate", "Seal every stored secret under the master key of the configuration", (*operation).rotate))
}

// rotateBatch is how many secrets move in one transaction.
const rotateBatch = 100

// rotation is what a rotation did, and what is left to do.
type rotation struct {
	KeyID      string              `json:"key_id"` // of the master key
	Rotated    int                 `json:"rotated"`
	Unreadable []string            `json:"unreadable"` // names of secrets that no key opens
	Secrets    []store.SecretCount `json:"secrets"`    // by master key
}

// rotate can be stopped and begun again at
// any moment: a secret is under the one key or the other, and both open it as
// long as both are in the configuration. A secret that cannot be opened stays
// as it is and keeps no other from moving.
func (op *operation) rotate() error {
	db := op.db
	keys, err := server.MasterKeys(op.cfg)
	if err != nil {
		return err
	}
	if keys == nil {
		return errors.New("master_key is not set")
	}
	out := rotation{KeyID: keys.Primary(), Unreadable: []string{}}
	var unreadable error
	for after := ""; ; {
		old, err := db.SecretsNotUnder(op.ctx, keys.Primary(), after, rotateBatch)
		if err != nil {
			return err
		}
		if len(old) == 0 {
			break
		}
		after = old[len(old)-1].Name
		r, err := reseal(keys, old)
		if err != nil {
			return err
		}
		unreadable = cmp.Or(unreadable, r.unreadable)
		out.Unreadable = append(out.Unreadable, r.names...)
		if len(r.fresh) == 0 {
			continue
		}
		record := audit("master-key rotate", "master_key.rotate", "master_key", keys.Primary(), map[string]any{"secrets": len(r.fresh)})
		n, err := db.ReplaceSecrets(op.ctx, r.old, r.fresh, record)
		if err != nil {
			return err
		}
		out.Rotated += n
	}
	if out.Secrets, err = db.CountSecrets(op.ctx); err != nil {
		return err
	}
	if err := op.out.value(out, out.print); err != nil || unreadable == nil {
		return err
	}
	return fmt.Errorf("%d secrets cannot be opened and stay as they are: %w", len(out.Unreadable), unreadable)
}

// print says what is left to do.
func (r *rotation) print(w io.Writer) {
	fmt.Fprintf(w, "%d secrets were sealed anew under the master key %s.\n", r.Rotated, r.KeyID)
	if len(r.Unreadable) > 0 {
		return // the error says so
	}
	for _, n := range r.Secrets {
		if n.KeyID != r.KeyID {
			fmt.Fprintf(w, "%d are still under %s; run this again.\n", n.Count, n.KeyID)
			return
		}
	}
	fmt.Fprintln(w, "Nothing is left under another key: previous_master_keys can be removed.")
}

// resealed are secrets that take the place of old ones.
type resealed struct {
	old, fresh []store.Secret
	names      []string // of secrets that no key opens
	unreadable error    // about the first of them
}

// reseal seals secrets under the primary key, and opens each again before it
// takes the place of the old one.
func reseal(keys *secrets.Keys, values []store.Secret) (resealed, error) {
	var r resealed
	for _, s := range values {
		place := secrets.Place{Table: store.SecretTable, Row: s.Name, Column: store.SecretColumn}
		text, err := keys.Open(place, s.Value)
		if err != nil {
			r.names = append(r.names, s.Name)
			r.unreadable = cmp.Or(r.unreadable, fmt.Errorf("secret %s, under the master key %s: %w", s.Name, s.KeyID, err))
			continue
		}
		value, err := keys.Seal(place, text)
		if err != nil {
			return r, err
		}
		if again, err := keys.Open(place, value); err != nil || string(again) != string(text) {
			return r, fmt.Errorf("secret %s does not open again after it was sealed: %w", s.Name, err)
		}
		r.old, r.fresh = append(r.old, s), append(r.fresh, store.Secret{Name: s.Name, KeyID: keys.Primary(), Value: value})
	}
	return r, nil
}
