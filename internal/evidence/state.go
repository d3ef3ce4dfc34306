package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"modelgate"
	"modelgate/internal/atomicfile"
)

// State is the end of the chain in a verified file. Kept outside the gateway, it
// reveals a rewritten history, whoever rewrote it.
type State struct {
	Hash   string             `json:"hash"`
	Key    string             `json:"key"`
	Latest int64              `json:"latest_seq"`
	Org    modelgate.ClientID `json:"org"`
	Seq    int64              `json:"seq"`
	Time   string             `json:"time"` // of the export
}

var errState = errors.New("not a state file of `modelgate evidence verify`")

// ReadState reads a state file; nil when there is none.
func ReadState(path string) (*State, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := parseState(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func parseState(text []byte) (*State, error) {
	members, ok := scanObject(bytes.TrimSuffix(text, []byte{'\n'}), nil)
	if !ok || !named(members, []string{"hash", "key", "latest_seq", "org", "seq", "time"}) || !noNulls(members) {
		return nil, errState
	}
	s := new(State)
	if err := json.Unmarshal(text, s); err != nil || !isHash([]byte(s.Hash)) || s.Seq < 0 || s.Latest < s.Seq {
		return nil, errState
	}
	if _, err := CheckVKey(s.Key); err != nil {
		return nil, errState
	}
	return s, nil
}

// NewState is the state after a valid file.
func NewState(r *Report) *State {
	return &State{Hash: r.Hash, Key: r.Key, Latest: r.Latest, Org: r.Org, Seq: r.To, Time: r.ExportedAt}
}

// Write replaces a state file in one step.
func (s *State) Write(path string) error {
	text, err := jsonLine(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o600)
}
