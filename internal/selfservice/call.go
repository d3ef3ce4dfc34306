package selfservice

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
)

// exchange is one admitted request and where its answer goes.
type exchange struct {
	actor
	w       http.ResponseWriter
	r       *http.Request
	path    []string // values of the pattern's names
	query   *httpx.Params
	strict  bool // unknown parameters are refused
	maxBody int64
	memory  *httpx.MemoryQuota
}

// actor is who makes a request.
type actor struct {
	*modelgate.Caller
	requestID string
	portal    bool // see Session
	session   modelgate.SessionID
}

// input is what an endpoint reads from a request. Errors are bad_request, or
// not_found for an id that cannot exist. read need not ask for the error of the
// query's parameters.
type input[T any] interface {
	*T
	read(*exchange) error
}

// call makes an endpoint of a method: it reads the input, calls, and writes
// the output as JSON.
func call[In any, P input[In], Out any](method func(*API, context.Context, actor, In) (Out, error)) serveFunc {
	return func(a *API, ctx context.Context, x *exchange) error {
		var in In
		if err := x.read(P(&in).read); err != nil {
			return err
		}
		out, err := method(a, ctx, x.actor, in)
		if err != nil {
			return err
		}
		if p, ok := any(out).(interface {
			cursor() (rows any, next string)
		}); ok {
			rows, next := p.cursor()
			if next != "" {
				x.w.Header().Set("X-Next-Cursor", next)
			}
			return httpx.WriteJSON(x.w, rows)
		}
		return httpx.WriteJSON(x.w, out)
	}
}

// change makes an endpoint of a method that has no output: it answers 204.
func change[In any, P input[In]](method func(*API, context.Context, actor, In) error) serveFunc {
	return func(a *API, ctx context.Context, x *exchange) error {
		var in In
		if err := x.read(P(&in).read); err != nil {
			return err
		}
		if err := method(a, ctx, x.actor, in); err != nil {
			return err
		}
		x.w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// nothing is the input of an endpoint that takes none.
type nothing struct{}

func (*nothing) read(*exchange) error { return nil }

// read reads the input of an endpoint. It then refuses or names parameters that
// the endpoint does not have, and drops a body that it does not take.
func (x *exchange) read(input func(*exchange) error) error {
	err := input(x)
	if wrong := x.query.Err(); wrong != nil {
		return wrong
	}
	if err != nil {
		return err
	}
	if err := x.ignore(); err != nil {
		return err
	}
	return httpx.SkipBody(x.r, x.maxBody)
}

// ignoredHeader names the parameters of the query that a route does not have.
const ignoredHeader = "X-Gateway-Ignored-Parameters"

// ignore handles the parameters that the endpoint has not read. Lenient
// routes ignore them and name them in a header. Strict ones refuse them, except
// names of an organization. SDKs send parameters of their own
// under /v1, where they are ignored.
func (x *exchange) ignore() error {
	names := x.query.Unknown()
	if len(names) == 0 || !strings.HasPrefix(x.r.URL.Path, "/gw") {
		return nil
	}
	if x.strict {
		for _, name := range names {
			if !modelgate.NamesOrganization(name) {
				return x.query.ErrUnknownParam(name)
			}
		}
	}
	x.w.Header().Set(ignoredHeader, nameList(names))
	return nil
}

// nameList is names in a header's value: escaped as in a query, comma
// separated, at most 256 bytes, with "..." in place of those that do not fit.
func nameList(names []string) string {
	const most = 256
	var escaped []string
	for _, name := range names {
		escaped = append(escaped, url.QueryEscape(name))
	}
	list := strings.Join(escaped, ",")
	if len(list) > most {
		list = list[:strings.LastIndexByte(list[:most-len("...")], ',')+1] + "..."
	}
	return list
}

// body decodes the request body.
func (x *exchange) body(into any) error {
	memory := x.memory.For(string(x.ClientID))
	defer memory.Release()
	return httpx.ReadJSON(x.r, x.maxBody, &memory, into)
}

// pathID is the id in the path in its canonical spelling. An id that is not a
// UUID cannot exist and is not_found as well.
func (x *exchange) pathID(noun string) (string, error) {
	id, ok := modelgate.ParseUUID(x.path[0])
	if !ok {
		return "", modelgate.Errorf(modelgate.NotFound, "%s not found", noun)
	}
	return id.String(), nil
}

// audit makes the record of a change. set is what was set, without secrets; nil
// where the action says everything.
func (a *API) audit(by actor, action, target, id string, set any) modelgate.Audit {
	record := modelgate.Audit{
		ID:         a.IDs.New().String(),
		At:         a.Now(),
		ClientID:   by.ClientID,
		Action:     action,
		Actor:      by.Actor(),
		TargetType: target,
		TargetID:   id,
		RequestID:  by.requestID,
	}
	if set != nil {
		record.Change, _ = json.Marshal(set) // structs and maps of plain values always marshal
	}
	return record
}
