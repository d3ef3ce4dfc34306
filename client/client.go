// Package client is the Go client of Modelgate's self-service API, /gw. Its
// types and methods (api.go) are generated from the contract that the gateway
// serves as GET /openapi.json.
//
//	c := client.New("https://gateway.example.com", key)
//	me, err := c.MeWithResponse(ctx) // me.JSON200.Scopes
//	for row, err := range c.UsageRows(ctx, client.UsageParams{Since: new("24h")}) {
//		…
//	}
//
// Every response that is not a success is returned as an *Error, so the JSON200
// of a response without an error is never nil. Amounts are json.Number: decimal
// and exact.
//
// Models are called with the providers' own SDKs, or with Client.Call.
package client

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config oapi-codegen.yaml ../internal/openapi/openapi.yaml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// UserAgent is what the client says it is; the gateway takes it for an
// official SDK.
const UserAgent = "Modelgate/Go 1"

// Gateway makes requests to a gateway with one key. It is safe for concurrent use.
type Gateway struct {
	ClientWithResponses
	base string // ends with a slash
	do   doer
}

// New makes a client for the gateway at a base URL, without /gw. Requests
// time out after a minute, except calls of models and exports of evidence,
// which last until their context ends.
func New(baseURL, key string) *Gateway { return NewWithHTTP(baseURL, key, nil) }

// NewWithHTTP makes a client whose requests are made by h and have only its
// time limit. nil is the same as New.
func NewWithHTTP(baseURL, key string, h HttpRequestDoer) *Gateway {
	d := doer{key: key, short: h, long: h}
	if h == nil {
		d.short, d.long = &http.Client{Timeout: time.Minute}, &http.Client{}
	}
	base := strings.TrimRight(baseURL, "/") + "/"
	return &Gateway{ClientWithResponses{&Client{Server: base, Client: d}}, base, d}
}

// doer authenticates requests and returns each response that is not a success as
// an *Error.
type doer struct {
	key         string
	short, long HttpRequestDoer // long is for responses that may take any time
}

// Do implements HttpRequestDoer.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+d.key)
	r.Header.Set("User-Agent", UserAgent)
	by := d.short
	if !strings.Contains(r.URL.Path, "/gw/") || strings.HasSuffix(r.URL.Path, "/gw/evidence") {
		by = d.long
	}
	resp, err := by.Do(r)
	if err != nil {
		return nil, fmt.Errorf("modelgate: %w", err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, newError(resp)
	}
	return resp, nil
}

// Call posts a body to a model door, such as /v1/chat/completions. The response
// is the provider's and the caller closes it. It takes as long as the model
// does, so bound it with the context. Errors of the gateway and of the provider
// are *Error. Attribution, which may be nil, says what the call is for.
func (g *Gateway) Call(ctx context.Context, door string, body any, attribution map[string]string) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("modelgate: encode the request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+strings.TrimPrefix(door, "/"), bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("modelgate: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	if len(attribution) > 0 {
		header, err := json.Marshal(attribution)
		if err != nil {
			return nil, fmt.Errorf("modelgate: encode the attribution: %w", err)
		}
		r.Header.Set("X-Gateway-Attribution", string(header))
	}
	return g.do.Do(r)
}

// UsageRows walks all pages of GET /gw/usage from the cursor in the parameters.
func (g *Gateway) UsageRows(ctx context.Context, p UsageParams) iter.Seq2[UsageRow, error] {
	return pages(p.Cursor, func(cursor *string) ([]UsageRow, string, error) {
		p.Cursor = cursor
		r, err := g.UsageWithResponse(ctx, &p)
		if err != nil {
			return nil, "", err
		}
		return *r.JSON200, r.HTTPResponse.Header.Get("X-Next-Cursor"), nil
	})
}

// AllKeys walks all pages of GET /gw/keys from the cursor in the parameters.
func (g *Gateway) AllKeys(ctx context.Context, p KeysParams) iter.Seq2[Key, error] {
	return pages(p.Cursor, func(cursor *string) ([]Key, string, error) {
		p.Cursor = cursor
		r, err := g.KeysWithResponse(ctx, &p)
		if err != nil {
			return nil, "", err
		}
		return *r.JSON200, r.HTTPResponse.Header.Get("X-Next-Cursor"), nil
	})
}

// AllJobs walks all pages of GET /gw/async from the cursor in the parameters.
func (g *Gateway) AllJobs(ctx context.Context, p JobsParams) iter.Seq2[Job, error] {
	return pages(p.Cursor, func(cursor *string) ([]Job, string, error) {
		p.Cursor = cursor
		r, err := g.JobsWithResponse(ctx, &p)
		if err != nil {
			return nil, "", err
		}
		return r.JSON200.Data, r.JSON200.NextCursor, nil
	})
}

// pages walks a list from a cursor to its end. fetch returns a page and the
// cursor of the next, "" on the last.
func pages[T any](first *string, fetch func(cursor *string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := first; ; {
			rows, next, err := fetch(cursor)
			if err == nil && cursor != nil && next == *cursor {
				err = errors.New("modelgate: the cursor of a list does not advance")
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			cursor = &next
		}
	}
}

// Error is a response that is not a success.
type Error struct {
	Status     int           // of HTTP
	Type       string        // to match on, such as "forbidden"; "" where the gateway did not make the error
	Message    string        // for people
	RequestID  string        // X-Gateway-Request-Id
	RetryAfter time.Duration // how long to wait; 0 where the response does not say
}

// Error is the status, type, message and request id.
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

// maxEnvelope bounds how much of an error's body is read, in bytes.
const maxEnvelope = 64 << 10

func newError(resp *http.Response) error {
	e := &Error{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Gateway-Request-Id")}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxEnvelope))
	var envelope struct {
		Error struct{ Type, Message string }
	}
	if err == nil && json.Unmarshal(text, &envelope) == nil {
		e.Type, e.Message = envelope.Error.Type, envelope.Error.Message
	}
	if e.Message == "" {
		e.Message = http.StatusText(resp.StatusCode)
	}
	return e
}
