package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Contract holds exchanges against a description of the API: a request that
// is answered with success must be one that the description allows, and every
// answer must be one that it announces, members that it does not name
// included. Safe for concurrent use.
type Contract struct {
	doc    *openapi3.T
	routes []contractRoute
	mu     sync.Mutex
	served map[string]bool // operation ids that have been answered with success
}

// contractRoute is a path of the description in its segments.
type contractRoute struct {
	segments []string
	rest     bool // the last name stands for any number of segments
	path     string
	item     *openapi3.PathItem
}

// NewContract reads a description.
func NewContract(t testing.TB, text []byte) *Contract {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatalf("read the contract: %v", err)
	}
	c := &Contract{doc: doc, served: map[string]bool{}}
	for path, item := range doc.Paths.Map() {
		_, rest := item.Extensions["x-rest"]
		c.routes = append(c.routes, contractRoute{strings.Split(path, "/"), rest, path, item})
	}
	// A fixed segment wins over a name, as it does in the gateway.
	slices.SortFunc(c.routes, func(a, b contractRoute) int { return strings.Compare(a.rank(), b.rank()) })
	c.close()
	return c
}

// close makes the schemas of answers name all their members. The gateway
// ignores some members that requests have besides, and refuses others.
func (c *Contract) close() {
	open := map[*openapi3.Schema]bool{}
	for _, r := range c.routes {
		for _, op := range r.item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Value.Content {
				open[media.Schema.Value] = true
			}
		}
	}
	for _, s := range c.doc.Components.Schemas {
		if len(s.Value.Properties) > 0 && s.Value.AdditionalProperties.Has == nil && !open[s.Value] {
			no := false
			s.Value.AdditionalProperties.Has = &no
		}
	}
}

// rank makes names come after everything else, and a name that stands for any
// number of segments after the paths that go on behind it.
func (r *contractRoute) rank() string {
	text := strings.ReplaceAll(r.path, "{", "\xff")
	if r.rest {
		text += "\xff"
	}
	return text
}

// Missing are the operations that have not been answered with success.
func (c *Contract) Missing() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.routes {
		for method, op := range r.item.Operations() {
			if !c.served[op.OperationID] {
				ids = append(ids, fmt.Sprintf("%s (%s %s)", op.OperationID, method, r.path))
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Check judges an exchange; r is the request as it was sent, but for its body.
func (c *Contract) Check(r *http.Request, body []byte, resp *http.Response, answer []byte) error {
	route, values := c.find(r.URL)
	if route == nil {
		return c.refused(r, resp, answer, http.StatusNotFound)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	op := route.item.GetOperation(method)
	if op == nil {
		return c.refused(r, resp, answer, http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest)
	}
	asked := r.Clone(r.Context())
	asked.Body = io.NopCloser(bytes.NewReader(body))
	in := &openapi3filter.RequestValidationInput{
		Request: asked, PathParams: values, QueryParams: r.URL.Query(),
		Route:   &routers.Route{Spec: c.doc, Path: route.path, PathItem: route.item, Method: r.Method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if resp.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && !unread(err) {
			return fmt.Errorf("answered with %d, but the contract does not allow the request: %w", resp.StatusCode, err)
		}
		c.mu.Lock()
		c.served[op.OperationID] = true
		c.mu.Unlock()
	}
	in.Options.ExcludeResponseBody = r.Method == http.MethodHead || anything(op, resp)
	err := openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Options: in.Options,
		Body: io.NopCloser(bytes.NewReader(answer)),
	})
	if err != nil {
		return fmt.Errorf("the contract does not announce the answer %d: %w", resp.StatusCode, err)
	}
	return nil
}

// unread reports whether a request could not be judged because its body is
// of a type that the validator does not read.
func unread(err error) bool {
	var unsupported *openapi3filter.ParseError
	return errors.As(err, &unsupported) && unsupported.Kind == openapi3filter.KindUnsupportedFormat
}

// anything reports whether the contract leaves it at the type of an answer's
// body: whatever a provider says, and pages for people.
func anything(op *openapi3.Operation, resp *http.Response) bool {
	announced := op.Responses.Status(resp.StatusCode)
	if announced == nil {
		announced = op.Responses.Default()
	}
	if announced == nil {
		return false
	}
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return announced.Value.Content["*/*"] != nil || media != "application/json" && announced.Value.Content[media] != nil
}

// refused checks the answer to what the contract does not describe.
func (c *Contract) refused(r *http.Request, resp *http.Response, answer []byte, want ...int) error {
	// Whoever may not be told gets another answer first.
	want = append(want, http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusRequestEntityTooLarge)
	if !slices.Contains(want, resp.StatusCode) {
		return fmt.Errorf("%s %s is not described and answered with %d %.200s", r.Method, r.URL.Path, resp.StatusCode, answer)
	}
	return nil
}

// find is the route of a path as it was sent, and what its names stand for.
func (c *Contract) find(u *url.URL) (*contractRoute, map[string]string) {
	path := u.EscapedPath()
	if strings.HasPrefix(path, "/v1/models/") {
		path = u.Path // a slug may come as one escaped segment
	}
	got := strings.Split(path, "/")
	for i := range c.routes {
		if values := c.routes[i].values(got); values != nil && !c.reserved(&c.routes[i], got) {
			return &c.routes[i], values
		}
	}
	return nil, nil
}

// reserved reports whether a path only seems to be one of a provider's.
func (c *Contract) reserved(route *contractRoute, got []string) bool {
	return route.rest && strings.HasPrefix(route.segments[1], "{") && slices.ContainsFunc(c.routes, func(r contractRoute) bool { return r.segments[1] == got[1] })
}

func (r *contractRoute) values(got []string) map[string]string {
	if len(got) != len(r.segments) && (!r.rest || len(got) < len(r.segments)) {
		return nil
	}
	values := map[string]string{}
	for i, want := range r.segments {
		name, named := strings.CutPrefix(want, "{")
		switch {
		case named && r.rest && i == len(r.segments)-1:
			values[strings.TrimSuffix(name, "}")] = strings.Join(got[i:], "/")
		case named && got[i] == "", !named && got[i] != want:
			return nil
		case named:
			values[strings.TrimSuffix(name, "}")] = got[i]
		}
	}
	return values
}
