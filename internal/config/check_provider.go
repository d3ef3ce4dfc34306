package config

import (
	"bytes"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"modelgate"
)

// reserved are the first segments of the gateway's own paths.
var reserved = []string{"gw", "v1", "p", "healthz", "readyz", "metrics", "dashboard", "openapi.json", "webhooks"}

// formats are the wire formats, and keyless those of them that can do without
// a key.
var (
	formats = []string{
		"openai", "anthropic", "gemini", "azure-openai", "mistral", "deepseek", "xai", "groq", "together", "fireworks", "openrouter",
		"moonshot", "zhipu", "dashscope", "ark", "minimax", "cohere", "jina", "voyage", "fal", "replicate", "bedrock", "vertex", "vllm", "ollama", "generic",
	}
	keyless = []string{"vllm", "ollama", "generic"}
)

// doors are the names that paths may give the gateway's doors.
var doors = []string{
	"chat", "completions", "messages", "count_tokens", "responses", "images", "image_edits", "videos",
	"embeddings", "reranks", "speech", "transcriptions", "translations",
}

func (p *Provider) check(d *document, path string) {
	if !d.has(path) || d.bad(path) {
		return
	}
	required(d, path, "name", p.Name)
	required(d, path, "format", p.Format)
	required(d, path, "base_url", p.BaseURL)
	d.faultIf(slices.Contains(reserved, p.Name), path+".name", "is the first segment of the gateway's own paths; choose another name")
	d.faultIf(p.Name != "" && !modelgate.PlainSlug(p.Name), path+".name", "want 1 to 64 of a-z, 0-9 and -")
	d.faultIf(p.Format != "" && !slices.Contains(formats, p.Format), path+".format", "want one of %s", strings.Join(formats, ", "))
	checkURL(d, path+".base_url", p.BaseURL, "*")
	for i, name := range p.AllowQuery {
		if name == "" || !isPrintable(name) || strings.ContainsAny(name, "&=;% ") {
			d.fault(element(path+".allow_query", i), "want the name of a query parameter, without escapes")
		}
	}
	p.checkCredentials(d, path)
	p.checkIdentity(d, path)
	p.checkProject(d, path)
	p.checkRegions(d, path)
	p.checkPaths(d, path)
	for name, value := range p.Headers {
		checkHeader(d, member(path+".headers", name), name, value)
	}
	p.checkInvoice(d, path+".invoice")
	p.Timeouts.fill()
	oneOf(d, path+".transport", p.Transport, TransportPooled, TransportStandard)
	if p.StatedCost != "" {
		oneOf(d, path+".stated_cost", p.StatedCost, StatedCostUse, StatedCostRecord, StatedCostOff)
	}
	oneOf(d, path+".on_disconnect", p.OnDisconnect, Drain, Cancel)
}

// checkCredentials wants one way to a key, and warns where there is none.
func (p *Provider) checkCredentials(d *document, path string) {
	var given []string
	for _, name := range []string{"credential", "credentials", "credential_file"} {
		if d.has(member(path, name)) {
			given = append(given, name)
		}
	}
	if len(given) > 1 {
		d.fault(member(path, given[1]), "excludes %s; keep one of them", given[0])
	}
	for i, s := range p.Credentials {
		checkSecret(d, element(path+".credentials", i), s)
	}
	for key, s := range keysOf(path+".credential", p.Credential, path+".previous_credentials", p.PreviousCredentials) {
		checkSecret(d, key, s)
	}
	if file := p.CredentialFile; file != "" {
		if text, err := os.ReadFile(file); err != nil || len(bytes.TrimSpace(text)) == 0 {
			d.warn(path+".credential_file", "%s holds no key that can be read; calls will fail with 500 until it does", file)
		}
	}
	unneeded := p.Auth != nil && *p.Auth == Auth{} || slices.Contains(keyless, p.Format) || p.Identity != nil
	if unneeded || p.CredentialFile != "" || len(p.keys()) > 0 {
		return
	}
	for _, key := range []string{path + ".credential", element(path+".credentials", 0)} {
		if variable := d.emptied[key]; variable != "" {
			d.warn(key, "has no credential: the environment variable %s is empty or not set; calls will fail with 500 until it has one", variable)
			return
		}
	}
	d.warn(path, "has no credential; its calls will fail with 500 until it has one")
}

// maxCredential bounds a key, in bytes.
const maxCredential = 8192

func checkSecret(d *document, key string, s Secret) {
	if text := s.Reveal(); !isPrintable(text) || len(text) > maxCredential {
		d.fault(key, "must not have control characters and at most %d bytes", maxCredential)
	}
}

func (p *Provider) checkPaths(d *document, path string) {
	for door, upstream := range p.Paths {
		key := member(path+".paths", door)
		switch {
		case !slices.Contains(doors, door):
			d.fault(key, "no door has this name; the doors are %s", strings.Join(doors, ", "))
		case !strings.HasPrefix(upstream, "/"):
			d.fault(key, "want a path that begins with /")
		default:
			bare, _, _ := strings.Cut(upstream, "?")
			problem := pathProblem(strings.ReplaceAll(bare, "{model}", "m"))
			d.faultIf(problem != "", key, "%s", problem)
		}
	}
	for i, pattern := range p.Allow {
		problem := patternProblem(pattern)
		d.faultIf(problem != "", element(path+".allow", i), "%s", problem)
	}
}

// patternProblem says what is wrong with a method and path pattern, "" if
// nothing is.
func patternProblem(pattern string) string {
	method, path, ok := strings.Cut(pattern, " ")
	path = strings.TrimLeft(path, " ")
	upper := func(c rune) bool { return c < 'A' || c > 'Z' }
	if !ok || !strings.HasPrefix(path, "/") || method != "*" && (method == "" || strings.ContainsFunc(method, upper)) {
		return "want a method (or *), a space and a path that begins with /, such as GET /v1/files/**"
	}
	segments := strings.Split(path[1:], "/")
	names := make(map[string]bool)
	for i, segment := range segments {
		if segment == "**" {
			if i < len(segments)-1 {
				return "** must come last"
			}
			segments[i] = "rest"
			continue
		}
		inner, braced := strings.CutPrefix(segment, "{")
		if !braced {
			continue
		}
		name, literal, closed := strings.Cut(inner, "}")
		if !closed || name == "" || names[name] {
			return "want a name of its own between { and } at the beginning of a segment"
		}
		names[name] = true
		segments[i] = "m" + literal
	}
	return pathProblem("/" + strings.Join(segments, "/"))
}

// pathProblem says why no request could have the path, "" if one could.
func pathProblem(path string) string {
	lower := strings.ToLower(path)
	for _, bad := range []string{"{", "}", "*", "?", "#", "\\", "%2f", "%5c", "%2e", "%00", " "} {
		if strings.Contains(lower, bad) {
			return "a path must not have " + bad + " here"
		}
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i < len(segments)-1 {
			return "a path must not have . or .. or empty segments"
		}
	}
	if !isPrintable(path) {
		return "a path must not have control characters"
	}
	return ""
}

// checkHeader refuses headers that belong to the connection. Its messages do
// not hold the value, which may be a secret.
func checkHeader(d *document, key, name, value string) {
	ours := []string{"Host", "Content-Length", "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Proxy-Authenticate", "Proxy-Authorization"}
	d.faultIf(!isToken(name), key, "is no header name")
	d.faultIf(slices.Contains(ours, textproto.CanonicalMIMEHeaderKey(name)), key, "belongs to the connection and cannot be set")
	d.faultIf(!isPrintable(value), key, "must not have control characters")
}

// tokenCharacters are those that the name of a header can have (RFC 9110).
const tokenCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// isToken reports whether s can be the name of a header.
func isToken(s string) bool { return s != "" && strings.Trim(s, tokenCharacters) == "" }
