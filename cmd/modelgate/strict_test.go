package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modelgate/internal/openapi"
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
	var err error
	if s.api, err = openapi.Load(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "modelgate.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	before := tables(t, db)
	for _, op := range s.api.Operations {
		if strings.HasPrefix(op.Path, "/gw/") && op.Takes() != nil {
			s.operation(&op)
		}
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
	for _, op := range s.api.Operations {
		if strings.HasPrefix(op.Path, "/gw/") && op.Takes() != nil {
			s.tenant(&op)
		}
	}
}

func firstKey(g *testkit.Gateway) string {
	key, _ := g.NewKey(g.NewClient("strict"))
	return key
}

// strict sends bodies that are made of the contract's schemas.
type strict struct {
	*testing.T
	api      *openapi.Contract
	url, key string
	sent     int
}

// resolve is what a schema refers to, or itself.
func (s *strict) resolve(schema *openapi.Schema) *openapi.Schema {
	if named := s.api.Schemas.Find(schema.Name()); named != nil {
		return named
	}
	return schema
}

// example is a value of a schema, with all members of an object.
func (s *strict) example(schema *openapi.Schema) any {
	schema = s.resolve(schema)
	switch schema.Kind() {
	case "object":
		out := map[string]any{}
		for _, p := range schema.Properties {
			out[p.Name] = s.example(&p.Value)
		}
		return out
	case "array":
		return []any{s.example(schema.Items)}
	case "boolean":
		return false
	case "integer", "number":
		if schema.Minimum != nil {
			return *schema.Minimum + 1
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
	schema *openapi.Schema
	value  map[string]any
	whole  func(object string) string
}

// places are the objects of a body: itself and those in it.
func (s *strict) places(at place) []place {
	all := []place{at}
	for _, p := range at.schema.Properties {
		member := s.resolve(&p.Value)
		list := member.Kind() == "array"
		if list {
			member = s.resolve(member.Items)
		}
		if member.Kind() != "object" || len(member.Properties) == 0 {
			continue
		}
		inner := place{name: at.name + "." + p.Name, schema: member}
		value := at.value[p.Name]
		if list {
			value = value.([]any)[0]
		}
		inner.value = value.(map[string]any)
		inner.whole = func(object string) string {
			if list {
				object = "[" + object + "]"
			}
			return at.whole(without(at.value, p.Name, fmt.Sprintf("%q:%s", p.Name, object)))
		}
		all = append(all, s.places(inner)...)
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

func (s *strict) operation(op *openapi.Operation) {
	schema := s.resolve(op.Takes())
	body := place{name: op.Route(), schema: schema, value: s.example(schema).(map[string]any), whole: func(object string) string { return object }}
	for _, at := range s.places(body) {
		for _, p := range at.schema.Properties {
			value, _ := json.Marshal(at.value[p.Name])
			mutations := map[string]string{
				"misspelt":    fmt.Sprintf("%q:%s", p.Name[:len(p.Name)-1]+"_", value),
				"in capitals": fmt.Sprintf("%q:%s", strings.ToUpper(p.Name), value),
				"twice":       fmt.Sprintf("%q:%s,%q:%s", p.Name, value, p.Name, value),
			}
			// A tuple's axis is optional in a request and always there in an answer.
			if !s.resolve(&p.Value).Nullable() && p.Name != "axis" {
				mutations["null"] = fmt.Sprintf("%q:null", p.Name)
			}
			for what, text := range mutations {
				status, answer := s.do(op, at.whole(without(at.value, p.Name, text)))
				if status != http.StatusBadRequest || what == "misspelt" && !strings.Contains(answer, `unknown member`) {
					s.Errorf("%s: %s %s = %d %s", at.name, p.Name, what, status, answer)
				}
			}
		}
	}
}

// tenant holds a body against itself with the names of an organization in it.
// Both are refused for the same reason or neither is.
func (s *strict) tenant(op *openapi.Operation) {
	body := s.example(op.Takes()).(map[string]any)
	for _, name := range []string{"client_id", "organization_id", "org_id", "org", "organization", "tenant", "tenant_id"} {
		if _, slug := body["slug"]; slug {
			body["slug"] = "strict-" + strings.ReplaceAll(name, "_", "-")
		}
		status, answer := s.do(op, without(body, "", fmt.Sprintf(`%q:{"a":null}`, name)))
		if strings.Contains(answer, "unknown member") || op.ID == "createSubAccount" && status != 200 {
			s.Errorf("%s: %s = %d %s", op.Route(), name, status, answer)
		}
	}
}

func (s *strict) do(op *openapi.Operation, body string) (int, string) {
	s.sent++
	path := op.Path
	for _, p := range op.Parameters {
		if p.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", "00000000-0000-7000-8000-000000000000")
		}
	}
	r, err := http.NewRequestWithContext(s.Context(), op.Method, s.url+path, strings.NewReader(body))
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
