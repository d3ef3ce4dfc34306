package gateway

import (
	"testing"

	"modelgate/internal/openapi"
)

// TestContract holds the doors against the description of the API.
func TestContract(t *testing.T) {
	t.Parallel()
	c, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, op := range c.Of("Doors") {
		if op.Method == "POST" {
			described[op.Path] = op.Scope() == "inference:use"
		}
	}
	for i := range doors {
		if !described[doors[i].path] {
			t.Errorf("POST %s has no description with scope inference:use; add it to internal/openapi/api/doors.yaml", doors[i].path)
		}
		delete(described, doors[i].path)
	}
	for path := range described {
		t.Errorf("POST %s is described and is no door", path)
	}
}
