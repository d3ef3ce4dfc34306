package openapi

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"unicode"
)

// goClient writes the types and methods of package client.
func goClient(c *Contract) []byte {
	g := &goWriter{c: c}
	g.line("// Code generated from internal/openapi/api; DO NOT EDIT.")
	g.line("//\n// go test ./internal/openapi -run Generated -update makes it anew.\n\npackage client\n")
	g.line("import (\n\"context\"\n\"io\"\n\"iter\"\n\"net/url\"\n\"time\"\n)\n")
	g.line("var _ io.Reader // not every contract has answers that are read as they come\n")
	for _, name := range c.reached() {
		s := c.Schemas.Find(name)
		g.schema(name, *s)
	}
	for _, op := range c.managed() {
		g.query(op)
		g.method(op)
	}
	text, err := format.Source(g.b.Bytes())
	if err != nil {
		return append([]byte(err.Error()+"\n"), g.b.Bytes()...)
	}
	return text
}

// managed are the operations that clients have.
func (c *Contract) managed() (list []Operation) {
	for _, op := range c.Operations {
		if strings.HasPrefix(op.Path, "/gw/") {
			list = append(list, op)
		}
	}
	return list
}

// reached are the schemas that these operations use, in the contract's order.
func (c *Contract) reached() (names []string) {
	used := map[string]bool{}
	var visit func(s *Schema)
	visit = func(s *Schema) {
		if s == nil {
			return
		}
		if s.Ref != "" && !used[s.Name()] {
			used[s.Name()] = true
			visit(c.Schemas.Find(s.Name()))
		}
		visit(s.Items)
		for i := range s.Properties {
			visit(&s.Properties[i].Value)
		}
	}
	for _, op := range c.managed() {
		for _, p := range op.Parameters {
			visit(&p.Schema)
		}
		visit(op.Takes())
		visit(op.Gives())
	}
	for _, s := range c.Schemas {
		if used[s.Name] {
			names = append(names, s.Name)
		}
	}
	return names
}

// asked reports whether a schema is a request's body.
func (c *Contract) asked(name string) bool {
	return slices.ContainsFunc(c.managed(), func(op Operation) bool { in := op.Takes(); return in != nil && in.Name() == name })
}

type goWriter struct {
	c *Contract
	b bytes.Buffer
}

func (g *goWriter) line(format string, args ...any) { fmt.Fprintf(&g.b, format+"\n", args...) }

// comment writes a text as the comment of a name.
func (g *goWriter) comment(text string) {
	for _, l := range strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "`", "")), "\n") {
		g.line("// %s", l)
	}
}

func (g *goWriter) schema(name string, s Schema) {
	text := s.Description
	if text == "" {
		text = name + " is a value of the API."
	} else {
		text = name + ": " + text
	}
	g.comment(text)
	if len(s.Enum) > 0 {
		g.line("type %s string\n\n// The values of %s.\nconst (", name, name)
		for _, v := range s.Enum {
			g.line("%s %s = %q", name+exported(v), name, v)
		}
		g.line(")\n")
		return
	}
	g.line("type %s struct {", name)
	for _, p := range s.Properties {
		if text := about(p.Value.Description, p.Value); text != "" {
			g.comment(text)
		}
		optional := !s.Needs(p.Name)
		tag := p.Name
		if optional || p.Value.Kind() == "array" && g.c.asked(name) { // a nil slice is absent, an empty one is []
			tag += ",omitzero"
		}
		g.line("%s %s `json:%q`", exported(p.Name), g.member(name, p.Value, optional), tag)
	}
	g.line("}\n")
}

// member is the Go type of an object's member: a pointer where null, or in a
// request absence, is something else than the zero value.
func (g *goWriter) member(owner string, s Schema, optional bool) string {
	t := goType(s)
	if s.Nullable() || optional && s.Kind() != "array" && (g.c.asked(owner) || t == "time.Time") {
		return "*" + t
	}
	return t
}

func goType(s Schema) string {
	switch {
	case s.Ref != "":
		return s.Name()
	case s.Format == "usd":
		return "USD"
	case s.Format == "date-time":
		return "time.Time"
	}
	switch s.Kind() {
	case "array":
		return "[]" + goType(*s.Items)
	case "integer":
		return "int64"
	case "number":
		return "float64"
	case "boolean":
		return "bool"
	case "object":
		return "map[string]string"
	case "string":
		return "string"
	}
	return "any"
}

func (g *goWriter) query(op Operation) {
	params := op.in("query")
	if len(params) == 0 {
		return
	}
	g.line("// %sQuery narrows Client.%s; what is zero is left out.\ntype %sQuery struct {", exported(op.ID), exported(op.ID), exported(op.ID))
	for _, p := range params {
		if text := about(p.Description, p.Schema); text != "" {
			g.comment(text)
		}
		g.line("%s %s", exported(p.Name), goType(p.Schema))
	}
	g.line("}\n")
}

// in are the parameters at a place, the cursor aside, which the iterator
// keeps.
func (o *Operation) in(place string) (list []Parameter) {
	for _, p := range o.Parameters {
		if p.In == place && (o.Paging == "" || p.Name != "cursor") {
			list = append(list, p)
		}
	}
	return list
}

func (g *goWriter) method(op Operation) {
	name, out := exported(op.ID), op.Gives()
	args, path := "ctx context.Context", fmt.Sprintf("%q", op.Path)
	for _, p := range op.in("path") {
		args += ", " + unexported(p.Name) + " string"
		path = strings.Replace(path, "{"+p.Name+"}", `" + url.PathEscape(`+unexported(p.Name)+`) + "`, 1)
	}
	path = strings.TrimSuffix(path, ` + ""`)
	build, request := "", fmt.Sprintf("request{method: %q, path: %s", op.Method, path)
	if in := op.Takes(); in != nil {
		args += ", in " + goType(*in)
		request += ", body: in"
	}
	if params := op.in("query"); len(params) > 0 {
		args += ", q " + name + "Query"
		request += ", query: url.Values(v)"
		build = "v := values{}\n"
		for _, p := range params {
			build += goParameter(p)
		}
	} else if op.Paging != "" {
		request += ", query: url.Values{}"
	}
	request += "}"
	g.comment(name + ": " + op.Summary + ". " + right(op) + "\n" + op.Description)
	switch {
	case op.Paging != "":
		entry := out
		if op.Paging == PagingBody {
			entry = g.c.Schemas.Find(out.Name()).Properties.Find("data")
		}
		t := goType(*entry.Items)
		read := map[Paging]string{PagingHeader: "byHeader", PagingBody: "byBody"}[op.Paging]
		g.line("func (c *Client) %s(%s) iter.Seq2[%s, error] {\n%s return pages(ctx, c, %s, %s[%s])\n}\n", name, args, t, build, request, read, t)
	case out != nil:
		g.line("func (c *Client) %s(%s) (%s, error) {\n%s return get[%s](ctx, c, %s)\n}\n", name, args, goType(*out), build, goType(*out), request)
	case op.Responses.Find("200") != nil:
		g.line("func (c *Client) %s(%s) (io.ReadCloser, error) {\n%s return c.open(ctx, %s)\n}\n", name, args, build, request)
	default:
		g.line("func (c *Client) %s(%s) error {\n%s return c.do(ctx, %s)\n}\n", name, args, build, request)
	}
}

func goParameter(p Parameter) string {
	switch t := goType(p.Schema); t {
	case "int64":
		return fmt.Sprintf("v.number(%q, q.%s)\n", p.Name, exported(p.Name))
	case "time.Time":
		return fmt.Sprintf("v.time(%q, q.%s)\n", p.Name, exported(p.Name))
	default:
		return fmt.Sprintf("v.text(%q, string(q.%s))\n", p.Name, exported(p.Name))
	}
}

// initials are words that Go writes in capitals.
var initials = []string{"sdk", "id", "url", "usd", "api", "llm", "ttl"}

// exported is a name of the API in Go.
func exported(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if slices.Contains(initials, word) {
			b.WriteString(strings.ToUpper(word))
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func unexported(name string) string {
	e := exported(name)
	if strings.ToUpper(e) == e {
		return strings.ToLower(e)
	}
	return strings.ToLower(e[:1]) + e[1:]
}
