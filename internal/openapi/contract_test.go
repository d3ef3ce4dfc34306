package openapi

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	text, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDocument reads the contract with another's eyes.
func TestDocument(t *testing.T) {
	t.Parallel()
	doc := load(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			known := len(op.Tags) == 1 && doc.Tags.Get(op.Tags[0]) != nil
			if op.OperationID == "" || op.Summary == "" || !known || seen[op.OperationID] {
				t.Errorf("%s %s: id %q (known: %v), summary %q, tags %v", method, path, op.OperationID, seen[op.OperationID], op.Summary, op.Tags)
			}
			seen[op.OperationID] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("%d operations", len(seen))
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
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
