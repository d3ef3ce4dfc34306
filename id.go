package modelgate

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// The characters that names are made of.
const (
	digits        = "0123456789"
	lower         = "abcdefghijklmnopqrstuvwxyz"
	alphanumerics = digits + lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// spelled reports whether s is 1 to most of the characters, which are ASCII.
func spelled(s string, most int, characters string) bool {
	return s != "" && len(s) <= most && strings.Trim(s, characters) == ""
}

// ClientID names an organization: a UUID in its canonical text form. The
// tenant of every call is derived from the key and never from a parameter.
type ClientID string

// KeyID names a gateway API key (UUID).
type KeyID string

// SubAccountID names a sub-account (UUID); "" means no sub-account.
type SubAccountID string

// UsageID names one call (UUIDv7): it is the X-Gateway-Request-Id, the
// primary key of the usage row and the identifier of its billing event.
type UsageID string

// UUID is an RFC 9562 UUID in binary.
type UUID [16]byte

// String is the canonical lower-case text form.
func (u UUID) String() string {
	var b [36]byte
	text, _ := u.AppendText(b[:0])
	return string(text)
}

// AppendText appends the text form. It never fails.
func (u UUID) AppendText(dst []byte) ([]byte, error) {
	const hexadecimal = digits + "abcdef"
	for i, c := range u {
		switch i {
		case 4, 6, 8, 10:
			dst = append(dst, '-')
		}
		dst = append(dst, hexadecimal[c>>4], hexadecimal[c&15])
	}
	return dst, nil
}

// Time is the instant in a UUIDv7, to the millisecond, UTC.
func (u UUID) Time() time.Time {
	var b [8]byte
	copy(b[2:], u[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[:]))).UTC()
}

// ParseUUID reads the canonical text form, either letter case.
func ParseUUID(s string) (UUID, bool) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return UUID{}, false
	}
	src := make([]byte, 0, 32)
	for _, part := range [...]string{s[0:8], s[9:13], s[14:18], s[19:23], s[24:36]} {
		src = append(src, part...)
	}
	if _, err := hex.Decode(u[:], src); err != nil {
		return UUID{}, false
	}
	return u, true
}

// IDs issues UUIDv7s that strictly increase within the process, even when
// the wall clock steps back: the instant in an id is never below the last
// one. The zero value is not usable; see NewIDs. Safe for concurrent use.
type IDs struct {
	now func() time.Time

	mu   sync.Mutex
	last uint64 // unix milliseconds << 12 | counter
}

// NewIDs makes a source that reads the wall clock now.
func NewIDs(now func() time.Time) *IDs { return &IDs{now: now} }

// New returns the next id. Its Time is the instant the call was admitted:
// row, budget period and id can therefore never disagree.
func (g *IDs) New() UUID {
	ms := uint64(g.now().UnixMilli())
	g.mu.Lock()
	next := ms << 12
	if next <= g.last {
		next = g.last + 1
	}
	g.last = next
	g.mu.Unlock()

	var u UUID
	binary.BigEndian.PutUint64(u[0:8], next>>12<<16|0x7000|next&0xfff)
	rand.Read(u[8:]) // never fails (crypto/rand)
	u[8] = u[8]&0x3f | 0x80
	return u
}
