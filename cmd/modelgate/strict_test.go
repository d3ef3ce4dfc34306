package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"modelgate/test/testkit"
)

// TestStrictBodies sends every body of the contract with each of its members
// misspelt, in capitals, given twice and null. None is accepted, but for a null
// where the contract has one, and none changes a table. What names the
// organization changes nothing either way.
func TestStrictBodies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := testkit.StartGateway(t, testkit.GatewayOptions{Dir: dir})
	s := &strict{T: t, key: firstKey(g), url: g.URL}
	writes := withBodies(t)
	db := testkit.OpenSQLite(t, filepath.Join(dir, "modelgate.db"))
	before := tables(t, db)
	for _, op := range writes {
		s.operation(op)
	}
	if s.sent < 100 {
		t.Errorf("%d bodies were sent", s.sent)
	}
	after := tables(t, db)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			t.Errorf("%s was\n%s\nand is\n%s", name, before[name], after[name])
		}
	}
	for _, op := range writes {
		s.tenant(op)
	}
}

// bodied is an operation of the contract that takes a JSON body.
type bodied struct {
	route string // method and path
	id    string
	body  *openapi3.Schema
}

// withBodies are those under /gw, in the order of their routes.
func withBodies(t *testing.T) (list []bodied) {
	t.Helper()
	for path, item := range contract(t).Paths.Map() {
		for method, op := range item.Operations() {
			if strings.HasPrefix(path, "/gw/") && op.RequestBody != nil {
				list = append(list, bodied{method + " " + path, op.OperationID, op.RequestBody.Value.Content["application/json"].Schema.Value})
			}
		}
	}
	slices.SortFunc(list, func(a, b bodied) int { return strings.Compare(a.route, b.route) })
	return list
}

func firstKey(g *testkit.Gateway) string {
	key, _ := g.NewKey(g.NewClient("strict"))
	return key
}

// strict sends bodies that are made of the contract's schemas.
type strict struct {
	*testing.T
	url, key string
	sent     int
}

// example is a value of a schema, with all members of an object.
func example(schema *openapi3.Schema) any {
	switch is := schema.Type.Includes; {
	case is("object"):
		out := map[string]any{}
		for name, p := range schema.Properties {
			out[name] = example(p.Value)
		}
		return out
	case is("array"):
		return []any{example(schema.Items.Value)}
	case is("boolean"):
		return false
	case is("integer"), is("number"):
		if schema.Min != nil {
			return *schema.Min + 1
		}
		return 1
	}
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case schema.Format == "uuid":
		return "00000000-0000-7000-8000-000000000000"
	}
	return "strict"
}

// place is where an object of a body lies: its schema, and how to put another
// text there.
type place struct {
	name   string
	schema *openapi3.Schema
	value  map[string]any
	whole  func(object string) string
}

// places are the objects of a body: itself and those in it.
func places(at place) []place {
	all := []place{at}
	for name, p := range at.schema.Properties {
		member := p.Value
		list := member.Type.Is("array")
		if list {
			member = member.Items.Value
		}
		if !member.Type.Is("object") || len(member.Properties) == 0 {
			continue
		}
		inner := place{name: at.name + "." + name, schema: member}
		value := at.value[name]
		if list {
			value = value.([]any)[0]
		}
		inner.value = value.(map[string]any)
		inner.whole = func(object string) string {
			if list {
				object = "[" + object + "]"
			}
			return at.whole(without(at.value, name, fmt.Sprintf("%q:%s", name, object)))
		}
		all = append(all, places(inner)...)
	}
	return all
}

// without is an object as JSON with a text in place of one of its members.
func without(object map[string]any, name, instead string) string {
	parts := []string{instead}
	for _, other := range slices.Sorted(maps.Keys(object)) {
		if other != name {
			value, _ := json.Marshal(object[other])
			parts = append(parts, fmt.Sprintf("%q:%s", other, value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (s *strict) operation(op bodied) {
	body := place{name: op.route, schema: op.body, value: example(op.body).(map[string]any), whole: func(object string) string { return object }}
	for _, at := range places(body) {
		for name, p := range at.schema.Properties {
			value, _ := json.Marshal(at.value[name])
			mutations := map[string]string{
				"misspelt":    fmt.Sprintf("%q:%s", name[:len(name)-1]+"_", value),
				"in capitals": fmt.Sprintf("%q:%s", strings.ToUpper(name), value),
				"twice":       fmt.Sprintf("%q:%s,%q:%s", name, value, name, value),
			}
			// A tuple's axis is optional in a request and always there in an answer.
			if !p.Value.Type.Includes("null") && name != "axis" {
				mutations["null"] = fmt.Sprintf("%q:null", name)
			}
			for what, text := range mutations {
				status, answer := s.do(op, at.whole(without(at.value, name, text)))
				if status != http.StatusBadRequest || what == "misspelt" && !strings.Contains(answer, `unknown member`) {
					s.Errorf("%s: %s %s = %d %s", at.name, name, what, status, answer)
				}
			}
		}
	}
}

// tenant holds a body against itself with the names of an organization in it.
// Both are refused for the same reason or neither is.
func (s *strict) tenant(op bodied) {
	body := example(op.body).(map[string]any)
	for _, name := range []string{"client_id", "organization_id", "org_id", "org", "organization", "tenant", "tenant_id"} {
		if _, slug := body["slug"]; slug {
			body["slug"] = "strict-" + strings.ReplaceAll(name, "_", "-")
		}
		status, answer := s.do(op, without(body, "", fmt.Sprintf(`%q:{"a":null}`, name)))
		if strings.Contains(answer, "unknown member") || op.id == "createSubAccount" && status != 200 {
			s.Errorf("%s: %s = %d %s", op.route, name, status, answer)
		}
	}
}

// pathNames are the parameters in a path.
var pathNames = regexp.MustCompile(`\{[a-z_]+\}`)

func (s *strict) do(op bodied, body string) (int, string) {
	s.sent++
	method, path, _ := strings.Cut(pathNames.ReplaceAllString(op.route, "00000000-0000-7000-8000-000000000000"), " ")
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	resp, answer := exchange(s.T, r)
	return resp.StatusCode, answer
}

// tables is the content of each table that requests of /gw may change.
func tables(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, columns := range map[string]string{
		"api_key":          "id, status, scopes, entitlements, expires_at, limit_rps",
		"sub_account":      "*",
		"budget":           "*",
		"branding":         "*",
		"audit":            "id, action",
		"secret":           "name",
		"processor_config": "*", "processor_mapping": "*", "processor_event": "*", "checkout_order": "*", "client": "*",
	} {
		rows, err := db.QueryContext(t.Context(), "SELECT "+columns+" FROM "+name)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(fields)), make([]any, len(fields))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			out[name] += fmt.Sprintln(values...)
		}
		if err := errorsOf(rows); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func errorsOf(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}
