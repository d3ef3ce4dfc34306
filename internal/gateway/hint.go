package gateway

import (
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
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

// suggest adds to an error about a slug which near ones the call could use: of
// models that the door serves and that the caller may use.
func (c *call) suggest(err error, slug string, d *door) error {
	return httpx.SuggestModels(err, slug, c.snapshot.Catalog.Models(), func(m *modelgate.Model) bool {
		return m.Kind == d.kind && c.couldUse(m, d)
	})
}

// couldUse reports whether the call could use a route of a model.
func (c *call) couldUse(m *modelgate.Model, d *door) bool {
	return slices.ContainsFunc(m.Routes, func(r modelgate.Route) bool {
		p := c.snapshot.Providers[r.Provider]
		return p != nil && d.on(p, &r) != nil && c.caller.RefuseRegion(p.Region(r.Model)) == nil &&
			c.caller.Permit(modelgate.Target{Provider: r.Provider, Model: r.Model, Catalog: []*modelgate.Model{m}})
	})
}
