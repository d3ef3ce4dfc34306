package httpx

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"modelgate"
)

// Surface says whose spelling of errors an answer follows.
type Surface string

// The surfaces: an unexpected fault is internal_error on the management API
// and internal on doors and proxy.
const (
	Management Surface = "management"
	Inference  Surface = "inference"
)

// SurfaceOf is the surface that a request's path belongs to.
func SurfaceOf(r *http.Request) Surface {
	if r.URL.Path == "/gw" || strings.HasPrefix(r.URL.Path, "/gw/") {
		return Management
	}
	return Inference
}

// Type is the wire type of an error's kind on the surface.
func (s Surface) Type(k modelgate.Kind) string {
	if s == Management && k.Type() == modelgate.Internal.Type() {
		return "internal_error"
	}
	return k.Type()
}

// WriteError answers with the envelope of the API (docs/reference/api.md, Error).
// An error that
// holds no *modelgate.Error is answered as an internal fault and its text
// kept back; LogFault is for that. It must come before the response begins.
func WriteError(w http.ResponseWriter, r *http.Request, err error, s Surface) {
	shown, ok := errors.AsType[*modelgate.Error](err)
	if !ok {
		shown = modelgate.ErrInternal
	}
	body := []byte(`{"error":{"type":`)
	body = appendString(body, s.Type(shown.Kind))
	body = append(body, `,"message":`...)
	body = appendString(body, shown.Message)
	if detailed, ok := errors.AsType[*modelgate.DetailError](err); ok {
		body = append(body, `,"detail":`...)
		body = appendString(body, detailed.Detail)
	}
	if limited, ok := errors.AsType[*modelgate.LimitError](err); ok {
		if state, err := json.Marshal(&limited.State); err == nil {
			body = append(append(body, `,"limit":`...), state...)
		}
	}
	body = append(body, "}}\n"...)

	h := w.Header()
	h.Del("Content-Encoding")
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	// The names under which the providers' own SDKs look for an id.
	if id := requestIDText(w); id != "" {
		h.Set("X-Request-Id", id)
		h.Set("Request-Id", id)
	}
	status := shown.Kind.Status()
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		h.Set("X-Should-Retry", "false")
	case http.StatusTooManyRequests:
		retryAfter(h, err)
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // it fails if the client has left
	}
}

// The most that a client is told to wait, and the most that SDKs do wait: longer
// than that they sleep for hours or come back too early.
const (
	longestRetry = 86400 // seconds
	obeyedRetry  = 60
)

// retryAfter says when a refused call would pass: in a second unless the error
// knows better.
func retryAfter(h http.Header, err error) {
	after := int64(1)
	if retry, ok := errors.AsType[*modelgate.RetryError](err); ok {
		after = min(max(int64((retry.After+time.Second-1)/time.Second), 1), longestRetry)
	}
	h.Set("Retry-After", strconv.FormatInt(after, 10))
	if after > obeyedRetry {
		h.Set("X-Should-Retry", "false")
	}
}

// LogFault logs an error that the client is not shown, with the request id. It
// does not log an error that the client is shown, nor that a client has left.
func LogFault(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	if modelgate.KindOf(err) != modelgate.Internal || errors.Is(err, context.Canceled) {
		return
	}
	log.Error("request failed", "request_id", requestIDText(w), "method", r.Method, "error", err)
}

// appendString appends s as a JSON string. Invalid UTF-8 is replaced.
func appendString(b []byte, s string) []byte {
	quoted, _ := jsontext.AppendQuote(b, strings.ToValidUTF8(s, "\uFFFD")) // fails on invalid UTF-8 only
	return quoted
}
