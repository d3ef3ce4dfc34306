package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/http1"
)

// Download says where a job's result lies with providers that have no path of
// their own for it. The zero value says nowhere.
type Download struct {
	// File holds the address of what was made, in the reply to Poll, or to
	// Result where there is one: gjson paths, of which the first that is a
	// text counts.
	File []string
	// Lookup, a method and a path, is asked for the address where File holds
	// an id in place of it, which {file} stands for; At is where it answers.
	Lookup, At string
	// Own are the patterns of addresses at the provider itself that only its
	// credential opens; nothing else is fetched with it, whatever a reply
	// names.
	Own []string
}

// ErrNoFile says that a provider names no result of a job.
var ErrNoFile = errors.New("the reply names no result")

// Location is where the result of a job lies: an address that whoever has it can
// read, or a call of the provider's own.
type Location struct {
	URL string
	Own *Call
}

// Locate finds the result of a job that has succeeded. Errors: ErrNoFile;
// modelgate.ErrCredentialGone; any other means that the provider could not be
// asked.
func (p *Provider) Locate(ctx context.Context, j *modelgate.Job) (Location, error) {
	way := p.Way(j.Way)
	if way == nil {
		return Location{}, fmt.Errorf("provider %s does not follow jobs as %q", p.name, j.Way)
	}
	role := AsyncPoll
	if way.Has(AsyncResult) {
		role = AsyncResult
	}
	call, err := way.Call(role, j)
	if err != nil {
		return Location{}, err
	}
	r, err := p.ask(ctx, call)
	if err != nil {
		return Location{}, err
	}
	name, err := r.text(way.File...)
	if err != nil || way.Lookup == "" {
		return p.locate(way, name, err)
	}
	asked := way.lookup(name, j)
	if JudgeTarget(asked.Path) != nil {
		return Location{}, ErrNoFile
	}
	if r, err = p.ask(ctx, asked); err != nil {
		return Location{}, err
	}
	name, err = r.text(way.At)
	return p.locate(way, name, err)
}

// lookup is the call for the address of a file.
func (w *JobProtocol) lookup(file string, j *modelgate.Job) Call {
	method, target, _ := strings.Cut(w.Lookup, " ")
	path, query, _ := strings.Cut(target, "?")
	return Call{
		Method: method, Path: strings.ReplaceAll(path, "{file}", url.PathEscape(file)),
		Query: strings.ReplaceAll(query, "{file}", url.QueryEscape(file)), Credential: j.Credential, MadeAt: j.CreatedAt,
	}
}

// text is the first of the members that is a text.
func (r *reply) text(paths ...string) (string, error) {
	if r.status >= 500 || r.status == 429 {
		return "", fmt.Errorf("answer %d", r.status)
	}
	if r.status < 200 || r.status > 299 || !gjson.ValidBytes(r.body) {
		return "", ErrNoFile
	}
	for _, path := range paths {
		if v := gjson.GetBytes(r.body, path); v.Type == gjson.String && v.Str != "" || v.Type == gjson.Number {
			return v.String(), nil
		}
	}
	return "", ErrNoFile
}

// locate judges an address that a provider has named.
func (p *Provider) locate(way *JobProtocol, address string, err error) (Location, error) {
	if err != nil {
		return Location{}, err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || !http1.IsFieldValue(address) {
		return Location{}, ErrNoFile
	}
	if p.secrets.shows(address) {
		return Location{}, ErrNoFile
	}
	// Some addresses have spaces in their query, which browsers escape.
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	if judgeWhole(u.RequestURI()) != nil {
		return Location{}, ErrNoFile
	}
	if u.Scheme != p.base.Scheme || u.Host != p.base.Host {
		return Location{URL: u.String()}, nil
	}
	path, below := strings.CutPrefix(u.EscapedPath(), p.base.Path)
	for _, text := range way.Own {
		pattern, err := ParsePathPattern(text)
		if err != nil {
			return Location{}, err
		}
		method, _, _ := strings.Cut(text, " ")
		if _, ok := pattern.Match(method, path); below && ok && JudgeTarget(path) == nil {
			return Location{Own: &Call{Method: method, Path: path, Query: u.RawQuery}}, nil
		}
	}
	return Location{URL: u.String()}, nil
}

// Redirected is where a reply to the download of a result leads that only the
// credential opens; nil where it leads elsewhere or nowhere.
func (p *Provider) Redirected(way *JobProtocol, resp *http.Response) *Call {
	to, err := resp.Location()
	if resp.StatusCode < 300 || resp.StatusCode > 399 || err != nil {
		return nil
	}
	if to.Host == "" {
		to.Scheme, to.Host = p.base.Scheme, p.base.Host
	}
	at, err := p.locate(way, to.String(), nil)
	if err != nil {
		return nil
	}
	return at.Own
}
