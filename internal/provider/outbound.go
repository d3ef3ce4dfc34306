package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpfield"
	"modelgate/internal/provider/credential"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
	"modelgate/internal/provider/usage"
)

// Timeouts of one provider; a zero field takes the default.
type Timeouts struct {
	Connect   time.Duration // TCP and TLS each; default 10 s
	FirstByte time.Duration // request written to response header; default 600 s
	Idle      time.Duration // between two pieces of a body; default 180 s
}

// Disconnect says what becomes of a call whose client has gone.
type Disconnect string

// The choices; empty is Drain.
const (
	Drain  Disconnect = "drain"  // read on until the usage is known
	Cancel Disconnect = "cancel" // end it: the provider stops charging
)

// Config describes one provider of the operator's.
type Config struct {
	Name    string
	Format  string // a row of the table
	BaseURL string // http or https, a host, perhaps a path; no query
	Region  string
	// ModelRegions are where models are computed that are not in Region.
	ModelRegions []modelgate.ModelRegion
	// Auth replaces the format's style; nil keeps it.
	Auth *Auth
	// Credentials are used in turn. CredentialFile holds one instead, and is
	// read again when it changes.
	Credentials         []string
	CredentialFile      string
	PreviousCredentials []string // only for jobs that were made with them
	Identity            Identity // in place of credentials; nil for none
	// Project and Location are where calls are made, for a format whose paths are
	// below them.
	Project, Location string
	CAFile            string // PEM, beside the system's
	// HTTP2 lets calls share connections where the provider speaks HTTP/2. By
	// default each has one of its own for its time, which costs less.
	HTTP2 bool
	// Standard has net/http carry HTTP/1.1 too, each call on a connection of its
	// own, and HTTP/2 where the provider speaks it.
	Standard bool
	// AllowStoredObjects lets bodies refer to objects kept at the provider.
	AllowStoredObjects bool
	// AllowQuery are names of query parameters that every path takes beside
	// those of the table.
	AllowQuery []string
	// Paths sets a door's upstream path, by the door's path or name; {model}
	// stands for the model id.
	Paths map[string]string
	// Allow are further proxy paths, as target.Pattern texts.
	Allow        []string
	Headers      map[string]string // set on every request
	Timeouts     Timeouts
	OnDisconnect Disconnect
	// StatedCost is what becomes of the cost that replies state; "" is the
	// default of the format or of the host.
	StatedCost StatedCostUse
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Provider is a configured provider: it makes requests, sends them with a
// credential, and knows its paths. Safe for concurrent use.
type Provider struct {
	name, region string
	regions      []modelgate.ModelRegion
	format       Format
	costs        usage.CostMembers
	base         url.URL
	caFile       string
	project      string // what precedes paths after their version; "" for nothing
	auth         *Auth
	doors        map[string]*Door
	routes       []compiledRoute
	protocols    []*JobProtocol
	stored       bool
	allowQuery   []string
	allowed      map[string]bool // canonical header names
	prefixes     []string
	headers      map[string][]string
	secrets      *credential.Set
	identity     Identity
	transport    transport
	timeouts     Timeouts
	onDisconnect Disconnect
	statedCost   StatedCostUse
}

type compiledRoute struct {
	pattern target.Pattern
	route   *Route
}

// New checks a configuration and makes the provider. Its errors are for the
// operator. It does not read the credential file: a call without a credential
// fails by itself.
func New(cfg Config) (*Provider, error) {
	format, ok := FormatNamed(cfg.Format)
	if !ok {
		return nil, fmt.Errorf("provider %s: unknown format %q", cfg.Name, cfg.Format)
	}
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("provider %s: base_url: %w", cfg.Name, err)
	}
	p := &Provider{
		costs: usage.NewCostMembers(format.Costs),
		name:  cfg.Name, region: cfg.Region, regions: cfg.ModelRegions, format: format, base: *base, caFile: cfg.CAFile, auth: cfg.Auth, stored: cfg.AllowStoredObjects, allowQuery: cfg.AllowQuery,
		timeouts: cfg.Timeouts.withDefaults(), onDisconnect: cfg.OnDisconnect,
	}
	if p.statedCost = cmp.Or(cfg.StatedCost, format.StatedCost); p.statedCost == "" && p.base.Hostname() == "api.perplexity.ai" {
		p.statedCost = RecordStatedCost
	}
	if format.InProject && cfg.Project != "" {
		p.project = "/projects/" + url.PathEscape(cfg.Project) + "/locations/" + url.PathEscape(cfg.Location)
	}
	switch cfg.OnDisconnect {
	case "":
		p.onDisconnect = Drain
	case Drain, Cancel:
	default:
		return nil, fmt.Errorf("provider %s: on_disconnect: use drain or cancel", cfg.Name)
	}
	if auth := cfg.Auth; auth != nil && auth.Header != "" && (!httpfield.IsToken(auth.Header) || framesRequest(auth.Header) || !httpfield.IsValue(auth.Prefix)) {
		return nil, fmt.Errorf("provider %s: auth: no key can be sent in header %q", cfg.Name, auth.Header)
	}
	if err := errors.Join(p.compileDoors(cfg.Paths), p.compileRoutes(cfg.Allow), p.compileHeaders(cfg.Headers)); err != nil {
		return nil, fmt.Errorf("provider %s: %w", cfg.Name, err)
	}
	if err := p.takeCredentials(cfg); err != nil {
		return nil, fmt.Errorf("provider %s: %w", cfg.Name, err)
	}
	if p.transport, err = newTransportTo(base, &cfg, p.timeouts); err != nil {
		return nil, fmt.Errorf("provider %s: %w", cfg.Name, err)
	}
	return p, nil
}

func (t Timeouts) withDefaults() Timeouts {
	pick := func(d, or time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return or
	}
	return Timeouts{pick(t.Connect, 10*time.Second), pick(t.FirstByte, 600*time.Second), pick(t.Idle, 180*time.Second)}
}

func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("not a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, errors.New("want http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("must not have user, query or fragment")
	case forbiddenHost(u.Hostname()):
		return nil, errors.New("addresses of cloud metadata services are never called")
	}
	u.Path, u.RawPath = strings.TrimRight(u.EscapedPath(), "/"), ""
	return u, nil
}

// compileDoors takes the format's doors and the operator's paths over them.
func (p *Provider) compileDoors(paths map[string]string) error {
	p.doors = make(map[string]*Door, len(p.format.Doors)+len(paths))
	add := func(d Door) {
		if d.Models == nil {
			d.Models = p.models()
		}
		d.Models = slices.Concat(d.Models, d.Also)
		d.Stored = append(slices.Clone(d.Stored), p.format.Stored...)
		d.IncludeUsage = p.format.IncludeUsage && (d.Path == "/v1/chat/completions" || d.Path == "/v1/completions")
		p.doors[d.Path] = &d
	}
	for _, d := range p.format.Doors {
		add(d)
	}
	for name, path := range paths {
		std, ok := doorNamed(name)
		if !ok {
			return fmt.Errorf("paths: unknown door %q", name)
		}
		if err := target.Judge(strings.ReplaceAll(path, "{model}", "m")); err != nil {
			return fmt.Errorf("paths: %s: %w", name, err)
		}
		door := serve(std.name, path)
		if known := p.doors[std.path]; known != nil {
			door.Reader, door.Auth, door.Header, door.Units = known.Reader, known.Auth, known.Header, known.Units
			door.BareModel, door.AnthropicVersion = known.BareModel, known.AnthropicVersion
			door.Job = known.Job.moved(known.Upstream, path)
		}
		add(door)
	}
	return nil
}

func (p *Provider) models() []ModelSource {
	if p.format.Models != nil {
		return p.format.Models
	}
	return bodyModel()
}

func (p *Provider) takeCredentials(cfg Config) (err error) {
	set := credential.Config{
		Current: cfg.Credentials, File: cfg.CredentialFile, Previous: cfg.PreviousCredentials, Now: cfg.Now,
		Optional: p.format.OptionalCredential || p.auth != nil && *p.auth == Auth{},
	}
	if p.identity = cfg.Identity; p.identity != nil {
		set.Identity = p.identity.Fingerprint()
	}
	p.secrets, err = credential.New(set)
	return err
}

// StatesCost reports whether replies of the provider may state a cost.
func (p *Provider) StatesCost() bool { return p.costs.Any() }

// CostFilter takes what a reply of the type states of costs out of it; nil where
// there is nothing to take out.
func (p *Provider) CostFilter(contentType string) *usage.CostFilter {
	return p.costs.Filter(contentType)
}

// Name is the provider's name in the configuration and in proxy paths.
func (p *Provider) Name() string { return p.name }

// GenAIName is what OpenTelemetry's conventions call the provider
// (gen_ai.provider.name).
func (p *Provider) GenAIName() string { return cmp.Or(p.format.GenAI, p.format.Name) }

// Region is where the operator says the provider computes a model, "" for a call
// that names none; "" is unknown.
func (p *Provider) Region(model string) string { return modelgate.RegionOf(p.regions, model, p.region) }

// Timeouts are the provider's, defaults filled in.
func (p *Provider) Timeouts() Timeouts { return p.timeouts }

// OnDisconnect says what becomes of calls whose client has gone.
func (p *Provider) OnDisconnect() Disconnect { return p.onDisconnect }

// AllowsStoredObjects reports whether bodies may use the members that Stored
// of a door or route lists.
func (p *Provider) AllowsStoredObjects() bool { return p.stored }

// StoredSchemes are what addresses of files kept at the provider begin with.
func (p *Provider) StoredSchemes() []string { return p.format.StoredSchemes }

// StoredDeep are members that a body may not have at any depth, as
// reqscan.Fields.Deep wants them.
func (p *Provider) StoredDeep() []string { return p.format.StoredDeep }

// AWSErrors reports whether clients read the kind of an error out of a header of
// AWS's.
func (p *Provider) AWSErrors() bool { return p.format.AWSErrors }

// JudgeModels refuses names of models that no client may use at the provider, with
// a *SyntaxError.
func (p *Provider) JudgeModels(models ...string) error {
	for _, model := range models {
		if p.format.BadModel == nil || model == "" {
			continue
		}
		if problem := p.format.BadModel(model); problem != "" {
			return reqscan.Errorf("%s", problem)
		}
	}
	return nil
}

// Door is how the provider serves a door, by the door's path; nil when it
// does not.
func (p *Provider) Door(path string) *Door { return p.doors[path] }

// Route finds the route of a proxy path, escaped, below the base URL; nil
// when callers may not share it, or when it would be another route with its
// needless escapes resolved: servers take both spellings for one path.
func (p *Provider) Route(method, escapedPath string) (*Route, target.Captures) {
	route, captures := p.route(method, escapedPath)
	if route == nil || !strings.Contains(escapedPath, "%") {
		return route, captures
	}
	plain := url.URL{Path: target.Unescape(escapedPath)}
	if same, _ := p.route(method, plain.EscapedPath()); same != route {
		return nil, nil
	}
	return route, captures
}

func (p *Provider) route(method, escapedPath string) (*Route, target.Captures) {
	for _, c := range p.routes {
		if captures, ok := c.pattern.Match(method, escapedPath); ok {
			if c.route.rank == exceptedPath {
				return nil, nil
			}
			return c.route, captures
		}
	}
	return nil, nil
}

// BodyNames are the top-level body members that any door or route of the
// provider reads.
func (p *Provider) BodyNames() []string {
	var names []string
	add := func(e *Endpoint) {
		for _, m := range slices.Concat(e.Models, e.Same) {
			if name := m.BodyName(); name != "" {
				names = append(names, name)
			}
		}
		names = slices.Concat(names, e.Stored, e.Deferred)
	}
	for _, d := range p.doors {
		add(&d.Endpoint)
	}
	for _, r := range p.routes {
		add(&r.route.Endpoint)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Close ends idle connections. Calls under way go on.
func (p *Provider) Close() { p.transport.close() }
