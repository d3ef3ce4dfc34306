package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow answers at once, and is at the end of its body after two minutes.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	body, end := io.Pipe()
	go func() {
		select {
		case <-time.After(2 * time.Minute):
			_, _ = io.WriteString(end, `{"scopes":[]}`) // the reader may have gone
			end.Close()
		case <-r.Context().Done():
			end.CloseWithError(r.Context().Err())
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: body, Request: r}, nil
}

// TestWhatLasts reads answers that take two minutes: a model's, and an export,
// come to their end; any other request is given up after a minute.
func TestWhatLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New("http://gateway", "key")
		c.do.short.(*http.Client).Transport, c.do.long.(*http.Client).Transport = slow{}, slow{}
		resp, err := c.Call(t.Context(), "/v1/chat/completions", map[string]any{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || len(text) == 0 {
			t.Errorf("a call: %q, %v", text, err)
		}
		file, err := c.Evidence(t.Context(), &EvidenceParams{})
		if err != nil {
			t.Fatal(err)
		}
		defer file.Body.Close()
		if text, err := io.ReadAll(file.Body); err != nil || len(text) == 0 {
			t.Errorf("an export: %q, %v", text, err)
		}
		begin := time.Now()
		if me, err := c.MeWithResponse(t.Context()); err == nil || time.Since(begin) != time.Minute {
			t.Errorf("Me = %+v, %v after %v", me, err, time.Since(begin))
		}
	})
}

// twoPages answers with a list of two keys, one a page.
type twoPages struct{ asked *int }

func (p twoPages) RoundTrip(r *http.Request) (*http.Response, error) {
	*p.asked++
	header, id := http.Header{"Content-Type": {"application/json"}, "X-Next-Cursor": {"second"}}, "1"
	if r.URL.Query().Get("cursor") == "second" {
		header, id = http.Header{"Content-Type": {"application/json"}}, "2"
	}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(`[{"id":"` + id + `"}]`)), Request: r}, nil
}

// TestListsCanBeWalkedAgain begins anew each time a list is ranged over.
func TestListsCanBeWalkedAgain(t *testing.T) {
	t.Parallel()
	asked := 0
	c := NewWithHTTP("http://gateway", "key", &http.Client{Transport: twoPages{&asked}})
	list := c.AllKeys(t.Context(), KeysParams{})
	for range 2 {
		ids := ""
		for k, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			ids += k.ID
		}
		if ids != "12" {
			t.Errorf("the list has %q, want 12", ids)
		}
	}
	if asked != 4 {
		t.Errorf("%d pages were asked for, want 4", asked)
	}
}

// TestEveryTypeHasAnError holds the errors for errors.Is against the types that
// the gateway answers with.
func TestEveryTypeHasAnError(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]error{
		"bad_request": ErrBadRequest, "unauthorized": ErrUnauthorized, "forbidden": ErrForbidden, "region_policy": ErrRegionPolicy,
		"budget_exceeded": ErrBudgetExceeded, "insufficient_balance": ErrInsufficientBalance, "not_found": ErrNotFound, "conflict": ErrConflict,
		"gone": ErrGone, "request_too_large": ErrTooLarge, "rate_limited": ErrRateLimited, "bad_gateway": ErrBadGateway,
		"unavailable": ErrUnavailable, "internal": ErrInternal, "internal_error": ErrInternal,
	} {
		err := newError(&http.Response{StatusCode: 499, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"error":{"type":"` + typ + `","message":"m"}}`))})
		if !errors.Is(err, want) || errors.Is(err, &Error{Type: "other"}) {
			t.Errorf("%s is %v", typ, err)
		}
	}
}
