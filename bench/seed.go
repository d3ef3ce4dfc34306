package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

// scale is how much there is beside what the load uses.
type scale struct {
	keys   int // of the organization
	tuples int // of each key in use
	models int // of the catalog
	// unlimited: there are no budgets.
	unlimited bool
	// ruled: there are rules beside them.
	ruled bool
}

// ordinary is the scale of all scenarios.
func ordinary() scale { return scale{keys: 10_000, tuples: 5, models: 400} }

// hundredfold is the scale that must cost a call no more.
func hundredfold() scale { return scale{keys: 1_000_000, tuples: 1000, models: 10_000} }

// providerNames are the gateway's names of the provider, by link.
var providerNames = [...]string{overPlain: "openai", overTLS: "openai-tls", overHTTP2: "openai-h2"}

// keysInUse is how many keys the load presents; each connection has one.
const keysInUse = 256

// seed fills a new database: an organization with a budget, a sub-account
// with a budget, and keys with a budget each. It returns the keys to present.
func seed(database, dir string, s scale) ([]string, error) {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{URL: database, DataDir: dir, Mode: store.Exclusive})
	if err != nil {
		return nil, err
	}
	secrets, template, err := seedRows(ctx, db, s)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return secrets, multiply(database, dir, template, s.keys)
}

// seedRows makes all that the load uses, and one more key for multiply to copy.
func seedRows(ctx context.Context, db *store.DB, s scale) ([]string, modelgate.KeyID, error) {
	ids, now := modelgate.NewIDs(time.Now), time.Now().UTC().Truncate(time.Microsecond)
	audit := func() modelgate.Audit {
		return modelgate.Audit{ID: ids.New().String(), At: now, Action: "bench.seed", Actor: modelgate.Actor{Operator: "bench"}}
	}
	client := modelgate.Client{
		ID: modelgate.ClientID(ids.New().String()), Name: "bench", RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Invoiced,
		MaxKeys: s.keys + keysInUse + 1, Ceiling: modelgate.OpenCeiling(), CreatedAt: now,
	}
	sub := modelgate.SubAccount{
		ID: modelgate.SubAccountID(ids.New().String()), ClientID: client.ID, Name: "bench", Slug: "bench",
		Status: modelgate.SubAccountActive, CreatedAt: now,
	}
	if err := errors.Join(db.CreateClient(ctx, client, audit()), db.CreateSubAccount(ctx, sub, audit())); err != nil {
		return nil, "", err
	}
	limit := func(level modelgate.Level, id string) error {
		if s.unlimited {
			return nil
		}
		return db.PutBudget(ctx, client.ID, "", modelgate.Budget{Level: level, ID: id, Period: modelgate.Month, Limit: modelgate.MaxBudget}, audit())
	}
	if err := errors.Join(limit(modelgate.LevelClient, string(client.ID)), limit(modelgate.LevelSubAccount, string(sub.ID))); err != nil {
		return nil, "", err
	}
	if s.ruled {
		if err := seedRules(ctx, db, client.ID, sub.ID, audit); err != nil {
			return nil, "", err
		}
	}
	var secrets []string
	var last modelgate.KeyID
	for i := range keysInUse + 1 {
		rules := s.tuples
		if i == keysInUse {
			rules = ordinary().tuples // a million copies of more would be a test of the disk
		}
		secret := modelgate.NewSecret()
		key, err := db.IssueKey(ctx, client.ID, access.IssueRequest{SubAccountID: sub.ID, Admit: func(modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			return modelgate.Key{
				ID: modelgate.KeyID(ids.New().String()), Prefix: secret.Prefix(), Scopes: modelgate.AllScopes(),
				Entitlements: tuples(rules, i), CreatedAt: now,
			}, secret.Digest(), nil
		}}, audit())
		if err := errors.Join(err, limit(modelgate.LevelKey, string(key.ID))); err != nil {
			return nil, "", err
		}
		secrets, last = append(secrets, secret.Reveal()), key.ID
	}
	return secrets[:keysInUse], last, nil
}

// seedRules sets three budgets and three limits that count every call and refuse
// none.
func seedRules(ctx context.Context, db *store.DB, client modelgate.ClientID, sub modelgate.SubAccountID, audit func() modelgate.Audit) error {
	every, err := modelgate.ParseMatch("model:*")
	for level, id := range map[modelgate.Level]string{modelgate.LevelClient: string(client), modelgate.LevelSubAccount: string(sub)} {
		b := modelgate.Budget{Level: level, ID: id, Period: modelgate.Week, Match: every, Limit: modelgate.MaxBudget}
		l := modelgate.RateLimit{Level: level, ID: id, Unit: modelgate.UnitTokens, Window: "minute", Match: every, Limit: 1_000_000_000}
		err = errors.Join(err, db.PutBudget(ctx, client, "", b, audit()), db.PutRateLimit(ctx, client, "", l, audit()))
	}
	b := modelgate.Budget{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Ever, Match: every, Limit: modelgate.MaxBudget}
	l := modelgate.RateLimit{Level: modelgate.LevelClient, ID: string(client), Unit: modelgate.UnitRequests, Window: "day", Match: every, Limit: 1_000_000_000}
	return errors.Join(err, db.PutBudget(ctx, client, "", b, audit()), db.PutRateLimit(ctx, client, "", l, audit()))
}

// tuples are the n rules of a key; no other key has them, and the last are
// the ones that allow the calls.
func tuples(n, key int) []modelgate.Entitlement {
	var list []modelgate.Entitlement
	allowed := append(providerNames[:], "anthropic")
	for i := range n - len(allowed) {
		list = append(list, modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: fmt.Sprintf("other-%d-%d", key, i), ModelPattern: "model-*", Effect: modelgate.Allow})
	}
	for _, provider := range allowed {
		list = append(list, modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: provider, ModelPattern: "*", Effect: modelgate.Allow})
	}
	return list
}

// multiply makes n more keys like one there is, with digests of their own.
func multiply(database, dir string, template modelgate.KeyID, n int) error {
	driver, source := "sqlite", filepath.Join(dir, "modelgate.db")
	id, digest := "printf('00000000-0000-7000-8000-%012x', n.i)", "randomblob(32)"
	if strings.HasPrefix(database, "postgres") {
		driver, source = "pgx", database
		id, digest = "'00000000-0000-7000-8000-' || lpad(to_hex(n.i), 12, '0')", "sha256(n.i::text::bytea)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer db.Close()
	columns := "client_id, sub_account_id, prefix, status, scopes, entitlements, denies, backing, limit_rps, limit_burst, limit_concurrency, created_at, last_used_at, expires_at"
	_, err = db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO api_key (id, digest, %s)
SELECT %s, %s, %s FROM n JOIN api_key ON api_key.id = $1`, n, columns, id, digest, columns), string(template))
	return err
}

// catalogOf is a catalog of n models in YAML, those of the load in its middle.
func catalogOf(n int) string {
	var b strings.Builder
	for i := range n {
		if i == n/2 {
			for _, m := range []string{modelShort, modelShortStream} {
				fmt.Fprintf(&b, "  - {slug: %s, kind: llm, context_length: 400000, max_output: 16000, routes: [{provider: anthropic, model: %s}], price: {input: 1, cached_input: 0.1, output: 2}}\n", anthropicSlug(m), m)
			}
			for _, m := range models {
				for l, provider := range providerNames {
					fmt.Fprintf(&b, "  - {slug: %s, kind: llm, context_length: 400000, max_output: 16000, routes: [{provider: %s, model: %s}], price: {input: 1, cached_input: 0.1, output: 2}}\n", slugOf(link(l), m), provider, m)
				}
			}
		}
		fmt.Fprintf(&b, "  - {slug: author-%d/model-%d, kind: llm, context_length: 128000, routes: [{provider: openai, model: native-%d}], price: {input: 1, output: 2}}\n", i%40, i, i)
	}
	return b.String()
}
