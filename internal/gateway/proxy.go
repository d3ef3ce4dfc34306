package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"modelgate"
	"modelgate/internal/provider"
	"modelgate/internal/provider/target"
)

// proxyRoute finds the row of the provider's table for a request on its proxy
// path, nil where there is none. HEAD may go where GET may.
func proxyRoute(r *http.Request, p *provider.Provider) (path string, route *provider.Route, captures target.Captures) {
	path, ok := p.WithoutProject(cmp.Or(strings.TrimPrefix(r.URL.EscapedPath(), "/"+p.Name()), "/"))
	if !ok {
		return "/", nil, nil
	}
	route, captures = p.Route(r.Method, path)
	if route == nil && r.Method == http.MethodHead {
		route, captures = p.Route(http.MethodGet, path)
	}
	return path, route, captures
}

// errNotPermitted refuses a path of a provider. Where /v1 is what it lacks, it says
// so.
func errNotPermitted(method string, p *provider.Provider, path string) error {
	if route, _ := p.Route(method, "/v1"+path); route == nil {
		return modelgate.ErrPathNotPermitted
	}
	return &modelgate.DetailError{Err: modelgate.ErrPathNotPermitted, Detail: "the path is /" + p.Name() + "/v1" + path + ": check the client's base URL"}
}

// resolveProxy finds out which models a call on a provider's own path names.
// Path, query and body go on as they came.
func (g *Gateway) resolveProxy(c *call, p *provider.Provider, path string, row *provider.Route, captures target.Captures) error {
	if c.r.Header.Get("Upgrade") != "" {
		return modelgate.Errorf(modelgate.BadRequest, "protocol upgrades (WebSocket, realtime) are not supported; use the HTTP endpoints")
	}
	if row == nil {
		return errNotPermitted(c.r.Method, p, path)
	}
	q, err := g.read(c)
	if err != nil {
		return err
	}
	if err = c.attribute(); err != nil {
		return err
	}
	if row.Open {
		err = q.checkOpen(p, path, row)
	} else {
		err = q.check(p, path, limitsOf(row))
	}
	if err != nil {
		return err
	}
	c.bound = c.costBound(q, path)
	a := attempt{name: p.Name(), provider: p, reader: row.Reader}
	if a.model, a.others, err = q.models(row.Models, captures); err != nil {
		return err
	}
	if err := errors.Join(p.JudgeModels(a.model), p.JudgeModels(a.others...)); err != nil {
		return badRequest(err)
	}
	if a.protocol = row.Job; a.protocol != nil && a.model == "" {
		return modelgate.Errorf(modelgate.BadRequest, "a task needs a model: name one where the provider takes it")
	}
	if err := q.checkModel(row, a.model); err != nil {
		return err
	}
	// The pattern, not the path, is the label of metrics: clients invent paths.
	_, template, _ := strings.Cut(row.Pattern, " ")
	c.surface, c.free = "/"+p.Name()+template, row.Free
	if a.model != "" {
		a.price = c.snapshot.Catalog.ProxyPrice(a.name, a.model)
		if known := c.snapshot.Catalog.Serving(a.name, a.model); len(known) > 0 {
			c.model = known[0]
		}
	}
	if a.protocol != nil {
		c.jobKind = jobKind(c.model, row.Kind)
	}
	if a.requested, err = row.RequestedUnits(&q.Request, c.jobKind); err != nil {
		return badRequest(err)
	}
	a.out = provider.Call{Method: c.r.Method, Path: path, Query: p.ClientQuery(c.r.URL.RawQuery), Header: c.r.Header, Auth: row.Auth}
	if a.out.Body, a.inject, err = q.rewrite(changes{includeUsage: row.IncludeUsage && c.r.Method == http.MethodPost}); err != nil {
		return err
	}
	c.attempts = []attempt{a}
	return nil
}
