package selfservice

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"modelgate/internal/openapi"
)

// TestContract holds the table of endpoints against the contract: each line is
// described, with its scope and its reach, and nothing is described that is not
// there. A new endpoint is described in internal/openapi/openapi.yaml.
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
	described := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			pattern := method + " " + path
			if p, ok := op.Extensions["x-pattern"].(string); ok {
				pattern = p
			}
			if strings.HasPrefix(path, "/gw/") || strings.HasPrefix(path, "/v1/models") {
				described[pattern] = op
			}
		}
	}
	for _, e := range compile() {
		op, ok := described[e.pattern]
		if !ok {
			t.Errorf("%s has no description; add it to internal/openapi/openapi.yaml", e.pattern)
			continue
		}
		delete(described, e.pattern)
		if op.Security == nil || len(*op.Security) == 0 {
			t.Errorf("%s is described as needing no key", e.pattern)
		} else if scopes := (*op.Security)[0]["gateway_key"]; strings.Join(scopes, " ") != string(e.scope) {
			t.Errorf("%s is described with scopes %q and needs %q", e.pattern, scopes, e.scope)
		}
		if (op.Extensions["x-for"] == "organization") != (e.reach == organization) {
			t.Errorf("%s is described as for %q and is for %q", e.pattern, op.Extensions["x-for"], e.reach)
		}
	}
	for pattern := range described {
		t.Errorf("%s is described and not there", pattern)
	}
}
