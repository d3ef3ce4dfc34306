package evidence

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"unicode/utf8"

	"modelgate"
)

// Class is the verdict on a file.
type Class string

// The classes.
const (
	OK           Class = "ok"
	Tampered     Class = "tampered"      // something was altered
	Truncated    Class = "truncated"     // the end is missing
	Gap          Class = "gap"           // records are missing
	Stale        Class = "stale"         // the chain is shorter than it was before
	UnknownKey   Class = "unknown_key"   // signed with a key that is not trusted
	BadSignature Class = "bad_signature" // not what the key signed
)

// Exit is the exit code of `modelgate evidence verify`.
func (c Class) Exit() int {
	switch c {
	case OK:
		return 0
	case Tampered:
		return 1
	case UnknownKey, BadSignature:
		return 3
	}
	return 2
}

// Options are the keys and the earlier state to check a file against.
type Options struct {
	// VKeys are the trusted keys. The file must be signed with one of them, or
	// with a key that one of them handed over to. Without any, the key named in
	// the file is used, which proves integrity but not origin.
	VKeys []string
	// State is the end of the chain in an earlier file of the organization; nil
	// for none.
	State *State
}

// Report is what Verify found. Fields after Reason are known up to where the
// file was read.
type Report struct {
	Class  Class  `json:"class"`
	Line   int64  `json:"line"`   // the first bad one, from 1; 0 where all is good
	Reason string `json:"reason"` // "" where all is good

	Org        modelgate.ClientID `json:"org"`
	From       int64              `json:"from_seq"`
	To         int64              `json:"to_seq"`
	Latest     int64              `json:"latest_seq"`
	Hash       string             `json:"hash"` // at To
	ExportedAt string             `json:"exported_at"`
	Key        string             `json:"key"`     // that signed
	Trusted    bool               `json:"trusted"` // whether it was held against a trusted key

	Records int64 `json:"records"`
	Usage   int64 `json:"usage"`
	Finals  int64 `json:"finals"`
	Audit   int64 `json:"audit"`
	Other   int64 `json:"other"` // of types that this version does not know
	// Cost is the sum in USD: of all usage records, each provisional one
	// corrected by its final one.
	Cost string `json:"cost_usd"`
}

// problem ends the verification.
type problem struct {
	class  Class
	reason string
}

func (p *problem) Error() string { return p.reason }

func bad(c Class, format string, args ...any) error {
	return &problem{c, fmt.Sprintf(format, args...)}
}

// maxLine bounds a line, in bytes without its newline.
const maxLine = 1 << 20

// Verify reads a file and judges it. The error is that of reading, or of
// options that cannot be used; what is wrong with the file is in the report.
func Verify(r io.Reader, o Options) (Report, error) {
	v := verifier{lines: bufio.NewReaderSize(r, maxLine+1), options: o, cost: new(big.Int)}
	for _, k := range o.VKeys {
		if _, err := CheckVKey(k); err != nil {
			return Report{}, err
		}
	}
	err := v.run()
	found, ok := errors.AsType[*problem](err)
	if err != nil && !ok {
		return Report{}, err
	}
	v.report.Class, v.report.Cost = OK, new(big.Rat).SetFrac(v.cost, big.NewInt(int64(modelgate.USD))).FloatString(9)
	if ok {
		v.report.Class, v.report.Line, v.report.Reason = found.class, v.line, found.reason
	}
	return v.report, nil
}

// verifier is one verification. It goes through the file once, and the first
// problem ends it.
type verifier struct {
	lines   *bufio.Reader
	line    int64
	options Options
	report  Report

	header  header
	sum     string // of the header line
	chain   Chain
	members []member
	pruned  bool // the record of the pruning that the file begins after was seen
	cost    *big.Int
	term    big.Int
}

func (v *verifier) run() error {
	text, err := v.read()
	if err != nil {
		return err
	}
	if err := v.readHeader(text); err != nil {
		return err
	}
	if err := v.compareState(); err != nil {
		return err
	}
	for v.chain.Seq < v.header.To {
		if text, err = v.read(); err != nil {
			return err
		}
		if err := v.record(text); err != nil {
			return err
		}
	}
	if text, err = v.read(); err != nil {
		return err
	}
	if err := v.head(text); err != nil {
		return err
	}
	v.line++
	if _, err := v.lines.ReadByte(); err != io.EOF {
		if err != nil {
			return err
		}
		return bad(Tampered, "something follows the head line")
	}
	return nil
}

// read is the next line without its newline; it is valid until the next.
func (v *verifier) read() ([]byte, error) {
	v.line++
	text, err := v.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, bad(Tampered, "the line is longer than %d bytes", maxLine)
	case errors.Is(err, io.EOF) && len(text) == 0:
		return nil, bad(Truncated, "the file ends here, without its head line")
	case errors.Is(err, io.EOF):
		return nil, bad(Truncated, "the file ends inside this line")
	case err != nil:
		return nil, err
	}
	text = text[:len(text)-1]
	if !utf8.Valid(text) {
		return nil, bad(Tampered, "the line is not UTF-8")
	}
	return text, nil
}

// recordHead is how the line of a record begins: the member rec follows.
const recordHead = len(`{"hash":"`) + 64 + len(`","prev":"`) + 64 + len(`","rec":`)

var recordTail = regexp.MustCompile(`,"seq":([1-9][0-9]{0,15})\}$`)

// splitRecord takes the line of a record apart.
func splitRecord(text []byte) (hash, prev, record, seq []byte, ok bool) {
	i := bytes.LastIndex(text, []byte(`,"seq":`))
	if len(text) < recordHead || i <= recordHead {
		return nil, nil, nil, nil, false
	}
	m := recordTail.FindSubmatch(text[i:])
	hash, prev, record = text[9:73], text[83:147], text[recordHead:i]
	ok = m != nil && string(text[:9]) == `{"hash":"` && string(text[73:83]) == `","prev":"` &&
		string(text[147:recordHead]) == `","rec":` && isHash(hash) && isHash(prev) && record[0] == '{' && record[len(record)-1] == '}'
	if !ok {
		return nil, nil, nil, nil, false
	}
	return hash, prev, record, m[1], true
}

func isHash(text []byte) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == 64
}

func (v *verifier) record(text []byte) error {
	want := v.chain.Seq + 1
	if bytes.HasPrefix(text, []byte(`{"head":`)) {
		return bad(Gap, "records %d to %d are missing", want, v.header.To)
	}
	hash, prev, record, seq, ok := splitRecord(text)
	if !ok {
		return bad(Tampered, "the line is not that of a record")
	}
	n, err := strconv.ParseInt(string(seq), 10, 64)
	switch {
	case err != nil || n < want:
		return bad(Tampered, "record %s stands where record %d belongs", seq, want)
	case n > want:
		return bad(Gap, "records %d to %d are missing", want, n-1)
	}
	var now [64]byte
	hex.Encode(now[:], v.chain.Hash[:])
	if !bytes.Equal(prev, now[:]) {
		return bad(Tampered, "record %d does not follow the one before", n)
	}
	v.chain.Append(record)
	hex.Encode(now[:], v.chain.Hash[:])
	if !bytes.Equal(hash, now[:]) {
		return bad(Tampered, "record %d was altered: its hash is %s", n, now[:])
	}
	if v.members, ok = scanObject(record, v.members[:0]); !ok {
		return bad(Tampered, "record %d is not in canonical form", n)
	}
	if err := v.judge(n); err != nil {
		return err
	}
	v.report.Records++
	if s := v.options.State; s != nil && s.Seq == n && s.Hash != string(now[:]) {
		return bad(Tampered, "record %d is not the one of the saved state: history was rewritten", n)
	}
	return nil
}

// headLine is the last line.
func (v *verifier) head(text []byte) error {
	var h struct {
		Head string `json:"head"`
	}
	members, ok := scanObject(text, v.members[:0])
	if !ok || len(members) != 1 || json.Unmarshal(text, &h) != nil || string(members[0].name) != "head" || members[0].value[0] != '"' {
		return bad(Tampered, "the line is not a head line")
	}
	n, err := parseNote(h.Head)
	if err != nil {
		return bad(Tampered, "the head is not a signed note")
	}
	if err := checkSignature(&n, v.header.Key); err != nil {
		return err
	}
	l, ok := n.lines(headTitle, 7)
	want := []string{string(v.chain.ClientID), strconv.FormatInt(v.header.To, 10), v.chain.Hash.String(), v.header.ExportedAt,
		strconv.FormatInt(v.header.From, 10), strconv.FormatInt(v.header.Latest, 10), v.sum}
	if !ok {
		return bad(Tampered, "what is signed is not a head")
	}
	for i, what := range [...]string{"organization", "to_seq", "hash", "exported_at", "from_seq", "latest_seq", "header"} {
		if l[i] != want[i] {
			return bad(Tampered, "the signed head has another %s than the file", what)
		}
	}
	if v.header.Anchor.Note != nil && v.header.To == v.header.Latest && !v.pruned {
		return bad(Tampered, "records up to %d are gone, and no record says that they were pruned", v.header.Anchor.Seq)
	}
	v.report.Hash, v.report.Key = v.chain.Hash.String(), v.header.Key
	return nil
}
