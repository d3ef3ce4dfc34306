package httpx_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

func TestWriteError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		surface httpx.Surface
		status  int
		body    string
		header  string // name: value that must be there
		never   string // header that must not
	}{
		{modelgate.ErrUnauthorized, httpx.Management, 401, `{"error":{"type":"unauthorized","message":"invalid gateway key"}}`, "X-Should-Retry: false", "Retry-After"},
		{modelgate.ErrBudget, httpx.Inference, 402, `{"error":{"type":"budget_exceeded","message":"budget limit reached"}}`, "X-Should-Retry: false", ""},
		{&modelgate.LimitError{Err: modelgate.ErrBudget, State: modelgate.LimitState{Kind: modelgate.LimitBudget, Scope: modelgate.LevelKey, ID: "k", Unit: modelgate.UnitUSD, Limit: 5}},
			httpx.Inference, 402, `{"error":{"type":"budget_exceeded","message":"budget limit reached",` +
				`"limit":{"kind":"budget","scope":"key","id":"k","unit":"usd","limit":0.000000005,"used":0,"remaining":0,"needed":0,"resets_at":null}}}`, "X-Should-Retry: false", "Retry-After"},
		{modelgate.ErrMissingScope(modelgate.StatsRead), httpx.Management, 403, `{"error":{"type":"forbidden","message":"missing required scope: stats:read"}}`, "X-Should-Retry: false", ""},
		{fmt.Errorf("find: %w", modelgate.Errorf(modelgate.NotFound, "x")), httpx.Management, 404, `{"error":{"type":"not_found","message":"x"}}`, "X-Should-Retry: false", ""},
		{modelgate.ErrCredentialGone, httpx.Inference, 410, `{"error":{"type":"gone","message":"credential rotated after task creation; re-issue the task"}}`, "X-Should-Retry: false", ""},
		{modelgate.ErrRateLimited, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "Retry-After: 1", "X-Should-Retry"},
		{&modelgate.RetryError{Err: modelgate.ErrRateLimited, After: 1900 * time.Millisecond}, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "Retry-After: 2", "X-Should-Retry"},
		{&modelgate.RetryError{Err: modelgate.ErrRateLimited, After: time.Minute}, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "Retry-After: 60", "X-Should-Retry"},
		{&modelgate.RetryError{Err: modelgate.ErrRateLimited, After: time.Minute + 1}, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "Retry-After: 61", ""},
		{&modelgate.RetryError{Err: modelgate.ErrRateLimited, After: time.Hour}, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "X-Should-Retry: false", ""},
		{&modelgate.RetryError{Err: modelgate.ErrRateLimited, After: 1e18}, httpx.Inference, 429, `{"error":{"type":"rate_limited","message":"rate limit exceeded"}}`, "Retry-After: 86400", ""},
		{errors.New("secret detail"), httpx.Management, 500, `{"error":{"type":"internal_error","message":"internal error"}}`, "", "X-Should-Retry"},
		{errors.New("secret detail"), httpx.Inference, 500, `{"error":{"type":"internal","message":"internal error"}}`, "", ""},
		{modelgate.ErrCredential, httpx.Inference, 500, `{"error":{"type":"internal","message":"credential resolution failed"}}`, "", ""},
		{modelgate.Errorf(modelgate.Unavailable, "a \"b\"\n\xff"), httpx.Management, 503, `{"error":{"type":"unavailable","message":"a \"b\"\n` + "\uFFFD" + `"}}`, "", "Retry-After"},
	} {
		w := httptest.NewRecorder()
		w.Header().Set(httpx.RequestIDHeader, "id-1")
		w.Header().Set("Content-Encoding", "gzip")
		httpx.WriteError(w, httptest.NewRequest("GET", "/", nil), c.err, c.surface)
		h := w.Result().Header
		if w.Code != c.status || w.Body.String() != c.body+"\n" {
			t.Errorf("%v on %s: %d %s, want %d %s", c.err, c.surface, w.Code, w.Body, c.status, c.body)
		}
		if name, value, _ := strings.Cut(c.header, ": "); c.header != "" && h.Get(name) != value {
			t.Errorf("%v: %s = %q, want %q", c.err, name, h.Get(name), value)
		}
		if c.never != "" && h.Get(c.never) != "" {
			t.Errorf("%v: %s = %q, want none", c.err, c.never, h.Get(c.never))
		}
		if h.Get("X-Request-Id") != "id-1" || h.Get("Request-Id") != "id-1" || h.Get("Content-Type") != "application/json" || h.Get("Content-Encoding") != "" {
			t.Errorf("%v: headers %v", c.err, h)
		}
	}
}

func TestLogFaultLogsOnlyWhatIsKeptBack(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	w.Header().Set(httpx.RequestIDHeader, "id-1")
	httpx.LogFault(logger, w, r, modelgate.ErrBudget)
	if log.Len() > 0 {
		t.Errorf("a 402 was logged: %s", &log)
	}
	httpx.LogFault(logger, w, r, errors.New("disk full"))
	if text := log.String(); !strings.Contains(text, "disk full") || !strings.Contains(text, "request_id=id-1") {
		t.Errorf("log: %s", text)
	}
}

func TestSurfaceOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]httpx.Surface{"/gw": httpx.Management, "/gw/": httpx.Management, "/gw/me": httpx.Management,
		"/gwx": httpx.Inference, "/v1/models": httpx.Inference, "/": httpx.Inference, "/openai/gw/": httpx.Inference} {
		if got := httpx.SurfaceOf(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("SurfaceOf(%s) = %s, want %s", path, got, want)
		}
	}
}
