package selfservice

import (
	"strings"
	"testing"

	"modelgate/internal/openapi"
)

// TestContract holds the table of endpoints against the description of the
// API: each line is described, with its scope and its reach, and nothing is
// described that is not there. A new endpoint is described in
// internal/openapi/api, in the file of its noun.
func TestContract(t *testing.T) {
	t.Parallel()
	c, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]openapi.Operation{}
	for _, op := range c.Operations {
		if strings.HasPrefix(op.Path, "/gw/") || strings.HasPrefix(op.Path, "/v1/models") {
			described[op.Route()] = op
		}
	}
	for _, e := range compile() {
		op, ok := described[e.pattern]
		if !ok {
			t.Errorf("%s has no description; add it to internal/openapi/api", e.pattern)
			continue
		}
		delete(described, e.pattern)
		if op.Scope() != string(e.scope) || op.Public() {
			t.Errorf("%s is described with scope %q and needs %q", e.pattern, op.Scope(), e.scope)
		}
		if (op.For == "organization") != (e.reach == organization) {
			t.Errorf("%s is described as for %q and is for %q", e.pattern, op.For, e.reach)
		}
	}
	for pattern := range described {
		t.Errorf("%s is described and not there", pattern)
	}
}
