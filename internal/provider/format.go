// Package provider knows the providers behind the gateway: a table of their
// wire formats, what a request says in each, how a request is sent with a
// credential, and how usage is read out of a reply.
//
// A provider is a row of data: see the functions of table.go and its
// siblings. Code is needed only where replies state usage in a new shape; it
// lives in a Reader.
package provider

import (
	"net/url"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// Format is one row of the table: all that is particular to a provider's wire
// format.
type Format struct {
	Name string
	// BaseURL is the provider's public address, for documentation. The proxy
	// path is what follows it: base_url + the rest of /{provider}/….
	BaseURL string
	Auth    Auth
	// Older is how clients of an older API version authenticate; nil when
	// there is one way only.
	Older *OlderAuth
	// OptionalCredential: calls may go out without one.
	OptionalCredential bool
	// Models are the places where a request body may name a model; nil means
	// the member or form part model.
	Models []ModelSource
	// Doors are the gateway's doors that the format serves. The proxy serves
	// their paths too.
	Doors []Door
	// Allow are the other paths of the proxy that tenants may share.
	Allow []Route
	// Except are patterns of paths that a /** of Allow does not stand for.
	Except []string
	// Stored are the top-level body members that refer to objects kept at the
	// provider, which one account shares.
	Stored []string
	// StoredSchemes are what addresses of files kept at the provider begin
	// with, wherever a body has a text. Lower case.
	StoredSchemes []string
	// StoredDeep are members, at any depth, that have the provider read or write
	// what the operator stores elsewhere; see reqscan.Fields.Deep.
	StoredDeep []string
	// BadModel says what is wrong with a model that a request names, "" for
	// nothing; nil takes every one. Models of the catalog's routes are not asked.
	BadModel func(model string) string
	// Headers are request headers passed on beside the common ones; a
	// trailing * matches any ending. Lower case.
	Headers []string
	// Query are parameters that every path takes beside its own; see
	// Door.Query.
	Query []string
	// AnyQuery: nothing is known of the parameters, and each passes.
	AnyQuery bool
	// DeferHeader is a request header that makes a job of what is answered at
	// once without it, canonical; only paths that make jobs may have it. ""
	// where there is none.
	DeferHeader string
	// InProject: paths are below a project and a location of the operator's, which
	// the gateway writes itself.
	InProject bool
	// AWSErrors: clients read the kind of an error out of a header of AWS's.
	AWSErrors bool
	// IncludeUsage: streamed chat states usage only when asked to, and the
	// provider accepts being requested.
	IncludeUsage bool
	// Costs are the members of replies that state what a call costs, as paths
	// of names from the top: keys bound to a sub-account do not see them.
	Costs []string
	// StatedCost is what becomes of them where the configuration does not say; ""
	// is IgnoreStatedCost.
	StatedCost StatedCostUse
	// GenAI is what OpenTelemetry's conventions call the provider; "" where it
	// is Name.
	GenAI string
}

// Place is where a door's upstream wants the model.
type Place string

// The places. The zero value is the body.
const (
	ModelInBody Place = ""     // the member model, rewritten
	ModelInPath Place = "path" // the path only: the body's member is removed
)

// Role is what a path does for an asynchronous job.
type Role string

// The roles; the zero value is none.
const (
	AsyncCreate  Role = "create"  // makes a job
	AsyncPoll    Role = "poll"    // reads its state
	AsyncResult  Role = "result"  // reads what came of it, where its state does not say
	AsyncContent Role = "content" // downloads what it made
	AsyncCancel  Role = "cancel"  // ends it
)

// Endpoint is what the table knows of requests to a path, be it that of a door or
// one of the proxy.
type Endpoint struct {
	// Models are the places where the request names models; the first found is
	// billed. Nil: the format's for a door, none for a route.
	Models []ModelSource
	// Same are places that must name the model of the path, if any.
	Same []ModelSource
	// Stored are top-level members that refer to objects kept at the provider,
	// beside the format's.
	Stored []string
	// Query are the query parameters that the official SDKs send, as NAME or
	// as NAME=VALUE|VALUE where only these values leave the reply readable.
	Query []string
	// Deferred are top-level members that have the provider answer before the
	// work is done, without its usage: null and false are all they may be.
	Deferred []string
	// Reader reads the usage out of replies; nil: there is none.
	Reader *usage.Reader
	// UnitFields is where requests say what is to be made; nil: the usual one of the
	// reader.
	Units *UnitFields
	Auth  *Auth // nil: the format's
	// Free: calls cost nothing, as lists and token counts.
	Free bool
	// IncludeUsage: a streamed call states usage only when asked to.
	IncludeUsage bool
	// Job is how the jobs that the path makes, or is for, are followed; nil for
	// none.
	Job *JobProtocol
}

// Door is one of the gateway's doors on one provider.
type Door struct {
	// Path is the door, such as /v1/chat/completions, and Name what the
	// configuration calls it.
	Path, Name string
	// Upstream is the path below the base URL, perhaps with a query; {model}
	// stands for the provider's model id.
	Upstream string
	// Streamed is the upstream path of a call that streams, where it is another.
	Streamed string
	Place    Place
	Also     []ModelSource // places of models beside Models
	// BareModel: the body has the model without what precedes its first slash.
	BareModel bool
	// AnthropicVersion is the member anthropic_version of a body that has none, and
	// whose client names no version that can stand there; "" adds none.
	AnthropicVersion string
	// Header is set on the request, over the client's; a header with the value ""
	// does not leave.
	Header map[string]string
	Endpoint
}

// Target is the upstream path, escaped, and query for a model, of a call that
// streams or does not.
func (d *Door) Target(model string, streams bool) (path, query string) {
	path, query, _ = strings.Cut(d.Upstream, "?")
	if streams && d.Streamed != "" {
		path = d.Streamed
	}
	if !strings.Contains(d.Upstream, "{model}") {
		return path, query
	}
	if strings.Contains(path, publisherCapture) {
		publisher, name, ok := strings.Cut(model, "/")
		if !ok {
			publisher, name = "google", model
		}
		path, model = strings.Replace(path, publisherCapture, url.PathEscape(publisher), 1), name
	}
	return strings.ReplaceAll(path, "{model}", escapeSegments(model)),
		strings.ReplaceAll(query, "{model}", url.QueryEscape(model))
}

// publisherCapture stands in a path for what precedes the first slash of a model.
const publisherCapture = "{publisher}"

// ModelInRequest is how a request names a model of the provider's.
func (d *Door) ModelInRequest(model string) string {
	if _, bare, ok := strings.Cut(model, "/"); d.BareModel && ok {
		return bare
	}
	return model
}

// Version is the member anthropic_version for a client's version; "" for none.
func (d *Door) Version(client string) string {
	if d.AnthropicVersion != "" && client >= versionInBody {
		return client
	}
	return d.AnthropicVersion
}

// versionInBody is the first version that stands in a body as it does in the
// header.
const versionInBody = "2026-10-21"

// Route is a path of the provider proxy that callers may use.
type Route struct {
	// Pattern is a method and a path; see target.Pattern.
	Pattern string
	// Open: it is not known what the path does, so calls need not name a model
	// where the table has places for one.
	Open bool
	// Async is what the path does for a job. Kind is what a job makes whose model
	// the catalog does not know; "" is video.
	Async Role
	Kind  modelgate.ModelKind
	Endpoint

	rank rank // among the provider's routes
}

// standardDoor is what a door means wherever a format serves it.
type standardDoor struct {
	name, path string
	Endpoint
	also []ModelSource
}

// standardDoors lists the gateway's doors by the names the configuration
// uses for them.
func standardDoors() []standardDoor {
	read := func(r *usage.Reader) Endpoint { return Endpoint{Reader: r} }
	messages, responses := read(usage.Messages), read(usage.Responses)
	messages.Query = []string{"beta"}
	responses.Stored, responses.Deferred = []string{"prompt"}, []string{"background"} // a prompt is a template kept at the provider
	return []standardDoor{
		{"chat", "/v1/chat/completions", read(usage.Chat), nil},
		{"completions", "/v1/completions", read(usage.Chat), nil},
		{"messages", "/v1/messages", messages, toolModels()},
		{"count_tokens", "/v1/messages/count_tokens", Endpoint{Free: true, Query: []string{"beta"}}, nil},
		{"responses", "/v1/responses", responses, toolModels()},
		{"images", "/v1/images/generations", read(usage.Images), nil},
		{"image_edits", "/v1/images/edits", read(usage.Images), nil},
		{"videos", "/v1/videos", read(usage.Video), nil},
		{"embeddings", "/v1/embeddings", read(usage.Chat), nil},
		{"reranks", "/v1/reranks", read(usage.Chat), nil},
		{"speech", "/v1/audio/speech", read(usage.Speech), nil},
		{"transcriptions", "/v1/audio/transcriptions", read(usage.Transcript), nil},
		{"translations", "/v1/audio/translations", read(usage.Transcript), nil},
	}
}

// doorNamed finds a standard door by name or path.
func doorNamed(name string) (standardDoor, bool) {
	doors := standardDoors()
	i := slices.IndexFunc(doors, func(d standardDoor) bool { return d.name == name || d.path == name })
	if i < 0 {
		return standardDoor{}, false
	}
	return doors[i], true
}

// serve is a door at an upstream path, with the door's usual reader.
func serve(name, upstream string) Door {
	std, _ := doorNamed(name)
	d := Door{Path: std.path, Name: std.name, Upstream: upstream, Endpoint: std.Endpoint, Also: std.also}
	if std.name == "videos" {
		d.Job = openAIJobs(upstream)
	}
	if strings.Contains(upstream, "{model}") {
		d.Place = ModelInPath
	}
	return d
}

// withJobs is the door with a protocol for the jobs that it creates.
func (d Door) withJobs(j *JobProtocol) Door { d.Job = j; return d }

// deferring is the door with members that put its answer off.
func (d Door) deferring(members ...string) Door { d.Deferred = members; return d }

// withReader is the door with another reader.
func (d Door) withReader(r *usage.Reader) Door { d.Reader = r; return d }

// withUnits is the door whose requests state otherwise how much is to be made.
func (d Door) withUnits(u *UnitFields) Door { d.Units = u; return d }

// compatible serves doors under their own paths, /v1 replaced by the prefix.
func compatible(prefix string, names ...string) []Door {
	doors := make([]Door, len(names))
	for i, name := range names {
		std, _ := doorNamed(name)
		doors[i] = serve(name, prefix+strings.TrimPrefix(std.path, "/v1"))
	}
	return doors
}

// lists are GET paths that cost nothing.
func lists(paths ...string) []Route {
	routes := make([]Route, len(paths))
	for i, path := range paths {
		routes[i] = Route{Pattern: "GET " + path, Endpoint: Endpoint{Free: true}}
	}
	return routes
}

// modelLists are the paths that list models and show one. The list takes the
// query parameters.
func modelLists(path string, query ...string) []Route {
	routes := lists(path, path+"/{model}")
	routes[0].Query, routes[1].Models = query, []ModelSource{PathCapture("model")}
	return routes
}

// calls are POST paths that name the model in the body.
func calls(r *usage.Reader, paths ...string) []Route {
	routes := make([]Route, len(paths))
	for i, path := range paths {
		routes[i] = call(path, bodyModel(), r)
	}
	return routes
}

// call is a POST path that names the model in one of the places.
func call(path string, models []ModelSource, r *usage.Reader) Route {
	return Route{Pattern: "POST " + path, Endpoint: Endpoint{Models: models, Reader: r}}
}

// free are POST paths that name the model in the body and cost nothing.
func free(paths ...string) []Route {
	routes := calls(nil, paths...)
	for i := range routes {
		routes[i].Free = true
	}
	return routes
}

// creates is a POST path that makes a job of the kind.
func creates(jobs *JobProtocol, kind modelgate.ModelKind, models []ModelSource, path string) Route {
	r := call(path, models, usage.Video)
	r.Async, r.Job, r.Kind = AsyncCreate, jobs, kind
	return r
}

// withReader is the route with another reader.
func (r Route) withReader(reader *usage.Reader) Route { r.Reader = reader; return r }

// withUnits is the route whose requests state otherwise how much is to be made.
func (r Route) withUnits(u *UnitFields) Route { r.Units = u; return r }

func bodyModel() []ModelSource { return []ModelSource{BodyField("model"), FormField("model")} }

// usageCosts are members of a usage object, wherever the formats have one.
func usageCosts(names ...string) (paths []string) {
	for _, name := range names {
		paths = append(paths, "usage."+name, "response.usage."+name, "message.usage."+name)
	}
	return paths
}

// anyCosts are the costs that servers of OpenAI's formats state which pass
// calls on to others.
func anyCosts() []string {
	return append(usageCosts("cost", "cost_details", "is_byok", "cost_in_usd_ticks"), "outputs.cost")
}

// toolModels is where tools that run a model of their own name it, such as one
// that paints.
func toolModels() []ModelSource { return []ModelSource{BodyPath("tools[].model")} }
