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
	by
	w       http.ResponseWriter
	r       *http.Request
	path    []string // values of the pattern's names
	query   *httpx.Params
	beside  bool // the route is none of the specification's
	maxBody int64
	room    *httpx.MemoryQuota
}

// by is on whose behalf something is done.
type by struct {
	*modelgate.Caller
	requestID string
	portal    bool // see Session
}

// input is what an endpoint reads from a request. Errors are bad_request, or
// not_found for an id that cannot exist.
type input[T any] interface {
	*T
	read(*exchange) error
}

// call makes an endpoint of a method: it reads the input, calls, and writes
// the output.
func call[In any, P input[In], Out any](fn func(*API, context.Context, by, In) (Out, error)) serveFunc {
	return func(a *API, ctx context.Context, x *exchange) error {
		var in In
		if err := P(&in).read(x); err != nil {
			return err
		}
		if err := x.ignore(); err != nil {
			return err
		}
		if err := httpx.SkipBody(x.r, x.maxBody); err != nil {
			return err
		}
		out, err := fn(a, ctx, x.by, in)
		if err != nil {
			return err
		}
		return answer(x.w, out)
	}
}

// none is the output of an endpoint that answers 204.
type none struct{}

// page is the output of a list: a flat array, and the cursor of the next
// page in X-Next-Cursor while there is one.
type page[T any] struct {
	rows []T
	next string
}

func (p page[T]) split() (any, string) { return p.rows, p.next }

func answer(w http.ResponseWriter, out any) error {
	switch v := out.(type) {
	case none:
		w.WriteHeader(http.StatusNoContent)
		return nil
	case interface{ split() (any, string) }:
		rows, next := v.split()
		if next != "" {
			w.Header().Set("X-Next-Cursor", next)
		}
		return httpx.WriteJSON(w, rows)
	}
	return httpx.WriteJSON(w, out)
}

// nothing is the input of an endpoint that takes none.
type nothing struct{}

func (*nothing) read(*exchange) error { return nil }

// ignoredHeader names the parameters of the query that a route does not have.
const ignoredHeader = "X-Gateway-Ignored-Parameters"

// ignore judges the parameters that were given and that the input has not
// asked for. The specification's routes ignore them and name them in a header;
// others refuse them, but for what names an organization. Under /v1 SDKs send
// their own.
func (x *exchange) ignore() error {
	names := x.query.Unknown()
	if len(names) == 0 || !strings.HasPrefix(x.r.URL.Path, "/gw") {
		return nil
	}
	if x.beside {
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
	const most, more = 256, "..."
	list := ""
	for i, name := range names {
		text := url.QueryEscape(name)
		if i > 0 {
			text = "," + text
		}
		room := most
		if i < len(names)-1 {
			room -= len("," + more)
		}
		if len(list)+len(text) > room {
			return strings.TrimPrefix(list+","+more, ",")
		}
		list += text
	}
	return list
}

// body decodes the request body.
func (x *exchange) body(into any) error {
	place := x.room.For(string(x.by.ClientID))
	defer place.Leave()
	raw, err := httpx.ReadBody(x.r, x.maxBody, &place)
	if err != nil {
		return err
	}
	return httpx.DecodeJSON(raw, into)
}

// pathID is the id in the path in its canonical spelling. One that is no UUID
// cannot exist, and is not told apart from one that does not.
func (x *exchange) pathID(noun string) (string, error) {
	id, ok := modelgate.ParseUUID(x.path[0])
	if !ok {
		return "", modelgate.Errorf(modelgate.NotFound, "%s not found", noun)
	}
	return id.String(), nil
}

// audit makes the record of a change; what was set is no secret.
func (a *API) audit(b by, action, target, id string, set any) (modelgate.Audit, error) {
	record := modelgate.Audit{
		ID:         a.IDs.New().String(),
		At:         a.Now(),
		ClientID:   b.ClientID,
		Action:     action,
		Actor:      modelgate.Actor{KeyID: b.KeyID},
		TargetType: target,
		TargetID:   id,
		RequestID:  b.requestID,
	}
	if set == nil {
		return record, nil
	}
	var err error
	record.Change, err = json.Marshal(set)
	return record, err
}
