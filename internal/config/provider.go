package config

import (
	"cmp"
	"net/textproto"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"modelgate"
)

// Provider is one model provider.
type Provider struct {
	// Name of the provider here: 1 to 64 of a-z, 0-9 and -, unique. Its proxy
	// paths begin with /NAME/, so the gateway's own first segments (gw, v1,
	// p, healthz, readyz, metrics, dashboard, openapi.json, webhooks) are not
	// allowed. Required.
	Name string `yaml:"name"`

	// The wire format the provider speaks, which also says which paths
	// callers may use. Required. One of openai, anthropic, gemini,
	// azure-openai, mistral, deepseek, xai, groq, together, fireworks,
	// openrouter, moonshot, zhipu, dashscope, ark, minimax, cohere, jina,
	// voyage, fal, replicate, bedrock, vertex, vllm, ollama, generic. `generic`
	// allows every path and serves only the doors that `paths` gives it.
	Format string `yaml:"format"`

	// The provider's address: http or https, a host, and optionally a path
	// that precedes every path of a call. No user, query or fragment.
	// Required.
	BaseURL string `yaml:"base_url"`

	// Where the provider computes, in words of your own. `eu`, whatever begins
	// with `eu-` or `eusc-`, and the locations of Google Cloud in the EU count
	// as in the EU for organizations whose routing policy is eu_only;
	// `eu-west-2` and `eu-central-2`, which are London and Zurich, do not.
	// Default: the region in a host of Amazon Bedrock or Vertex AI; else
	// empty, which means unknown and is not in the EU.
	Region string `yaml:"region"`

	// Models that are computed elsewhere, at most 64; the first entry that
	// matches names the region of a call. With format bedrock, and on hosts of bedrock-runtime, the
	// prefixes of inference profiles follow by themselves: `eu.*` is eu,
	// `us.*` us, `global.*` global and so on; what an ARN (`arn:*`) runs is
	// unknown unless an entry says so.
	ModelRegions []ModelRegion `yaml:"model_regions"`

	// The Google Cloud project that calls are made in, with format vertex only.
	// Required there.
	Project string `yaml:"project"`

	// The location in the project, with format vertex only. Default: that in a
	// host of Vertex AI; required with other hosts.
	Location string `yaml:"location"`

	// The key that calls are sent with. Excludes credentials and
	// credential_file. Empty means none: calls fail with 500 unless the format
	// (vllm, ollama, generic) or `auth: none` needs no key.
	Credential Secret `yaml:"credential"`

	// Several keys, used in turn; one that the provider refuses or throttles
	// is skipped for a while. Excludes credential and credential_file.
	Credentials []Secret `yaml:"credentials"`

	// Earlier keys, only for asynchronous jobs that were created with them
	// and are not finished.
	PreviousCredentials []Secret `yaml:"previous_credentials"`

	// File that holds the key, relative to the directory of this file; it is
	// read again when it changes. While it is missing or empty, calls fail
	// with 500. Excludes credential and credentials.
	CredentialFile string `yaml:"credential_file"`

	// Where the credential of a provider in your own AWS, Google Cloud or Azure
	// account comes from, without a long-lived key. It is fetched ahead and
	// kept in memory. Excludes credential, credentials, credential_file,
	// previous_credentials and auth.
	Identity *Identity `yaml:"identity"`

	// How the key is sent: `bearer`, `x-api-key`, `api-key`,
	// `{header: X-Key, prefix: "Key "}`, `{query: key}`, or `none`. Default:
	// as the format has it.
	Auth *Auth `yaml:"auth"`

	// PEM file with certificates to trust for this provider, beside those of
	// the system, relative to the directory of this file.
	CAFile string `yaml:"ca_file"`

	// Whether request bodies may refer to objects stored at the provider,
	// such as previous_response_id or container. All organizations share the
	// provider account, so one that guesses an id could reach another's
	// objects: set it only with a single organization.
	AllowStoredObjects bool `yaml:"allow_stored_objects"`

	// Names of query parameters that calls may have beside those that the
	// format lists for a path (see the reference of providers). Do not allow
	// parameters that make the provider omit the usage from replies.
	AllowQuery []string `yaml:"allow_query"`

	// Whether calls share connections to a provider that speaks HTTP/2. By
	// default each call has a connection of its own meanwhile, which costs
	// less. Behind a proxy (HTTPS_PROXY) HTTP/2 is used where the provider
	// speaks it; otherwise each call makes a connection through the proxy.
	HTTP2 bool `yaml:"http2"`

	// Which HTTP client calls the provider. `pooled` is the gateway's own for
	// HTTP/1.1, which costs least. `standard` is Go's: calls share
	// connections over HTTP/2, and make one each over HTTP/1.1, because Go's
	// client can hand surplus bytes to the next call.
	// MODELGATE_TRANSPORT=standard in the environment sets it for all
	// providers.
	Transport Transport `yaml:"transport"`

	// Upstream paths of the gateway's doors, below base_url, where they
	// differ from the format's. Keys: chat, completions, messages,
	// count_tokens, responses, images, image_edits, videos, embeddings,
	// reranks, speech, transcriptions, translations. `{model}` in a path
	// stands for the provider's model id. Jobs are followed below the path of
	// videos.
	Paths map[string]string `yaml:"paths"`

	// More proxy paths that callers may use, each a method (or `*`), a space
	// and a path below base_url. `{name}` matches one segment, `**` at the
	// end any number. All organizations share the provider account: allow
	// only what is safe to share.
	Allow []string `yaml:"allow"`

	// Headers set on every request, over the caller's.
	Headers map[string]string `yaml:"headers"`

	// What the provider's own tools cost (web search, file search, code
	// interpreter, grounding), for language models whose price does not say.
	// A call that used a tool without a price is recorded as partial.
	ToolPrices ToolPrices `yaml:"tool_prices"`

	// What the account pays more or less than the prices of its models say, as
	// a factor of more than 0 and at most 100, with at most 6 decimals: 1.1 for
	// a region with a premium of a tenth. It is part of what calls cost. Like
	// multipliers, it does not touch tools and requests.
	PriceFactor modelgate.Nano `yaml:"price_factor"`

	// What becomes of the cost that replies state: OpenRouter's `usage.cost`,
	// xAI's `usage.cost_in_usd_ticks`, Perplexity's `usage.cost.total_cost`.
	// `use`: it is what calls cost, without price_factor. `record`: it is kept
	// in the row and counted in metrics, to compare. `off`: it is ignored.
	// Default: use with formats openrouter and xai, record with the host
	// api.perplexity.ai, else off. Budgets reserve by the catalog in any case.
	// Do not use the cost of a server that you do not trust: it can state 0.
	StatedCost StatedCost `yaml:"stated_cost"`

	// What the operator pays of these costs by a contract with the provider, as
	// a factor of more than 0 and at most 100: 0.88 for a discount of 12 %. Or a
	// list such as `[{from: 2026-01-01, factor: 0.9}, {from: 2026-10-01, factor: 0.88}]`:
	// each holds from a UTC day on, 1 before the first. It is for
	// `invoice check` and `margin` only, of past days too, and never part of
	// what calls cost.
	ContractFactor ContractFactor `yaml:"contract_factor"`

	// Where the provider's bill is read for `modelgate invoice check`.
	Invoice ProviderInvoice `yaml:"invoice"`

	// How long to wait for the provider.
	Timeouts Timeouts `yaml:"timeouts"`

	// What happens to a call whose client disconnects. `drain` reads on until
	// the usage is known, for at most 60 seconds, because most providers
	// charge for the whole answer anyway. `cancel` ends the call, for
	// providers that then stop charging; the row is partial. A call that
	// creates a job always continues.
	OnDisconnect Disconnect `yaml:"on_disconnect"`
}

func (p *Provider) setDefaults() {
	p.OnDisconnect, p.Transport, p.PriceFactor = Drain, TransportPooled, modelgate.USD
}

// transportVariable sets the transport of all providers.
const transportVariable = "MODELGATE_TRANSPORT"

// Transport is an HTTP client for providers.
type Transport string

// The choices.
const (
	TransportPooled   Transport = "pooled"
	TransportStandard Transport = "standard"
)

// keys are the credential or credentials, those that are not empty.
func (p *Provider) keys() []Secret {
	return slices.DeleteFunc(append([]Secret{p.Credential}, p.Credentials...), Secret.Empty)
}

// Timeouts are how long to wait for a provider.
type Timeouts struct {
	// For the TCP connection and for the TLS handshake, each. 0 means the
	// default.
	Connect time.Duration `yaml:"connect"`

	// From the sent request to the header of the answer. 0 means the default.
	FirstByte time.Duration `yaml:"first_byte"`

	// Between two pieces of an answer. 0 means the default.
	Idle time.Duration `yaml:"idle"`
}

func (t *Timeouts) setDefaults() {
	*t = Timeouts{Connect: 10 * time.Second, FirstByte: 10 * time.Minute, Idle: 3 * time.Minute}
}

// fill replaces zeros by the defaults.
func (t *Timeouts) fill() {
	var usual Timeouts
	usual.setDefaults()
	*t = Timeouts{cmp.Or(t.Connect, usual.Connect), cmp.Or(t.FirstByte, usual.FirstByte), cmp.Or(t.Idle, usual.Idle)}
}

// Disconnect says what becomes of a call whose client has gone.
type Disconnect string

// The choices.
const (
	Drain  Disconnect = "drain"
	Cancel Disconnect = "cancel"
)

// StatedCost says what becomes of the cost that replies state.
type StatedCost string

// The choices; "" is the default of the format.
const (
	StatedCostOff    StatedCost = "off"
	StatedCostRecord StatedCost = "record"
	StatedCostUse    StatedCost = "use"
)

// Auth is how a credential is sent. The zero value sends none.
type Auth struct {
	// Name of the header that carries the key. Excludes query.
	Header string `yaml:"header"`

	// What precedes the key in the header, such as `Bearer ` with its space.
	Prefix string `yaml:"prefix"`

	// Name of the query parameter that carries the key. Excludes header.
	Query string `yaml:"query"`
}

// decodeNode reads the name of a usual way, or a mapping.
func (a *Auth) decodeNode(d *document, path string, n ast.Node) {
	if isMapping(n) {
		type plain Auth
		d.value(path, n, (*plain)(a))
		a.check(d, path)
		return
	}
	var name string
	d.value(path, n, &name)
	switch name {
	case "bearer":
		*a = Auth{Header: "Authorization", Prefix: "Bearer "}
	case "x-api-key":
		*a = Auth{Header: "X-Api-Key"}
	case "api-key":
		*a = Auth{Header: "Api-Key"}
	case "none":
		*a = Auth{}
	default:
		d.fault(path, "want bearer, x-api-key, api-key, none, {header: …, prefix: …} or {query: …}")
	}
}

func (a *Auth) check(d *document, path string) {
	switch {
	case a.Header == "" && a.Query == "":
		d.fault(path, "name a header or a query parameter; auth: none sends no key")
	case a.Header != "" && a.Query != "":
		d.fault(path, "name a header or a query parameter, not both")
	case a.Header != "" && !isToken(a.Header):
		d.fault(path+".header", "is no header name")
	case a.Prefix != "" && a.Header == "":
		d.fault(path+".prefix", "goes with header only")
	case !isPrintable(a.Prefix):
		d.fault(path+".prefix", "must not have control characters")
	}
	a.Header = textproto.CanonicalMIMEHeaderKey(a.Header)
}
