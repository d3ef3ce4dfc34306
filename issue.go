package modelgate

import (
	"slices"
	"time"
)

// KeyWish is what a new key is asked to be (spec: POST /gw/keys).
type KeyWish struct {
	Scopes []Scope
	// Entitlements nil means absent: the ceiling is inherited. Empty denies
	// all inference.
	Entitlements *Entitlements
	SubAccountID SubAccountID // "" for a key of the organization
	// ExpiresInSeconds nil means never.
	ExpiresInSeconds *int64
	// SelfIssued says that a customer wishes it in its reseller's portal; see
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
func (w KeyWish) Validate() error {
	if w.ExpiresInSeconds != nil && (*w.ExpiresInSeconds < MinKeyTTL || *w.ExpiresInSeconds > MaxKeyTTL) {
		return Errorf(BadRequest, "expires_in_seconds must be an integer from %d to %d", MinKeyTTL, MaxKeyTTL)
	}
	for _, s := range w.Scopes {
		if !s.Valid() {
			return errUnknownScope(s)
		}
	}
	if w.Entitlements == nil {
		return nil
	}
	tuples := slices.Clone(*w.Entitlements) // defaults are filled in
	return tuples.Validate()
}

// Issue makes the key under a ceiling, with its secret, or says why not:
// bad_request for a malformed wish, forbidden for one outside the ceiling.
// Nothing is stored.
func (w KeyWish) Issue(client ClientID, ceiling Ceiling, catalog *Catalog, id UUID) (Key, Secret, error) {
	now := id.Time()
	if err := w.Validate(); err != nil {
		return Key{}, Secret{}, err
	}
	grant, err := ceiling.Admit(w.Scopes, w.Entitlements, catalog)
	if err != nil {
		return Key{}, Secret{}, err
	}
	secret := NewSecret()
	key := Key{
		ID: KeyID(id.String()), ClientID: client, Prefix: secret.Prefix(), Status: KeyActive,
		Scopes: grant.Scopes, SubAccountID: w.SubAccountID, CreatedAt: now,
		Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing, SelfIssued: w.SelfIssued,
	}
	if w.ExpiresInSeconds != nil {
		key.ExpiresAt = now.Add(time.Duration(*w.ExpiresInSeconds) * time.Second)
	}
	return key, secret, nil
}

// IssuedKey is the answer to an issuance: the only place a plaintext key is
// ever shown.
type IssuedKey struct {
	APIKeyID     KeyID        `json:"api_key_id"`
	Key          string       `json:"key"`
	Scopes       []Scope      `json:"scopes"`
	SubAccountID SubAccountID `json:"sub_account_id,omitempty"`
	ExpiresAt    *time.Time   `json:"expires_at,omitempty"`
}

// Issued joins a stored key and its secret into the answer.
func Issued(k Key, s Secret) IssuedKey {
	out := IssuedKey{APIKeyID: k.ID, Key: s.Reveal(), Scopes: k.Scopes, SubAccountID: k.SubAccountID}
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

// SelfIssue holds a wish to these terms and returns the ceiling it is issued
// under: the rights of the key that signed in, but for its scopes, which do not
// matter here. The key ends no later than that one. Errors are forbidden.
func (c *Caller) SelfIssue(w *KeyWish, now time.Time) (Ceiling, error) {
	if len(w.Scopes) != 1 || w.Scopes[0] != InferenceUse {
		return Ceiling{}, Errorf(Forbidden, "keys issued in a portal have the scope %s and no other", InferenceUse)
	}
	if w.ExpiresInSeconds == nil || *w.ExpiresInSeconds > MaxSelfIssuedTTL {
		return Ceiling{}, Errorf(Forbidden, "keys issued in a portal expire after %d seconds at most", MaxSelfIssuedTTL)
	}
	if !c.Live(now.Add(time.Duration(*w.ExpiresInSeconds)*time.Second - 1)) {
		return Ceiling{}, Errorf(Forbidden, "expires after the issuing key")
	}
	w.SelfIssued = true
	ceiling := c.Bounds()
	ceiling.MaxScopes = w.Scopes
	return ceiling, nil
}
