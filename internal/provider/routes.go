package provider

import (
	"cmp"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider/target"
	"modelgate/internal/provider/usage"
)

// rank is who says what a path is, the first to be asked first. Paths of jobs
// come before all of them.
type rank uint8

const (
	doorPath     rank = iota // of a door
	formatPath               // of the format beside the doors
	operatorPath             // of the operator's configuration
	exceptedPath             // callers may not share it, whatever comes after
	// anyPath, of the format, takes any path. It goes last, or else it would take those
	// of which the operator has said where they name the model.
	anyPath
)

// compareRoutes orders routes by who says what they are, and doors among each
// other by their patterns. Others stay in the order of their table.
func compareRoutes(a, b Route) int {
	if order := cmp.Compare(a.rank, b.rank); order != 0 || a.rank != doorPath {
		return order
	}
	return comparePatterns(a.Pattern, b.Pattern)
}

// comparePatterns orders patterns byte by byte, with the "{" of a capture after
// every other: of two that take the same path, the one that spells it out comes
// first.
func comparePatterns(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '{':
			return 1
		case b[i] == '{':
			return -1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// compileRoutes gathers what the proxy may be asked for: the paths of jobs, of the
// doors, the format's others, the operator's.
func (p *Provider) compileRoutes(allow []string) error {
	routes := slices.Concat(p.doorRoutes(), p.formatRoutes())
	for _, pattern := range allow {
		routes = append(routes, p.operatorRoute(pattern))
	}
	slices.SortStableFunc(routes, compareRoutes)
	for _, r := range routes {
		p.addProtocol(r.Job)
	}
	// Whatever else is allowed: a job's paths are its owner's.
	var jobs []Route
	for _, j := range p.protocols {
		jobs = append(jobs, j.routes()...)
	}
	routes = append(jobs, routes...)
	for i := range routes {
		pattern, err := target.ParsePattern(routes[i].Pattern)
		if err != nil {
			return err
		}
		p.routes = append(p.routes, compiledRoute{pattern, &routes[i]})
	}
	return nil
}

// doorRoutes are the paths that the doors lead to.
func (p *Provider) doorRoutes() (routes []Route) {
	for _, d := range p.doors {
		path, _, _ := strings.Cut(d.Upstream, "?")
		route := Route{Pattern: "POST " + path, Kind: modelgate.Video, Endpoint: d.Endpoint, rank: doorPath}
		if d.Job != nil {
			route.Async = AsyncCreate
		}
		switch {
		case strings.Contains(path, publisherCapture):
			route.Models = append(publishedModel(), d.Also...)
		case strings.Contains(path, "{model}"):
			route.Models = []ModelSource{PathCapture("model")}
		}
		routes = append(routes, route)
	}
	return routes
}

// formatRoutes are the format's other paths, and those that it excepts from what
// takes any path.
func (p *Provider) formatRoutes() (routes []Route) {
	for _, r := range p.format.Allow {
		r.Stored = append(slices.Clone(r.Stored), p.format.Stored...)
		r.rank = formatPath
		if strings.HasSuffix(r.Pattern, " /**") {
			r.rank = anyPath
		}
		routes = append(routes, r)
	}
	for _, pattern := range p.format.Except {
		routes = append(routes, Route{Pattern: pattern, rank: exceptedPath})
	}
	return routes
}

// operatorRoute is the route of an operator's pattern: nothing is known of it but
// that reading costs nothing.
func (p *Provider) operatorRoute(pattern string) Route {
	r := Route{Pattern: pattern, Open: true, rank: operatorPath, Endpoint: Endpoint{Models: slices.Clone(p.models()), Reader: usage.Any, Stored: p.format.Stored}}
	if strings.Contains(pattern, "{model}") {
		r.Models = append([]ModelSource{PathCapture("model")}, r.Models...)
	}
	for _, method := range []string{"GET ", "HEAD ", "DELETE "} {
		if strings.HasPrefix(pattern, method) {
			r.Free, r.Reader = true, nil
		}
	}
	return r
}
