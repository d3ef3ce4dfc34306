package testkit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"modelgate"
	"modelgate/internal/evidence"
)

// EvidenceKey is the n-th of some signing keys that never change, so that what
// is signed with them does not either.
func EvidenceKey(t testing.TB, n int) evidence.Key {
	t.Helper()
	const name = "gate.example.com/evidence"
	seed := sha256.Sum256(fmt.Appendf(nil, "evidence key %d", n))
	private := ed25519.NewKeyFromSeed(seed[:])
	vkey, err := note.NewEd25519VerifierKey(name, private.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Split(vkey, "+")[1]
	k, err := evidence.ParseKey("PRIVATE+KEY+" + name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte{1}, seed[:]...)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Evidence is a chain in memory, of which files are made.
type Evidence struct {
	evidence.Signer
	Org     modelgate.ClientID
	Records [][]byte
	At      time.Time // of exports; zero is 2026-11-21
	// Pruned is the number up to which records are gone, and Anchor the signed
	// note on it.
	Pruned int64
	Anchor string
}

// EvidenceOrg is the organization of a chain that is given none.
const EvidenceOrg modelgate.ClientID = "0199aa00-0000-7000-8000-000000000001"

// NewEvidence is an empty chain that the first key signs.
func NewEvidence(t testing.TB) *Evidence {
	return &Evidence{
		Signer: evidence.Signer{Key: EvidenceKey(t, 1)}, Org: EvidenceOrg, At: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC),
	}
}

// Usage adds the records of n calls.
func (e *Evidence) Usage(n int) *Evidence {
	for range n {
		i := len(e.Records) + 1
		row := modelgate.UsageRow{
			CallBegin: modelgate.CallBegin{
				ID: modelgate.UUID{0x01, 0x99, 0xbb, 6: 0x70, 8: 0x80, 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}, ClientID: e.Org,
				At: e.At.Add(time.Duration(i-1000) * time.Second), KeyID: "0199aa00-0000-7000-8000-00000000000a", Provider: "openai", Model: "gpt-5-mini",
				Slug: "openai/gpt-5-mini", Author: "openai", Kind: modelgate.LLM, Region: "us", Door: "/v1/chat/completions",
			},
			CallEnd: modelgate.CallEnd{
				StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 12, Output: int64(i)},
				Cost: modelgate.Nano(3000 + 2000*i), PriceLabel: "input=0.25 output=2", LatencyMS: 812,
			},
		}
		if i%3 == 0 {
			row.SubAccountID = "0199aa00-0000-7000-8000-0000000000b3"
			row.CallBegin.Model = "gemini-2.5 \"pro\" 🚀\u2028\n"
		}
		e.Records = append(e.Records, evidence.AppendUsage(nil, &row, evidence.Origin{Instance: "i-1", Software: "v1.4.0"}))
	}
	return e
}

// Audit adds the record of a change.
func (e *Evidence) Audit(t testing.TB, action, change string) *Evidence {
	t.Helper()
	a := modelgate.Audit{
		ID: fmt.Sprintf("0199cc00-0000-7000-8000-%012x", len(e.Records)+1), At: e.At, ClientID: e.Org, Action: action,
		Actor: modelgate.Actor{Operator: "test"}, TargetType: "client", TargetID: string(e.Org), Change: []byte(change),
	}
	record, err := evidence.AppendAudit(nil, &a)
	if err != nil {
		t.Fatal(err)
	}
	e.Records = append(e.Records, record)
	return e
}

// HeadAt is the head of the chain at a number.
func (e *Evidence) HeadAt(seq int64) evidence.Head {
	c := evidence.Chain{Head: evidence.Head{ClientID: e.Org}}
	for _, r := range e.Records[:seq] {
		c.Append(r)
	}
	return c.Head
}

// Part is what a file from one number to another holds.
func (e *Evidence) Part(from, to int64) evidence.Part {
	p := evidence.Part{
		Org: e.Org, From: from, To: to, Latest: int64(len(e.Records)), At: e.At,
		Prev: e.HeadAt(from - 1).Hash, Last: e.HeadAt(to).Hash,
	}
	if from-1 == e.Pruned {
		p.Anchor = e.Anchor
	}
	return p
}

// Lines are those of the file of a part.
func (e *Evidence) Lines(t testing.TB, p evidence.Part) []string {
	t.Helper()
	header, err := e.Header(p)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{string(header)}
	c := evidence.Chain{Head: evidence.Head{ClientID: p.Org, Seq: p.From - 1, Hash: p.Prev}}
	for _, r := range e.Records[p.From-1 : p.To] {
		prev := c.Hash
		c.Append(r)
		lines = append(lines, string(evidence.AppendRecord(nil, c.Seq, prev, c.Hash, r)))
	}
	head, err := e.Head(p, header)
	if err != nil {
		t.Fatal(err)
	}
	return append(lines, string(head))
}

// File is the file of all that is not pruned.
func (e *Evidence) File(t testing.TB) []byte {
	return []byte(strings.Join(e.Lines(t, e.Part(e.Pruned+1, int64(len(e.Records)))), ""))
}

// Rotate lets another key follow.
func (e *Evidence) Rotate(t testing.TB, n int) *Evidence {
	t.Helper()
	next := EvidenceKey(t, n)
	note, err := e.Key.Rotate(next.VKey(), e.At)
	if err != nil {
		t.Fatal(err)
	}
	e.Key, e.Rotations = next, append(e.Rotations[:len(e.Rotations):len(e.Rotations)], note)
	return e
}

// Prune forgets the records up to a number and adds the record of it.
func (e *Evidence) Prune(t testing.TB, seq int64) *Evidence {
	t.Helper()
	head := e.HeadAt(seq)
	note, err := e.Key.Anchor(head, e.At)
	if err != nil {
		t.Fatal(err)
	}
	e.Pruned, e.Anchor = seq, note
	return e.Audit(t, "evidence.prune", fmt.Sprintf(`{"from":1,"to":%d,"hash":%q}`, seq, head.Hash))
}
