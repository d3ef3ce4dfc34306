package openapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

//go:embed page.html
var pageText string

// Page is the reference as one HTML page that loads nothing from anywhere.
func Page() ([]byte, error) {
	c, err := Load()
	if err != nil {
		return nil, err
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"prose": prose, "shape": func(s *Schema) template.HTML { return template.HTML(Shape(s, link)) },
		"facts": Facts, "needs": func(s Schema, member string) bool { return s.Needs(member) },
	}).Parse(pageText)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, c); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// link leads to a schema's own place.
func link(name string) string { return fmt.Sprintf(`<a href="#%s">%s</a>`, name, name) }

// prose is Markdown's paragraphs and code as HTML; the contract uses no more
// of it.
func prose(text string) template.HTML {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		b.WriteString("<p>")
		for i, part := range strings.Split(template.HTMLEscapeString(paragraph), "`") {
			if i%2 == 1 {
				part = "<code>" + part + "</code>"
			}
			b.WriteString(part)
		}
		b.WriteString("</p>")
	}
	return template.HTML(b.String())
}

// Shape is a schema in a few words; link writes a reference to another.
func Shape(s *Schema, link func(name string) string) string {
	if s == nil {
		return ""
	}
	var text string
	switch {
	case s.Ref != "":
		text = link(s.Name())
	case s.Kind() == "array":
		text = "array of " + Shape(s.Items, link)
	case s.Kind() == "object" && len(s.Additional) > 0 && len(s.Properties) == 0:
		text = "object"
	case s.Kind() == "":
		text = "any"
	default:
		text = s.Kind()
	}
	switch s.Format {
	case "usd":
		text += " (USD)"
	case "":
	default:
		text += " (" + s.Format + ")"
	}
	if s.Nullable() {
		text += " or null"
	}
	return text
}

// Facts are a value's bounds in words.
func Facts(s Schema) string {
	var facts []string
	if len(s.Enum) > 0 {
		facts = append(facts, "one of "+strings.Join(s.Enum, ", "))
	}
	if s.Const != "" {
		facts = append(facts, "always "+s.Const)
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		facts = append(facts, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	case s.Maximum != nil:
		facts = append(facts, fmt.Sprintf("at most %.0f", *s.Maximum))
	}
	if len(s.Default) > 0 {
		facts = append(facts, "default "+strings.Trim(s.Default.String(), `"`))
	}
	return strings.Join(facts, "; ")
}
