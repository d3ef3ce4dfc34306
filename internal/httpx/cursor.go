package httpx

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"modelgate"
)

// Position is a place in a list ordered by time and id: the last row a page
// showed.
type Position struct {
	At time.Time // microseconds
	ID string    // at most 64 bytes
}

// Cursors signs and reads the cursors of paged lists. A cursor contains
// only a position. One that was altered, or that belongs to another list,
// organization or filter, is refused. Safe for concurrent use.
type Cursors struct{ key []byte }

// NewCursors makes a signer; every instance of a gateway needs the same key.
func NewCursors(key []byte) *Cursors {
	// Derived, so that no signature made for another purpose under the same
	// key can pass as a cursor.
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("modelgate cursor"))
	return &Cursors{key: mac.Sum(nil)}
}

// The layout: version, 8 bytes of microseconds, the id, 16 bytes of HMAC
// over all that and the filter's hash.
const (
	cursorVersion = 1
	cursorHead    = 1 + 8
	cursorMAC     = 16
	maxCursorID   = 64
	maxCursor     = 128 // characters; the largest cursor has fewer
)

// Sign is the cursor of a position. Filter is everything the list depends on
// besides the position, the organization first.
func (c *Cursors) Sign(p Position, filter string) string {
	b := make([]byte, 0, cursorHead+len(p.ID)+cursorMAC)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(p.At.UnixMicro()))
	b = append(b, p.ID...)
	b = append(b, c.mac(b, filter)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read is the position in a cursor that Sign made for the same filter;
// anything else is bad_request.
func (c *Cursors) Read(text, filter string) (Position, error) {
	malformed := modelgate.Errorf(modelgate.BadRequest, "cursor is malformed or belongs to another query")
	if len(text) > maxCursor {
		return Position{}, malformed
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	// The decoder skips line breaks and ignores the last bits.
	if err != nil || base64.RawURLEncoding.EncodeToString(b) != text {
		return Position{}, malformed
	}
	if n := len(b) - cursorHead - cursorMAC; n < 0 || n > maxCursorID || b[0] != cursorVersion {
		return Position{}, malformed
	}
	signed := b[:len(b)-cursorMAC]
	if !hmac.Equal(b[len(signed):], c.mac(signed, filter)) {
		return Position{}, malformed
	}
	at := int64(binary.BigEndian.Uint64(signed[1:cursorHead]))
	return Position{At: time.UnixMicro(at).UTC(), ID: string(signed[cursorHead:])}, nil
}

func (c *Cursors) mac(signed []byte, filter string) []byte {
	hash := sha256.Sum256([]byte(filter))
	mac := hmac.New(sha256.New, c.key)
	mac.Write(hash[:])
	mac.Write(signed)
	return mac.Sum(nil)[:cursorMAC]
}
