package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"modelgate"
)

// model is one entry of the catalog.
type model struct {
	// What clients call the model: author/model, unique beyond letter case. The author is what
	// precedes the first slash, letters, digits and ._- ; what follows it may
	// have :@/ too. Required.
	Slug string `yaml:"slug"`

	// What people call the model. Default: the slug without its author.
	DisplayName string `yaml:"display_name"`

	// What the model makes: llm, image, video, 3d, embedding, rerank or audio.
	// Required.
	Kind modelgate.ModelKind `yaml:"kind"`

	// Tokens that fit into the model's context. 0 means unknown.
	ContextLength int64 `yaml:"context_length"`

	// Most tokens in one answer. 0 means unknown. Strict budgets reserve as
	// much when a request sets no limit, and the context length when both are
	// unknown.
	MaxOutput int64 `yaml:"max_output"`

	// When the model was published, for lists of models. Default: unknown.
	Created time.Time `yaml:"created"`

	// What the model is for, for lists of models. Default: none.
	Description string `yaml:"description"`

	// What goes into the model and what comes out, for lists of models.
	Modalities modalities `yaml:"modalities"`

	// Members of a request's body that the model follows, such as `[tools,
	// temperature]`, for lists of models. Default: unknown, an empty list.
	SupportedParameters []string `yaml:"supported_parameters"`

	// Where the model runs: calls go to the first route, and to the next ones
	// in order when it fails. At least one. A route to a provider that is not
	// configured is a warning; calls that reach it fail with 502.
	Routes []route `yaml:"routes"`

	// What the model costs. Default: no known price; calls are recorded at
	// cost 0 and marked partial, and refused where a budget applies.
	Price *price `yaml:"price"`
}

// modalities are what goes into a model and what comes out.
type modalities struct {
	// What the model reads, such as `[text, image]`. Default: text.
	Input []string `yaml:"input"`

	// What the model makes, such as `[text]`. Default: by its kind: text,
	// image, video, 3d, embeddings, rerank or audio.
	Output []string `yaml:"output"`
}

// route is one place where a model runs.
type route struct {
	// Name of a configured provider. Required.
	Provider string `yaml:"provider"`

	// The provider's own id of the model. Required.
	Model string `yaml:"model"`

	// What the model costs on this route. Default: the model's price.
	Price *price `yaml:"price"`

	// The doors that the route serves, by the names that `paths` of a provider
	// has for them, such as `[messages, count_tokens]`. Default: all that the
	// provider's format serves.
	Doors []string `yaml:"doors"`

	// The service tier of a reply that names none, such as `provisioned` for a
	// deployment of throughput that is paid by the hour: `multipliers` can make
	// such calls cost 0.
	ServiceTier string `yaml:"service_tier"`
}

// listPrice is one entry of the price list.
type listPrice struct {
	// Name of a configured provider. Required.
	Provider string `yaml:"provider"`

	// Glob over the provider's own model ids: `*` stands for any characters,
	// `/` included, and `?` for one. At most 256 bytes. Required.
	Model string `yaml:"model"`

	// What the models cost. Required.
	Price *price `yaml:"price"`
}

// catalogList gathers the models of several documents.
type catalogList struct {
	providers []Provider
	first     map[string]string // slug in lower case to where it came up first
	models    []*modelgate.Model
}

// add resolves the models at a key of a document.
func (l *catalogList) add(d *document, key string, models []model) {
	for i := range models {
		path, m := element(key, i), &models[i]
		if !d.has(path) || d.bad(path) {
			continue
		}
		m.check(d, path)
		slug := strings.ToLower(m.Slug)
		if first := l.first[slug]; first != "" {
			d.fault(path+".slug", "is in the catalog already, at %s; slugs are unique, letter case aside", first)
		} else if slug != "" {
			l.first[slug] = fmt.Sprintf("%s:%d", d.file, d.places[path].line)
		}
		for j := range m.Routes {
			at := element(path+".routes", j)
			warnProvider(d, at+".provider", m.Routes[j].Provider, l.providers)
			published := strings.Contains(m.Routes[j].Model, "/") || !slices.ContainsFunc(l.providers, func(p Provider) bool {
				return p.Name == m.Routes[j].Provider && p.Format == "vertex"
			})
			d.faultIf(!published && m.Routes[j].Model != "", at+".model", "want publisher/model with format vertex, such as google/gemini-3-pro")
		}
		l.models = append(l.models, m.resolve(d, path))
	}
}

func (m *model) check(d *document, path string) {
	required(d, path, "slug", m.Slug)
	required(d, path, "kind", string(m.Kind))
	d.faultIf(m.Slug != "" && !modelgate.ValidSlug(m.Slug), path+".slug", "want author/model of letters, digits and ._- (and :@/ after the first slash), beginning with a letter or digit")
	d.faultIf(m.Kind != "" && !slices.Contains(modelgate.Kinds(), m.Kind), path+".kind", "want one of %s", joined(modelgate.Kinds()))
	notNegative(d, path+".context_length", m.ContextLength)
	notNegative(d, path+".max_output", m.MaxOutput)
	checkWords(d, path+".modalities.input", m.Modalities.Input)
	checkWords(d, path+".modalities.output", m.Modalities.Output)
	checkWords(d, path+".supported_parameters", m.SupportedParameters)
	d.faultIf(len(m.Routes) == 0, path+".routes", "is missing; a model needs at least one route")
	seen := make(map[[2]string]bool)
	for i, r := range m.Routes {
		key := element(path+".routes", i)
		for k, name := range r.Doors {
			d.faultIf(!slices.Contains(doors, name), element(key+".doors", k), "no door has this name; the doors are %s", strings.Join(doors, ", "))
		}
		if !d.has(key) || d.bad(key) {
			continue
		}
		required(d, key, "provider", r.Provider)
		required(d, key, "model", r.Model)
		d.faultIf(len(r.Model) > modelgate.MaxPattern, key+".model", "has more than %d bytes", modelgate.MaxPattern)
		d.faultIf(seen[[2]string{r.Provider, r.Model}], key, "is the same provider and model as an earlier route; remove one")
		seen[[2]string{r.Provider, r.Model}] = true
	}
}

func (m *model) resolve(d *document, path string) *modelgate.Model {
	made := &modelgate.Model{
		Slug: m.Slug, DisplayName: m.DisplayName, Kind: m.Kind, ContextLength: m.ContextLength,
		MaxOutput: m.MaxOutput, Created: m.Created, Price: m.Price.resolve(d, path+".price"),
		Description: m.Description, Modalities: modelgate.Modalities(m.Modalities), SupportedParameters: m.SupportedParameters,
	}
	if made.DisplayName == "" {
		made.DisplayName = made.Name()
	}
	for i, r := range m.Routes {
		key := element(path+".routes", i)
		made.Routes = append(made.Routes, modelgate.Route{Provider: r.Provider, Model: r.Model, Price: r.Price.resolve(d, key+".price"),
			Doors: r.Doors, ServiceTier: r.ServiceTier})
	}
	return made
}

func (p *listPrice) resolve(d *document, path string, providers []Provider) modelgate.ProxyPrice {
	if d.has(path) && !d.bad(path) {
		required(d, path, "provider", p.Provider)
		required(d, path, "model", p.Model)
		d.faultIf(p.Price == nil, path+".price", "is missing")
		checkGlob(d, path+".model", p.Model)
		warnProvider(d, path+".provider", p.Provider, providers)
	}
	return modelgate.ProxyPrice{Provider: p.Provider, Model: p.Model, Price: p.Price.resolve(d, path+".price")}
}

// checkWords refuses lists of anything but different words of lower-case letters,
// digits and underscores.
func checkWords(d *document, key string, list []string) {
	seen := make(map[string]bool)
	for i, word := range list {
		place := element(key, i)
		d.faultIf(word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_") != "", place, "want a word of a-z, 0-9 and _")
		d.faultIf(seen[word], place, "is given twice")
		seen[word] = true
	}
}

// checkGlob refuses globs that can match no model id.
func checkGlob(d *document, key, glob string) {
	d.faultIf(len(glob) > modelgate.MaxPattern, key, "a glob has at most %d bytes", modelgate.MaxPattern)
	d.faultIf(!isPrintable(glob), key, "must not have control characters or invalid UTF-8")
	d.faultIf(strings.ContainsAny(glob, `[]\`), key, "in a glob only * and ? are special; [ ] and \\ match themselves and no model id has them")
}

func warnProvider(d *document, key, name string, providers []Provider) {
	if name != "" && !slices.ContainsFunc(providers, func(p Provider) bool { return p.Name == name }) {
		d.warn(key, "no provider called %q is configured; calls will fail with 502", name)
	}
}
