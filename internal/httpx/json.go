package httpx

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"modelgate"
)

// DecodeJSON reads a body of the management API into a struct. The struct
// declares what the body may hold:
//
//   - json:"name" is a member, its name exactly as written
//   - null:"absent" beside it makes null the same as leaving the member out.
//     Everywhere else null is refused, so that an unset variable of the client
//     cannot widen a request
//   - a blank field `_ struct{}` with ignore:"a,b" names members that answers
//     have and that are not read
//
// Members that name an organization are ignored too, because the key determines
// it. Anything else (an unknown or duplicate member, trailing data, a wrong type, null,
// invalid UTF-8, U+0000 in a string) is bad_request, and where the fault is
// one member's the message names it.
func DecodeJSON(body []byte, into any) error {
	c := checker{jsontext.NewDecoder(bytes.NewBuffer(body))}
	err := c.value(reflect.TypeOf(into).Elem(), false, true)
	if err == nil {
		err = json.Unmarshal(body, into) // refuses what follows the value
	}
	return explain(err)
}

// ReadJSON is ReadBody, and DecodeJSON of what that read.
func ReadJSON(r *http.Request, limit int64, memory *Reservation, into any) error {
	body, err := ReadBody(r, limit, memory)
	if err != nil {
		return err
	}
	return DecodeJSON(body, into)
}

// explain turns the decoder's error into words for the client.
func explain(err error) error {
	if _, ok := err.(*modelgate.Error); ok || err == nil { // one inside another error needs its place
		return err
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return modelgate.Errorf(modelgate.BadRequest, "malformed JSON: duplicate member %s", member(syntactic.JSONPointer))
		}
		return modelgate.Errorf(modelgate.BadRequest, "malformed JSON at byte %d", syntactic.ByteOffset)
	}
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok { // there is nothing to read
		return modelgate.Errorf(modelgate.BadRequest, "malformed JSON at byte 0")
	}
	where := member(semantic.JSONPointer)
	switch {
	case errors.Is(err, modelgate.ErrMarkup):
		return &modelgate.Error{Kind: modelgate.BadRequest, Message: modelgate.ErrMarkup.Error()}
	case errors.Is(err, modelgate.ErrAmount):
		return modelgate.Errorf(modelgate.BadRequest, "%s: %s", where, modelgate.ErrAmount)
	}
	if known, ok := errors.AsType[*modelgate.Error](err); ok {
		return modelgate.Errorf(modelgate.BadRequest, "%s: %s", where, known.Message)
	}
	return modelgate.Errorf(modelgate.BadRequest, "%s must be %s", where, wanted(semantic.GoType))
}

// member spells the place of a value, such as entitlements[0].axis.
func member(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			fmt.Fprintf(&b, "[%s]", token)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(printable(token))
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// printable is a member name fit for a message: short and in one line.
func printable(name string) string {
	const most = 64
	if len(name) > most {
		name = name[:most] + "…"
	}
	quoted := strconv.Quote(strings.ToValidUTF8(name, ""))
	return quoted[1 : len(quoted)-1]
}

// wanted names the JSON type that a Go type is written as.
func wanted(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "a JSON object"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "an integer"
	}
	return "of another type"
}

// WriteJSON answers 200 with v. Times are RFC 3339 in UTC with microseconds
// at most, empty slices are [] and never null, and nothing is cached: answers
// belong to one key. An error comes before anything is written.
func WriteJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v, json.Deterministic(true), json.WithMarshalers(json.MarshalToFunc(writeTime)))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // it fails if the client has left
	return nil
}

func writeTime(e *jsontext.Encoder, t time.Time) error {
	return e.WriteToken(jsontext.String(t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)))
}
