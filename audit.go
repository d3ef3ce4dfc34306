package modelgate

import (
	"encoding/json"
	"time"
)

// Actor is who made a change: exactly one of its fields is set.
type Actor struct {
	KeyID    KeyID  `json:"key_id,omitempty"`
	Operator string `json:"operator,omitempty"` // the operator's command
	System   bool   `json:"system,omitempty"`
}

// Audit records one mutation. It is written in the transaction that makes
// the change and later joins the evidence. It never holds a secret, a body
// or a header.
type Audit struct {
	ID         string // UUIDv7
	At         time.Time
	ClientID   ClientID
	Action     string // noun.verb, such as key.revoke
	Actor      Actor
	TargetType string
	TargetID   string
	Change     json.RawMessage // what was set, nil where the action says it all
	RequestID  string          // "" for operator commands
}
