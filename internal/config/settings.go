package config

import (
	"log/slog"
	"path/filepath"
	"time"

	"modelgate"
)

// Settings are the sections of the configuration, all but the catalog.
type Settings struct {
	// Where the gateway listens and keeps its files.
	Server Server `yaml:"server"`

	// The API of whoever runs the gateway, under /operator/v1.
	Operator Operator `yaml:"operator"`

	// Where organizations, keys and usage are kept.
	Database Database `yaml:"database"`

	// The key that encrypts secrets of organizations: 32 bytes in base64, as
	// `openssl rand -base64 32` prints them. Without it organizations cannot
	// store the key of their payment processor. If it is lost, so is what it
	// protects.
	MasterKey Secret `yaml:"master_key"`

	// Earlier master keys, which still decrypt. Remove one when `modelgate
	// master-key rotate` finds nothing more under it. Default: none.
	PreviousMasterKeys []Secret `yaml:"previous_master_keys"`

	// A Redis or Valkey that several instances share, so that rate and
	// concurrency limits hold for all of them together.
	Redis Redis `yaml:"redis"`

	// Rate and concurrency limits of each key, unless the operator set others
	// for its organization or for the key. May change without a restart.
	Limits Limits `yaml:"limits"`

	// Browser tokens, which keys mint with `POST /gw/tokens` for pages of theirs.
	Tokens Tokens `yaml:"tokens"`

	// How usage is kept until it is in the database.
	Metering Metering `yaml:"metering"`

	// Whether budgets and prepaid balances stop calls.
	Enforcement Enforcement `yaml:"enforcement"`

	// Whom to tell that a budget is used up by 50, 80 and 100 percent. Each is
	// also a line in the log and a count in the metrics.
	Alerts Alerts `yaml:"alerts"`

	// Does nothing; accepted so that files that have it still load. Sessions
	// are kept in the database and need no key.
	SessionKey Secret `yaml:"session_key"`

	// How people sign in to the dashboards of organizations with an account of
	// their company. May change without a restart.
	SignIn SignIn `yaml:"sign_in"`

	// The key that signs exports of evidence.
	Evidence Evidence `yaml:"evidence"`

	// The payment processor: where the usage of end customers is sent, and
	// where organizations fill their prepaid balance.
	Processor Processor `yaml:"processor"`

	// Checks of providers' bills against the usage rows.
	Invoices Invoices `yaml:"invoices"`

	// How files of the FinOps specification FOCUS name things.
	Focus Focus `yaml:"focus"`

	// Where traces of calls are sent.
	Telemetry Telemetry `yaml:"telemetry"`

	// What the service writes to standard error.
	Log Log `yaml:"log"`

	// The model providers that calls go to. A provider's name is the first
	// segment of its proxy paths and what routes refer to. Default: none. May
	// change without a restart.
	Providers []Provider `yaml:"providers"`
}

// Server is where the gateway listens and keeps its files.
type Server struct {
	// Address of the main listener, host:port. Port 0 picks a free one, which
	// the log names when the service is ready. An empty host listens on all
	// addresses.
	Listen string `yaml:"listen"`

	// The gateway's address as clients see it, http or https, without a path,
	// for links in answers and pages. Empty means the address it listens on.
	BaseURL string `yaml:"base_url"`

	// The largest request body, on every path; a larger one gets 413. From 1
	// to 1GiB. Bodies are held in memory while a call is prepared.
	MaxRequestBytes Size `yaml:"max_request_bytes"`

	// Directory of the spool, the SQLite file and generated secrets, relative
	// to the directory of this file. It is created if it is missing. Two
	// services must not share one.
	DataDir string `yaml:"data_dir"`

	// How long the service accepts calls after it was told to stop, while
	// /readyz already fails, so that load balancers take notice. 0 stops at
	// once; at most 10m.
	DrainDelay time.Duration `yaml:"drain_delay"`

	// Address, host:port, of a second listener for /metrics. Empty means
	// that metrics are on the main listener, for callers on this machine
	// only.
	AdminListen string `yaml:"admin_listen"`

	// Reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are
	// believed: networks such as 203.0.113.0/24, addresses, or `private` for
	// loopback, link-local and private networks. The client's address is the
	// last in X-Forwarded-For that is not one of them; failed key lookups are
	// counted by it. Default: none.
	TrustedProxies []string `yaml:"trusted_proxies"`

	// Which HTTP server answers. `fast` answers plain POST requests over
	// HTTP/1.1 without Go's server. `standard` has Go's server answer
	// everything, HTTP/2 by prior knowledge included, as it always does where
	// the gateway itself speaks TLS.
	HTTP ServerHTTP `yaml:"http"`

	// Whether answers to calls say what they cost. `on_request`: where the request
	// has the header `X-Gateway-Cost: 1` and the key the scope stats:read. `off`:
	// never.
	CostHeaders CostHeaders `yaml:"cost_headers"`

	// Whether ready calls yield to each other while the processors are busy,
	// and background work yields to calls. Off, a call costs about a tenth
	// more under load, and waits for background work by up to 10 ms. Default:
	// true.
	CooperativeYield bool `yaml:"cooperative_yield"`

	// Pages of other sites that may call the gateway, with browser tokens.
	CORS CORS `yaml:"cors"`

	// Certificate of the main listener. Without it the listener speaks plain
	// HTTP, for use behind a proxy or on one machine.
	TLS TLS `yaml:"tls"`
}

func (s *Server) setDefaults() {
	s.Listen = "127.0.0.1:8080"
	s.MaxRequestBytes = 10 << 20
	s.DataDir = "data"
	s.DrainDelay = 5 * time.Second
	s.HTTP = ServerFast
	s.CooperativeYield = true
	s.CostHeaders = CostHeadersOnRequest
}

// ServerHTTP is an HTTP server.
type ServerHTTP string

// The choices.
const (
	ServerFast     ServerHTTP = "fast"
	ServerStandard ServerHTTP = "standard"
)

// TLS is the certificate of a listener.
type TLS struct {
	// PEM file with the certificate and its chain, relative to the directory
	// of this file. Needs key_file. Empty means no TLS.
	CertFile string `yaml:"cert_file"`

	// PEM file with the certificate's private key, relative to the directory
	// of this file. Needs cert_file.
	KeyFile string `yaml:"key_file"`
}

// Database is where everything durable is kept.
type Database struct {
	// `sqlite:FILE` is an embedded database; FILE is relative to data_dir or
	// absolute, and one service at a time can use it.
	// `postgres://user:password@host:5432/name` is a PostgreSQL that any
	// number of instances may share.
	URL Secret `yaml:"url"`

	// What stands between the gateway and PostgreSQL. `none`: nothing, or a
	// pooler with a session for each connection. `transaction`: a pooler such
	// as PgBouncer in transaction mode; then no statement is prepared by
	// name, which costs a little time. SQLite ignores it.
	Pooler Pooler `yaml:"pooler"`
}

func (d *Database) setDefaults() {
	d.URL = NewSecret("sqlite:modelgate.db")
	d.Pooler = PoolerNone
}

// Pooler is what stands between the gateway and PostgreSQL.
type Pooler string

// The choices.
const (
	PoolerNone        Pooler = "none"
	PoolerTransaction Pooler = "transaction"
)

// Redis is where instances share limits.
type Redis struct {
	// `redis://user:password@host:6379/0`, or `rediss://` for TLS. Empty, or
	// while Redis does not answer, each instance keeps limits by itself.
	URL Secret `yaml:"url"`
}

// Limits are those of a key for which nothing else is set.
type Limits struct {
	// Calls per second that a key may make in the long run. 0 means
	// unlimited.
	RequestsPerSecond int `yaml:"requests_per_second"`

	// Calls that a key may make at once after a pause. 0 means as many as
	// requests_per_second. Without a rate it means nothing.
	Burst int `yaml:"burst"`

	// Calls of a key that may be under way at the same time, streams
	// included. 0 means unlimited.
	Concurrency int `yaml:"concurrency"`

	// Requests with browser tokens of an organization that one client address
	// (IPv4, or the /64 of IPv6) may make in a minute, all tokens together; at
	// most 1000000000. Behind a proxy it needs server.trusted_proxies. 0 means
	// unlimited.
	AddressRequestsPerMinute int `yaml:"address_requests_per_minute"`

	// Limits on requests, tokens, dollars and concurrency of what scope names, at
	// most 100, beside those that organizations set. All of them apply.
	Rules []RateRule `yaml:"rules"`
}

func (l *Limits) setDefaults() { *l = Limits{RequestsPerSecond: 50, Burst: 100, Concurrency: 100} }

// Default is the limits as what a client's or a key's fall back to.
func (l Limits) Default() modelgate.Limits {
	return modelgate.Limits{RequestsPerSecond: &l.RequestsPerSecond, Burst: &l.Burst, Concurrency: &l.Concurrency}
}

// Fsync says when the spool is forced to disk.
type Fsync string

// The choices.
const (
	FsyncAlways   Fsync = "always"
	FsyncInterval Fsync = "interval"
)

// Metering is how usage is kept until it is in the database.
type Metering struct {
	// When the local spool is synced to disk. `always`: before the last byte
	// of an answer leaves, so that a power cut does not lose the usage of an
	// answer that a client has. `interval`: every 100 milliseconds; a killed
	// process loses nothing, a power cut may.
	Fsync Fsync `yaml:"fsync"`

	// How large the spool may grow while the database does not answer; at
	// least 128MiB. When it is full, calls get 503 before they reach a
	// provider, because they could not be booked.
	SpoolMaxBytes Size `yaml:"spool_max_bytes"`

	// For how many days usage rows, statistics and billing events are kept;
	// at least 62, or 0 for ever.
	RetentionDays int `yaml:"retention_days"`
}

func (m *Metering) setDefaults() {
	m.Fsync = FsyncAlways
	m.SpoolMaxBytes = 4 << 30
	m.RetentionDays = 400
}

// Enforce says how budgets are enforced.
type Enforce string

// The choices.
const (
	EnforceEstimate Enforce = "estimate"
	EnforceStrict   Enforce = "strict"
	EnforceOff      Enforce = "off"
)

// Enforcement is whether budgets and prepaid balances stop calls.
type Enforcement struct {
	// How budgets are enforced. `estimate`, or true: a call is admitted while
	// its estimate is left, so limits can be exceeded by what estimates were
	// short. `strict`: a call is admitted if the most that it can cost is
	// left, so no limit is exceeded; models need context_length and
	// max_output, and calls with tools that the provider runs are refused.
	// `off`, or false: spending is shown and stops nothing.
	Budgets Enforce `yaml:"budgets"`

	// Whether calls of organizations with manual billing stop when their
	// prepaid balance is used up. Balances are judged like budgets, by
	// estimate where those are off.
	Balance bool `yaml:"balance"`
}

func (e *Enforcement) setDefaults() { *e = Enforcement{Budgets: EnforceEstimate, Balance: true} }

// Evidence is the key that signs exports of evidence.
type Evidence struct {
	// Private key, as `modelgate evidence key new` prints it. Instances that
	// share a PostgreSQL need the same one. Empty means a generated one: in
	// data_dir with SQLite, encrypted in the database with PostgreSQL and a
	// master_key. With neither, records are kept and exports are refused. To
	// change it, move the old one to previous_signing_keys.
	SigningKey Secret `yaml:"signing_key"`

	// Earlier private keys. The last one signs the statement that signing_key
	// follows it, at the first start or by `modelgate evidence key rotate`;
	// then it may be removed. Default: none.
	PreviousSigningKeys []Secret `yaml:"previous_signing_keys"`
}

// Alerts is whom to tell about budgets. An organization sets a webhook of its own
// with PUT /gw/alerts.
type Alerts struct {
	// Address that gets a POST for each alert, http or https. Empty means
	// none.
	WebhookURL string `yaml:"webhook_url"`

	// Key of the signature in the header webhook-signature (Standard
	// Webhooks): `whsec_` and base64, or any text. Needed with webhook_url.
	Secret Secret `yaml:"secret"`

	// Organizations may send their own alerts to loopback, private and
	// link-local addresses. Leave it off unless every organization is yours:
	// with it, whoever holds keys:manage reaches servers inside your network.
	AllowPrivate bool `yaml:"allow_private"`
}

// Processor is the payment processor.
type Processor struct {
	// Address of the processor's API, http or https, without a path.
	BaseURL string `yaml:"base_url"`

	// The operator's own key at the processor, for payments into prepaid
	// balances. Empty means that payments are off. Organizations bring their
	// own keys to bill their end customers.
	APIKey Secret `yaml:"api_key"`

	// The signing secret of the processor's webhook endpoint, whose address
	// is base_url of the server and `/webhooks/processor`: at least 16
	// characters. Empty means that neither the route nor payments into
	// balances exist.
	WebhookSecret Secret `yaml:"webhook_secret"`

	// Earlier signing secrets, for deliveries that are still signed with
	// them. Default: none.
	PreviousWebhookSecrets []Secret `yaml:"previous_webhook_secrets"`

	// Name of the meter that counts usage, in millionths of a US dollar.
	MeterEventName string `yaml:"meter_event_name"`

	// Where a payer is sent after a payment, http or https. Empty means
	// `/dashboard/billing` at the server's base_url.
	ReturnURL string `yaml:"return_url"`
}

func (p *Processor) setDefaults() {
	p.BaseURL = "https://api.stripe.com"
	p.MeterEventName = "modelgate_usage_usd"
}

// LogFormat is how log lines are written.
type LogFormat string

// The choices.
const (
	LogAuto LogFormat = "auto"
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Telemetry is where traces of calls are sent.
type Telemetry struct {
	// Address of an OpenTelemetry collector, http or https, that takes OTLP
	// over HTTP with protobuf at /v1/traces. Empty means no traces.
	OTLPEndpoint string `yaml:"otlp_endpoint"`

	// How many of a hundred traces are kept, 0 to 100, of those that begin at
	// the gateway. For others, the client's traceparent header decides.
	SamplePercent int `yaml:"sample_percent"`
}

func (t *Telemetry) setDefaults() { t.SamplePercent = 100 }

// Log is what the service writes to standard error.
type Log struct {
	// The least level that is written: debug, info, warn or error. May change
	// without a restart.
	Level slog.Level `yaml:"level"`

	// `text` is for people, `json` for machines, `auto` is text on a terminal
	// and json elsewhere.
	Format LogFormat `yaml:"format"`
}

func (l *Log) setDefaults() { l.Format = LogAuto }

// resolvePaths makes the paths of files relative to dir.
func (s *Settings) resolvePaths(dir string) {
	paths := []*string{&s.Server.DataDir, &s.Server.TLS.CertFile, &s.Server.TLS.KeyFile, &s.Operator.TLS.CertFile, &s.Operator.TLS.KeyFile}
	for i := range s.Providers {
		paths = append(paths, &s.Providers[i].CredentialFile, &s.Providers[i].CAFile, &s.Providers[i].Invoice.CredentialFile)
		paths = append(paths, s.Providers[i].Identity.files()...)
	}
	for i := range s.SignIn.Providers {
		paths = append(paths, &s.SignIn.Providers[i].CAFile, &s.SignIn.Providers[i].ClientSecretFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}
