package modelgate

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ModelKind is what a model makes.
type ModelKind string

// The kinds.
const (
	LLM       ModelKind = "llm"
	Image     ModelKind = "image"
	Video     ModelKind = "video"
	ThreeD    ModelKind = "3d"
	Embedding ModelKind = "embedding"
	Rerank    ModelKind = "rerank"
	Audio     ModelKind = "audio"
)

// Kinds lists all kinds.
func Kinds() []ModelKind { return []ModelKind{LLM, Image, Video, ThreeD, Embedding, Rerank, Audio} }

// Modalities are what goes into a model and what comes out, such as text and
// image.
type Modalities struct {
	Input, Output []string
}

// Modalities are those usual for the kind.
func (k ModelKind) Modalities() Modalities {
	output := string(k)
	switch k {
	case LLM:
		output = "text"
	case Embedding:
		output = "embeddings"
	}
	return Modalities{[]string{"text"}, []string{output}}
}

// Model is one entry of the catalog. It is never changed once in a Catalog.
type Model struct {
	// Slug is author/model; the author is what precedes the first slash.
	Slug        string
	DisplayName string
	Kind        ModelKind
	// ContextLength and MaxOutput are in tokens; 0 is unknown. MaxOutput
	// bounds the reservation of a strict budget.
	ContextLength, MaxOutput int64
	Created                  time.Time // zero is unknown
	// The rest of a model's description is for lists of models only.
	Description         string     // "" is none
	Modalities          Modalities // a side that is nil is as usual for the kind
	SupportedParameters []string   // of a request's body; nil is unknown
	// Routes are tried in order; the first is the current inference route.
	Routes []Route
	Price  *Price // nil: no known price
}

// Route is where a model runs. It is never shown to clients.
type Route struct {
	Provider string
	Model    string // the provider's own id
	Price    *Price // nil: the model's
	Region   string // the provider's
	// Doors are the names of the doors that the route serves; nil for all that its
	// provider has.
	Doors []string
	// ServiceTier is that of a reply that names none.
	ServiceTier string
	// Unconfigured: no provider of this name is configured.
	Unconfigured bool
}

// Author is who made the model.
func (m *Model) Author() string {
	author, _, _ := strings.Cut(m.Slug, "/")
	return author
}

// Name is the slug after its first slash.
func (m *Model) Name() string {
	_, name, _ := strings.Cut(m.Slug, "/")
	return name
}

// Target is what a call of the model on its i-th route wants to use.
func (m *Model) Target(i int) Target {
	return Target{Provider: m.Routes[i].Provider, Model: m.Routes[i].Model, Catalog: []*Model{m}}
}

// routesUnder are the routes that a routing policy leaves to calls of the model, in
// their order; where it leaves none, all of them.
func (m *Model) routesUnder(policy RoutingPolicy) []int {
	var all, kept []int
	for i, r := range m.Routes {
		all = append(all, i)
		if policy.Allows(r.Region) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 {
		return all
	}
	return kept
}

// PriceOn is the price on the i-th route; nil when none is known.
func (m *Model) PriceOn(i int) *Price {
	if p := m.Routes[i].Price; p != nil {
		return p
	}
	return m.Price
}

// ProxyPrice prices provider-proxy calls of models that no catalog route
// names.
type ProxyPrice struct {
	Provider string
	Model    string // glob over the provider's own id
	Price    *Price
}

// Catalog is the list of models, indexed by slug and by route. It is
// immutable and safe for concurrent use; a reload makes a new one.
type Catalog struct {
	models  []*Model
	bySlug  map[string]*Model
	byRoute map[[2]string][]*Model
	byHost  map[string][]*Model
	prices  []ProxyPrice
}

// NewCatalog indexes models, sorted by slug. The price list is searched in
// its order. Two slugs must differ by more than letter case, so that nobody
// takes one for the other.
func NewCatalog(models []*Model, prices []ProxyPrice) (*Catalog, error) {
	c := &Catalog{
		models:  slices.Clone(models),
		bySlug:  make(map[string]*Model, len(models)),
		byRoute: make(map[[2]string][]*Model),
		byHost:  make(map[string][]*Model),
		prices:  slices.Clone(prices),
	}
	folded := make(map[string]string, len(models))
	slices.SortFunc(c.models, func(a, b *Model) int { return strings.Compare(a.Slug, b.Slug) })
	for _, m := range c.models {
		if err := m.validate(); err != nil {
			return nil, err
		}
		if c.bySlug[m.Slug] != nil {
			return nil, fmt.Errorf("catalog: duplicate slug %q", m.Slug)
		}
		fold := strings.ToLower(m.Slug)
		if other := folded[fold]; other != "" {
			return nil, fmt.Errorf("catalog: %q and %q differ in letter case only", other, m.Slug)
		}
		folded[fold] = m.Slug
		c.bySlug[m.Slug] = m
		for _, r := range m.Routes {
			key := [2]string{r.Provider, r.Model}
			if !slices.Contains(c.byRoute[key], m) {
				c.byRoute[key] = append(c.byRoute[key], m)
			}
			if !slices.Contains(c.byHost[r.Provider], m) {
				c.byHost[r.Provider] = append(c.byHost[r.Provider], m)
			}
		}
	}
	return c, nil
}

func (m *Model) validate() error {
	switch {
	case !ValidSlug(m.Slug):
		return fmt.Errorf("catalog: %q is no slug; use author/model", m.Slug)
	case !slices.Contains(Kinds(), m.Kind):
		return fmt.Errorf("catalog: %s: unknown kind %q", m.Slug, m.Kind)
	case len(m.Routes) == 0:
		return fmt.Errorf("catalog: %s: no routes", m.Slug)
	}
	for _, r := range m.Routes {
		if r.Provider == "" || r.Model == "" {
			return fmt.Errorf("catalog: %s: a route needs provider and model", m.Slug)
		}
		if len(r.Model) > MaxPattern {
			return fmt.Errorf("catalog: %s: the model of a route has at most %d bytes", m.Slug, MaxPattern)
		}
	}
	return nil
}

// ValidSlug reports whether s can be a catalog slug: author/model, ASCII
// letters, digits and ._- in the author, those and :@/ after the first slash.
func ValidSlug(s string) bool {
	author, name, ok := strings.Cut(s, "/")
	return ok && slugPart(author, "._-") && slugPart(name, "._-:@/")
}

func slugPart(s, extra string) bool {
	return spelled(s, MaxPattern, alphanumerics+extra) && strings.Contains(alphanumerics, s[:1])
}

// Models lists the catalog in the order of slugs. The caller must not change
// the slice.
func (c *Catalog) Models() []*Model { return c.models }

// Find returns the model with the slug, nil when there is none.
func (c *Catalog) Find(slug string) *Model { return c.bySlug[slug] }

// Serving lists the models that have a route to a provider's own model id.
func (c *Catalog) Serving(provider, model string) []*Model {
	return c.byRoute[[2]string{provider, model}]
}

// ServedBy lists the models that have any route to the provider.
func (c *Catalog) ServedBy(provider string) []*Model { return c.byHost[provider] }

// ProxyPrice is the price of a provider's own model id on the provider
// proxy: that of the first catalog model with this route, else the price
// list's; nil when none is known.
func (c *Catalog) ProxyPrice(provider, model string) *Price {
	for _, m := range c.Serving(provider, model) {
		for i, r := range m.Routes {
			if r.Provider == provider && r.Model == model {
				return m.PriceOn(i)
			}
		}
	}
	for _, p := range c.prices {
		if p.Provider == provider && Glob(p.Model, model) {
			return p.Price
		}
	}
	return nil
}
