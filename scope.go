package modelgate

import "slices"

// Scope is a right of a key.
type Scope string

// The three scopes. AnyKey is not one of them: it marks routes that every
// valid key may call.
const (
	InferenceUse Scope = "inference:use"
	StatsRead    Scope = "stats:read"
	KeysManage   Scope = "keys:manage"
	AnyKey       Scope = ""
)

// AllScopes lists the scopes in the order they are shown.
func AllScopes() []Scope { return []Scope{InferenceUse, StatsRead, KeysManage} }

// Valid reports whether s is one of the three scopes.
func (s Scope) Valid() bool { return slices.Contains(AllScopes(), s) }
