package pages

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"modelgate"
)

// lifetime is how long a session lasts at most; it ends earlier with its key.
const lifetime = 12 * time.Hour

// ticket is what a cookie holds. The digest finds the key; it is not the key,
// and without it whoever holds the session key alone can forge nothing.
type ticket struct {
	key     modelgate.KeyID
	digest  modelgate.Digest
	expires time.Time // whole seconds
}

// seals makes and opens tickets. A ticket is bound to its audience: that of
// one portal opens neither another portal nor the dashboard.
type seals struct {
	aead cipher.AEAD
	now  func() time.Time
}

func newSeals(key []byte, now func() time.Time) (*seals, error) {
	// Derived, so that nothing sealed for another purpose under the same key
	// can pass as a session.
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("modelgate page session"))
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &seals{aead, now}, err
}

// The layout: key id, digest, expiry in seconds.
const (
	ticketID  = len(modelgate.UUID{})
	ticketLen = ticketID + len(modelgate.Digest{}) + 8
	maxCookie = 256 // characters; a ticket has fewer
)

// seal draws a new ticket for a caller; key is its digest.
func (s *seals) seal(c *modelgate.Caller, key modelgate.Digest, audience string) (string, time.Time) {
	ends := s.now().Add(lifetime)
	if !c.ExpiresAt.IsZero() && c.ExpiresAt.Before(ends) {
		ends = c.ExpiresAt
	}
	id, _ := modelgate.ParseUUID(string(c.KeyID)) // key ids are UUIDs
	b := make([]byte, 0, ticketLen)
	b = append(b, id[:]...)
	b = append(b, key[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(ends.Unix()))
	sealed := s.aead.Seal(nil, nil, b, []byte(audience))
	return base64.RawURLEncoding.EncodeToString(sealed), time.Unix(ends.Unix(), 0).UTC()
}

// open is the ticket in a cookie that has not ended.
func (s *seals) open(text, audience string) (ticket, bool) {
	if len(text) > maxCookie {
		return ticket{}, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line breaks and ignores the last bits.
	if err != nil || base64.RawURLEncoding.EncodeToString(sealed) != text {
		return ticket{}, false
	}
	b, err := s.aead.Open(nil, nil, sealed, []byte(audience))
	if err != nil || len(b) != ticketLen {
		return ticket{}, false
	}
	t := ticket{
		key:     modelgate.KeyID(modelgate.UUID(b[:ticketID]).String()),
		digest:  modelgate.Digest(b[ticketID : ticketLen-8]),
		expires: time.Unix(int64(binary.BigEndian.Uint64(b[ticketLen-8:])), 0).UTC(),
	}
	return t, s.now().Before(t.expires)
}
