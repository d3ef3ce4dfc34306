package provider

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/httpfield"
	"modelgate/internal/provider/target"
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

// LookupCall is the request for the address of a file. Errors: ErrNoFile.
func (j *JobProtocol) LookupCall(file string, job *modelgate.Job) (Call, error) {
	method, uri, _ := strings.Cut(j.Lookup, " ")
	path, query, _ := strings.Cut(uri, "?")
	call := Call{
		Method: method, Path: strings.ReplaceAll(path, "{file}", url.PathEscape(file)),
		Query: strings.ReplaceAll(query, "{file}", url.QueryEscape(file)), Credential: job.Credential, MadeAt: job.CreatedAt,
	}
	if target.Judge(call.Path) != nil {
		return Call{}, ErrNoFile
	}
	return call, nil
}

// ReadAddress is the first of the members of a reply that is a text or a number:
// the address of a result, or the id of its file. Errors: ErrNoFile; any other
// is a reply that says nothing of the job.
func ReadAddress(status int, body []byte, members ...string) (string, error) {
	if status >= 500 || status == http.StatusTooManyRequests {
		return "", fmt.Errorf("answer %d", status)
	}
	if status < 200 || status > 299 || !gjson.ValidBytes(body) {
		return "", ErrNoFile
	}
	for _, path := range members {
		if v := gjson.GetBytes(body, path); v.Type == gjson.String && v.Str != "" || v.Type == gjson.Number {
			return v.String(), nil
		}
	}
	return "", ErrNoFile
}

// Locate judges the address of a result that the provider has named. Errors:
// ErrNoFile.
func (p *Provider) Locate(jobs *JobProtocol, address string) (Location, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || !httpfield.IsValue(address) {
		return Location{}, ErrNoFile
	}
	if p.secrets.Shows(address) {
		return Location{}, ErrNoFile
	}
	// Some addresses have spaces in their query, which browsers escape.
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20")
	if target.JudgeRaw(u.RequestURI()) != nil {
		return Location{}, ErrNoFile
	}
	if u.Scheme != p.base.Scheme || u.Host != p.base.Host {
		return Location{URL: u.String()}, nil
	}
	path, below := strings.CutPrefix(u.EscapedPath(), p.base.Path)
	for _, text := range jobs.Own {
		pattern, err := target.ParsePattern(text)
		if err != nil {
			return Location{}, err
		}
		method, _, _ := strings.Cut(text, " ")
		if _, ok := pattern.Match(method, path); below && ok && target.Judge(path) == nil {
			return Location{Own: &Call{Method: method, Path: path, Query: u.RawQuery}}, nil
		}
	}
	return Location{URL: u.String()}, nil
}

// Redirected is where a reply to the download of a result leads that only the
// credential opens; nil where it leads elsewhere or nowhere.
func (p *Provider) Redirected(jobs *JobProtocol, resp *http.Response) *Call {
	to, err := resp.Location()
	if resp.StatusCode < 300 || resp.StatusCode > 399 || err != nil {
		return nil
	}
	if to.Host == "" {
		to.Scheme, to.Host = p.base.Scheme, p.base.Host
	}
	at, err := p.Locate(jobs, to.String())
	if err != nil {
		return nil
	}
	return at.Own
}
