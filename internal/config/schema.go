package config

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the configuration file, for editors. It is
// made from the structs of this package and their comments, and ends without
// a line break.
func Schema() []byte { return bytes.TrimSpace(bytes.Clone(schema)) }
