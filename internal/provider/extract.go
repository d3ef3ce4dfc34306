package provider

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"modelgate/internal/httpfield"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/target"
)

// maxModels is how many different models one request may name.
const maxModels = 64

// ModelSource is a place where a request of some path may name a model. It
// is immutable; make one with BodyField, BodyArray, BodyPath, PathCapture,
// Query or FormField. The zero value names nothing.
type ModelSource struct {
	place placeKind
	// path leads to the place: member names, "[]" for every element of an
	// array; capture names; or one parameter or part name.
	path []string
	// under is what the model's name is prefixed with where it lacks that.
	under string
}

// placeKind is the part of a request that a source looks at.
type placeKind string

const (
	inBody  placeKind = "body"
	inArray placeKind = "array"
	inPath  placeKind = "path"
	inQuery placeKind = "query"
	inForm  placeKind = "form"
)

// BodyField is the top-level member called name, a string.
func BodyField(name string) ModelSource { return ModelSource{place: inBody, path: []string{name}} }

// BodyArray is the top-level member called name, null or an array whose
// elements are strings or objects with a string member model.
func BodyArray(name string) ModelSource { return ModelSource{place: inArray, path: []string{name}} }

// BodyPath is a string deeper in the body, as in requests[].params.model:
// member names joined by dots, [] after one whose value is an array. A
// missing or null member on the way names no model; a wrong type is an
// error.
func BodyPath(path string) ModelSource {
	var steps []string
	for step := range strings.SplitSeq(path, ".") {
		name, array := strings.CutSuffix(step, "[]")
		if steps = append(steps, name); array {
			steps = append(steps, "[]")
		}
	}
	return ModelSource{place: inBody, path: steps}
}

// PathCapture is what a target.Pattern captured under name; several names are
// joined by slashes, for models written as /{owner}/{name}. It names no
// model unless every capture is there.
func PathCapture(names ...string) ModelSource { return ModelSource{place: inPath, path: names} }

// Query is the query parameter called name.
func Query(name string) ModelSource { return ModelSource{place: inQuery, path: []string{name}} }

// FormField is the multipart/form-data part called name.
func FormField(name string) ModelSource { return ModelSource{place: inForm, path: []string{name}} }

// Under is the source of models that are written without their publisher.
func (s ModelSource) Under(publisher string) ModelSource {
	s.under = publisher + "/"
	return s
}

// BodyName is the top-level member or form part that the source reads, ""
// for sources outside the body. A scan must look for it.
func (s ModelSource) BodyName() string {
	switch s.place {
	case inBody, inArray, inForm:
		return s.path[0]
	default:
		return ""
	}
}

// Request is what a request says, taken apart. Fields or Form stays zero
// when the body is not of that type, Path when no pattern captured anything.
type Request struct {
	Fields reqscan.Fields
	Form   reqscan.Form
	Path   target.Captures
	// Query is the raw query string, without the question mark.
	Query string
}

// Models are the models that the request names in the given places: in the
// order of the sources, without repeats, none left out. The first is the one
// that is billed; every one needs permission. No models and no error means
// that none of the places is filled. A place filled with anything but a
// non-empty string of visible characters is a *SyntaxError, and so are more
// than 64 models.
func Models(sources []ModelSource, r *Request) ([]string, error) {
	var list modelList
	for _, source := range sources {
		if source.under == "" {
			if err := source.collect(r, &list); err != nil {
				return nil, err
			}
			continue
		}
		var bare modelList
		if err := source.collect(r, &bare); err != nil {
			return nil, err
		}
		for _, model := range bare {
			if err := list.add(source.under+strings.TrimPrefix(model, source.under), "model"); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// Agree reports whether every model that stands in the sources is the given
// one, with or without models/ before it, as Google has it, and with or without
// its publisher. The error is a *SyntaxError.
func Agree(sources []ModelSource, r *Request, model string) error {
	named, err := Models(sources, r)
	for _, other := range named {
		if strings.TrimPrefix(other, "models/") != model && !published(other, model) {
			return reqscan.Errorf("the body names the model %s and the path %s: leave it out of the body", reqscan.QuoteName([]byte(other)), reqscan.QuoteName([]byte(model)))
		}
	}
	return err
}

// published reports whether a name is a way to write a model with its publisher:
// without it, or as publishers/P/models/M.
func published(name, model string) bool {
	publisher, bare, ok := strings.Cut(model, "/")
	return ok && (name == bare || name == "models/"+bare || name == "publishers/"+publisher+"/models/"+bare)
}

// Stored finds the first reference to an object kept at the provider in the body,
// or among the parts of the form; see reqscan.Fields.Stored.
func (r *Request) Stored(items bool, schemes []string) reqscan.Reference {
	if found := r.Form.Stored(); found.Name != "" {
		return found
	}
	return r.Fields.Stored(items, schemes)
}

// modelList gathers different models in order.
type modelList []string

func (l *modelList) add(model, where string) error {
	if model == "" {
		return reqscan.Errorf("%s must not be empty", where)
	}
	if !utf8.ValidString(model) || strings.ContainsFunc(model, isHidden) {
		return reqscan.Errorf("%s must not hold white space or invisible characters", where)
	}
	if slices.Contains(*l, model) {
		return nil
	}
	if len(*l) == maxModels {
		return reqscan.Errorf("request names more than %d models", maxModels)
	}
	*l = append(*l, model)
	return nil
}

// isHidden reports whether a provider might trim or drop r before it looks
// the model up, so that another model would run than the one judged.
func isHidden(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// addValue adds the string v, which stands at the place called where.
func (l *modelList) addValue(v reqscan.Value, where string) error {
	model, ok := v.Text()
	if !ok {
		return reqscan.Errorf("%s must be a string", where)
	}
	return l.add(model, where)
}

// collect adds the models at the source's place.
func (s ModelSource) collect(r *Request, list *modelList) error {
	switch s.place {
	case inBody:
		return s.collectBody(r, list)
	case inArray:
		return s.collectArray(r, list)
	case inPath:
		return s.collectPath(r, list)
	case inQuery:
		model, ok, err := queryValue(r.Query, s.path[0])
		if err != nil || !ok {
			return err
		}
		return list.add(model, "query parameter "+s.path[0])
	case inForm:
		model, _, ok := r.Form.Get(s.path[0])
		if !ok {
			return nil
		}
		return list.add(model, "form field "+s.path[0])
	default:
		return nil
	}
}

func (s ModelSource) collectBody(r *Request, list *modelList) error {
	value, ok := r.Fields.Get(s.path[0])
	if !ok {
		return nil
	}
	return collectSteps(value, s.path[0], s.path[1:], list)
}

// collectSteps follows the steps from v, which stands at the place called
// where.
func collectSteps(v reqscan.Value, where string, steps []string, list *modelList) error {
	if len(steps) == 0 {
		return list.addValue(v, where)
	}
	if v.Kind() == reqscan.JSONNull {
		return nil
	}
	if steps[0] == "[]" {
		if v.Kind() != reqscan.JSONArray {
			return reqscan.Errorf("%s must be an array", where)
		}
		for element := range v.Elements() {
			if err := collectSteps(element, where+"[]", steps[1:], list); err != nil {
				return err
			}
		}
		return nil
	}
	if v.Kind() != reqscan.JSONObject {
		return reqscan.Errorf("%s must be an object", where)
	}
	next, err := v.Member(steps[0])
	if err != nil || next.Kind() == reqscan.JSONAbsent {
		return err
	}
	return collectSteps(next, where+"."+steps[0], steps[1:], list)
}

func (s ModelSource) collectArray(r *Request, list *modelList) error {
	name := s.path[0]
	array, _ := r.Fields.Get(name)
	switch array.Kind() {
	case reqscan.JSONAbsent, reqscan.JSONNull:
		return nil
	case reqscan.JSONArray:
	default:
		return reqscan.Errorf("%s must be an array", name)
	}
	for element := range array.Elements() {
		where := name + "[]"
		if element.Kind() == reqscan.JSONObject {
			model, err := element.Member("model")
			if err != nil {
				return err
			}
			element, where = model, where+".model"
		}
		if err := list.addValue(element, where); err != nil {
			return err
		}
	}
	return nil
}

func (s ModelSource) collectPath(r *Request, list *modelList) error {
	var parts []string
	for _, name := range s.path {
		part := r.Path.Get(name)
		if part == "" {
			return nil
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil
	}
	return list.add(strings.Join(parts, "/"), "the model in the path")
}

// HasParameter reports whether pairs as in a query may hold a parameter of
// the name: they do, or servers disagree about it.
func HasParameter(pairs, name string) bool {
	_, found, err := queryValue(pairs, name)
	return found || err != nil
}

// queryValue is the one value of the parameter called name. A repeat, a name
// in another letter case, a semicolon and a broken escape in the value are
// errors, because servers disagree about them.
func queryValue(query, name string) (value string, found bool, err error) {
	for pair := range strings.SplitSeq(query, "&") {
		rawKey, rawText, _ := strings.Cut(pair, "=")
		key := httpfield.UnescapeQuery(rawKey)
		if strings.Contains(pair, ";") {
			return "", false, queryErrorf("malformed parameter %s", reqscan.QuoteName([]byte(pair)))
		}
		base, _, _ := strings.Cut(key, "[")
		if !bytes.EqualFold([]byte(base), []byte(name)) {
			continue
		}
		if key != name || found {
			return "", false, queryErrorf("write parameter %s exactly once", name)
		}
		text, err := url.QueryUnescape(rawText)
		if err != nil {
			return "", false, queryErrorf("malformed parameter %s", reqscan.QuoteName([]byte(pair)))
		}
		value, found = text, true
	}
	return value, found, nil
}

func queryErrorf(format string, args ...any) error {
	return reqscan.Errorf("query string is not acceptable: %s", fmt.Sprintf(format, args...))
}
