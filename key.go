package modelgate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"strings"
	"time"
)

// KeyStatus is the stored state of a key. Expiry is not a state: an expired
// key stays active and stops authenticating (spec: States).
type KeyStatus string

// The states of a key.
const (
	KeyActive  KeyStatus = "active"
	KeyRevoked KeyStatus = "revoked"
)

// The bounds of expires_in_seconds (spec: Limits).
const (
	MinKeyTTL = 1
	MaxKeyTTL = 315_360_000
)

// MaxLineage is how many generations of keys there are below a key that an
// organization has bound to a sub-account.
const MaxLineage = 4

// Key is a gateway API key without its secret. It never changes but for its
// status, its limits and its last use.
type Key struct {
	ID           KeyID          `json:"id"`
	ClientID     ClientID       `json:"-"`
	Prefix       string         `json:"key_prefix"`
	Status       KeyStatus      `json:"status"`
	Scopes       []Scope        `json:"scopes"`
	SubAccountID SubAccountID   `json:"-"`
	CreatedAt    time.Time      `json:"created_at"`
	LastUsedAt   time.Time      `json:"-"` // zero until the first use
	ExpiresAt    time.Time      `json:"-"` // zero: never
	Entitlements Entitlements   `json:"-"`
	Denies       Entitlements   `json:"-"` // see Grant.Denies
	Backing      []Entitlements `json:"-"` // see Grant.Backing
	Limits       Limits         `json:"-"`
	// IssuedBy is the nearest key above it that is not revoked, of a key that
	// one bound to a sub-account has issued; "" for all others.
	IssuedBy   KeyID `json:"issued_by,omitempty"`
	SelfIssued bool  `json:"self_issued,omitzero"` // by a customer, in its reseller's portal
}

const (
	secretPrefix = "gw_live_"
	secretRandom = 40 // hex digits of randomness
	secretLen    = len(secretPrefix) + 48
	// prefixLen is how much of a secret is kept in clear (spec: Key).
	prefixLen = 16
)

// Secret is the plaintext of a key. It prints as a placeholder everywhere;
// Reveal is the only way out, and only the answer to an issuance uses it. The
// zero value holds no key and must not be used; see NewSecret.
type Secret struct {
	// text is behind a pointer because fmt does not ask unexported fields of
	// other types for their methods: it then prints an address.
	text *string
}

const redacted = "[redacted]"

// NewSecret draws a key: gw_live_, 40 random hex digits and 8 hex digits of
// the CRC-32 of what precedes, so that a typo costs no look-up.
func NewSecret() Secret {
	var b [secretRandom / 2]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	body := secretPrefix + hex.EncodeToString(b[:])
	text := fmt.Sprintf("%s%08x", body, crc32.ChecksumIEEE([]byte(body)))
	return Secret{&text}
}

// Reveal is the plaintext.
func (s Secret) Reveal() string { return *s.text }

// String keeps the plaintext out of texts.
func (s Secret) String() string { return redacted }

// Format keeps it out of fmt, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue keeps it out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// Prefix is the part that may be stored and shown.
func (s Secret) Prefix() string { return (*s.text)[:prefixLen] }

// Digest is what the gateway stores and looks keys up by.
func (s Secret) Digest() Digest { return DigestOf(*s.text) }

// Digest is the SHA-256 of a whole secret.
type Digest [sha256.Size]byte

// DigestOf hashes a presented secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// WellFormed reports whether a presented secret has the shape of a key and
// the right checksum. It is no proof that the key exists.
func WellFormed(secret string) bool {
	if len(secret) != secretLen || !strings.HasPrefix(secret, secretPrefix) {
		return false
	}
	for i := len(secretPrefix); i < secretLen; i++ {
		if c := secret[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	body, sum := secret[:secretLen-8], secret[secretLen-8:]
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) == sum
}
