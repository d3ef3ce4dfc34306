package relay

import (
	"net/http"
	"strings"

	"modelgate"
	"modelgate/internal/provider"
)

// resolveProxy finds out which models a call on a provider's own path names.
// Path, query and body go on as they came.
func (y *Relay) resolveProxy(c *call, p *provider.Provider) error {
	if c.r.Header.Get("Upgrade") != "" {
		return modelgate.Errorf(modelgate.BadRequest, "protocol upgrades (WebSocket, realtime) are not supported; use the HTTP endpoints")
	}
	path := strings.TrimPrefix(c.r.URL.EscapedPath(), "/"+p.Name())
	if path == "" {
		path = "/"
	}
	way, captures := p.Route(c.r.Method, path)
	switch {
	case way == nil:
		return modelgate.ErrPathNotPermitted
	case way.Async != "" && way.Async != provider.AsyncCreate:
		return y.resolveJobPath(c, p, way, captures)
	}
	q, err := y.read(c)
	if err != nil {
		return err
	}
	if c.attribution, err = attribution(c.r.Header); err != nil {
		return err
	}
	if err := q.stored(p, way.Stored); err != nil {
		return err
	}
	if y.enforced(c) {
		c.demand = q.demand(path)
	}
	a := attempt{name: p.Name(), provider: p, reader: way.Reader}
	if a.model, a.others, err = q.models(way.Models, captures); err != nil {
		return err
	}
	if a.way = way.Way; a.way != nil && a.model == "" {
		return modelgate.Errorf(modelgate.BadRequest, "a task needs a model: name one where the provider takes it")
	}
	_, template, _ := strings.Cut(way.Pattern, " ")
	c.surface, c.free = "/"+p.Name()+template, way.Free
	if way.Reader.Asks() {
		if c.asked, err = q.Asked(); err != nil {
			return badRequest(err)
		}
	}
	if a.model != "" {
		a.price = c.live.Catalog.ProxyPrice(a.name, a.model)
		if known := c.live.Catalog.Serving(a.name, a.model); len(known) > 0 {
			c.model = known[0]
		}
	}
	if a.way != nil {
		c.makes = jobKind(c.model, way.Kind)
	}
	a.out = provider.Call{Method: c.r.Method, Path: path, Query: c.r.URL.RawQuery, Header: c.r.Header, Auth: way.Auth}
	includeUsage := wish(way.IncludeUsage && c.r.Method == http.MethodPost)
	if a.out.Body, a.inject, err = q.rewrite(provider.ModelInBody, "", includeUsage); err != nil {
		return err
	}
	c.attempts = []attempt{a}
	return nil
}
