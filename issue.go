package modelgate

import (
	"slices"
	"time"
)

// KeyWish is what a new key is asked to be (spec: POST /gw/keys). As JSON it
// is what the audit of an issuance keeps.
type KeyWish struct {
	Scopes []Scope `json:"scopes"`
	// Entitlements nil means absent: the ceiling is inherited. Empty denies
	// all inference.
	Entitlements *Entitlements `json:"entitlements,omitempty"`
	SubAccountID SubAccountID  `json:"sub_account_id,omitempty"` // "" for a key of the organization
	// ExpiresInSeconds nil means never.
	ExpiresInSeconds *int64 `json:"expires_in_seconds,omitempty"`
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
		Entitlements: grant.Entitlements, Denies: grant.Denies, Backing: grant.Backing,
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

// SelfIssue checks a wish against these terms. Errors are forbidden.
func (w KeyWish) SelfIssue() error {
	if len(w.Scopes) != 1 || w.Scopes[0] != InferenceUse {
		return Errorf(Forbidden, "keys issued in a portal have the scope %s and no other", InferenceUse)
	}
	if w.ExpiresInSeconds == nil || *w.ExpiresInSeconds > MaxSelfIssuedTTL {
		return Errorf(Forbidden, "keys issued in a portal expire after %d seconds at most", MaxSelfIssuedTTL)
	}
	return nil
}
