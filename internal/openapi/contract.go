// Package openapi holds the contract of the HTTP API, OpenAPI 3.1, and serves
// it. openapi.yaml is written by hand. The reference page, docs/reference/api.md
// and the clients are generated from it; tests hold every route and every
// exchange of the scripts in spec against it.
package openapi

import (
	_ "embed"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var source []byte

// page is the reference as one HTML page that loads nothing from anywhere.
//
//go:embed reference.html
var page []byte

// Document is the contract as JSON, its members in the order of openapi.yaml.
func Document() ([]byte, error) { return yaml.YAMLToJSON(source) }
