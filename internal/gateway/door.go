package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider"
)

// door is a path that serves the models of one kind. Which providers serve a
// door, and on which path of theirs, is for the provider table to say.
type door struct {
	path string
	kind modelgate.ModelKind
	// as is the door whose entry in the provider table an alias uses; "" for
	// a door that is none.
	as string
}

// doors are the model doors and those that real clients need beside them.
var doors = [...]door{
	{path: "/v1/chat/completions", kind: modelgate.LLM},
	{path: "/v1/messages", kind: modelgate.LLM},
	{path: "/v1/messages/count_tokens", kind: modelgate.LLM},
	{path: "/v1/responses", kind: modelgate.LLM},
	{path: "/v1/completions", kind: modelgate.LLM},
	{path: "/v1/embeddings", kind: modelgate.Embedding},
	{path: "/v1/images/generations", kind: modelgate.Image},
	{path: "/v1/images/edits", kind: modelgate.Image},
	{path: "/v1/videos", kind: modelgate.Video},
	{path: "/v1/reranks", kind: modelgate.Rerank},
	{path: "/v1/rerank", kind: modelgate.Rerank, as: "/v1/reranks"},
	{path: "/v2/rerank", kind: modelgate.Rerank, as: "/v1/reranks"},
	{path: "/v1/audio/speech", kind: modelgate.Audio},
	{path: "/v1/audio/transcriptions", kind: modelgate.Audio},
	{path: "/v1/audio/translations", kind: modelgate.Audio},
}

// errNoDoor answers any other path of the doors' namespace.
func errNoDoor(path string) error {
	if meant := meantPath(path); meant != "" {
		return errMeant(meant)
	}
	var list []string
	for i := range doors {
		list = append(list, doors[i].path)
	}
	return modelgate.Errorf(modelgate.NotFound, "no such endpoint; there are POST %s and GET /v1/models", strings.Join(list, ", "))
}

// resolveDoor reads the body, finds the model by its slug and lines up its
// routes.
func (g *Gateway) resolveDoor(c *call) error {
	d := g.doors[c.r.URL.Path]
	if d == nil {
		return errNoDoor(c.r.URL.Path)
	}
	if c.r.Method != http.MethodPost {
		c.w.Header().Set("Allow", http.MethodPost)
		return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use POST")
	}
	c.surface, c.bySlug = d.path, true
	q, err := g.read(c)
	if err != nil {
		return err
	}
	if err = c.attribute(); err != nil {
		return err
	}
	slug, err := q.slug()
	if err != nil {
		return err
	}
	if !strings.Contains(slug, "/") {
		return c.suggest(modelgate.ErrBareModel(slug), slug, d)
	}
	if c.model = c.snapshot.Catalog.Find(slug); c.model == nil {
		return c.suggest(modelgate.ErrUnknownSlug(slug), slug, d)
	}
	if c.model.Kind != d.kind {
		return modelgate.ErrWrongKind(slug, c.model.Kind, d.kind)
	}
	c.bound = c.costBound(q, d.path)
	if q.once = len(c.model.Routes) == 1; !q.once {
		c.body = q.body
		if err := c.room.Reserve(2 * int64(len(q.body))); err != nil { // it stays beside that of the route under way
			return err
		}
	}
	c.attempts = make([]attempt, 0, len(c.model.Routes))
	for i := range c.model.Routes {
		a, err := c.route(q, d, i)
		switch {
		case err != nil && i == 0:
			return err
		case err != nil:
			continue // the body is wrong for this fallback only
		}
		c.attempts = append(c.attempts, a)
	}
	return nil
}

// on is how a route's provider serves the door, nil where it does not, or is not to.
func (d *door) on(p *provider.Provider, r *modelgate.Route) *provider.Door {
	row := p.Door(cmp.Or(d.as, d.path))
	if row == nil || len(r.Doors) > 0 && !slices.Contains(r.Doors, row.Name) {
		return nil
	}
	return row
}

// route prepares the i-th route of a door's model.
func (c *call) route(q *request, d *door, i int) (attempt, error) {
	r := &c.model.Routes[i]
	a := attempt{name: r.Provider, model: r.Model, price: c.model.PriceOn(i), provider: c.snapshot.Providers[r.Provider]}
	if a.provider == nil {
		return a, nil
	}
	row := d.on(a.provider, r)
	if row == nil {
		a.wrongDoor = true
		return a, nil
	}
	if err := q.check(a.provider, d.path, limits{row.Query, row.Deferred, row.Stored, row.Job != nil}); err != nil {
		return a, err
	}
	_, others, err := q.models(row.Models, nil)
	if err != nil {
		return a, err
	}
	if err := a.provider.JudgeModels(others...); err != nil {
		return a, badRequest(err)
	}
	a.others, a.reader, a.protocol, a.tier = others, row.Reader, row.Job, r.ServiceTier
	c.free = c.free || row.Free
	if row.Job != nil {
		c.jobKind = jobKind(c.model, d.kind)
	}
	if a.requested, err = row.RequestedUnits(&q.Request, c.jobKind); err != nil {
		return a, badRequest(err)
	}
	a.out = provider.Call{Method: http.MethodPost, Header: c.r.Header, Auth: row.Auth, Set: row.Header}
	streams, _ := q.Fields.Get("stream")
	a.out.Path, a.out.Query = row.Target(r.Model, streams.IsTrue())
	if a.out.Query == "" {
		a.out.Query = a.provider.ClientQuery(c.r.URL.RawQuery)
	}
	wanted := changes{place: row.Place, native: row.ModelInRequest(r.Model), includeUsage: row.IncludeUsage, version: row.Version(c.r.Header.Get("Anthropic-Version"))}
	if q.once {
		a.out.Body, a.inject, err = q.rewrite(wanted)
	} else {
		a.edits, a.inject, err = q.edits(wanted)
	}
	return a, err
}

// DoorsOf are the paths of the doors that serve a model now, in the order in
// which they are preferred; aliases are left out. Safe for concurrent use.
func (g *Gateway) DoorsOf(m *modelgate.Model) []string { return g.Live().doorsOf(m) }

func (l *Snapshot) doorsOf(m *modelgate.Model) []string {
	var paths []string
	for i := range doors {
		if doors[i].kind != m.Kind || doors[i].as != "" {
			continue
		}
		for _, r := range m.Routes {
			if p := l.Providers[r.Provider]; p != nil && doors[i].on(p, &r) != nil {
				paths = append(paths, doors[i].path)
				break
			}
		}
	}
	return paths
}

// doorOf is the path of the first door that serves a model, "" for none.
func (l *Snapshot) doorOf(m *modelgate.Model) string {
	if paths := l.doorsOf(m); len(paths) > 0 {
		return paths[0]
	}
	return ""
}
