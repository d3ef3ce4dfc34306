package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"modelgate"
)

// node is a part of a JSON Schema.
type node = map[string]any

// schema is the JSON Schema of the file. Draft 7 is what editors know best;
// it ignores what stands beside a $ref, so that each $ref stands alone in an
// anyOf.
func (c comments) schema(t *testing.T) string {
	definitions := node{"variable": node{"type": "string", "pattern": `\$\{`}}
	var f file
	initialise(&f)
	root := c.object(reflect.ValueOf(f), definitions)
	root["$schema"], root["title"], root["definitions"] = "http://json-schema.org/draft-07/schema#", "Modelgate configuration", definitions
	text, err := json.MarshalIndent(root, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func (c comments) object(v reflect.Value, definitions node) node {
	properties, required := make(node), []string{}
	for _, k := range c.fields(v) {
		inner := c.value(k, definitions)
		if !k.required() {
			inner = anyOf(inner, node{"type": "null"})
		}
		inner["description"] = strings.Join(strings.Fields(k.doc), " ")
		properties[k.path] = inner
		if k.required() {
			required = append(required, k.path)
		}
	}
	made := node{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		made["required"] = required
	}
	return made
}

// anyOf allows another shape.
func anyOf(n, other node) node {
	if list, ok := n["anyOf"].([]node); ok {
		return node{"anyOf": append(slices.Clone(list), other)}
	}
	return node{"anyOf": []node{n, other}}
}

// value is the schema of what a key holds.
func (c comments) value(k key, definitions node) node {
	t := k.typ
	if words := choices(t, k.path); words != nil {
		if t == reflect.TypeFor[Enforce]() {
			return orVariable(anyOf(node{"enum": words}, node{"type": "boolean"}))
		}
		return orVariable(node{"enum": words})
	}
	if made := scalarSchema(t); made != nil {
		return made
	}
	switch {
	case t == reflect.TypeFor[media]():
		return anyOf(scalarSchema(reflect.TypeFor[modelgate.Nano]()), node{"type": "array", "items": c.named(reflect.TypeFor[mediaLine](), definitions)})
	case t == reflect.TypeFor[ContractFactor]():
		return anyOf(scalarSchema(reflect.TypeFor[modelgate.Nano]()), node{"type": "array", "items": c.named(reflect.TypeFor[DatedFactor](), definitions)})
	case t == reflect.TypeFor[*Auth]():
		return anyOf(orVariable(node{"enum": []string{"bearer", "x-api-key", "api-key", "none"}}), c.named(t.Elem(), definitions))
	case t.Kind() == reflect.Pointer:
		return c.value(key{path: k.path, typ: t.Elem()}, definitions)
	case t.Kind() == reflect.Slice:
		return node{"type": "array", "items": c.value(key{typ: t.Elem()}, definitions)}
	case t.Kind() == reflect.Map:
		return node{"type": "object", "additionalProperties": c.value(key{typ: t.Elem()}, definitions)}
	}
	return c.named(t, definitions)
}

// named refers to a struct's schema, and makes it when it is new.
func (c comments) named(t reflect.Type, definitions node) node {
	name := strings.ToLower(t.Name())
	if definitions[name] == nil {
		definitions[name] = node{} // ends the recursion, should a struct ever hold itself
		definitions[name] = c.object(reflect.New(t).Elem(), definitions)
	}
	return node{"anyOf": []node{{"$ref": "#/definitions/" + name}}}
}

// scalarSchema is the schema of what one scalar fills; nil for anything else.
func scalarSchema(t reflect.Type) node {
	p := reflect.New(t).Interface()
	if _, ok := scalarOf(t); !ok {
		return nil
	}
	switch p.(type) {
	case *bool:
		return orVariable(node{"type": "boolean"})
	case *int, *int64:
		return orVariable(node{"type": "integer", "minimum": 0})
	case *modelgate.Nano:
		return orVariable(node{"type": "number", "minimum": 0})
	case *time.Duration:
		return orVariable(anyOf(node{"const": 0}, node{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}))
	case *Size:
		return orVariable(anyOf(node{"type": "integer", "minimum": 0}, node{"type": "string", "pattern": "^[0-9]+([KMGT]iB)?$"}))
	case *clock:
		return orVariable(node{"type": "string", "pattern": "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"})
	case *time.Time:
		return orVariable(node{"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$"})
	}
	return node{"type": "string"}
}

// orVariable allows a value from the environment where the schema wants more
// than any text.
func orVariable(n node) node { return anyOf(n, node{"$ref": "#/definitions/variable"}) }

// judge says why a value does not fit a schema, "" if it does. It knows the
// words that schema uses.
func judge(root, schema node, value any, path string) string {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/definitions/")
		return judge(root, root["definitions"].(node)[name].(node), value, path)
	}
	if list, ok := schema["anyOf"].([]any); ok {
		var why []string
		for _, s := range list {
			problem := judge(root, s.(node), value, path)
			if problem == "" {
				return ""
			}
			why = append(why, problem)
		}
		return strings.Join(why, "; ")
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, value) {
		return path + ": none of the choices"
	}
	if constant, ok := schema["const"]; ok && constant != value {
		return path + ": not the constant"
	}
	if kind, ok := schema["type"].(string); ok && !isOf(kind, value) {
		return path + ": not of type " + kind
	}
	switch v := value.(type) {
	case string:
		if pattern, ok := schema["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			return path + ": does not match " + pattern
		}
	case float64:
		if least, ok := schema["minimum"].(float64); ok && v < least {
			return path + ": too small"
		}
	case []any:
		for i, item := range v {
			if problem := judge(root, schema["items"].(node), item, element(path, i)); problem != "" {
				return problem
			}
		}
	case node:
		return judgeObject(root, schema, v, path)
	}
	return ""
}

func judgeObject(root, schema, value node, path string) string {
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if value[name.(string)] == nil {
			return member(path, name.(string)) + ": is missing"
		}
	}
	properties, _ := schema["properties"].(node)
	for name, item := range value {
		inner, known := properties[name].(node)
		if !known {
			inner, known = schema["additionalProperties"].(node)
		}
		if !known {
			return member(path, name) + ": unknown"
		}
		if problem := judge(root, inner, item, member(path, name)); problem != "" {
			return problem
		}
	}
	return ""
}

func isOf(kind string, value any) bool {
	switch v := value.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int64(v))
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

// parsed is a YAML text as JSON has it.
func parsed(t *testing.T, text []byte) any {
	t.Helper()
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(converted, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func loadSchema(t *testing.T) node {
	t.Helper()
	var root node
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// What the service accepts, editors accept too.
func TestSchemaFitsTheExamples(t *testing.T) {
	t.Parallel()
	root := loadSchema(t)
	example, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	if problem := judge(root, root, parsed(t, example), ""); problem != "" {
		t.Errorf("%s: %s", examplePath, problem)
	}
	starters, err := filepath.Glob("starter/*.yaml")
	if err != nil || len(starters) == 0 {
		t.Fatalf("%d starter files: %v", len(starters), err)
	}
	for _, path := range starters {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if problem := judge(root, root, node{"catalog": parsed(t, text)}, ""); problem != "" {
			t.Errorf("%s: %s", path, problem)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	root := loadSchema(t)
	const provider = "providers: [{name: a, format: openai, base_url: 'http://a'"
	for _, c := range []struct{ text, want string }{
		{"{}", ""},
		{"server:\nproviders:\n", ""},
		{"limits: {burst: '${BURST:-5}'}", ""},
		{provider + "}]", ""},
		{provider + ", auth: none}]", ""},
		{"server: {drain_delay: 0, max_request_bytes: 10MiB}", ""},
		{"sever: {}", "sever: unknown"},
		{"server: {tls: {cert: a}}", "server.tls.cert: unknown"},
		{"limits: {burst: -1}", "limits.burst: too small"},
		{"limits: {burst: many}", "limits.burst: not of type integer"},
		{"metering: {fsync: never}", "metering.fsync: none of the choices"},
		{"server: {drain_delay: 5}", "server.drain_delay: not the constant"},
		{"providers: [{name: a, format: openai}]", "providers[0].base_url: is missing"},
		{provider + ", auth: {cookie: a}}]", "providers[0].auth.cookie: unknown"},
		{"prices: [{provider: a, model: b, price: {windows: [{from: '01:00', to: '25:00'}]}}]", "does not match"},
	} {
		problem := judge(root, root, parsed(t, []byte(c.text)), "")
		if (c.want == "") != (problem == "") || !strings.Contains(problem, c.want) {
			t.Errorf("%s: %q, want %q", c.text, problem, c.want)
		}
	}
}
