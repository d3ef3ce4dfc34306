package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"modelgate"
)

// Signer is the key that signs files, and the notes by which earlier keys
// handed over to it, the oldest first. It is immutable.
type Signer struct {
	Key       Key
	Rotations []string
}

// Part is the stretch of a chain that a file holds.
type Part struct {
	Org modelgate.ClientID
	// From and To are the numbers of the first and the last record; To is
	// From-1 in a file without records. Latest is the end of the chain.
	From, To, Latest int64
	// Prev and Last are the hashes before From and at To.
	Prev, Last Hash
	// Anchor is the signed note on From-1, "" unless the records up to there
	// were pruned.
	Anchor string
	At     time.Time // of the export
}

// keys are the verifier keys in the order of the rotations; the last is that of
// Key.
func (s *Signer) keys() []string {
	var keys []string
	for _, msg := range s.Rotations {
		if n, err := parseNote(msg); err == nil {
			if l, ok := n.lines(rotateTitle, 3); ok {
				keys = append(keys, l[0])
			}
		}
	}
	return append(keys, s.Key.VKey())
}

// Anchored is the note on the last pruned record for a file of this signer: the
// stored note or, where none of the signer's keys signed that one, a new note.
func (s *Signer) Anchored(h Head, stored string, at time.Time) (string, error) {
	if n, err := parseNote(stored); err == nil {
		for _, key := range s.keys() {
			if checkSignature(&n, key) == nil {
				return stored, nil
			}
		}
	}
	return s.Key.Anchor(h, at)
}

// header is the first line; its members are in order of their names.
type header struct {
	Anchor     anchor   `json:"anchor"`
	ExportedAt string   `json:"exported_at"`
	Format     string   `json:"format"`
	From       int64    `json:"from_seq"`
	Key        string   `json:"key"`
	Latest     int64    `json:"latest_seq"`
	Org        string   `json:"org"`
	Rotations  []string `json:"rotations"`
	To         int64    `json:"to_seq"`
}

type anchor struct {
	Hash string  `json:"hash"`
	Note *string `json:"note"`
	Seq  int64   `json:"seq"`
}

// Header makes the first line of a file, with its newline.
func (s *Signer) Header(p Part) ([]byte, error) {
	h := header{
		Anchor:     anchor{Hash: p.Prev.String(), Seq: p.From - 1},
		ExportedAt: FormatTime(p.At), Format: Format, From: p.From,
		Key: s.Key.VKey(), Latest: p.Latest, Org: string(p.Org), Rotations: append([]string{}, s.Rotations...), To: p.To,
	}
	if p.Anchor != "" {
		h.Anchor.Note = &p.Anchor
	}
	return jsonLine(h)
}

// AppendRecord appends the line of a record.
func AppendRecord(dst []byte, seq int64, prev, hash Hash, record []byte) []byte {
	dst = hex.AppendEncode(append(dst, `{"hash":"`...), hash[:])
	dst = hex.AppendEncode(append(dst, `","prev":"`...), prev[:])
	dst = append(append(dst, `","rec":`...), record...)
	return append(strconv.AppendInt(append(dst, `,"seq":`...), seq, 10), "}\n"...)
}

// Head makes the last line of the file that begins with a header line.
func (s *Signer) Head(p Part, headerLine []byte) ([]byte, error) {
	msg, err := s.Key.sign(headTitle, string(p.Org), fmt.Sprint(p.To), p.Last.String(), FormatTime(p.At),
		fmt.Sprint(p.From), fmt.Sprint(p.Latest), headerSum(headerLine))
	if err != nil {
		return nil, err
	}
	return jsonLine(struct {
		Head string `json:"head"`
	}{msg})
}

// headerSum is the hash by which the signed head refers to the header.
func headerSum(line []byte) string {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}
