package provider

import (
	"context"
	"errors"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/httpfield"
	"modelgate/internal/provider/target"
)

// keyMark begins every gateway key, tokenMark every browser token; nothing that
// holds one may leave in a header or URL.
const (
	keyMark   = "gw_live_"
	tokenMark = "gw_tmp_"
)

// marked reports whether a text holds the secret of a client, or in a canonical
// name of a header all but its first letter.
func marked(text string) bool {
	return strings.Contains(text, keyMark[1:]) || strings.Contains(text, tokenMark[1:])
}

// prepare makes the request without headers. Its body cannot be replayed:
// without GetBody a call that reached the provider is never sent twice.
func (p *Provider) prepare(ctx context.Context, a *Attempt, call *Call) error {
	if err := target.Judge(call.Path); err != nil || strings.Contains(call.Path, "?") {
		return modelgate.Errorf(modelgate.BadRequest, "request path cannot be sent to a provider")
	}
	if target.JudgeRaw(call.Query) != nil {
		return modelgate.Errorf(modelgate.BadRequest, "query string cannot be sent to a provider: spaces, control characters and # must be percent-encoded")
	}
	escaped := p.base.Path + p.inProject(call.Method, call.Path)
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return modelgate.Errorf(modelgate.BadRequest, "request path has a bad percent escape")
	}
	blank := http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: p.base.Host, Body: http.NoBody}
	req := blank.WithContext(ctx) // a copy: blank stays on the stack
	req.Method = call.Method
	// RawPath keeps %2F and the like as they came: what was judged is what is sent.
	a.url = url.URL{Scheme: p.base.Scheme, Host: p.base.Host, Path: path, RawPath: escaped, RawQuery: stripQuery(call.Query, isKey)}
	req.URL = &a.url
	// The client's, the operator's, the door's, the user agent and the credential.
	req.Header = make(http.Header, min(16, len(call.Header)+len(p.headers)+len(call.Set)+2))
	req.ContentLength = int64(len(call.Body))
	a.Request = req
	return nil
}

// stripQuery removes every parameter whose name is to go, and keeps the rest as
// it is.
func stripQuery(raw string, goes func(name string) bool) string {
	if raw == "" {
		return ""
	}
	var kept []string
	for pair := range strings.SplitSeq(raw, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if !goes(httpfield.UnescapeQuery(name)) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// isKey reports whether a client's key may travel in a parameter of that name.
func isKey(name string) bool {
	switch strings.ToLower(name) {
	case "key", "api_key", "api-key", "apikey", "access_token", "access-token", "token", "auth", "authorization",
		"oauth_token", "x-api-key", "x-goog-api-key", "subscription-key", "ocp-apim-subscription-key", "client_secret", "$key":
		return true
	}
	return false
}

// leaks reports whether a gateway key or token stands in the URL or a header.
func leaks(req *http.Request) bool {
	if marked(req.URL.Path) || marked(req.URL.RawQuery) {
		return true
	}
	if strings.Contains(req.URL.RawQuery, "%") && marked(httpfield.UnescapeQuery(req.URL.RawQuery)) {
		return true
	}
	for name, values := range req.Header {
		if marked(name) || slices.ContainsFunc(values, marked) {
			return true
		}
	}
	return false
}

// commonHeaders are passed on to every provider; a trailing * matches any
// ending. None of them can name an account, a credential or a route. What a proxy in
// front says of the client's address (Forwarded, X-Forwarded-*, X-Real-Ip) is not
// among them.
func commonHeaders() []string {
	return []string{
		"accept", "content-type", "user-agent", "x-stainless-*", "x-fern-*", "x-client-request-id",
		"openai-beta", "anthropic-version", "anthropic-beta", "x-goog-api-client",
	}
}

func (p *Provider) compileHeaders(set map[string]string) error {
	p.allowed = make(map[string]bool)
	for _, name := range append(commonHeaders(), p.format.Headers...) {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			p.prefixes = append(p.prefixes, textproto.CanonicalMIMEHeaderKey(prefix))
		} else {
			p.allowed[textproto.CanonicalMIMEHeaderKey(name)] = true
		}
	}
	p.headers = make(map[string][]string, len(set)+1)
	for name, value := range set {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if !httpfield.IsToken(name) || framesRequest(name) || hopByHop(key) || !httpfield.IsValue(value) {
			return errors.New("headers: " + name + " cannot be set")
		}
		p.headers[key] = []string{value}
	}
	p.headers["Accept-Encoding"] = []string{"identity"}
	return nil
}

// copyHeaders takes over the client's headers that may leave.
func (p *Provider) copyHeaders(dst, client http.Header) {
	named := connectionTokens(client)
	for name, values := range client {
		if p.passes(name) && !hopByHop(name) && !named[name] {
			dst[name] = values
		}
	}
	if len(dst["User-Agent"]) == 0 {
		dst["User-Agent"] = []string{""} // keeps net/http from naming itself
	}
}

func (p *Provider) passes(name string) bool {
	if p.allowed[name] {
		return true
	}
	for _, prefix := range p.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// connectionTokens are the headers that a message's Connection header names;
// they concern one hop only. Nil for none.
func connectionTokens(h http.Header) map[string]bool {
	var named map[string]bool
	for token := range httpfield.Elements(h["Connection"]) {
		if strings.EqualFold(token, "close") || strings.EqualFold(token, "keep-alive") {
			continue
		}
		if named == nil {
			named = make(map[string]bool)
		}
		named[textproto.CanonicalMIMEHeaderKey(token)] = true
	}
	return named
}

// hopByHop reports whether a header concerns one connection only (RFC 9110,
// 7.6.1).
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// ResponseHeaders copies a reply's headers for the client: all but those of
// one hop, those that tell of the operator's account or the provider's
// front, and those that would act on the gateway's own origin. A redirect
// stays only where it leads back through the gateway. The values are shared
// with src.
func (p *Provider) ResponseHeaders(dst, src http.Header) {
	named := connectionTokens(src)
	for name, values := range src {
		if !hopByHop(name) && !named[name] && !privateHeader(name) {
			dst[name] = values
		}
	}
	if location := src.Get("Location"); location != "" {
		if mine, ok := p.location(location); ok {
			dst["Location"] = []string{mine}
		}
	}
}

func privateHeader(name string) bool {
	switch name {
	case "Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "Anthropic-Workspace-Id",
		"Set-Cookie", "Set-Cookie2", "Server", "Alt-Svc", "Via", "Location", "Content-Location", "Refresh",
		"Strict-Transport-Security", "Content-Security-Policy", "Content-Security-Policy-Report-Only", "Permissions-Policy", "Feature-Policy",
		"Clear-Site-Data", "Nel", "Report-To", "Reporting-Endpoints", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Expect-Ct",
		"Service-Worker-Allowed", "Origin-Agent-Cluster", "Accept-Ch", "Critical-Ch", "Set-Login", "Speculation-Rules",
		// The gateway is who a client authenticates to, and who says what a call costs.
		"Www-Authenticate", "Authentication-Info", "Proxy-Authentication-Info",
		"X-Ms-Deployment-Name", "X-Ms-Region", "Azureml-Model-Session",
		"X-Gateway-Request-Id", "X-Gateway-Cost-Usd", "X-Gateway-Parse-Status",
		// The limits that a client meets are the gateway's.
		"Ratelimit", "Ratelimit-Policy":
		return true
	}
	for _, prefix := range [...]string{"X-Ratelimit-", "Anthropic-Ratelimit-", "Cf-", "Access-Control-", "Cross-Origin-", "X-Ms-Spillover-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// location turns a redirect below the provider's base URL into the proxy path
// of the same target. Any other would lead the client, and perhaps its key,
// away from the gateway.
func (p *Provider) location(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || u.User != nil || !strings.HasPrefix(u.Path, "/") {
		return "", false
	}
	if u.Host != "" && (u.Scheme != p.base.Scheme || u.Host != p.base.Host) || u.Host == "" && u.Scheme != "" {
		return "", false
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), p.base.Path)
	if !ok || !strings.HasPrefix(rest, "/") || target.Judge(rest) != nil {
		return "", false
	}
	if u.RawQuery = stripQuery(u.RawQuery, isKey); u.RawQuery != "" {
		rest += "?" + u.RawQuery
	}
	return "/" + p.name + rest, true
}
