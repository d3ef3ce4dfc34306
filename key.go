package modelgate

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// KeyStatus is the stored state of a key. Expiry is not a state: an expired
// key stays active and stops authenticating.
type KeyStatus string

// The states of a key.
const (
	KeyActive  KeyStatus = "active"
	KeyRevoked KeyStatus = "revoked"
)

// The bounds of expires_in_seconds.
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
	Name         string         `json:"-"` // as CleanKeyName leaves it; "" for none
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

	Kind  KeyKind  `json:"-"`               // KeyPlain for ""
	Owner PersonID `json:"owner,omitempty"` // the member that it belongs to; "" for the organization's
}

const (
	keyPrefix    = "gw_live_"
	tokenPrefix  = "gw_tmp_" // of browser tokens
	operatorMark = "gw_op_"  // of operator tokens
	secretRandom = 40        // hex digits of randomness
	secretHex    = secretRandom + 8
	// prefixLen is how much of a secret is kept in clear.
	prefixLen = 16
)

// Secret is the plaintext of a key or of a browser token. It prints as a placeholder everywhere;
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
func NewSecret() Secret { return newSecret(keyPrefix) }

// NewOperatorSecret draws an operator token, of the same form behind gw_op_.
func NewOperatorSecret() Secret { return newSecret(operatorMark) }

func newSecret(prefix string) Secret {
	var b [secretRandom / 2]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	body := prefix + hex.EncodeToString(b[:])
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

// ParseDigest reads a digest in hexadecimal, or fails with bad_request.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if n, err := hex.Decode(d[:], []byte(text)); len(text) != 2*len(d) || err != nil || n != len(d) {
		return Digest{}, Errorf(BadRequest, "digest must be the SHA-256 of a key, 64 hexadecimal digits")
	}
	return d, nil
}

// IsOperatorToken reports whether a presented secret has the shape of an operator
// token, and the right checksum.
func IsOperatorToken(secret string) bool {
	random, found := strings.CutPrefix(secret, operatorMark)
	return found && spelled(random, secretHex, digits+"abcdef") && len(random) == secretHex &&
		fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(secret[:len(secret)-8]))) == secret[len(secret)-8:]
}

// IsToken reports whether a presented secret says that it is a browser token.
func IsToken(secret string) bool { return strings.HasPrefix(secret, tokenPrefix) }

// WellFormed reports whether a presented secret has the shape of a key or of a
// browser token, and the right checksum. It is no proof that there is one.
func WellFormed(secret string) bool { return KeyFault(secret) == "" }

// KeyFault says how a presented secret differs from a key, or from a browser
// token where it begins like one; "" where it is well-formed. It quotes nothing
// of the secret.
func KeyFault(secret string) string {
	prefix := keyPrefix
	if IsToken(secret) {
		prefix = tokenPrefix
	}
	random, found := strings.CutPrefix(secret, prefix)
	switch length := len(prefix) + secretHex; {
	case !found:
		return "it does not begin with " + prefix
	case len(secret) != length:
		return fmt.Sprintf("it has %d characters instead of %d", len(secret), length)
	case !spelled(random, secretHex, digits+"abcdef"):
		return "after " + prefix + " it has a character other than 0-9 and a-f"
	}
	body, sum := secret[:len(secret)-8], secret[len(secret)-8:]
	if fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) != sum {
		return "its checksum does not match, so at least one character is wrong"
	}
	return ""
}

// KeyRequest is a request for a new key (POST /gw/keys).
type KeyRequest struct {
	Scopes []Scope
	// Entitlements nil means absent: the ceiling is inherited. Empty denies
	// all inference.
	Entitlements *Entitlements
	SubAccountID SubAccountID // "" for a key of the organization
	Name         *string      // see CleanKeyName; nil for none
	// ExpiresInSeconds nil means never.
	ExpiresInSeconds *int64
	// SelfIssued: an end customer issues the key in its reseller's portal; see
	// Caller.SelfIssue.
	SelfIssued bool
}

// Issuance is what the audit of an issuance keeps: the rights that the key has,
// whether they were asked for or inherited.
type Issuance struct {
	Scopes       []Scope      `json:"scopes"`
	Entitlements Entitlements `json:"entitlements"`
	// Denies are the ceiling's deny rules, which bind beside Entitlements.
	Denies       Entitlements `json:"denies,omitempty"`
	SubAccountID SubAccountID `json:"sub_account_id,omitempty"`
	ExpiresAt    *time.Time   `json:"expires_at,omitempty"`
	SelfIssued   bool         `json:"self_issued,omitzero"`
}

// Issuance is the record of the key's.
func (k *Key) Issuance() Issuance {
	i := Issuance{
		Scopes: k.Scopes, Entitlements: k.Entitlements, Denies: k.Denies, SubAccountID: k.SubAccountID, SelfIssued: k.SelfIssued,
	}
	if i.Scopes == nil {
		i.Scopes = []Scope{}
	}
	if i.Entitlements == nil {
		i.Entitlements = Entitlements{}
	}
	if !k.ExpiresAt.IsZero() {
		at := k.ExpiresAt.UTC()
		i.ExpiresAt = &at
	}
	return i
}

// Validate checks what needs no ceiling. Errors are bad_request.
func (r KeyRequest) Validate() error {
	if r.ExpiresInSeconds != nil && (*r.ExpiresInSeconds < MinKeyTTL || *r.ExpiresInSeconds > MaxKeyTTL) {
		return Errorf(BadRequest, "expires_in_seconds must be an integer from %d to %d", MinKeyTTL, MaxKeyTTL)
	}
	if r.Name != nil {
		if _, err := CleanKeyName(*r.Name); err != nil {
			return err
		}
	}
	for _, s := range r.Scopes {
		if !s.Valid() {
			return errUnknownScope(s)
		}
	}
	if r.Entitlements == nil {
		return nil
	}
	tuples := slices.Clone(*r.Entitlements) // defaults are filled in
	return tuples.Validate()
}

// Issue makes the key and its secret under a ceiling and stores nothing. Errors
// are bad_request for a malformed request and forbidden for one outside the
// ceiling.
func (r KeyRequest) Issue(client ClientID, ceiling Ceiling, catalog *Catalog, id UUID) (Key, Secret, error) {
	now := id.Time()
	if err := r.Validate(); err != nil {
		return Key{}, Secret{}, err
	}
	grant, err := ceiling.Admit(r.Scopes, r.Entitlements, catalog)
	if err != nil {
		return Key{}, Secret{}, err
	}
	secret := NewSecret()
	key := Key{
		ID: KeyID(id.String()), ClientID: client, Prefix: secret.Prefix(), Status: KeyActive,
		Scopes: grant.Scopes, SubAccountID: r.SubAccountID, CreatedAt: now,
		Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing, SelfIssued: r.SelfIssued,
	}
	if r.Name != nil {
		key.Name, _ = CleanKeyName(*r.Name) // Validate has had it
	}
	if r.ExpiresInSeconds != nil {
		key.ExpiresAt = now.Add(time.Duration(*r.ExpiresInSeconds) * time.Second)
	}
	return key, secret, nil
}

// IssuedKey is the answer to an issuance: the only place a plaintext key is
// ever shown.
type IssuedKey struct {
	APIKeyID     KeyID        `json:"api_key_id"`
	Key          string       `json:"key"`
	Scopes       []Scope      `json:"scopes"`
	Name         string       `json:"name,omitempty"`
	SubAccountID SubAccountID `json:"sub_account_id,omitempty"`
	ExpiresAt    *time.Time   `json:"expires_at,omitempty"`
}

// Issued joins a stored key and its secret into the answer.
func Issued(k Key, s Secret) IssuedKey {
	out := IssuedKey{APIKeyID: k.ID, Key: s.Reveal(), Scopes: k.Scopes, Name: k.Name, SubAccountID: k.SubAccountID}
	if !k.ExpiresAt.IsZero() {
		out.ExpiresAt = &k.ExpiresAt
	}
	return out
}

// The terms on which customers of a reseller issue keys in its portal.
const (
	// MaxSelfIssued is how many live keys a customer may have when it issues
	// another, that one included.
	MaxSelfIssued = 10
	// MaxSelfIssuedTTL is how long such a key may live, in seconds: 90 days.
	MaxSelfIssuedTTL = 90 * 24 * 60 * 60
)

// SelfIssue applies these terms to a request and returns the ceiling that the
// key is issued under: the rights of the key that signed in, except its scopes.
// The new key expires no later than that one. Errors are forbidden.
func (c *Caller) SelfIssue(r *KeyRequest, now time.Time) (Ceiling, error) {
	if err := r.selfIssued("keys issued in a portal"); err != nil {
		return Ceiling{}, err
	}
	if !c.Live(now.Add(time.Duration(*r.ExpiresInSeconds)*time.Second - 1)) {
		return Ceiling{}, Errorf(Forbidden, "expires after the issuing key")
	}
	r.SelfIssued = true
	ceiling := c.Bounds()
	ceiling.MaxScopes = r.Scopes
	return ceiling, nil
}

// ByDeveloper applies these terms to a request of a member in RoleDeveloper, whose
// keys are the organization's own. Errors are forbidden.
func (r *KeyRequest) ByDeveloper() error {
	if r.SubAccountID != "" {
		return Errorf(Forbidden, "keys that developers issue belong to no sub-account")
	}
	return r.selfIssued("keys that developers issue")
}

func (r *KeyRequest) selfIssued(which string) error {
	if len(r.Scopes) != 1 || r.Scopes[0] != InferenceUse {
		return Errorf(Forbidden, "%s have the scope %s and no other", which, InferenceUse)
	}
	if r.ExpiresInSeconds == nil || *r.ExpiresInSeconds > MaxSelfIssuedTTL {
		return Errorf(Forbidden, "%s expire after %d seconds at most", which, MaxSelfIssuedTTL)
	}
	return nil
}

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
