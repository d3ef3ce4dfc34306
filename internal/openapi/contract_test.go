package openapi

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestDocument reads the description with another's eyes.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, op := range c.Operations {
		if op.ID == "" || op.Summary == "" || c.chapter(op) < 0 || seen[op.ID] {
			t.Errorf("%s: id %q (known: %v), summary %q, tags %v", op.Route(), op.ID, seen[op.ID], op.Summary, op.Tags)
		}
		seen[op.ID] = true
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	page, err := Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, far := range []string{"http://", "src=", "@import", "url(", "<script"} {
		if strings.Contains(string(page), far) {
			t.Errorf("the page has %s", far)
		}
	}
	for _, want := range []string{`id="issueKey"`, `<a href="#NewKey">NewKey</a>`, "keys:manage"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
