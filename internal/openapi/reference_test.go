package openapi

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"html"
	htmltemplate "html/template"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write the reference anew")

// reference is what the templates in testdata are executed with.
type reference struct{ *openapi3.T }

// operation is a method of a path.
type operation struct {
	Method, Path string
	*openapi3.Operation
}

// Operations are those of a tag, in the order of their paths.
func (r reference) Operations(tag string) (list []operation) {
	for path, item := range r.Paths.Map() {
		for method, op := range item.Operations() {
			if slices.Contains(op.Tags, tag) {
				list = append(list, operation{method, path, op})
			}
		}
	}
	slices.SortFunc(list, func(a, b operation) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
	return list
}

// Right says which keys may call an operation.
func (o operation) Right() string {
	text := "Any valid key"
	switch {
	case o.Security == nil || len(*o.Security) == 0:
		text = "No key"
	case len((*o.Security)[0]["gateway_key"]) > 0:
		text = fmt.Sprintf("Scope `%s`", (*o.Security)[0]["gateway_key"][0])
	}
	if o.Extensions["x-for"] != nil {
		text += "; not for keys bound to a sub-account"
	}
	return text + "."
}

// Takes is the schema of the JSON body, nil for none.
func (o operation) Takes() *openapi3.SchemaRef {
	if o.RequestBody == nil {
		return nil
	}
	return jsonSchema(o.RequestBody.Value.Content)
}

// Gives is the schema of the JSON answer, nil for none.
func (o operation) Gives() *openapi3.SchemaRef {
	if answer := o.Responses.Value("200"); answer != nil {
		return jsonSchema(answer.Value.Content)
	}
	return nil
}

func jsonSchema(c openapi3.Content) *openapi3.SchemaRef {
	if media := c["application/json"]; media != nil {
		return media.Schema
	}
	return nil
}

// member is a property of an object.
type member struct {
	Name     string
	Optional bool
	*openapi3.SchemaRef
}

// members are an object's properties: the required ones in their order, then
// the others.
func members(s *openapi3.Schema) (list []member) {
	names := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		list = append(list, member{name, i >= len(s.Required), s.Properties[name]})
	}
	return list
}

// shape is a schema in a few words; link writes a reference to another.
func shape(s *openapi3.SchemaRef, link func(name string) string) string {
	if s.Ref != "" {
		return link(s.Ref[strings.LastIndexByte(s.Ref, '/')+1:])
	}
	if len(s.Value.OneOf) > 0 {
		var kinds []string
		for _, kind := range s.Value.OneOf {
			kinds = append(kinds, shape(kind, link))
		}
		return strings.Join(kinds, " or ")
	}
	text := "any"
	for _, t := range s.Value.Type.Slice() {
		if t != "null" {
			text = t
		}
	}
	if text == "array" {
		text = "array of " + shape(s.Value.Items, link)
	}
	if f := s.Value.Format; f != "" {
		text += " (" + strings.Replace(f, "usd", "USD", 1) + ")"
	}
	if s.Value.Type.Includes("null") {
		text += " or null"
	}
	return text
}

// about is a description and a value's bounds, in one line.
func about(description string, s *openapi3.Schema) string {
	facts := []string{}
	if description != "" {
		facts = append(facts, strings.TrimSpace(description))
	}
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)+".") }
	if len(s.Enum) > 0 {
		add("One of %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Enum)), ", "), "[]"))
	}
	if s.Const != nil {
		add("Always %v", s.Const)
	}
	switch {
	case s.Min != nil && s.Max != nil:
		add("%.0f to %.0f", *s.Min, *s.Max)
	case s.Max != nil:
		add("At most %.0f", *s.Max)
	}
	if s.Default != nil {
		add("Default %v", s.Default)
	}
	return strings.ReplaceAll(strings.Join(facts, " "), "\n", " ")
}

// own are the parameters of an operation less the labels, which all calls of
// models take; the description of their group says so.
func own(all openapi3.Parameters) openapi3.Parameters {
	return slices.DeleteFunc(slices.Clone(all), func(p *openapi3.ParameterRef) bool {
		return p.Value.Name == "X-Gateway-Attribution"
	})
}

// prose is Markdown's paragraphs and code as HTML; the contract uses no more
// of it.
func prose(text string) htmltemplate.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		b.WriteString("<p>")
		for i, part := range strings.Split(html.EscapeString(paragraph), "`") {
			if i%2 == 1 {
				part = "<code>" + part + "</code>"
			}
			b.WriteString(part)
		}
		b.WriteString("</p>\n")
	}
	return htmltemplate.HTML(b.String())
}

func htmlLink(name string) string { return fmt.Sprintf(`<a href="#%s">%s</a>`, name, name) }

func markdownLink(name string) string {
	return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
}

// TestReference holds the reference, as a page and as Markdown, against the
// contract; with -update it is written anew.
func TestReference(t *testing.T) {
	t.Parallel()
	funcs := map[string]any{
		"members": members, "own": own, "about": about, "prose": prose, "trim": strings.TrimSpace,
		"shape":    func(s *openapi3.SchemaRef) string { return shape(s, markdownLink) },
		"htmlType": func(s *openapi3.SchemaRef) htmltemplate.HTML { return htmltemplate.HTML(shape(s, htmlLink)) },
	}
	for path, page := range map[string]interface {
		Execute(w io.Writer, data any) error
	}{
		"reference.html":              htmltemplate.Must(htmltemplate.New("reference.html.tmpl").Funcs(funcs).ParseFiles("testdata/reference.html.tmpl")),
		"../../docs/reference/api.md": template.Must(template.New("reference.md.tmpl").Funcs(funcs).ParseFiles("testdata/reference.md.tmpl")),
	} {
		var want bytes.Buffer
		if err := page.Execute(&want, reference{load(t)}); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what the contract says (%v); run make generate", path, err)
		}
	}
}
