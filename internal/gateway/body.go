package gateway

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/costbound"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
)

// request is a client's body, taken apart once.
type request struct {
	provider.Request
	method string
	header http.Header
	body   []byte
	form   bool // multipart/form-data
	json   bool
	// pairs: it is declared to be application/x-www-form-urlencoded.
	pairs bool
	// once: the body is rewritten for one route only, and may be rewritten
	// where it stands. Nothing may be read out of it afterwards.
	once bool
}

// read reads and scans the body. A body that begins like a JSON object, in
// any encoding, is judged as one whatever its Content-Type says, because a
// provider may do the same; so is one whose Content-Type speaks of JSON.
func (g *Gateway) read(c *call) (*request, error) {
	c.room = g.Memory.For(string(c.caller.ClientID))
	began := time.Now()
	body, err := httpx.ReadBody(c.r, g.MaxBody, &c.room)
	c.upload = time.Since(began)
	if err != nil {
		return nil, err
	}
	q := &request{body: body, method: c.r.Method, header: c.r.Header}
	q.Query = c.r.URL.RawQuery
	if len(c.r.Header["Content-Type"]) > 1 {
		return nil, modelgate.Errorf(modelgate.BadRequest, "Content-Type must be given once")
	}
	contentType := c.r.Header.Get("Content-Type")
	declared := strings.HasPrefix(contentType, "application/json")
	if !declared {
		media := strings.ToLower(contentType)
		declared, q.form, q.pairs = strings.Contains(media, "json"), strings.Contains(media, "multipart/form-data"), strings.Contains(media, "urlencoded")
	}
	if q.form {
		q.Form, err = reqscan.ScanForm(contentType, body, c.snapshot.names)
		return q, badRequest(err)
	}
	start := bytes.TrimLeft(body, " \t\r\n\x00") // the zeros of UTF-16
	if len(body) > 0 && (declared || len(start) > 0 && (start[0] == '{' || start[0] >= 0x80)) {
		q.json = true
		q.Fields, err = reqscan.Scan(body, c.snapshot.names)
		return q, badRequest(err)
	}
	return q, nil
}

// reuse hands the memory of the body on where the call has come to its end and
// no provider's connection reads it any more. What was read out of it are
// copies. Of several routes each has a copy of the body, and of one the first
// request is the only one.
func (c *call) reuse() {
	if c.out == nil || c.out.Left() {
		c.room.Recycle()
	}
}

// badRequest turns what the parsers say into an answer.
func badRequest(err error) error {
	if syntax, ok := errors.AsType[*reqscan.SyntaxError](err); ok {
		return modelgate.Errorf(modelgate.BadRequest, "%s", syntax.Message)
	}
	return err
}

// costBound is what the request says about how much it can cost.
func (c *call) costBound(q *request, path string) costbound.Bound {
	if q.json {
		return c.snapshot.bounds.JSON(path, &q.Fields, len(q.body))
	}
	return c.snapshot.bounds.Form(&q.Form)
}

// slug is the model that a door's body names.
func (q *request) slug() (string, error) {
	const missing = `"model" is required: name a catalog slug 'author/model' (see GET /v1/models)`
	if q.form {
		text, _, ok := q.Form.Get("model")
		if !ok || text == "" {
			return "", modelgate.Errorf(modelgate.BadRequest, missing)
		}
		return text, nil
	}
	value, ok := q.Fields.Get("model")
	if !ok {
		return "", modelgate.Errorf(modelgate.BadRequest, missing)
	}
	text, ok := value.Text()
	if !ok || text == "" {
		return "", modelgate.Errorf(modelgate.BadRequest, `"model" must be a string: a catalog slug 'author/model' (see GET /v1/models)`)
	}
	return text, nil
}

// rename is the edit that gives the model the provider's own id, or takes it
// out of the body where the provider wants it in the path.
func (q *request) rename(place provider.Place, native string) reqscan.Edit {
	switch {
	case q.form && place == provider.ModelInPath:
		return q.Form.Remove("model")
	case q.form:
		_, at, _ := q.Form.Get("model")
		return reqscan.Edit{Span: at, Text: []byte(native)}
	case place == provider.ModelInPath:
		return q.Fields.Remove("model")
	}
	value, _ := q.Fields.Get("model")
	return reqscan.Edit{Span: value.Span, Text: reqscan.ModelValue(native)}
}

// changes are what the body for a route differs in.
type changes struct {
	place        provider.Place
	native       string // the model is renamed to it; "" for one that stays
	includeUsage bool   // a stream that would not state its usage is asked for it
	version      string // anthropic_version, for a body that has none; "" for none
}

// rewrite is the body for the only route: see edits.
func (q *request) rewrite(c changes) (body []byte, injected bool, err error) {
	edits, injected, err := q.edits(c)
	switch {
	case err != nil || len(edits) == 0:
		return q.body, false, err
	case q.once:
		return reqscan.SpliceOwned(q.body, edits...), injected, nil
	}
	return reqscan.Splice(nil, q.body, edits...), injected, nil
}

// edits make the changes.
func (q *request) edits(c changes) (edits []reqscan.Edit, injected bool, err error) {
	edits = make([]reqscan.Edit, 0, 2)
	version := ""
	if c.version != "" && q.json && !q.Fields.Has("anthropic_version") {
		version = `"anthropic_version":` + string(reqscan.ModelValue(c.version))
	}
	switch {
	case version != "" && c.place == provider.ModelInPath:
		edits = append(edits, q.Fields.Replace("model", version)) // one leaves, the other comes
	case version != "":
		edits = append(edits, q.Fields.Insert(version), q.rename(c.place, c.native))
	case c.native != "":
		edits = append(edits, q.rename(c.place, c.native))
	}
	if c.includeUsage && q.json {
		edit, added, err := reqscan.IncludeUsage(&q.Fields)
		if err != nil {
			return nil, false, badRequest(err)
		}
		if added {
			edits, injected = append(edits, edit), true
		}
	}
	return edits, injected, nil
}

// models are all models that a body names besides the first.
func (q *request) models(sources []provider.ModelSource, path target.Captures) (first string, others []string, err error) {
	q.Path = path
	all, err := provider.Models(sources, &q.Request)
	if err != nil || len(all) == 0 {
		return "", nil, badRequest(err)
	}
	for _, name := range all {
		if len(name) > modelgate.MaxPattern {
			return "", nil, modelgate.Errorf(modelgate.BadRequest, "the name of a model has at most %d bytes", modelgate.MaxPattern)
		}
	}
	return all[0], slices.Clone(all[1:]), nil
}
