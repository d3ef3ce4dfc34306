package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"modelgate"
)

// Hash is a link of an evidence chain: a SHA-256. The zero value
// stands before the first record.
type Hash [sha256.Size]byte

// String is the hash in lower-case hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Head is how far a chain goes: the number of its last record and the
// hash there. The zero values of Seq and Hash are those of an empty chain.
type Head struct {
	ClientID modelgate.ClientID
	Seq      int64 // 1 for the first record
	Hash     Hash
}

// Chain extends a head, record by record. It is not safe for
// concurrent use.
//
// The hash at n is SHA-256 of "gw-evidence/1\n", the organization, "\n", n in
// decimal, "\n", the 32 bytes of the hash at n-1 and the bytes of the record.
// That the organization and the number are in it keeps a record from being
// moved.
type Chain struct {
	Head
	buf []byte
}

// Format names the rule of Chain and of the files that
// exports are. It never changes its meaning.
const Format = "gw-evidence/1"

// Append makes a record the next of the chain. The record is in the form of
// RFC 8785 and is hashed as it is.
func (c *Chain) Append(record []byte) {
	c.Seq++
	b := append(append(c.buf[:0], Format...), '\n')
	b = append(append(b, c.ClientID...), '\n')
	b = append(strconv.AppendInt(b, c.Seq, 10), '\n')
	b = append(append(b, c.Hash[:]...), record...)
	c.Hash, c.buf = sha256.Sum256(b), b
}
