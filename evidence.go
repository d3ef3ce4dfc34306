package modelgate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// EvidenceHash is a link of an evidence chain: a SHA-256. The zero value
// stands before the first record.
type EvidenceHash [sha256.Size]byte

// String is the hash in lower-case hexadecimal.
func (h EvidenceHash) String() string { return hex.EncodeToString(h[:]) }

// EvidenceHead is how far a chain goes: the number of its last record and the
// hash there. The zero values of Seq and Hash are those of an empty chain.
type EvidenceHead struct {
	ClientID ClientID
	Seq      int64 // 1 for the first record
	Hash     EvidenceHash
}

// EvidenceChain extends a head, record by record. It is not safe for
// concurrent use.
//
// The hash at n is SHA-256 of "gw-evidence/1\n", the organization, "\n", n in
// decimal, "\n", the 32 bytes of the hash at n-1 and the bytes of the record.
// That the organization and the number are in it keeps a record from being
// moved.
type EvidenceChain struct {
	EvidenceHead
	buf []byte
}

// EvidenceFormat names the rule of EvidenceChain and of the files that
// exports are. It never changes its meaning.
const EvidenceFormat = "gw-evidence/1"

// Append makes a record the next of the chain. The record is in the form of
// RFC 8785 and is hashed as it is.
func (c *EvidenceChain) Append(record []byte) {
	c.Seq++
	b := append(append(c.buf[:0], EvidenceFormat...), '\n')
	b = append(append(b, c.ClientID...), '\n')
	b = append(strconv.AppendInt(b, c.Seq, 10), '\n')
	b = append(append(b, c.Hash[:]...), record...)
	c.Hash, c.buf = sha256.Sum256(b), b
}
