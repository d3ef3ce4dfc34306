package config_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/config"
)

// env is an environment in which these variables are set.
func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

// write makes a configuration file and others beside it, and returns the path
// of the first.
func write(t *testing.T, text string, others ...string) string {
	t.Helper()
	dir := t.TempDir()
	files := append([]string{"modelgate.yaml", text}, others...)
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, files[0])
}

func load(t *testing.T, text string, others ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(write(t, text, others...), env(nil))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// shown are faults as line:column: message, with the file where it is another
// than the main one.
func shown(dir string, faults []config.Fault) []string {
	var lines []string
	for _, f := range faults {
		file, _ := filepath.Rel(dir, f.File)
		if file == "modelgate.yaml" {
			file = ""
		}
		text := fmt.Sprintf("%d:%d: %s", f.Line, f.Column, strings.ReplaceAll(f.Message, dir+"/", ""))
		if file != "" {
			text = file + ":" + text
		}
		lines = append(lines, text)
	}
	return lines
}

func TestEmptyFileIsTheDefaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "# nothing\n", "server:\nproviders:\nlimits: {burst: ~}\n"} {
		path := write(t, text)
		cfg, err := config.Load(path, env(nil))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		got := cfg.Settings
		if url := got.Database.URL.Reveal(); url != "sqlite:modelgate.db" {
			t.Errorf("database url %q", url)
		}
		got.Database, got.Redis = config.Database{}, config.Redis{}
		want := config.Settings{
			Server: config.Server{Listen: "127.0.0.1:8080", MaxRequestBytes: 10485760,
				DataDir: filepath.Join(filepath.Dir(path), "data"), DrainDelay: 5 * time.Second, HTTP: config.ServerFast, CooperativeYield: true, CostHeaders: config.CostHeadersOnRequest,
				CORS: config.CORS{MaxAge: 10 * time.Minute}},
			Operator:    config.Operator{Idle: 30 * time.Minute, Absolute: 12 * time.Hour},
			Limits:      config.Limits{RequestsPerSecond: 50, Burst: 100, Concurrency: 100},
			Tokens:      config.Tokens{MaxTTL: time.Hour, DefaultMaxUSD: modelgate.USD, PerClient: 100_000},
			Metering:    config.Metering{Fsync: config.FsyncAlways, SpoolMaxBytes: 4 << 30, RetentionDays: 400},
			Enforcement: config.Enforcement{Budgets: config.EnforceEstimate, Balance: true},
			Processor:   config.Processor{BaseURL: "https://api.stripe.com", MeterEventName: "modelgate_usage_usd"},
			Invoices:    config.Invoices{AlertUnexplainedPercent: modelgate.USD / 100},
			Telemetry:   config.Telemetry{SamplePercent: 100},
			SignIn:      config.SignIn{Idle: 12 * time.Hour, Absolute: 24 * time.Hour, KeySession: 12 * time.Hour},
			Log:         config.Log{Level: slog.LevelInfo, Format: config.LogAuto},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

const everySetting = `
server:
  listen: ":9090"
  base_url: https://gate.example
  max_request_bytes: 20MiB
  data_dir: /var/lib/modelgate
  drain_delay: 0
  admin_listen: 127.0.0.1:9464
  tls: {cert_file: tls/cert.pem, key_file: /etc/key.pem}
  http: standard
  cost_headers: "off"
  cooperative_yield: false
  trusted_proxies: [private, 203.0.113.0/24]
  cors: {origins: ["https://app.example"], max_age: 1h, allow_keys: true}
operator: {listen: "127.0.0.1:8081", base_url: "https://ops.example", sign_in: corp, roles: [{group: gw-ops, role: admin}], idle: 1h, absolute: 10h}
database: {url: "postgres://gate:pa$$word@db:5432/gate", pooler: transaction}
redis: {url: "rediss://cache:6379/2"}
limits: {requests_per_second: 0, burst: 7, concurrency: 0, address_requests_per_minute: 9}
tokens: {max_ttl: 2h, default_max_usd: 0.5, per_client: 7}
metering: {fsync: interval, spool_max_bytes: 268435456, retention_days: 90}
enforcement: {budgets: strict, balance: false}
alerts: {webhook_url: "https://ops.example/hook", secret: whsec_c2VjcmV0}
master_key: MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=
previous_master_keys: [MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=]
telemetry: {otlp_endpoint: "http://127.0.0.1:4318", sample_percent: 5}
focus: {issuer_name: ACME, provider_names: {openai: OpenAI}}
sign_in:
  idle: 1h
  absolute: 8h
  key_session: 20m
  providers:
    - name: corp
      label: Acme SSO
      issuer: https://idp.example
      client_id: modelgate
      client_secret: oidc-secret
      scopes: [email]
      claims: {email: mail, email_verified: mail_ok, name: cn, groups: /realm/roles}
      trust_email: true
      domains: [example.com]
      max_age: 1h
      ca_file: idp.pem
      organizations: [{organization: 0192F000-0000-7000-8000-000000000001, group: ops, role: admin}]
invoices: {alert_unexplained_percent: 0.5}
processor:
  base_url: http://127.0.0.1:12111
  api_key: sk_live_1
  webhook_secret: whsec_0123456789abcdef
  previous_webhook_secrets: [whsec_fedcba9876543210]
  meter_event_name: usage
  return_url: https://gate.example/paid
log: {level: warn, format: json}
providers:
  - name: openai-eu
    format: openai
    base_url: https://eu.api.openai.com/base
    region: eu-west
    credentials: [one, "two"]
    previous_credentials: [old]
    auth: {header: x-my-key, prefix: "Key "}
    ca_file: ca.pem
    allow_stored_objects: true
    paths: {chat: "/v1/chat/completions?api-version=1"}
    allow: ["GET /v1/files/**", "* /v1/{a}/x"]
    headers: {OpenAI-Project: proj_1}
    timeouts: {connect: 2s, idle: 0s}
    price_factor: 1.25
    stated_cost: record
    contract_factor: 0.88
    invoice: {source: file, base_url: "https://api.openai.com", credential_file: admin, projects: [proj_1], api_keys: [key_1], schedule: "off", lag: 48h, amount: billed, skus: [{match: "mini*", model: gpt-5-mini, unit: input, service_tier: flex}]}
    tool_prices: {search: 10, file_search: 2.5, code_session: 0.03, grounded_request: 35}
    on_disconnect: cancel
    transport: standard
`

func usd(n modelgate.Nano) *modelgate.Nano { return &n }

func TestEverySetting(t *testing.T) {
	t.Parallel()
	path := write(t, everySetting)
	cfg, err := config.Load(path, env(nil))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := config.Settings{
		Server: config.Server{Listen: ":9090", BaseURL: "https://gate.example", MaxRequestBytes: 20 << 20, DataDir: "/var/lib/modelgate",
			AdminListen: "127.0.0.1:9464", TLS: config.TLS{CertFile: filepath.Join(dir, "tls/cert.pem"), KeyFile: "/etc/key.pem"},
			HTTP: config.ServerStandard, CostHeaders: config.CostHeadersOff,
			TrustedProxies: []string{"private", "203.0.113.0/24"}, CORS: config.CORS{Origins: []string{"https://app.example"}, MaxAge: time.Hour, AllowKeys: true}},
		Operator: config.Operator{Listen: "127.0.0.1:8081", BaseURL: "https://ops.example", SignIn: "corp", Roles: []config.OperatorRole{{Group: "gw-ops", Role: "admin"}},
			Idle: time.Hour, Absolute: 10 * time.Hour},
		Database:    config.Database{URL: config.NewSecret("postgres://gate:pa$word@db:5432/gate"), Pooler: config.PoolerTransaction},
		Redis:       config.Redis{URL: config.NewSecret("rediss://cache:6379/2")},
		Limits:      config.Limits{Burst: 7, AddressRequestsPerMinute: 9},
		Tokens:      config.Tokens{MaxTTL: 2 * time.Hour, DefaultMaxUSD: modelgate.USD / 2, PerClient: 7},
		Metering:    config.Metering{Fsync: config.FsyncInterval, SpoolMaxBytes: 256 << 20, RetentionDays: 90},
		Enforcement: config.Enforcement{Budgets: config.EnforceStrict},
		Invoices:    config.Invoices{AlertUnexplainedPercent: modelgate.USD / 2},
		SignIn: config.SignIn{Idle: time.Hour, Absolute: 8 * time.Hour, KeySession: 20 * time.Minute, Providers: []config.SignInProvider{{
			Name: "corp", Label: "Acme SSO", Issuer: "https://idp.example", ClientID: "modelgate", ClientSecret: config.NewSecret("oidc-secret"),
			Scopes: []string{"email"}, Claims: config.SignInClaims{Email: "mail", EmailVerified: "mail_ok", Name: "cn", Groups: "/realm/roles"},
			TrustEmail: true, Domains: []string{"example.com"}, MaxAge: time.Hour, CAFile: filepath.Join(filepath.Dir(path), "idp.pem"),
			Organizations: []config.SignInRule{{Organization: "0192f000-0000-7000-8000-000000000001", Group: "ops", Role: modelgate.RoleAdmin}},
		}}},
		Alerts:             config.Alerts{WebhookURL: "https://ops.example/hook", Secret: config.NewSecret("whsec_c2VjcmV0")},
		MasterKey:          config.NewSecret("MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="),
		PreviousMasterKeys: []config.Secret{config.NewSecret("MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI=")},
		Telemetry:          config.Telemetry{OTLPEndpoint: "http://127.0.0.1:4318", SamplePercent: 5},
		Focus:              config.Focus{IssuerName: "ACME", ProviderNames: map[string]string{"openai": "OpenAI"}},
		Processor: config.Processor{BaseURL: "http://127.0.0.1:12111", APIKey: config.NewSecret("sk_live_1"),
			WebhookSecret:          config.NewSecret("whsec_0123456789abcdef"),
			PreviousWebhookSecrets: []config.Secret{config.NewSecret("whsec_fedcba9876543210")},
			MeterEventName:         "usage", ReturnURL: "https://gate.example/paid"},
		Log: config.Log{Level: slog.LevelWarn, Format: config.LogJSON},
		Providers: []config.Provider{{
			Name: "openai-eu", Format: "openai", BaseURL: "https://eu.api.openai.com/base", Region: "eu-west",
			Credentials:         []config.Secret{config.NewSecret("one"), config.NewSecret("two")},
			PreviousCredentials: []config.Secret{config.NewSecret("old")},
			Auth:                &config.Auth{Header: "X-My-Key", Prefix: "Key "}, CAFile: filepath.Join(dir, "ca.pem"), AllowStoredObjects: true,
			Paths: map[string]string{"chat": "/v1/chat/completions?api-version=1"}, Allow: []string{"GET /v1/files/**", "* /v1/{a}/x"},
			Headers:     map[string]string{"OpenAI-Project": "proj_1"},
			ToolPrices:  config.ToolPrices{Search: usd(10_000_000_000), FileSearch: usd(2_500_000_000), CodeSession: usd(30_000_000), GroundedRequest: usd(35_000_000_000)},
			PriceFactor: 1_250_000_000,
			StatedCost:  config.StatedCostRecord, ContractFactor: config.ContractFactor{{Factor: 880_000_000}},
			Invoice: config.ProviderInvoice{Source: config.InvoiceFile, BaseURL: "https://api.openai.com", CredentialFile: filepath.Join(dir, "admin"), Projects: []string{"proj_1"}, APIKeys: []string{"key_1"}, Schedule: config.InvoiceOff, Lag: 48 * time.Hour,
				Amount: config.InvoiceBilled, SKUs: []config.InvoiceSKU{{Match: "mini*", Model: "gpt-5-mini", Unit: "input", ServiceTier: "flex"}}},
			Timeouts:     config.Timeouts{Connect: 2 * time.Second, FirstByte: 10 * time.Minute, Idle: 3 * time.Minute},
			OnDisconnect: config.Cancel, Transport: config.TransportStandard,
		}},
	}
	if diff := cmp.Diff(want, cfg.Settings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(cfg.Warnings) > 0 {
		t.Errorf("warnings %v", cfg.Warnings)
	}
	limits := cfg.Limits.Default()
	if *limits.RequestsPerSecond != 0 || *limits.Burst != 7 || *limits.Concurrency != 0 {
		t.Errorf("default limits %d %d %d", *limits.RequestsPerSecond, *limits.Burst, *limits.Concurrency)
	}
}

// Files come with the line ends and the marks of any editor.
func TestTextsOfAnyEditor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\ufefflog: {level: debug}\n", "log:\r\n  level: debug\r\n  format: auto\r\n", "log: {level: debug}", "log:\n  level: >-\n    debug\n", "---\nlog: {level: debug} # words\n...\n"} {
		if cfg := load(t, text); cfg.Log.Level != slog.LevelDebug {
			t.Errorf("%q: level %s, want debug", text, cfg.Log.Level)
		}
	}
}

func TestAuthStyles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Auth{
		"bearer":         {Header: "Authorization", Prefix: "Bearer "},
		"x-api-key":      {Header: "X-Api-Key"},
		"api-key":        {Header: "Api-Key"},
		"none":           {},
		"{query: key}":   {Query: "key"},
		"{header: key-}": {Header: "Key-"},
	} {
		cfg := load(t, "providers:\n  - {name: a, format: openai, base_url: http://a, credential: k, auth: "+text+"}\n")
		if got := cfg.Providers[0].Auth; got == nil || *got != want {
			t.Errorf("auth %s = %+v, want %+v", text, got, want)
		}
	}
	if cfg := load(t, "providers:\n  - {name: a, format: openai, base_url: http://a, credential: k}\n"); cfg.Providers[0].Auth != nil {
		t.Errorf("no auth = %+v", cfg.Providers[0].Auth)
	}
}

func TestCatalogOfSeveralFiles(t *testing.T) {
	t.Parallel()
	one := "- {slug: b/one, kind: llm, created: 2026-01-15, max_output: 9, context_length: 99, routes: [{provider: p1, model: x/y}, {provider: p1, model: z, price: {request: 1}}]}\n"
	two := "- {slug: a/two, display_name: Two, kind: 3d, routes: [{provider: p1, model: t}]}\n"
	cfg := load(t, `
catalog:
  - {slug: c/three, kind: rerank, routes: [{provider: p1, model: r}], price: {search: 2}}
catalog_files: [more/*.yaml, more/two.yaml]
providers: [{name: p1, format: vllm, base_url: "http://x"}]
prices: [{provider: p1, model: "gpt-4*", price: {input: 2.5}}]
`, "more/one.yaml", one, "more/two.yaml", two, "more/nothing.yaml", "")
	var got []string
	for _, m := range cfg.Catalog {
		got = append(got, fmt.Sprintf("%s|%s|%s|%d|%d|%s|%d routes", m.Slug, m.DisplayName, m.Kind, m.ContextLength, m.MaxOutput, m.Created.Format(time.DateOnly), len(m.Routes)))
	}
	want := []string{
		"c/three|three|rerank|0|0|0001-01-01|1 routes",
		"b/one|one|llm|99|9|2026-01-15|2 routes",
		"a/two|Two|3d|0|0|0001-01-01|1 routes",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	catalog, err := cfg.NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	if p := catalog.ProxyPrice("p1", "gpt-4o"); p == nil || p.Base.String() != "input=2.5" {
		t.Errorf("proxy price %+v", p)
	}
	if p := catalog.Find("b/one").PriceOn(1); p == nil || p.Base.String() != "request=1" {
		t.Errorf("route price %+v", p)
	}
	if p := catalog.Find("b/one").PriceOn(0); p != nil {
		t.Errorf("price %+v of a model without one", p)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	path := write(t, `providers:
  - {name: a, format: openai, base_url: http://a, credential: "${KEY:-}"}
  - {name: b, format: openai, base_url: http://b, auth: none}
  - {name: c, format: ollama, base_url: http://c}
  - {name: d, format: openai, base_url: http://d}
  - {name: e, format: openai, base_url: http://e, credentials: ["${OTHER:-}"]}
catalog:
  - slug: x/y
    kind: llm
    routes:
      - provider: missing
        model: z
catalog_files: [none/*.yaml]
prices:
  - {provider: gone, model: "*", price: {input: 1}}
`)
	faults, warnings := config.Check(path, env(nil))
	if len(faults) > 0 {
		t.Fatalf("faults %v", faults)
	}
	want := []string{
		"2:63: providers[0].credential: has no credential: the environment variable KEY is empty or not set; calls will fail with 500 until it has one",
		"5:5: providers[3]: has no credential; its calls will fail with 500 until it has one",
		"6:65: providers[4].credentials[0]: has no credential: the environment variable OTHER is empty or not set; calls will fail with 500 until it has one",
		"11:19: catalog[0].routes[0].provider: no provider called \"missing\" is configured; calls will fail with 502",
		"13:17: catalog_files[0]: matches no file",
		"15:16: prices[0].provider: no provider called \"gone\" is configured; calls will fail with 502",
	}
	if diff := cmp.Diff(want, shown(filepath.Dir(path), warnings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A price that a job cannot be charged by in the end is pointed out.
func TestLongPrice(t *testing.T) {
	t.Parallel()
	price := func(lines int) string {
		var b strings.Builder
		for n := range lines {
			fmt.Fprintf(&b, "\n          - {size: %dx1024, quality: high, usd: 0.%d}", 1000+n, 100+n)
		}
		return b.String()
	}
	for lines, want := range map[int][]string{
		48: nil,
		96: {"11:5: catalog[0].price: is too long to be kept with an asynchronous job, which would be charged by the prices of its units alone"},
	} {
		path := write(t, `providers:
  - name: openai
    format: openai
    base_url: http://localhost
    credential: k
catalog:
  - slug: x/y
    kind: image
    routes:
      - {provider: openai, model: z}
    price:
        image:`+price(lines)+"\n")
		faults, warnings := config.Check(path, env(nil))
		if len(faults) > 0 {
			t.Fatalf("faults %v", faults)
		}
		if diff := cmp.Diff(want, shown(filepath.Dir(path), warnings)); diff != "" {
			t.Errorf("%d lines (-want +got):\n%s", lines, diff)
		}
	}
}

func TestRestartNeeded(t *testing.T) {
	t.Parallel()
	old := load(t, "server: {data_dir: /d}\n")
	same := load(t, `
server: {data_dir: /d}
limits: {burst: 1}
log: {level: debug}
providers: [{name: a, format: vllm, base_url: "http://a"}]
catalog: [{slug: a/b, kind: llm, routes: [{provider: a, model: b}]}]
prices: [{provider: a, model: c, price: {input: 1}}]
`)
	if got := config.RestartNeeded(old, same); got != nil {
		t.Errorf("RestartNeeded = %v, want none", got)
	}
	other := load(t, `
server: {data_dir: /e, listen: "127.0.0.1:1", tls: {cert_file: /a, key_file: /b}}
database: {url: sqlite:other.db}
redis: {url: "redis://r:1/0"}
metering: {fsync: interval}
log: {format: json}
`)
	want := []string{"server.listen", "server.data_dir", "server.tls.cert_file", "server.tls.key_file", "database.url", "redis.url", "metering.fsync", "log.format"}
	if diff := cmp.Diff(want, config.RestartNeeded(old, other)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	const text = "sk-very-secret"
	cfg := load(t, "redis: {url: redis://user:"+text+"@h:1/0}\nproviders: [{name: a, format: openai, base_url: http://a, credential: "+text+"}]\n")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", cfg.Providers[0].Credential, "all", cfg.Settings)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", cfg.Providers[0].Credential, "all", cfg.Settings)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&log, verb+" ", cfg.Providers[0].Credential)
		fmt.Fprintf(&log, verb+" ", cfg.Settings)
		fmt.Fprintf(&log, verb+" ", struct{ s config.Secret }{cfg.Providers[0].Credential})
	}
	if strings.Contains(log.String(), text) || strings.Contains(log.String(), fmt.Sprintf("%x", text)) {
		t.Errorf("the secret stands in: %s", log.String())
	}
	if got := cfg.Providers[0].Credential.Reveal(); got != text {
		t.Errorf("Reveal() = %q", got)
	}
}

// The price list is searched in the order of the file.
func TestProxyPriceOrder(t *testing.T) {
	t.Parallel()
	cfg := load(t, "prices:\n  - {provider: a, model: 'gpt-*', price: {input: 1}}\n  - {provider: a, model: '*', price: {input: 2}}\n")
	want := []modelgate.ProxyPrice{{Provider: "a", Model: "gpt-*"}, {Provider: "a", Model: "*"}}
	for i, p := range cfg.Prices {
		if p.Provider != want[i].Provider || p.Model != want[i].Model || p.Price.Base.String() != fmt.Sprintf("input=%d", i+1) {
			t.Errorf("prices[%d] = %s %s %s", i, p.Provider, p.Model, p.Price.Base)
		}
	}
}

// Truth values are the short way to say how budgets are enforced.
func TestEnforcementWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Enforce{
		"true": config.EnforceEstimate, "false": config.EnforceOff, "estimate": config.EnforceEstimate, "strict": config.EnforceStrict, "off": config.EnforceOff,
	} {
		cfg, err := config.Load(write(t, "enforcement: {budgets: "+text+"}\n"), env(nil))
		if err != nil || cfg.Enforcement.Budgets != want {
			t.Errorf("budgets: %s is %v, %v; want %s", text, cfg, err, want)
		}
	}
}
