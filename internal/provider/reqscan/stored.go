package reqscan

import (
	"net/url"
	"strings"
)

// Reference is a place in a request that refers to an object kept at the
// provider. The zero value is none.
type Reference struct {
	// Name is the member or form part, or the type of the object, that refers.
	Name string
	// Item says that it is an item of an earlier answer, which clients send
	// whole where that answer was not stored.
	Item bool
}

// mark says what a member name may have to do with stored objects.
type mark uint8

const (
	noMark     mark = iota
	refers          // its value is a reference, or a list of them
	holds           // a reference where it is a text, and holds one where it has an id
	hasID           // it holds a reference where it has an id
	isURI           // an address, which may be that of a stored file
	isIdentity      // the id of the object it stands in
)

// markOf is the mark of a name, in any letter case.
func markOf(name []byte) mark {
	if len(name) < 2 || len(name) > 23 {
		return noMark
	}
	var lower [23]byte
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	switch string(lower[:len(name)]) {
	case "id":
		return isIdentity
	case "audio", "voice":
		return hasID
	case "container":
		return holds
	case "fileuri", "file_uri":
		return isURI
	case "file_id", "file_ids", "fileid", "fileids", "container_id", "skill_id", "vector_store_id", "vector_store_ids", "knowledge_id", "knowledge_ids",
		"collection_id", "collection_ids", "library_ids", "filesearchstorenames", "file_search_store_names":
		return refers
	}
	return noMark
}

// isForeign reports whether the value of a member is the client's own JSON, in
// which names mean nothing to the provider: schemas, arguments and results of
// functions, labels.
func isForeign(name string) bool {
	switch name {
	case "parameters", "parametersJsonSchema", "parameters_json_schema", "input_schema", "inputSchema", "output_schema", "schema", "json_schema",
		"responseSchema", "response_schema", "responseJsonSchema", "response_json_schema", "args", "arguments", "response", "metadata":
		return true
	}
	return false
}

// Stored finds the first reference to an object kept at the provider anywhere in
// the body. items says that the path takes items of earlier answers, which are
// references where they hold nothing but an id. schemes are what addresses of
// stored files begin with. The time is linear in the body; a body whose names and
// values cannot be references is not looked at again.
func (f *Fields) Stored(items bool, schemes []string) Reference {
	if f.first == 0 || !f.marked && !(items && f.identified) && len(schemes) == 0 {
		return Reference{}
	}
	w := walker{Lexer: Lexer{Text: f.body}, items: items, schemes: schemes}
	return w.walk()
}

// isStoredURI reports whether an address is that of a file in the operator's
// account: at Gemini's file service, or in any scheme that is read with the
// account's rights, gs:// among them. Public addresses are not.
func isStoredURI(text string) bool {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return true
	}
	return strings.Contains(strings.ToLower(u.Hostname()), "generativelanguage")
}

// refersPart reports whether the name of a form part has a reference in it, as
// in input_reference[file_id].
func refersPart(name []byte) bool {
	for _, step := range strings.FieldsFunc(string(name), func(c rune) bool { return c == '[' || c == ']' || c == '.' }) {
		if m := markOf([]byte(step)); m == refers || m == holds {
			return true
		}
	}
	return false
}
