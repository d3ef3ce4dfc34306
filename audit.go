package modelgate

import (
	"encoding/json"
	"time"
)

// Actor is who made a change: exactly one of its fields is set.
type Actor struct {
	KeyID    KeyID    `json:"key_id,omitempty"`
	Operator string   `json:"operator,omitempty"` // the operator's command
	System   bool     `json:"system,omitempty"`
	PersonID PersonID `json:"person_id,omitempty"` // who is signed in, or signs in and so joins or leaves
}

// Valid reports whether exactly one field is set.
func (a Actor) Valid() bool {
	set := 0
	for _, is := range []bool{a.KeyID != "", a.Operator != "", a.System, a.PersonID != ""} {
		if is {
			set++
		}
	}
	return set == 1
}

// Audit records one change, or an export. It is written in the transaction that
// makes the change and later joins the evidence of its organization. It never holds a secret, a body
// or a header. ID, At, Action and Actor are set in every record; what else is
// set depends on the action.
type Audit struct {
	ID         string          `json:"id"` // UUIDv7
	At         time.Time       `json:"at"`
	ClientID   ClientID        `json:"-"`      // "" for what is no organization's, such as master_key.rotate
	Action     string          `json:"action"` // noun.verb, such as key.revoke
	Actor      Actor           `json:"actor"`
	TargetType string          `json:"target_type"` // "" where no single thing is changed, as by processor.event.doubt
	TargetID   string          `json:"target_id"`   // "" with TargetType
	Change     json.RawMessage `json:"change"`      // what was set or exported, nil where the action says it all
	RequestID  string          `json:"request_id"`  // of the request of a key or a person, "" for everything else
}
