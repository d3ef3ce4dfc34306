package openapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Contract is the description taken apart, for what is made from it.
type Contract struct {
	Title       string
	Description string // Markdown
	Tags        []Tag
	Operations  []Operation // in the order of their tags
	Schemas     Named[Schema]
}

// Tag is a chapter.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Operation is a method of a path.
type Operation struct {
	ID          string      `json:"operationId"`
	Tags        []string    `json:"tags"`
	Summary     string      `json:"summary"`
	Description string      `json:"description"`
	Security    []security  `json:"security"`
	For         string      `json:"x-for"`     // "organization": not for keys bound to a sub-account
	Paging      Paging      `json:"x-paging"`  // "" for what comes in one piece
	Pattern     string      `json:"x-pattern"` // the route's own spelling; "" where Method and Path are it
	Parameters  []Parameter `json:"parameters"`
	Body        *body       `json:"requestBody"`
	Responses   Named[body] `json:"responses"`

	Method string `json:"-"` // GET
	Path   string `json:"-"` // /gw/keys/{id}
	Rest   bool   `json:"-"` // the last name of the path stands for any number of segments
}

// Paging says where a list's next cursor is.
type Paging string

// The two ways.
const (
	PagingHeader Paging = "header" // X-Next-Cursor, the body being the page
	PagingBody   Paging = "body"   // next_cursor beside data
)

type security struct {
	GatewayKey []string `json:"gateway_key"`
}

// Parameter is a value in the path, the query or a header.
type Parameter struct {
	Ref         string `json:"$ref"`
	Name        string `json:"name"`
	In          string `json:"in"`
	Required    bool   `json:"required"`
	Description string `json:"description"`
	Schema      Schema `json:"schema"`
}

// body is a request's or a response's.
type body struct {
	Ref         string       `json:"$ref"`
	Description string       `json:"description"`
	Content     Named[media] `json:"content"`
}

type media struct {
	Schema Schema `json:"schema"`
}

// Schema is a JSON value's shape, as far as this contract uses it.
type Schema struct {
	Ref         string         `json:"$ref"`
	Type        types          `json:"type"`
	Format      string         `json:"format"` // uuid, date-time, usd
	Description string         `json:"description"`
	Enum        []string       `json:"enum"`
	Const       string         `json:"const"`
	Default     jsontext.Value `json:"default"`
	Minimum     *float64       `json:"minimum"`
	Maximum     *float64       `json:"maximum"`
	Items       *Schema        `json:"items"`
	Properties  Named[Schema]  `json:"properties"`
	Required    []string       `json:"required"`
	Additional  jsontext.Value `json:"additionalProperties"`
}

// types is one name or several.
type types []string

// UnmarshalJSONFrom reads a string or a list.
func (t *types) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '"' {
		*t = types{""}
		return json.UnmarshalDecode(d, &(*t)[0])
	}
	return json.UnmarshalDecode(d, (*[]string)(t))
}

// Named is an object whose members keep their order.
type Named[V any] []Member[V]

// Member is one of them.
type Member[V any] struct {
	Name  string
	Value V
}

// UnmarshalJSONFrom reads an object.
func (n *Named[V]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		var m Member[V]
		if err := json.UnmarshalDecode(d, &m.Name); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(d, &m.Value); err != nil {
			return err
		}
		*n = append(*n, m)
	}
	_, err := d.ReadToken()
	return err
}

// Find is the member of a name, nil for none.
func (n Named[V]) Find(name string) *V {
	for i := range n {
		if n[i].Name == name {
			return &n[i].Value
		}
	}
	return nil
}

// Load reads the contract.
func Load() (*Contract, error) {
	text, err := Document()
	if err != nil {
		return nil, err
	}
	var doc struct {
		Info struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		} `json:"info"`
		Tags       []Tag                        `json:"tags"`
		Paths      Named[Named[jsontext.Value]] `json:"paths"`
		Components struct {
			Schemas    Named[Schema]    `json:"schemas"`
			Parameters Named[Parameter] `json:"parameters"`
			Bodies     Named[body]      `json:"requestBodies"`
			Responses  Named[body]      `json:"responses"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	c := &Contract{Title: doc.Info.Title, Description: doc.Info.Description, Tags: doc.Tags, Schemas: doc.Components.Schemas}
	for _, path := range doc.Paths {
		for _, method := range path.Value {
			if strings.HasPrefix(method.Name, "x-") || method.Name == "description" {
				continue
			}
			op := Operation{Method: strings.ToUpper(method.Name), Path: path.Name, Rest: path.Value.Find("x-rest") != nil}
			if err := json.Unmarshal(method.Value, &op); err != nil {
				return nil, fmt.Errorf("%s %s: %w", op.Method, op.Path, err)
			}
			for i, p := range op.Parameters {
				if found := doc.Components.Parameters.Find(refName(p.Ref)); found != nil {
					op.Parameters[i] = *found
				}
			}
			if op.Body != nil {
				op.Body.resolve(doc.Components.Bodies)
			}
			for i := range op.Responses {
				op.Responses[i].Value.resolve(doc.Components.Responses)
			}
			c.Operations = append(c.Operations, op)
		}
	}
	slices.SortStableFunc(c.Operations, func(a, b Operation) int { return c.chapter(a) - c.chapter(b) })
	return c, nil
}

func (b *body) resolve(shared Named[body]) {
	if found := shared.Find(refName(b.Ref)); found != nil {
		*b = *found
	}
}

// refName is the last part of a reference.
func refName(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

func (c *Contract) chapter(op Operation) int {
	return slices.IndexFunc(c.Tags, func(t Tag) bool { return len(op.Tags) > 0 && t.Name == op.Tags[0] })
}

// Of are the operations of a chapter.
func (c *Contract) Of(tag string) (list []Operation) {
	for _, op := range c.Operations {
		if slices.Contains(op.Tags, tag) {
			list = append(list, op)
		}
	}
	return list
}

// Route is the operation's line in a table of routes.
func (o *Operation) Route() string {
	if o.Pattern != "" {
		return o.Pattern
	}
	return o.Method + " " + o.Path
}

// Public reports whether no key is needed.
func (o *Operation) Public() bool { return len(o.Security) == 0 }

// Scope is the right that the key needs, "" for none.
func (o *Operation) Scope() string {
	if o.Public() || len(o.Security[0].GatewayKey) == 0 {
		return ""
	}
	return o.Security[0].GatewayKey[0]
}

// Takes is the schema of the JSON body, nil for none.
func (o *Operation) Takes() *Schema {
	if o.Body == nil {
		return nil
	}
	return o.Body.json()
}

// Gives is the schema of the JSON answer, nil for none.
func (o *Operation) Gives() *Schema {
	if answer := o.Responses.Find("200"); answer != nil {
		return answer.json()
	}
	return nil
}

func (b *body) json() *Schema {
	if m := b.Content.Find("application/json"); m != nil {
		return &m.Schema
	}
	return nil
}

// Name is that of a schema which is a reference, "" for others.
func (s *Schema) Name() string { return refName(s.Ref) }

// Nullable reports whether null is a value.
func (s *Schema) Nullable() bool { return slices.Contains(s.Type, "null") }

// Kind is the type, null aside; "" for any.
func (s *Schema) Kind() string {
	for _, t := range s.Type {
		if t != "null" {
			return t
		}
	}
	return ""
}

// Needs reports whether an object must have a member.
func (s *Schema) Needs(member string) bool { return slices.Contains(s.Required, member) }

// Here is the schema by address, for templates.
func (s Schema) Here() *Schema { return &s }
