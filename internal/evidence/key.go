package evidence

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// Key is a private signing key (Ed25519) with its public counterpart. It
// prints as a placeholder.
type Key struct {
	signer note.Signer
	text   string
	vkey   string
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)

// NewKey draws a key. The name says whose it is, such as
// gate.example.com/evidence: letters, digits and ._:/- only.
func NewKey(name string) (Key, error) {
	if !keyName.MatchString(name) {
		return Key{}, fmt.Errorf("%q cannot name a key: 1 to 128 letters, digits and ._:/- can", name)
	}
	text, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return Key{}, err
	}
	return ParseKey(text)
}

var errKey = errors.New("not a signing key: want PRIVATE+KEY+… as `modelgate evidence key new` prints it")

// ParseKey reads a key as Reveal writes it. Errors do not hold the text.
func ParseKey(text string) (Key, error) {
	text = strings.TrimSpace(text)
	signer, err := note.NewSigner(text)
	parts := strings.SplitN(text, "+", 5)
	if err != nil || len(parts) != 5 || !keyName.MatchString(parts[2]) {
		return Key{}, errKey
	}
	seed, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(seed) != 1+ed25519.SeedSize {
		return Key{}, errKey
	}
	public := ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey)
	vkey, err := note.NewEd25519VerifierKey(parts[2], public)
	if err != nil {
		return Key{}, errKey
	}
	return Key{signer, text, vkey}, nil
}

// Reveal is the private key as text: PRIVATE+KEY+name+hash+key.
func (k Key) Reveal() string { return k.text }

// VKey is the public key as verifiers take it: name+hash+key.
func (k Key) VKey() string { return k.vkey }

// Format prints a placeholder for every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[signing key]") }

func (k Key) sign(lines ...string) (string, error) {
	msg, err := note.Sign(&note.Note{Text: strings.Join(lines, "\n") + "\n"}, k.signer)
	return string(msg), err
}

// The titles of the notes that a key signs: a note of one kind can never be
// taken for one of another.
const (
	headTitle   = Format + "/head"
	anchorTitle = Format + "/anchor"
	rotateTitle = Format + "/rotate"
)

// Rotate makes the note by which a key hands over to the next.
func (k Key) Rotate(next string, at time.Time) (string, error) {
	return k.sign(rotateTitle, k.vkey, next, FormatTime(at))
}

// Anchor makes the note on the end of what is pruned.
func (k Key) Anchor(h Head, at time.Time) (string, error) {
	return k.sign(anchorTitle, string(h.ClientID), fmt.Sprint(h.Seq), h.Hash.String(), FormatTime(at))
}
