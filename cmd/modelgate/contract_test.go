package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"modelgate/internal/dashboard"
	"modelgate/internal/openapi"
)

// routed are the paths and first segments that a source file tells apart in
// its switches.
func routed(t *testing.T, file string) (paths []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, e := range clause.List {
			ast.Inspect(e, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if pathlike.MatchString(text) {
					paths = append(paths, text)
				}
				return true
			})
		}
		return true
	})
	return paths
}

// pathlike is a path, or the first segment of one.
var pathlike = regexp.MustCompile(`^/?[a-z0-9][a-z0-9./-]*$`)

// TestFrontIsDescribed finds every path that the front tells apart in the
// description of the API. What is under /gw and the doors, their own packages
// check.
func TestFrontIsDescribed(t *testing.T) {
	t.Parallel()
	paths := contract(t).Paths.Map()
	known := func(path string) bool {
		for described := range paths {
			if described == path || strings.HasPrefix(described, "/"+strings.Trim(path, "/")+"/") {
				return true
			}
		}
		return false
	}
	checked := 0
	for _, file := range []string{"../../internal/server/router.go", "../../internal/server/health.go", "../../internal/openapi/handler.go"} {
		for _, path := range routed(t, file) {
			checked++
			if !known(path) {
				t.Errorf("%s serves %s, which has no description; add it to internal/openapi/openapi.yaml", file, path)
			}
		}
	}
	if checked < 9 {
		t.Errorf("only %d paths found", checked)
	}
	for path := range paths {
		if dashboard.Serves(path) {
			t.Errorf("%s belongs to the pages, which are no part of the API", path)
		}
	}
}

// contract is the description of the API.
func contract(t *testing.T) *openapi3.T {
	t.Helper()
	text, err := openapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
