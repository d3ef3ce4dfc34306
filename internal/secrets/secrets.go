// Package secrets encrypts what the gateway keeps for others and must be able to
// read again: a payment processor's key, a signing key. Everything is sealed
// under a master key that lies in the configuration and never in the
// database.
//
// A sealed value is bound to its place: moved to another row or column it no
// longer opens. It names the key it was sealed under, so that several keys can
// be in use while values move from one to the next.
//
// The layout, in bytes: 1 version, 8 key id, 16 salt, 12 nonce, the text under
// AES-256-GCM, 16 tag. Each value has a key of its own, derived from the
// master key and the salt (RFC 5869), so that no number of values wears the
// master key out.
package secrets

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"modelgate"
)

// KeySize is the length of a master key in bytes.
const KeySize = 32

const (
	version  = 1
	idSize   = 8
	saltSize = 16
	headSize = 1 + idSize + saltSize
	// overhead is what GCM adds: its nonce and its tag.
	overhead = 12 + 16
)

// The errors of a value that cannot be opened for want of a key. Both may be
// shown to a client (PUT /gw/processor/config, 503).
var (
	ErrNoMasterKey = modelgate.Errorf(modelgate.Unavailable, "the gateway has no master key; ask its operator")
	ErrOtherKey    = modelgate.Errorf(modelgate.Unavailable, "the master key of a stored secret is not configured; ask the gateway's operator")
)

// ErrDamaged says that a sealed value was altered, or that it belongs to
// another place.
var ErrDamaged = errors.New("a sealed value is damaged or belongs to another place")

// Place is where a sealed value lies. Two values that could be mistaken for
// each other need different places.
type Place struct {
	Table, Row, Column string
}

// bind appends the place so that no two places come out the same.
func (p Place) bind(head []byte) []byte {
	for _, part := range [...]string{p.Table, p.Row, p.Column} {
		head = binary.BigEndian.AppendUint32(head, uint32(len(part)))
		head = append(head, part...)
	}
	return head
}

// Keys are the master keys of a gateway. nil has none: every method answers
// with ErrNoMasterKey then. Safe for concurrent use.
type Keys struct {
	keys []masterKey // the first seals, all open
}

type masterKey struct {
	id     [idSize]byte
	secret []byte
}

// Format prints a placeholder for every verb.
func (k *Keys) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[master keys]") }

// ParseKey reads a master key: 32 bytes in base64, as `openssl rand -base64 32`
// prints them. Its errors do not hold the text.
func ParseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("a master key is %d bytes in base64, as openssl rand -base64 %d prints them", KeySize, KeySize)
	}
	return key, nil
}

// New makes Keys of the key that seals and of those that only open; empty
// texts are left out. Without the first the result is nil.
func New(current string, previous ...string) (*Keys, error) {
	if current == "" {
		return nil, nil
	}
	k := new(Keys)
	for _, text := range append([]string{current}, previous...) {
		if text == "" {
			continue
		}
		secret, err := ParseKey(text)
		if err != nil {
			return nil, err
		}
		m := masterKey{secret: secret}
		id, err := hkdf.Key(sha256.New, secret, nil, "modelgate master key id", idSize)
		if err != nil {
			return nil, err
		}
		copy(m.id[:], id)
		k.keys = append(k.keys, m)
	}
	return k, nil
}

// Primary is the id of the key that seals, 16 hexadecimal digits; "" for none.
func (k *Keys) Primary() string {
	if k == nil {
		return ""
	}
	return hex.EncodeToString(k.keys[0].id[:])
}

// IDs are those of all keys, the one that seals first.
func (k *Keys) IDs() []string {
	if k == nil {
		return nil
	}
	var ids []string
	for _, m := range k.keys {
		ids = append(ids, hex.EncodeToString(m.id[:]))
	}
	return ids
}

// KeyOf is the id of the key that a value is sealed under; "" for what is no
// sealed value.
func KeyOf(sealed []byte) string {
	if len(sealed) < headSize+overhead || sealed[0] != version {
		return ""
	}
	return hex.EncodeToString(sealed[1 : 1+idSize])
}

// Seal encrypts a text for a place. Errors: ErrNoMasterKey.
func (k *Keys) Seal(at Place, text []byte) ([]byte, error) {
	if k == nil {
		return nil, ErrNoMasterKey
	}
	m := &k.keys[0]
	head := make([]byte, headSize, headSize+overhead+len(text))
	head[0] = version
	copy(head[1:], m.id[:])
	rand.Read(head[1+idSize:]) // never fails (crypto/rand)
	aead, err := m.cipher(head)
	if err != nil {
		return nil, err
	}
	return aead.Seal(head, nil, text, at.bind(bytes.Clone(head))), nil
}

// Open decrypts what Seal made for the same place. Errors: ErrNoMasterKey,
// ErrOtherKey, ErrDamaged.
func (k *Keys) Open(at Place, sealed []byte) ([]byte, error) {
	if k == nil {
		return nil, ErrNoMasterKey
	}
	id := KeyOf(sealed)
	if id == "" {
		return nil, ErrDamaged
	}
	head := sealed[:headSize:headSize]
	for i := range k.keys {
		m := &k.keys[i]
		if !bytes.Equal(m.id[:], head[1:1+idSize]) {
			continue
		}
		aead, err := m.cipher(head)
		if err != nil {
			return nil, err
		}
		text, err := aead.Open(nil, nil, sealed[headSize:], at.bind(head))
		if err != nil {
			return nil, ErrDamaged
		}
		return text, nil
	}
	return nil, ErrOtherKey
}

// cipher is that of the value whose head is given.
func (m *masterKey) cipher(head []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, m.secret, head[1+idSize:headSize], "modelgate seal", KeySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
