package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/terminal"
)

// client groups the commands on organizations.
func (a *app) client() *cobra.Command {
	return a.group("client", "Organizations", a.clientCreate(), a.clientList(), a.clientShow(), a.clientSet(), a.clientSuspend(), a.clientResume())
}

// clientFlag adds --client, which takes an id or a unique name.
func (a *app) clientFlag(cmd *cobra.Command, client *string, usage string) {
	cmd.Flags().StringVar(client, "client", "", usage)
	a.completeFlag(cmd, "client", clientWords)
}

const whichClient = "the organization's `ID or name`"

// resolveClient is the organization with an id or, if only one has it, a name.
func resolveClient(ctx context.Context, db *store.DB, text string) (modelgate.Client, error) {
	client, err := db.Client(ctx, modelgate.ClientID(text))
	if e, ok := errors.AsType[*modelgate.Error](err); !ok || e.Kind != modelgate.NotFound {
		return client, err
	}
	clients, listErr := db.Clients(ctx)
	if listErr != nil {
		return modelgate.Client{}, listErr
	}
	var ids []string
	for _, c := range clients {
		if c.Name == text {
			client = c
			ids = append(ids, string(c.ID))
		}
	}
	switch len(ids) {
	case 0:
		return modelgate.Client{}, fmt.Errorf("%w: no organization has the id or the name %q", err, text)
	case 1:
		return client, nil
	}
	return modelgate.Client{}, fmt.Errorf("%d organizations are called %q; use an id: %s", len(ids), text, strings.Join(ids, ", "))
}

// client is the id of the organization that an id or a name means.
func (op *operation) client(text string) (modelgate.ClientID, error) {
	c, err := resolveClient(op.ctx, op.db, text)
	return c.ID, err
}

// clients are the organizations that are meant: one, or all for "".
func (op *operation) clients(text string) ([]modelgate.Client, error) {
	if text == "" {
		return op.db.Clients(op.ctx)
	}
	c, err := resolveClient(op.ctx, op.db, text)
	return []modelgate.Client{c}, err
}

// clientFlags are what can be set of an organization.
type clientFlags struct {
	maxKeys, maxRules int
	routing, billing  string
}

func (f *clientFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.maxKeys, "max-keys", modelgate.DefaultMaxKeys, "active keys at most")
	cmd.Flags().IntVar(&f.maxRules, "max-rules", modelgate.DefaultMaxRules, "budgets and rate limits at most that it sets for itself as a whole")
	choiceFlag(cmd, &f.routing, "routing-policy", "where calls may be served", string(modelgate.RouteAny), string(modelgate.EUOnly))
	choiceFlag(cmd, &f.billing, "billing", "invoiced, or manual: prepaid", string(modelgate.Invoiced), string(modelgate.Manual))
}

// apply changes what was named on the command line.
func (f *clientFlags) apply(cmd *cobra.Command, c *modelgate.Client) error {
	if cmd.Flags().Changed("max-keys") {
		c.MaxKeys = f.maxKeys
	}
	if cmd.Flags().Changed("max-rules") {
		if c.MaxRules = f.maxRules; c.MaxRules == 0 {
			return errors.New("--max-rules must be at least 1")
		}
	}
	if f.routing != "" {
		c.RoutingPolicy = modelgate.RoutingPolicy(f.routing)
	}
	if f.billing != "" {
		c.Billing = modelgate.Billing(f.billing)
	}
	return c.Validate()
}

// limitFlags are rate and concurrency limits.
type limitFlags struct{ rps, burst, concurrency int }

func (f *limitFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.rps, "rps", 0, "requests per second of each key; 0 is unlimited")
	cmd.Flags().IntVar(&f.burst, "burst", 0, "how many requests may come at once")
	cmd.Flags().IntVar(&f.concurrency, "concurrency", 0, "calls under way at once of each key; 0 is unlimited")
}

// limits are those that were named on the command line.
func (f *limitFlags) limits(cmd *cobra.Command) modelgate.Limits {
	flags := cmd.Flags()
	return modelgate.Limits{
		RequestsPerSecond: optional(flags, "rps", &f.rps), Burst: optional(flags, "burst", &f.burst),
		Concurrency: optional(flags, "concurrency", &f.concurrency),
	}
}

func (a *app) clientCreate() *cobra.Command {
	var name string
	var set clientFlags
	var cmd *cobra.Command
	cmd = a.operator("create", "Create an organization with the open ceiling", func(op *operation) error {
		client := newClient(name, time.Now())
		if err := set.apply(cmd, &client); err != nil {
			return err
		}
		record := audit("client create", "client.create", "client", string(client.ID), client)
		if err := op.db.CreateClient(op.ctx, client, record); err != nil {
			return err
		}
		return op.showClients(client, client)
	})
	cmd.Flags().StringVar(&name, "name", "", "what the organization is called")
	required(cmd, "name")
	set.add(cmd)
	return cmd
}

// newClient is an organization with the open ceiling.
func newClient(name string, now time.Time) modelgate.Client {
	return modelgate.Client{
		ID:            modelgate.ClientID(modelgate.NewIDs(time.Now).New().String()),
		Name:          strings.TrimSpace(name),
		Status:        modelgate.ClientActive,
		RoutingPolicy: modelgate.RouteAny,
		Billing:       modelgate.Invoiced,
		MaxKeys:       modelgate.DefaultMaxKeys,
		MaxRules:      modelgate.DefaultMaxRules,
		Ceiling:       modelgate.OpenCeiling(),
		CreatedAt:     now.UTC().Truncate(time.Microsecond),
	}
}

// showClients prints organizations as a table, or value as JSON.
func (op *operation) showClients(value any, clients ...modelgate.Client) error {
	return op.out.table(value, "ID\tNAME\tSTATUS\tROUTING\tBILLING\tMAX KEYS\tCREATED", func(row func(...any)) {
		for _, c := range clients {
			row(c.ID, c.Name, terminal.State(c.Status), c.RoutingPolicy, c.Billing, c.MaxKeys, c.CreatedAt.Format(time.RFC3339))
		}
	})
}

func (a *app) clientList() *cobra.Command {
	return a.list("list", "List organizations", func(op *operation) error {
		clients, err := op.db.Clients(op.ctx)
		if err != nil {
			return err
		}
		return op.showClients(clients, clients...)
	})
}

func (a *app) clientShow() *cobra.Command {
	cmd := a.operator("show CLIENT", "Show an organization, named by id or by name", func(op *operation) error {
		client, err := resolveClient(op.ctx, op.db, op.args[0])
		if err != nil {
			return err
		}
		return op.showClients(client, client)
	})
	cmd.ValidArgsFunction = a.complete(clientWords)
	return cmd
}

func (a *app) clientSet() *cobra.Command {
	var name string
	var set clientFlags
	var limits limitFlags
	var cmd *cobra.Command
	cmd = a.operator("set CLIENT", "Change an organization, named by id or by name", func(op *operation) error {
		id, err := op.client(op.args[0])
		if err != nil {
			return err
		}
		flags, wanted := cmd.Flags(), limits.limits(cmd)
		change := map[string]any{
			"name": optional(flags, "name", &name), "max_keys": optional(flags, "max-keys", &set.maxKeys), "max_rules": optional(flags, "max-rules", &set.maxRules),
			"routing_policy": optional(flags, "routing-policy", &set.routing), "billing": optional(flags, "billing", &set.billing), "limits": wanted,
		}
		var changed modelgate.Client
		err = op.db.UpdateClient(op.ctx, id, func(client *modelgate.Client) error {
			if flags.Changed("name") {
				client.Name = strings.TrimSpace(name)
			}
			client.Limits = wanted.Or(client.Limits)
			err := set.apply(cmd, client)
			changed = *client
			return err
		}, audit("client set", "client.update", "client", string(id), change))
		if err != nil {
			return err
		}
		return op.showClients(changed, changed)
	})
	cmd.ValidArgsFunction = a.complete(clientWords)
	cmd.Flags().StringVar(&name, "name", "", "a new name")
	set.add(cmd)
	limits.add(cmd)
	return cmd
}

func (a *app) clientSuspend() *cobra.Command {
	yes := false
	cmd := a.operator("suspend CLIENT", "Refuse all keys and sessions of an organization, named by id or by name", func(op *operation) error {
		client, err := resolveClient(op.ctx, op.db, op.args[0])
		if err != nil {
			return err
		}
		if !yes {
			if err := a.confirm(fmt.Sprintf("Refuse all calls of %s (%s) until it is resumed?", client.Name, client.ID)); err != nil {
				return err
			}
		}
		return op.setStatus(client.ID, "client suspend", "client.suspend", modelgate.ClientSuspended)
	})
	cmd.ValidArgsFunction = a.complete(clientWords)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) clientResume() *cobra.Command {
	cmd := a.operator("resume CLIENT", "Accept the keys of a suspended organization again", func(op *operation) error {
		id, err := op.client(op.args[0])
		if err != nil {
			return err
		}
		return op.setStatus(id, "client resume", "client.resume", modelgate.ClientActive)
	})
	cmd.ValidArgsFunction = a.complete(clientWords)
	return cmd
}

// setStatus suspends an organization or resumes it.
func (op *operation) setStatus(id modelgate.ClientID, command, action string, to modelgate.ClientStatus) error {
	var changed modelgate.Client
	err := op.db.UpdateClient(op.ctx, id, func(client *modelgate.Client) error {
		client.Status = to
		changed = *client
		return nil
	}, audit(command, action, "client", string(id), nil))
	if err != nil {
		return err
	}
	return op.showClients(changed, changed)
}

// confirm asks a question on a terminal; elsewhere nobody would answer.
func (a *app) confirm(question string) error {
	f, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return usageError("add --yes: there is no terminal to ask on")
	}
	fmt.Fprint(a.Stderr, question+" [y/N] ")
	answer, err := bufio.NewReader(f).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(answer)); word != "y" && word != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
