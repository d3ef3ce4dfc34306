package evidence

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// signedNote is a note with one signature, taken apart
// (https://pkg.go.dev/golang.org/x/mod/sumdb/note).
type signedNote struct {
	text []byte // with its last newline
	name string
	hash uint32
	sig  []byte
}

var errNote = errors.New("malformed note")

// signatureLine is the one line after the text. A name has none of the
// characters that two readers could treat differently.
var signatureLine = regexp.MustCompile(`^— ([A-Za-z0-9._:/-]{1,128}) ([A-Za-z0-9+/]{91}=)\n$`)

// parseNote is stricter than note.Open: there is one signature, and only one
// spelling of it.
func parseNote(msg string) (signedNote, error) {
	i := strings.LastIndex(msg, "\n\n")
	if i < 0 {
		return signedNote{}, errNote
	}
	m := signatureLine.FindStringSubmatch(msg[i+2:])
	if m == nil {
		return signedNote{}, errNote
	}
	raw, err := base64.StdEncoding.DecodeString(m[2])
	if err != nil || base64.StdEncoding.EncodeToString(raw) != m[2] {
		return signedNote{}, errNote
	}
	return signedNote{[]byte(msg[:i+1]), m[1], binary.BigEndian.Uint32(raw), raw[4:]}, nil
}

// of reports whether a note names a key as its signer; key is one that
// checkVKey accepts.
func (n *signedNote) of(key note.Verifier) bool {
	return n.name == key.Name() && n.hash == key.KeyHash()
}

// lines are those of the text if it begins with a title and has as many after
// it.
func (n *signedNote) lines(title string, want int) ([]string, bool) {
	lines := strings.Split(strings.TrimSuffix(string(n.text), "\n"), "\n")
	if len(lines) != want+1 || lines[0] != title {
		return nil, false
	}
	return lines[1:], true
}

var vkeyShape = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$`)

// CheckVKey reads a verifier key as `modelgate evidence key` prints it.
func CheckVKey(vkey string) (note.Verifier, error) {
	if !vkeyShape.MatchString(vkey) {
		return nil, fmt.Errorf("%q is not a verifier key such as name+1a2b3c4d+AbC…", vkey)
	}
	v, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("verifier key %s: %w", vkey, err)
	}
	return v, nil
}
