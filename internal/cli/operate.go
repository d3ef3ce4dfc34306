package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/server"
	"modelgate/internal/store"
)

// operatorFlags are common to every command that works on the database of a
// service, running or not.
type operatorFlags struct {
	ConfigFile string `name:"config" env:"MODELGATE_CONFIG" required:"" placeholder:"FILE" help:"The service's configuration file."`
	JSON       bool   `name:"json" help:"Print one JSON value and nothing else."`
}

func (f *operatorFlags) output(env *Environment) output { return output{env.Stdout, f.JSON} }

// open loads the configuration and opens the database beside a running
// service.
func (f *operatorFlags) open(env *Environment) (*config.Config, *store.DB, error) {
	cfg, err := env.loadConfig(f.ConfigFile)
	if err != nil {
		return nil, nil, err
	}
	db, err := env.openStore(cfg, store.Options{Mode: store.Shared})
	return cfg, db, err
}

// withDB runs do on the database beside a running service.
func (f *operatorFlags) withDB(env *Environment, do func(*config.Config, *store.DB) error) error {
	cfg, db, err := f.open(env)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(cfg, db)
}

// openStore opens the database of a configuration, or the one at o.URL, for a
// command.
func (e *Environment) openStore(cfg *config.Config, o store.Options) (*store.DB, error) {
	o.Log, o.Software = slog.New(slog.NewTextHandler(e.Stderr, nil)), buildVersion()
	return server.OpenStore(e.Context, cfg, o)
}

// audit begins the record of a change made by a command.
func audit(command, action, targetType, targetID string, change any) modelgate.Audit {
	a := server.Audit(modelgate.Actor{Operator: command}, action)
	a.TargetType, a.TargetID = targetType, targetID
	if change != nil {
		a.Change, _ = json.Marshal(change) // structs and maps of plain values always marshal
	}
	return a
}

// clientCommand groups the commands on organizations.
type clientCommand struct {
	Create clientCreate `cmd:"" help:"Create an organization with the open ceiling."`
	List   clientList   `cmd:"" help:"List organizations."`
	Set    clientSet    `cmd:"" help:"Change an organization."`
}

// clientFlags are what can be set of an organization.
type clientFlags struct {
	MaxKeys       *int    `name:"max-keys" help:"Active keys at most (default 1000)."`
	RoutingPolicy *string `name:"routing-policy" enum:"any,eu_only" help:"Where calls may be served: any or eu_only."`
	Billing       *string `name:"billing" enum:"invoiced,manual" help:"invoiced, or manual: prepaid."`
}

func (f *clientFlags) apply(c *modelgate.Client) error {
	if f.MaxKeys != nil {
		c.MaxKeys = *f.MaxKeys
	}
	if f.RoutingPolicy != nil {
		c.RoutingPolicy = modelgate.RoutingPolicy(*f.RoutingPolicy)
	}
	if f.Billing != nil {
		c.Billing = modelgate.Billing(*f.Billing)
	}
	return c.Validate()
}

// limitFlags are rate and concurrency limits.
type limitFlags struct {
	RPS         *int `name:"rps" help:"Requests per second of each key; 0 is unlimited."`
	Burst       *int `name:"burst" help:"How many requests may come at once."`
	Concurrency *int `name:"concurrency" help:"Calls under way at once of each key; 0 is unlimited."`
}

func (f *limitFlags) limits() modelgate.Limits {
	return modelgate.Limits{RequestsPerSecond: f.RPS, Burst: f.Burst, Concurrency: f.Concurrency}
}

type clientCreate struct {
	operatorFlags
	clientFlags
	Name string `name:"name" required:"" help:"What the organization is called."`
}

// Run is `modelgate client create`.
func (c *clientCreate) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		client := newClient(c.Name, time.Now())
		if err := c.apply(&client); err != nil {
			return err
		}
		record := audit("client create", "client.create", "client", string(client.ID), client)
		if err := db.CreateClient(env.Context, client, record); err != nil {
			return err
		}
		return c.show(env, []modelgate.Client{client}, client)
	})
}

// newClient is an organization with the open ceiling.
func newClient(name string, now time.Time) modelgate.Client {
	return modelgate.Client{
		ID:            modelgate.ClientID(modelgate.NewIDs(time.Now).New().String()),
		Name:          strings.TrimSpace(name),
		RoutingPolicy: modelgate.RouteAny,
		Billing:       modelgate.Invoiced,
		MaxKeys:       modelgate.DefaultMaxKeys,
		Ceiling:       modelgate.OpenCeiling(),
		CreatedAt:     now.UTC().Truncate(time.Microsecond),
	}
}

// show prints organizations as a table, or value as JSON.
func (f *operatorFlags) show(env *Environment, clients []modelgate.Client, value any) error {
	return f.output(env).table(value, "ID\tNAME\tROUTING\tBILLING\tMAX KEYS\tCREATED", func(row func(...any)) {
		for _, c := range clients {
			row(c.ID, c.Name, c.RoutingPolicy, c.Billing, c.MaxKeys, c.CreatedAt.Format(time.RFC3339))
		}
	})
}

type clientList struct{ operatorFlags }

// Run is `modelgate client list`.
func (c *clientList) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		clients, err := db.Clients(env.Context)
		if err != nil {
			return err
		}
		return c.show(env, clients, clients)
	})
}

type clientSet struct {
	operatorFlags
	clientFlags
	limitFlags
	ID   string  `arg:"" help:"The organization's id."`
	Name *string `name:"name" help:"A new name."`
}

// Run is `modelgate client set`.
func (c *clientSet) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		change := map[string]any{"name": c.Name, "max_keys": c.MaxKeys, "routing_policy": c.RoutingPolicy, "billing": c.Billing, "limits": c.limits()}
		var changed modelgate.Client
		err := db.UpdateClient(env.Context, modelgate.ClientID(c.ID), func(client *modelgate.Client) error {
			if c.Name != nil {
				client.Name = strings.TrimSpace(*c.Name)
			}
			client.Limits = c.limits().Or(client.Limits)
			err := c.apply(client)
			changed = *client
			return err
		}, audit("client set", "client.update", "client", c.ID, change))
		if err != nil {
			return err
		}
		return c.show(env, []modelgate.Client{changed}, changed)
	})
}

// ceilingCommand groups the commands on ceilings.
type ceilingCommand struct {
	Set ceilingSet `cmd:"" help:"Replace an organization's ceiling; keys already issued keep what they have."`
}

type ceilingSet struct {
	operatorFlags
	Client string `name:"client" required:"" help:"The organization's id."`
	File   string `name:"file" required:"" help:"JSON in the shape of GET /gw/ceiling."`
}

// Run is `modelgate ceiling set`.
func (c *ceilingSet) Run(env *Environment) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	var given struct {
		MaxScopes    *[]modelgate.Scope      `json:"max_scopes"`
		Entitlements *modelgate.Entitlements `json:"entitlements"`
	}
	if err := strictJSON(text, &given); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if given.MaxScopes == nil || given.Entitlements == nil {
		return fmt.Errorf("%s: max_scopes and entitlements are both required; [] allows none", c.File)
	}
	ceiling := modelgate.Ceiling{MaxScopes: *given.MaxScopes, Entitlements: *given.Entitlements}
	if err := ceiling.Validate(); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		err = db.UpdateClient(env.Context, modelgate.ClientID(c.Client), func(client *modelgate.Client) error {
			client.Ceiling = ceiling
			return nil
		}, audit("ceiling set", "ceiling.change", "client", c.Client, ceiling))
		if err != nil {
			return err
		}
		return c.output(env).table(ceiling, "AXIS\tPROVIDER\tMODEL PATTERN\tEFFECT", func(row func(...any)) {
			for _, e := range ceiling.Entitlements {
				row(e.Axis, e.Provider, e.ModelPattern, e.Effect)
			}
		})
	})
}

// keyCommand groups the commands on keys.
type keyCommand struct {
	Issue  keyIssue  `cmd:"" help:"Issue a key; its plaintext is printed once."`
	Revoke keyRevoke `cmd:"" help:"Revoke a key."`
	Limits keyLimits `cmd:"" help:"Set a key's own rate and concurrency limits."`
}

type keyIssue struct {
	operatorFlags
	Client           string  `name:"client" required:"" help:"The organization's id."`
	Scopes           *string `name:"scopes" help:"Comma-separated; all of the ceiling when left out."`
	Entitlements     *string `name:"entitlements" help:"JSON array of tuples; the ceiling's when left out, [] denies all."`
	SubAccount       string  `name:"sub-account" help:"Bind the key to a sub-account."`
	ExpiresInSeconds *int64  `name:"expires-in-seconds" help:"1 to 315360000; never when left out."`
}

// Run is `modelgate key issue`.
func (c *keyIssue) Run(env *Environment) error {
	return c.withDB(env, func(cfg *config.Config, db *store.DB) error {
		catalog, err := cfg.NewCatalog()
		if err != nil {
			return err
		}
		wish := modelgate.KeyRequest{SubAccountID: modelgate.SubAccountID(c.SubAccount), ExpiresInSeconds: c.ExpiresInSeconds}
		if c.Scopes != nil {
			wish.Scopes = []modelgate.Scope{}
			for s := range strings.SplitSeq(*c.Scopes, ",") {
				if s = strings.TrimSpace(s); s != "" {
					wish.Scopes = append(wish.Scopes, modelgate.Scope(s))
				}
			}
		}
		if c.Entitlements != nil {
			wish.Entitlements = &modelgate.Entitlements{}
			if err := strictJSON([]byte(*c.Entitlements), wish.Entitlements); err != nil {
				return fmt.Errorf("--entitlements: %w", err)
			}
		}
		issued, err := issueKey(env.Context, db, modelgate.ClientID(c.Client), wish, catalog)
		if err != nil {
			return err
		}
		return c.output(env).table(issued, "API KEY ID\tKEY (shown once)", func(row func(...any)) {
			row(issued.APIKeyID, issued.Key)
		})
	})
}

type keyRevoke struct {
	operatorFlags
	KeepChildren bool   `name:"keep-children" help:"Keep the keys that were issued below it; they are revoked with it otherwise."`
	ID           string `arg:"" help:"The key's id."`
}

// Run is `modelgate key revoke`.
func (c *keyRevoke) Run(env *Environment) error {
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		key, err := db.FindKey(env.Context, modelgate.KeyID(c.ID))
		if err != nil {
			return err
		}
		revoke, set := db.RevokeKey, any(nil)
		if c.KeepChildren {
			revoke, set = db.RevokeKeyAlone, map[string]string{"children": "keep"}
		}
		record := audit("key revoke", "key.revoke", "key", c.ID, set)
		if _, err := revoke(env.Context, key.ClientID, store.KeyScope{}, key.ID, record); err != nil {
			return err
		}
		key.Status = modelgate.KeyRevoked
		return c.showKey(env, key)
	})
}

// showKey prints a key.
func (f *operatorFlags) showKey(env *Environment, key modelgate.Key) error {
	value := struct {
		modelgate.Key
		ClientID modelgate.ClientID `json:"client_id"`
		Limits   modelgate.Limits   `json:"limits"`
	}{key, key.ClientID, key.Limits}
	return f.output(env).table(value, "ID\tPREFIX\tSTATUS\tCLIENT", func(row func(...any)) {
		row(key.ID, key.Prefix, key.Status, key.ClientID)
	})
}

type keyLimits struct {
	operatorFlags
	limitFlags
	ID string `arg:"" help:"The key's id."`
}

// Run is `modelgate key limits`.
func (c *keyLimits) Run(env *Environment) error {
	if c.limits() == (modelgate.Limits{}) {
		return errors.New("name at least one of --rps, --burst and --concurrency")
	}
	return c.withDB(env, func(_ *config.Config, db *store.DB) error {
		key, err := db.FindKey(env.Context, modelgate.KeyID(c.ID))
		if err != nil {
			return err
		}
		key.Limits = c.limits().Or(key.Limits)
		if err := key.Limits.Validate(); err != nil {
			return err
		}
		record := audit("key limits", "key.limits", "key", c.ID, key.Limits)
		if err := db.SetKeyLimits(env.Context, key.ClientID, key.ID, key.Limits, record); err != nil {
			return err
		}
		return c.showKey(env, key)
	})
}

// strictJSON decodes an operator's JSON: unknown and repeated members are
// errors.
func strictJSON(text []byte, into any) error {
	return jsonv2.Unmarshal(text, into, jsonv2.RejectUnknownMembers(true))
}
