// Package client is the Go client of Modelgate's self-service API, /gw. Its
// types and methods (api.go) are made from the contract that the gateway
// serves as GET /openapi.json.
//
//	c := client.New("https://gateway.example.com", key)
//	for row, err := range c.Usage(ctx, client.UsageQuery{Since: "24h"}) {
//		…
//	}
//
// Models are called with the providers' own SDKs, or with Client.Call.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// UserAgent is what the client says it is; the gateway takes it for an
// official SDK.
const UserAgent = "Modelgate/Go 1"

// USD is an amount, exact to 1e-9 USD.
type USD = modelgate.Nano

// ParseUSD reads a decimal amount such as "12.50".
func ParseUSD(text string) (USD, error) { return modelgate.ParseUSD(text) }

// Client makes requests with one key. It is safe for concurrent use.
type Client struct {
	base string
	key  string
	http *http.Client
	// lasting makes the requests whose answers take as long as they take.
	lasting *http.Client
}

// Option changes a client that is made.
type Option func(*Client)

// WithHTTP has requests made with an HTTP client of one's own. Else a request
// may take a minute, but for Call and what is read as it comes: those end with
// their context.
func WithHTTP(h *http.Client) Option { return func(c *Client) { c.http, c.lasting = h, h } }

// New makes a client for the gateway at a base URL, without /gw.
func New(baseURL, key string, options ...Option) *Client {
	c := &Client{base: strings.TrimRight(baseURL, "/"), key: key, http: &http.Client{Timeout: time.Minute}, lasting: &http.Client{}}
	for _, o := range options {
		o(c)
	}
	return c
}

// Error is an answer that is none of success.
type Error struct {
	Status     int           // of HTTP
	Type       string        // what to match on, such as "forbidden"; "" where the gateway did not make the error
	Message    string        // for people
	RequestID  string        // X-Gateway-Request-Id
	RetryAfter time.Duration // how long to wait; 0 where the answer does not say
}

// Error says what happened.
func (e *Error) Error() string {
	return fmt.Sprintf("modelgate: %d %s: %s (request %s)", e.Status, e.Type, e.Message, e.RequestID)
}

// Is makes errors.Is(err, client.ErrNotFound) and its like true of an Error of
// that type.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Status == 0 && (t.Type == e.Type || t.Type == ErrInternal.Type && e.Type == "internal_error")
}

// The types of error, for errors.Is.
var (
	ErrBadRequest          = &Error{Type: "bad_request"}
	ErrUnauthorized        = &Error{Type: "unauthorized"}
	ErrForbidden           = &Error{Type: "forbidden"}
	ErrRegionPolicy        = &Error{Type: "region_policy"}
	ErrBudgetExceeded      = &Error{Type: "budget_exceeded"}
	ErrInsufficientBalance = &Error{Type: "insufficient_balance"}
	ErrNotFound            = &Error{Type: "not_found"}
	ErrConflict            = &Error{Type: "conflict"}
	ErrGone                = &Error{Type: "gone"}
	ErrTooLarge            = &Error{Type: "request_too_large"}
	ErrRateLimited         = &Error{Type: "rate_limited"}
	ErrBadGateway          = &Error{Type: "bad_gateway"}
	ErrUnavailable         = &Error{Type: "unavailable"}
	ErrInternal            = &Error{Type: "internal"} // under /gw internal_error
)

// Call posts a body to a model door, such as /v1/chat/completions. The answer
// is the provider's and is the caller's to close; it takes as long as the model
// does, so bound it with the context. Errors are *Error.
// Attribution, which may be nil, says what the call is for.
func (c *Client) Call(ctx context.Context, door string, body any, attribution map[string]string) (*http.Response, error) {
	header := http.Header{}
	if len(attribution) > 0 {
		text, err := json.Marshal(attribution)
		if err != nil {
			return nil, err
		}
		header.Set("X-Gateway-Attribution", string(text))
	}
	return c.send(ctx, c.lasting, request{method: http.MethodPost, path: door, body: body, header: header})
}

// request is one to be made.
type request struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   any // nil for none
}

// send makes a request by an HTTP client; an answer that is no success is an
// *Error.
func (c *Client) send(ctx context.Context, by *http.Client, q request) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("modelgate: encode the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("modelgate: %w", err)
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("User-Agent", UserAgent)
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := by.Do(r)
	if err != nil {
		return nil, fmt.Errorf("modelgate: %w", err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, failure(resp)
	}
	return resp, nil
}

// maxEnvelope bounds what is read of an error, in bytes.
const maxEnvelope = 64 << 10

func failure(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Gateway-Request-Id")}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxEnvelope))
	var envelope struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err == nil && json.Unmarshal(text, &envelope) == nil {
		e.Type, e.Message = envelope.Error.Type, envelope.Error.Message
	}
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	return e
}

// get makes a request and decodes the answer.
func get[T any](ctx context.Context, c *Client, q request) (out T, err error) {
	resp, err := c.send(ctx, c.http, q)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("modelgate: decode the answer: %w", err)
	}
	return out, nil
}

// do makes a request whose answer has no body.
func (c *Client) do(ctx context.Context, q request) error {
	resp, err := c.send(ctx, c.http, q)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// open makes a request whose answer is read as it comes.
func (c *Client) open(ctx context.Context, q request) (io.ReadCloser, error) {
	resp, err := c.send(ctx, c.lasting, q)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// errStuck ends a list whose cursor does not move.
var errStuck = errors.New("modelgate: the list's cursor does not move on")

// pages walks a list to its end. read decodes an answer into the entries of a
// page and the cursor of the next, "" on the last.
func pages[T any](ctx context.Context, c *Client, q request, read func(*http.Response) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		q := q
		q.query = maps.Clone(q.query) // a list that is walked again begins anew
		for {
			resp, err := c.send(ctx, c.http, q)
			if err != nil {
				yield(zero, err)
				return
			}
			entries, next, err := read(resp)
			resp.Body.Close()
			if err == nil && next != "" && next == q.query.Get("cursor") {
				err = errStuck
			}
			if err != nil {
				yield(zero, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			q.query.Set("cursor", next)
		}
	}
}

// byHeader reads a page that is a flat array.
func byHeader[T any](resp *http.Response) (entries []T, next string, err error) {
	if err := json.NewDecoder(resp.Body).Decode(&entries); err != nil {
		return nil, "", fmt.Errorf("modelgate: decode a page: %w", err)
	}
	return entries, resp.Header.Get("X-Next-Cursor"), nil
}

// byBody reads a page that holds its cursor.
func byBody[T any](resp *http.Response) ([]T, string, error) {
	var page struct {
		Data []T    `json:"data"`
		Next string `json:"next_cursor"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return nil, "", fmt.Errorf("modelgate: decode a page: %w", err)
	}
	return page.Data, page.Next, nil
}

// values is a query being built; what is zero is left out.
type values url.Values

func (v values) text(name, value string) {
	if value != "" {
		url.Values(v).Set(name, value)
	}
}

func (v values) number(name string, value int64) {
	if value != 0 {
		url.Values(v).Set(name, strconv.FormatInt(value, 10))
	}
}
