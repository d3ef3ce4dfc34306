package gateway

import (
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"modelgate/internal/openapi"
)

// TestContract holds the doors against the contract.
func TestContract(t *testing.T) {
	t.Parallel()
	text, err := openapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		if op := item.Post; op != nil && slices.Contains(op.Tags, "Doors") {
			described[path] = op.Security != nil && len(*op.Security) == 1 && slices.Equal((*op.Security)[0]["gateway_key"], []string{"inference:use"})
		}
	}
	for i := range doors {
		if !described[doors[i].path] {
			t.Errorf("POST %s has no description with scope inference:use; add it to internal/openapi/openapi.yaml", doors[i].path)
		}
		delete(described, doors[i].path)
	}
	for path := range described {
		t.Errorf("POST %s is described and is no door", path)
	}
}
