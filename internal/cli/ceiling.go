package cli

import (
	"fmt"
	"os"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"modelgate"
)

// ceiling groups the commands on ceilings.
func (a *app) ceiling() *cobra.Command {
	return a.group("ceiling", "What an organization's keys can at most be issued with", a.ceilingShow(), a.ceilingSet())
}

func (a *app) ceilingShow() *cobra.Command {
	var client string
	cmd := a.list("show", "Show an organization's ceiling; --json prints what set takes", func(op *operation) error {
		c, err := resolveClient(op.ctx, op.db, client)
		if err != nil {
			return err
		}
		return op.printCeiling(&c.Ceiling)
	})
	a.clientFlag(cmd, &client, whichClient)
	required(cmd, "client")
	return cmd
}

func (op *operation) printCeiling(c *modelgate.Ceiling) error {
	return op.out.table(c, "AXIS\tPROVIDER\tMODEL PATTERN\tEFFECT", func(row func(...any)) {
		for _, e := range c.Entitlements {
			row(e.Axis, e.Provider, e.ModelPattern, e.Effect)
		}
	})
}

func (a *app) ceilingSet() *cobra.Command {
	var client, file string
	cmd := a.operator("set", "Replace an organization's ceiling; keys already issued keep what they have", func(op *operation) error {
		ceiling, err := readCeiling(file)
		if err != nil {
			return err
		}
		id, err := op.client(client)
		if err != nil {
			return err
		}
		err = op.db.UpdateClient(op.ctx, id, func(client *modelgate.Client) error {
			client.Ceiling = ceiling
			return nil
		}, audit("ceiling set", "ceiling.change", "client", string(id), ceiling))
		if err != nil {
			return err
		}
		return op.printCeiling(&ceiling)
	})
	a.clientFlag(cmd, &client, whichClient)
	cmd.Flags().StringVar(&file, "file", "", "a `FILE` with JSON in the shape of GET /gw/ceiling")
	_ = cmd.MarkFlagFilename("file", "json") // the flag is there
	required(cmd, "client", "file")
	return cmd
}

// readCeiling reads a ceiling in which nothing is left out.
func readCeiling(file string) (modelgate.Ceiling, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return modelgate.Ceiling{}, err
	}
	var given struct {
		MaxScopes    *[]modelgate.Scope      `json:"max_scopes"`
		Entitlements *modelgate.Entitlements `json:"entitlements"`
	}
	if err := strictJSON(text, &given); err != nil {
		return modelgate.Ceiling{}, fmt.Errorf("%s: %w", file, err)
	}
	if given.MaxScopes == nil || given.Entitlements == nil {
		return modelgate.Ceiling{}, fmt.Errorf("%s: max_scopes and entitlements are both required; [] allows none", file)
	}
	ceiling := modelgate.Ceiling{MaxScopes: *given.MaxScopes, Entitlements: *given.Entitlements}
	if err := ceiling.Validate(); err != nil {
		return ceiling, fmt.Errorf("%s: %w", file, err)
	}
	return ceiling, nil
}

// strictJSON decodes an operator's JSON: unknown and repeated members are
// errors.
func strictJSON(text []byte, into any) error {
	return jsonv2.Unmarshal(text, into, jsonv2.RejectUnknownMembers(true))
}
