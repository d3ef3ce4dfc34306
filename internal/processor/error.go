package processor

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/stripe/stripe-go/v85"

	"modelgate"
)

// Outcome says what is known of a call that did not succeed.
type Outcome string

// The outcomes.
const (
	// Done: the call succeeded.
	Done Outcome = "done"
	// Again: the processor has turned the call away for now, and done nothing.
	Again Outcome = "again"
	// Away: the call has not reached the processor.
	Away Outcome = "away"
	// Unsure: nobody knows whether the processor has done it.
	Unsure Outcome = "unsure"
	// Refused: the processor will not do it, and has not.
	Refused Outcome = "refused"
)

// Error is a call that failed. Its text may be shown to the organization
// whose key it was made with.
type Error struct {
	Outcome Outcome
	Status  int // of the answer; 0 for none
	text    string
}

// Error is the text.
func (e *Error) Error() string { return e.text }

// Shown is the error as a client gets it: 503 where the processor did not
// answer, 502 for any answer.
func (e *Error) Shown() *modelgate.Error {
	if e.Status == 0 && e.Outcome != Refused {
		return modelgate.Errorf(modelgate.Unavailable, "the payment processor does not answer; retry shortly")
	}
	return modelgate.Errorf(modelgate.BadGateway, "%s", e.text)
}

// OutcomeOf is what is known of a call that ended with err.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Done
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	return Unsure
}

// observer is the transport of one call: it sees whether anything was sent and
// with what status it was answered, which the SDK's errors do not tell in
// every case.
type observer struct {
	next   http.RoundTripper
	wrote  atomic.Bool
	status int
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { o.wrote.Store(true) },
	}))
	// The transport would send a request again whose connection ends, because
	// it has an idempotency key: a refusal of the second would hide that the
	// first may have been done.
	r.GetBody = nil
	// Nobody outside needs to know what machine this is.
	r.Header.Del("X-Stripe-Client-User-Agent")
	resp, err := o.next.RoundTrip(r)
	if err == nil {
		o.status = resp.StatusCode
	}
	return resp, err
}

// judge makes of a finished call an *Error or nil. What an answer says counts,
// even where the rest of it was lost.
func (o *observer) judge(err error, key string) error {
	said, _ := errors.AsType[*stripe.Error](err)
	switch {
	case o.status == 0 && err != nil && !o.wrote.Load():
		return &Error{Outcome: Away, text: "the processor cannot be reached"}
	case o.status == 0 && err != nil:
		return &Error{Outcome: Unsure, text: "the processor did not answer"}
	case o.status >= 200 && o.status <= 299:
		if err != nil {
			return &Error{Outcome: Unsure, Status: o.status, text: "the processor's answer is not understood"}
		}
		return nil
	case said != nil && duplicate(said):
		return nil
	}
	e := &Error{Outcome: Refused, Status: o.status, text: describe(o.status, said, key)}
	switch {
	case o.status == http.StatusTooManyRequests, o.status == http.StatusConflict:
		e.Outcome = Again
	case o.status >= 500:
		e.Outcome = Unsure
	}
	return e
}

// duplicate reports whether an event was refused because the processor has it.
func duplicate(e *stripe.Error) bool {
	return e.HTTPStatusCode == http.StatusBadRequest &&
		(e.Code == "duplicate_meter_event" || strings.HasPrefix(e.Msg, "An event already exists with identifier"))
}

// word is what names of codes and parameters are made of; they have no digits
// as keys do.
var word = regexp.MustCompile(`^[a-z_\[\]]{1,64}$`)

// describe tells an answer in the gateway's words. Of the processor's only
// codes are taken, for a message may repeat what a key ends with.
func describe(status int, said *stripe.Error, key string) string {
	text := fmt.Sprintf("the processor answered %d", status)
	if said == nil {
		return text
	}
	safe := func(s string) bool { return word.MatchString(s) && !strings.Contains(key, s) }
	switch code, kind := string(said.Code), string(said.Type); {
	case safe(code):
		text += ": " + code
	case safe(kind):
		text += ": " + kind
	}
	if safe(said.Param) {
		text += " (" + said.Param + ")"
	}
	return text
}
