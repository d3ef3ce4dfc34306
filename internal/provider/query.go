package provider

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider/reqscan"
)

// JudgeQuery reports whether a raw query holds nothing but parameters that
// are known; see Door.Query. A parameter is known where the table or the operator
// lists it, where a client's key travels in it, and where it names an
// organization; the last two never leave. Names are judged with their escapes
// resolved, and each spelling of a repeated one by itself. The error is a
// *SyntaxError that names the parameter.
func (p *Provider) JudgeQuery(raw string, known []string) error {
	if raw == "" || p.format.AnyQuery {
		return nil
	}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		text, err := url.QueryUnescape(name)
		if err != nil || strings.Contains(pair, ";") {
			return queryErrorf("malformed parameter %s", reqscan.QuoteName([]byte(name)))
		}
		if !isKey(text) && !p.ignores(text) && !slices.Contains(p.allowQuery, text) && !listed(known, text, value) &&
			!listed(p.format.Query, text, value) {
			return queryErrorf("parameter %s is not known for this path, or not with this value; the operator can allow it (allow_query)", reqscan.QuoteName([]byte(text)))
		}
	}
	return nil
}

// ClientQuery is a client's query without the parameters that name an
// organization, which have no effect.
func (p *Provider) ClientQuery(raw string) string { return stripQuery(raw, p.ignores) }

func (p *Provider) ignores(name string) bool {
	return modelgate.NamesOrganization(name) && !p.format.AnyQuery && !slices.Contains(p.allowQuery, name)
}

// listed reports whether one of the entries, NAME or NAME=VALUE|VALUE, is for
// the name and the raw value.
func listed(entries []string, name, value string) bool {
	for _, entry := range entries {
		known, values, limited := strings.Cut(entry, "=")
		if known != name {
			continue
		}
		text, err := url.QueryUnescape(value)
		return !limited || err == nil && slices.Contains(strings.Split(values, "|"), text)
	}
	return false
}

// parameterNames are the names in a query of the table.
func parameterNames(query string) (names []string) {
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, ok := strings.Cut(pair, "="); ok {
			names = append(names, name)
		}
	}
	return names
}

// JudgeJobQuery is JudgeQuery for a call that a door makes about a job.
func (p *Provider) JudgeJobQuery(raw string, w *JobProtocol) error { return p.JudgeQuery(raw, w.Query) }

// Defers is the name of the header with which a call asks for a job on a path
// that makes none, "" where it does not.
func (p *Provider) Defers(h http.Header) string {
	if p.format.DeferHeader != "" && len(h[p.format.DeferHeader]) > 0 {
		return p.format.DeferHeader
	}
	return ""
}
