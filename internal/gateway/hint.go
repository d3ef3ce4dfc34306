package gateway

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"modelgate"
)

// NoSuchPath answers a path that belongs to nobody. It names the path that is
// meant where that can be told: of a client whose base URL is wrong, or that
// speaks another API.
func NoSuchPath(path string) error {
	if strings.HasPrefix(path, "/v1beta/") {
		return modelgate.Errorf(modelgate.NotFound, "no such path; Gemini's paths are below the name of a provider, as in /gemini/v1beta/models/...")
	}
	if here, ok := insteadOfOllama(path); ok {
		return modelgate.Errorf(modelgate.NotFound, "no such path; the gateway does not serve Ollama's API: use the OpenAI-compatible %s", here)
	}
	if meant := meantPath(path); meant != "" {
		return errMeant(meant)
	}
	return modelgate.Errorf(modelgate.NotFound, "no such path")
}

func errMeant(path string) error {
	return modelgate.Errorf(modelgate.NotFound, "no such path; the endpoint is %s: check the client's base URL", path)
}

// meantPath is the longest path served under /v1 that another path ends with,
// but for its /v1; "" for none.
func meantPath(path string) string {
	meant := ""
	consider := func(served string) {
		ending, _ := strings.CutPrefix(served, "/v1")
		if strings.HasSuffix(path, ending) && path != served && len(served) > len(meant) {
			meant = served
		}
	}
	for i := range doors {
		consider(doors[i].path)
	}
	consider("/v1/models")
	return meant
}

// insteadOfOllama is what serves the purpose of a path of Ollama's own API.
func insteadOfOllama(path string) (here string, ok bool) {
	name, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		return "", false
	}
	name, _, _ = strings.Cut(name, "/")
	switch name {
	case "chat":
		return "POST /v1/chat/completions", true
	case "generate":
		return "POST /v1/completions", true
	case "embed", "embeddings":
		return "POST /v1/embeddings", true
	case "tags", "show", "ps":
		return "GET /v1/models", true
	case "version", "pull", "push", "create", "copy", "delete", "blobs":
		return "API under /v1", true
	}
	return "", false
}

const (
	// mostNear bounds how many slugs are suggested.
	mostNear = 3
	// longestSlug bounds, in bytes, the slug to which others are compared.
	longestSlug = 100
)

// suggest adds to an error about a slug which near ones the call could use.
func (c *call) suggest(err error, slug string, d *door) error {
	near := c.nearest(slug, d)
	if len(near) == 0 {
		return err
	}
	return &modelgate.DetailError{Err: err, Detail: "did you mean " + strings.Join(near, " or ") + "?"}
}

// nearest are the slugs like one that does not exist, the nearest first. Only
// models count that the caller may use and that the door serves.
func (c *call) nearest(slug string, d *door) []string {
	if len(slug) > longestSlug {
		return nil
	}
	type candidate struct {
		slug     string
		distance int
	}
	var near []candidate
	for _, m := range c.snapshot.Catalog.Models() {
		distance, ok := slugDistance(strings.ToLower(slug), strings.ToLower(m.Slug))
		if ok && m.Kind == d.kind && c.couldUse(m, d) {
			near = append(near, candidate{m.Slug, distance})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int { return cmp.Or(a.distance-b.distance, strings.Compare(a.slug, b.slug)) })
	var slugs []string
	for _, n := range near[:min(len(near), mostNear)] {
		slugs = append(slugs, n.slug)
	}
	return slugs
}

// slugDistance is how many characters a slug differs from one of the catalog, and
// whether that is few. A name without its author, or with another, is compared
// with the name alone.
func slugDistance(slug, known string) (distance int, few bool) {
	author, name, _ := strings.Cut(known, "/")
	givenAuthor, givenName, whole := strings.Cut(slug, "/")
	if !whole {
		givenAuthor, givenName = author, slug
	}
	most := 1 + len(name)/6
	if max(len(givenName), len(name))-min(len(givenName), len(name)) > most {
		return 0, false
	}
	distance = levenshtein.ComputeDistance(givenName, name)
	if distance > 0 {
		distance += min(levenshtein.ComputeDistance(givenAuthor, author), most)
	}
	return distance, distance <= most
}

// couldUse reports whether the call could use a route of a model.
func (c *call) couldUse(m *modelgate.Model, d *door) bool {
	return slices.ContainsFunc(m.Routes, func(r modelgate.Route) bool {
		p := c.snapshot.Providers[r.Provider]
		return p != nil && p.Door(cmp.Or(d.as, d.path)) != nil && c.caller.RefuseRegion(p.Region(r.Model)) == nil &&
			c.caller.Permit(modelgate.Target{Provider: r.Provider, Model: r.Model, Catalog: []*modelgate.Model{m}})
	})
}
