package openapi

import (
	"bytes"
	"fmt"
	"strings"
)

// tsClient writes the types and methods of the TypeScript client.
func tsClient(c *Contract) []byte {
	g := &tsWriter{c: c}
	g.line("// Generated from internal/openapi/api; do not edit.\n// go test ./internal/openapi -run Generated -update makes it anew.\n")
	g.line("import { Transport } from \"./transport.js\";\n")
	for _, name := range c.reached() {
		g.schema(name, *c.Schemas.Find(name))
	}
	for _, op := range c.managed() {
		g.query(op)
	}
	g.line("/** The self-service API, /gw, for one key. */\nexport class Modelgate extends Transport {")
	for _, op := range c.managed() {
		g.method(op)
	}
	g.line("}")
	return g.b.Bytes()
}

type tsWriter struct {
	c *Contract
	b bytes.Buffer
}

func (g *tsWriter) line(format string, args ...any) { fmt.Fprintf(&g.b, format+"\n", args...) }

func (g *tsWriter) comment(indent, text string) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\n", " "))
	if text != "" {
		g.line("%s/** %s */", indent, text)
	}
}

func (g *tsWriter) schema(name string, s Schema) {
	g.comment("", s.Description)
	if len(s.Enum) > 0 {
		g.line("export type %s = %s;\n", name, tsType(s))
		return
	}
	g.line("export interface %s {", name)
	for _, p := range s.Properties {
		g.comment("  ", about(p.Value.Description, p.Value))
		g.line("  %s%s: %s;", p.Name, map[bool]string{false: "?"}[s.Needs(p.Name)], tsType(p.Value))
	}
	g.line("}\n")
}

func tsType(s Schema) string {
	t := "unknown"
	switch {
	case s.Ref != "":
		t = s.Name()
	case len(s.Enum) > 0:
		t = `"` + strings.Join(s.Enum, `" | "`) + `"`
	case s.Kind() == "array":
		t = "Array<" + tsType(*s.Items) + ">"
	case s.Kind() == "integer", s.Kind() == "number":
		t = "number"
	case s.Kind() == "boolean", s.Kind() == "string":
		t = s.Kind()
	case s.Kind() == "object":
		t = "Record<string, string>"
	}
	if s.Nullable() {
		t += " | null"
	}
	return t
}

func (g *tsWriter) query(op Operation) {
	params := op.in("query")
	if len(params) == 0 {
		return
	}
	g.line("export interface %sQuery {", exported(op.ID))
	for _, p := range params {
		g.comment("  ", about(p.Description, p.Schema))
		g.line("  %s%s: %s;", p.Name, map[bool]string{false: "?"}[p.Required], tsType(p.Schema))
	}
	g.line("}\n")
}

func (g *tsWriter) method(op Operation) {
	out := op.Gives()
	var args []string
	path := op.Path
	for _, p := range op.in("path") {
		args = append(args, unexported(p.Name)+": string")
		path = strings.Replace(path, "{"+p.Name+"}", "${encodeURIComponent("+unexported(p.Name)+")}", 1)
	}
	given := []string{`"` + op.Method + `"`, "`" + path + "`"}
	query, body := "undefined", "undefined"
	if in := op.Takes(); in != nil {
		args, body = append(args, "body: "+tsType(*in)), "body"
	}
	if params := op.in("query"); len(params) > 0 {
		kind := "query: " + exported(op.ID) + "Query"
		if !needed(params) {
			kind += " = {}"
		}
		args, query = append(args, kind), "query"
	}
	given = append(given, query, body)
	g.comment("  ", op.Summary+". "+right(op)+" "+op.Description)
	head, tail := strings.Join(args, ", "), strings.Join(given, ", ")
	switch {
	case op.Paging == PagingHeader:
		g.line("  %s(%s): AsyncGenerator<%s> {\n    return this.pages(%s);\n  }\n", op.ID, head, tsType(*out.Items), tail)
	case op.Paging == PagingBody:
		entries := g.c.Schemas.Find(out.Name()).Properties.Find("data")
		g.line("  %s(%s): AsyncGenerator<%s> {\n    return this.pages(%s);\n  }\n", op.ID, head, tsType(*entries.Items), tail)
	case out != nil:
		g.line("  %s(%s): Promise<%s> {\n    return this.json(%s);\n  }\n", op.ID, head, tsType(*out), tail)
	case op.Responses.Find("200") != nil:
		g.line("  %s(%s): Promise<Response> {\n    return this.open(%s);\n  }\n", op.ID, head, tail)
	default:
		g.line("  async %s(%s): Promise<void> {\n    await this.send(%s);\n  }\n", op.ID, head, tail)
	}
}

func needed(params []Parameter) bool {
	for _, p := range params {
		if p.Required {
			return true
		}
	}
	return false
}
