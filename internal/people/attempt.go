package people

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// AttemptLife is how long somebody may take to sign in at the provider.
const AttemptLife = 10 * time.Minute

// attempt is a sign-in under way. It is kept by the browser that began it, sealed:
// so any instance can complete it, and no other browser can.
type attempt struct {
	Provider string    `json:"p"`
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"` // PKCE
	ReturnTo string    `json:"r,omitempty"`
	Ends     time.Time `json:"e"`
}

func newAttempt(provider, root, returnTo string, now time.Time) *attempt {
	if !ownPath(root, returnTo) {
		returnTo = ""
	}
	return &attempt{provider, rand.Text(), rand.Text(), oauth2.GenerateVerifier(), returnTo, now.Add(AttemptLife)}
}

const maxReturnTo = 1000 // bytes; the cookie has to fit into 4096

// ownPath reports whether an address is one of the pages below a root.
func ownPath(root, path string) bool {
	below, ok := strings.CutPrefix(path, root)
	return ok && len(path) <= maxReturnTo && (below == "" || strings.ContainsRune("/?", rune(below[0]))) &&
		!strings.Contains(path, "//") && !strings.ContainsFunc(path, func(r rune) bool { return r == '\\' || r <= ' ' || r > '~' })
}

// sealer keeps attempts from being read and made by anybody else.
type sealer struct{ aead cipher.AEAD }

// newSealer makes one from a secret that all instances share. What is sealed for
// the pages below one root opens for no others.
func newSealer(secret []byte, root string) (sealer, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "modelgate sign-in attempt "+root, 32)
	if err != nil {
		return sealer{}, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

func (s sealer) seal(a *attempt) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), nil
}

var errNotSealed = errors.New("not an attempt of this gateway")

// open is the attempt of a cookie; what its time is over is not judged.
func (s sealer) open(cookie string) (*attempt, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return nil, errNotSealed
	}
	text, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, errNotSealed
	}
	a := new(attempt)
	return a, json.Unmarshal(text, a)
}
