package provider

import (
	"net/http"
	"strings"

	"modelgate/internal/provider/target"
)

// WithoutProject is a path as the table has it: without the project and location
// that a client may name after the version. Each must be the operator's or "-", for
// the gateway writes the operator's; else it reports false.
func (p *Provider) WithoutProject(path string) (string, bool) {
	if p.project == "" {
		return path, true
	}
	version, rest, _ := strings.Cut(path[1:], "/")
	segments := strings.SplitN(rest, "/", 5)
	if segments[0] != "projects" {
		return path, true
	}
	own := strings.Split(p.project, "/") // "", projects, P, locations, L
	if len(segments) < 5 || segments[2] != "locations" || !names(segments[1], own[2]) || !names(segments[3], own[4]) {
		return "", false
	}
	return "/" + version + "/" + segments[4], true
}

// names reports whether a segment of a client's path is the operator's, or stands
// for it.
func names(segment, own string) bool {
	return segment == "-" || target.Unescape(segment) == target.Unescape(own)
}

// inProject is the path that leaves for one of the table.
func (p *Provider) inProject(method, path string) string {
	if p.project == "" || method != http.MethodPost {
		return path
	}
	version, rest, _ := strings.Cut(path[1:], "/")
	return "/" + version + p.project + "/" + rest
}
