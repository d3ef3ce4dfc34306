package config

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema is the JSON Schema of the configuration file, for editors. It is
// made from the structs of this package and their comments.
func Schema() []byte { return append([]byte(nil), schema...) }
