package simulator

import (
	"cmp"
	"math"
	"strings"
)

// sampler makes small values that a JSON schema accepts. Root is the schema
// that references in it lead into. It knows what the schemas of tools use, not
// patterns or conditions.
type sampler struct{ root fields }

// maxSchemaDepth ends schemas that refer to themselves; mostSampled bounds texts
// and lists.
const (
	maxSchemaDepth = 24
	mostSampled    = 100
)

// value is a value that the schema accepts.
func (s sampler) value(schema fields, depth int) any {
	if depth > maxSchemaDepth {
		return nil
	}
	for _, given := range []any{schema["const"], schema["default"], first(schema["enum"])} {
		if given != nil {
			return given
		}
	}
	for _, other := range []any{s.referred(schema.text("$ref")), first(schema["anyOf"]), first(schema["oneOf"]), first(schema["allOf"])} {
		if other != nil {
			return s.value(asFields(other), depth+1)
		}
	}
	either, _ := first(schema["type"]).(string)
	switch strings.ToLower(cmp.Or(schema.text("type"), either)) {
	case "string":
		return sampleText(schema)
	case "integer", "number":
		return sampleNumber(schema)
	case "boolean":
		return false
	case "null":
		return nil
	case "array":
		list := make([]any, schema.count("minItems", mostSampled))
		for i := range list {
			list[i] = s.value(schema.object("items"), depth+1)
		}
		return list
	}
	return s.object(schema, depth)
}

// object is an object with the members that the schema requires.
func (s sampler) object(schema fields, depth int) object {
	if other := s.referred(schema.text("$ref")); other != nil {
		schema = asFields(other)
	}
	o := object{}
	for _, v := range schema.list("required") {
		if name, ok := v.(string); ok {
			o[name] = s.value(schema.object("properties").object(name), depth+1)
		}
	}
	return o
}

// referred is the schema that a reference into the root names; nil if none.
func (s sampler) referred(reference string) any {
	path, ok := strings.CutPrefix(reference, "#/")
	if !ok {
		return nil
	}
	at := any(map[string]any(s.root))
	for name := range strings.SplitSeq(path, "/") {
		at = asFields(at)[name]
	}
	return at
}

// sampleFormats are values of the formats that strings may have.
var sampleFormats = map[string]string{
	"date": "2030-01-02", "date-time": "2030-01-02T03:04:05Z", "time": "03:04:05Z", "email": "someone@example.com",
	"uri": "https://example.com/", "url": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000",
}

func sampleText(schema fields) string {
	if text, ok := sampleFormats[schema.text("format")]; ok {
		return text
	}
	text := "simulated" + strings.Repeat(".", max(0, schema.count("minLength", mostSampled)-len("simulated")))
	if schema.number("maxLength") >= 1 {
		text = text[:schema.count("maxLength", len(text))]
	}
	return text
}

// sampleNumber is 1, or the whole number next to it within the bounds.
func sampleNumber(schema fields) float64 {
	n := 1.0
	if most, ok := schema["maximum"].(float64); ok {
		n = min(n, math.Floor(most))
	}
	if above, ok := schema["exclusiveMaximum"].(float64); ok {
		n = min(n, math.Ceil(above)-1)
	}
	if least, ok := schema["minimum"].(float64); ok {
		n = max(n, math.Ceil(least))
	}
	if below, ok := schema["exclusiveMinimum"].(float64); ok {
		n = max(n, math.Floor(below)+1)
	}
	return n
}

// first is the first element of a list; nil where v is none or empty.
func first(v any) any {
	if list, _ := v.([]any); len(list) > 0 {
		return list[0]
	}
	return nil
}
