package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"modelgate"
	"modelgate/internal/keyview"
	"modelgate/internal/store/access"
	"modelgate/internal/terminal"
)

// keyRow is a key as the operator sees it: as in GET /gw/keys, with its owner.
type keyRow struct {
	keyview.View
	ClientID modelgate.ClientID `json:"client_id"`
	Limits   modelgate.Limits   `json:"limits"`
}

func rowOfKey(k *modelgate.Key) keyRow { return keyRow{keyview.Of(k), k.ClientID, k.Limits} }

// state is whether a key can be used now.
func (k *keyRow) state(now time.Time) terminal.State {
	if k.ExpiresAt != nil && k.Status == modelgate.KeyActive && !now.Before(*k.ExpiresAt) {
		return "expired"
	}
	return terminal.State(k.Status)
}

// orDash is what a pointer points to, or a dash.
func orDash[T any](p *T, text func(T) string) string {
	if p == nil {
		return "-"
	}
	return text(*p)
}

func identity(s string) string { return s }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (op *operation) printKeys(rows []keyRow) error {
	now := time.Now()
	return op.out.table(rows, "ID\tNAME\tPREFIX\tSTATUS\tCLIENT\tSUB ACCOUNT\tCREATED\tLAST USED\tEXPIRES", func(row func(...any)) {
		for i := range rows {
			k := &rows[i]
			account := orDash(k.SubAccountID, func(id modelgate.SubAccountID) string { return string(id) })
			row(k.ID, orDash(k.Name, identity), k.Prefix, k.state(now), k.ClientID, account, stamp(k.CreatedAt), orDash(k.LastUsedAt, stamp), orDash(k.ExpiresAt, stamp))
		}
	})
}

func (a *app) keyList() *cobra.Command {
	var client, subAccount, status string
	cmd := a.list("list", "List keys, the newest first", func(op *operation) error {
		clients, err := op.clients(client)
		if err != nil {
			return err
		}
		rows, now := []keyRow{}, time.Now()
		for _, c := range clients {
			keys, _, err := op.db.Keys(op.ctx, c.ID, access.KeyList{SubAccountID: modelgate.SubAccountID(subAccount)})
			if err != nil {
				return err
			}
			for i := range keys {
				if k := rowOfKey(&keys[i]); status == "" || string(k.state(now)) == status {
					rows = append(rows, k)
				}
			}
		}
		return op.printKeys(rows)
	})
	a.clientFlag(cmd, &client, "one organization only: its `ID or name`")
	cmd.Flags().StringVar(&subAccount, "sub-account", "", "keys of the sub-account with this `ID` only")
	a.completeFlag(cmd, "sub-account", subAccountWords)
	choiceFlag(cmd, &status, "status", "keys in this state only", "active", "expired", "revoked")
	return cmd
}

func (a *app) keyFind() *cobra.Command {
	var id, prefix string
	cmd := a.list("find", "Find the key with a secret, an id or a prefix", func(op *operation) error {
		if id != "" && prefix != "" {
			return usageError("--id and --prefix exclude each other")
		}
		rows, err := op.findKeys(id, prefix)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return errors.New("no key found")
		}
		return op.printKeys(rows)
	})
	cmd.Long = "Find the key with a secret, an id or a prefix.\n\n" +
		"Without --id and --prefix the secret is asked for, or read from standard input where that is\n" +
		"no terminal. It is hashed here, and is neither shown nor sent anywhere."
	cmd.Flags().StringVar(&id, "id", "", "the key's `ID`")
	cmd.Flags().StringVar(&prefix, "prefix", "", "the first characters of the secret, as lists show them")
	a.completeFlag(cmd, "id", keyWords)
	return cmd
}

// findKeys finds a key by its id, keys by their prefix, or the key of a secret that
// is asked for.
func (op *operation) findKeys(id, prefix string) ([]keyRow, error) {
	switch {
	case id != "":
		key, err := op.db.FindKey(op.ctx, modelgate.KeyID(id))
		return []keyRow{rowOfKey(&key)}, err
	case prefix != "":
		return op.keysByPrefix(prefix)
	}
	secret, err := op.app.readSecret("Key (not shown): ")
	if err != nil {
		return nil, err
	}
	if !modelgate.WellFormed(secret) {
		return nil, errors.New("not a gateway key, or mistyped: keys are gw_live_ and 48 hex digits, of which the last 8 are a checksum")
	}
	key, err := op.db.FindKeyByDigest(op.ctx, modelgate.DigestOf(secret))
	return []keyRow{rowOfKey(&key)}, err
}

// keysByPrefix goes through the keys of every organization.
func (op *operation) keysByPrefix(prefix string) ([]keyRow, error) {
	clients, err := op.db.Clients(op.ctx)
	rows := []keyRow{}
	for _, c := range clients {
		keys, _, err := op.db.Keys(op.ctx, c.ID, access.KeyList{})
		if err != nil {
			return nil, err
		}
		for i := range keys {
			if strings.HasPrefix(keys[i].Prefix, prefix) {
				rows = append(rows, rowOfKey(&keys[i]))
			}
		}
	}
	return rows, err
}

// readSecret asks for a secret without showing it, or reads a line where standard
// input is no terminal.
func (a *app) readSecret(prompt string) (string, error) {
	if f, ok := a.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return askHidden(f, a.Stderr, prompt)
	}
	line := ""
	if a.Stdin != nil {
		var err error
		if line, err = bufio.NewReader(a.Stdin).ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.New("no key on standard input; pipe one in, or use --id or --prefix")
	}
	return line, nil
}

// askHidden reads a line from a terminal that does not show it. The terminal is
// silent before the prompt appears, so that nothing pasted early is shown.
func askHidden(f *os.File, out io.Writer, prompt string) (string, error) {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	defer term.Restore(int(f.Fd()), before) // a terminal that is gone needs nothing
	dialog := struct {
		io.Reader
		io.Writer
	}{f, out}
	text, err := term.NewTerminal(dialog, "").ReadPassword(prompt)
	if errors.Is(err, io.EOF) {
		return "", errors.New("no key was entered")
	}
	return strings.TrimSpace(text), err
}
