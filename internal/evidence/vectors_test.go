package evidence_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/internal/evidence"
	"modelgate/test/testkit"
)

var update = flag.Bool("update", false, "write the test vectors again")

const (
	vectors  = "../../contrib/evidence/vectors"
	verifier = "../../contrib/evidence/verify.mjs"
)

// vector is a file with what a verifier must say about it, as it stands in
// index.json.
type vector struct {
	File  string          `json:"file"`
	What  string          `json:"what"`
	VKeys []string        `json:"vkeys"`
	State json.RawMessage `json:"state"`
	Class evidence.Class  `json:"class"`
	Exit  int             `json:"exit"`
	Line  int64           `json:"line"`
	Cost  string          `json:"cost_usd"`

	text []byte
}

// forged makes vectors of what somebody without the key could do to a file,
// and of what somebody with the key could.
func makeVectors(t *testing.T) []vector {
	one := testkit.EvidenceKey(t, 1).VKey()
	base := func() *testkit.Evidence {
		return testkit.NewEvidence(t).Audit(t, "client.create", `{"name":"Größe \"A\"","max_keys":1000,"rate":0.5}`).Usage(5)
	}
	lines := base().Lines(t, base().Part(1, 6))
	edit := func(change func(l []string) []string) []byte { return join(change(append([]string{}, lines...))) }
	line := func(n int, from, to string) []byte {
		return edit(func(l []string) []string {
			if !strings.Contains(l[n-1], from) {
				t.Fatalf("line %d does not have %s", n, from)
			}
			l[n-1] = strings.Replace(l[n-1], from, to, 1)
			return l
		})
	}
	signed := func(record string) []byte { // with the key, so that the chain and the signature are right
		e := base()
		e.Records[3] = []byte(record)
		return e.File(t)
	}
	usage := string(base().Records[3])
	with := func(from, to string) []byte {
		if !strings.Contains(usage, from) {
			t.Fatalf("the record does not have %s", from)
		}
		return signed(strings.Replace(usage, from, to, 1))
	}
	part := base().Part(1, 6)
	lie := func(change func(p *evidence.Part)) []byte {
		p := part
		change(&p)
		e := base()
		header, err := e.Header(part)
		if err != nil {
			t.Fatal(err)
		}
		head, err := e.Head(p, header)
		if err != nil {
			t.Fatal(err)
		}
		return edit(func(l []string) []string { l[len(l)-1] = string(head); return l })
	}
	state := func(e *testkit.Evidence, seq int64, key string) json.RawMessage {
		h := e.HeadAt(seq)
		return fmt.Appendf(nil, `{"hash":%q,"key":%q,"latest_seq":%d,"org":%q,"seq":%d,"time":"2026-11-20T10:00:00.000000Z"}`, h.Hash, key, len(e.Records), e.Org, seq)
	}
	pruned := testkit.NewEvidence(t).Usage(6).Prune(t, 4).Usage(1)
	unsaid := testkit.NewEvidence(t).Usage(6).Prune(t, 4)
	unsaid.Records = unsaid.Records[:6]
	lied := testkit.NewEvidence(t).Usage(6).Prune(t, 4)
	lied.Records = lied.Records[:6]
	lied.Audit(t, "evidence.prune", fmt.Sprintf(`{"to":4,"hash":%q}`, lied.HeadAt(3).Hash))
	rotated := testkit.NewEvidence(t).Usage(2).Rotate(t, 2).Usage(2)
	otherOrg := base()
	otherOrg.Org = "0199aa00-0000-7000-8000-000000000002"
	return []vector{
		{What: "a good file", Class: evidence.OK, text: edit(same)},
		{What: "a good file, with the key", VKeys: []string{one}, Class: evidence.OK, text: edit(same)},
		{What: "a file without records", Class: evidence.OK, text: testkit.NewEvidence(t).File(t)},
		{What: "a part", Class: evidence.OK, text: join(base().Lines(t, base().Part(3, 5)))},
		{What: "provisional and final cost", Class: evidence.OK, text: signed(finalRecord)},
		{What: "a type that is not known yet", Class: evidence.OK, text: signed(`{"type":"other","v":1}`)},
		{What: "a pruned chain", VKeys: []string{one}, Class: evidence.OK, text: pruned.File(t)},
		{What: "a key that handed over", VKeys: []string{one}, Class: evidence.OK, text: rotated.File(t)},
		{What: "the next part after a saved state", State: state(base(), 3, one), Class: evidence.OK, text: join(base().Lines(t, base().Part(4, 6)))},

		{What: "a changed figure", Class: evidence.Tampered, Line: 4, text: line(4, `"status_code":200`, `"status_code":201`)},
		{What: "a changed hash", Class: evidence.Tampered, Line: 4, text: line(4, `{"hash":"`, `{"hash":"0`)},
		{What: "two records swapped", Class: evidence.Gap, Line: 4, text: edit(func(l []string) []string { l[3], l[4] = l[4], l[3]; return l })},
		{What: "a record twice", Class: evidence.Tampered, Line: 5, text: edit(func(l []string) []string { return append(l[:4:4], l[3:]...) })},
		{What: "a record missing", Class: evidence.Gap, Line: 4, text: edit(func(l []string) []string { return append(l[:3], l[4:]...) })},
		{What: "the last records missing", Class: evidence.Gap, Line: 6, text: edit(func(l []string) []string { return append(l[:5], l[7]) })},
		{What: "a record of another organization", Class: evidence.Tampered, Line: 4, text: edit(func(l []string) []string {
			l[3] = otherOrg.Lines(t, otherOrg.Part(1, 6))[3]
			return l
		})},
		{What: "the head line missing", Class: evidence.Truncated, Line: 8, text: edit(func(l []string) []string { return l[:7] })},
		{What: "cut inside a line", Class: evidence.Truncated, Line: 5, text: edit(func(l []string) []string { l[4] = l[4][:50]; return l[:5] })},
		{What: "the last newline missing", Class: evidence.Truncated, Line: 8, text: edit(func(l []string) []string { l[7] = l[7][:len(l[7])-1]; return l })},
		{What: "nothing at all", Class: evidence.Truncated, Line: 1, text: []byte{}},
		{What: "something after the head line", Class: evidence.Tampered, Line: 9, text: edit(func(l []string) []string { return append(l, l[3]) })},
		{What: "space in a line", Class: evidence.Tampered, Line: 4, text: line(4, `,"prev"`, `, "prev"`)},
		{What: "a carriage return", Class: evidence.Tampered, Line: 4, text: line(4, "}\n", "}\r\n")},
		{What: "bytes that are no text", Class: evidence.Tampered, Line: 4, text: line(4, `openai`, "open\xffi")},
		{What: "a header of another time", Class: evidence.Tampered, Line: 8, text: line(1, "2026-11-21T10", "2026-11-21T11")},
		{What: "a header that ends earlier", Class: evidence.Tampered, Line: 7, text: line(1, `"to_seq":6`, `"to_seq":5`)},
		{What: "a header of another format", Class: evidence.Tampered, Line: 1, text: line(1, "gw-evidence/1", "gw-evidence/2")},
		{What: "the signature of another", Class: evidence.BadSignature, Line: 8, text: edit(func(l []string) []string {
			other := base().Usage(1)
			l[7] = strings.Replace(other.Lines(t, other.Part(1, 7))[8], `\n7\n`, `\n6\n`, 1)
			return l
		})},
		{What: "a key that is not trusted", VKeys: []string{testkit.EvidenceKey(t, 9).VKey()}, Class: evidence.UnknownKey, Line: 1, text: edit(same)},
		{What: "a key that did not hand over", VKeys: []string{one}, Class: evidence.UnknownKey, Line: 1, text: func() []byte {
			e := testkit.NewEvidence(t).Usage(2)
			e.Key = testkit.EvidenceKey(t, 2)
			return e.File(t)
		}()},
		{What: "a forged hand-over", VKeys: []string{one}, Class: evidence.BadSignature, Line: 1, text: func() []byte {
			e := testkit.NewEvidence(t).Usage(2).Rotate(t, 2)
			e.Rotations[0] = strings.Replace(e.Rotations[0], "2026", "2027", 1)
			return e.File(t)
		}()},

		// With the signing key: the chain and the signature are right.
		{What: "signed: a member twice", Class: evidence.Tampered, Line: 5, text: with(`"cost_usd":`, `"cost_usd":"0.000000001","cost_usd":`)},
		{What: "signed: members in another order", Class: evidence.Tampered, Line: 5, text: with(`"type":"usage","v":1`, `"v":1,"type":"usage"`)},
		{What: "signed: an escape that is not needed", Class: evidence.Tampered, Line: 5, text: with(`"us"`, `"\u0075s"`)},
		{What: "signed: half a character", Class: evidence.Tampered, Line: 5, text: with(`"us"`, `"\ud800"`)},
		{What: "signed: a number with a fraction", Class: evidence.Tampered, Line: 5, text: with(`"latency_ms":812`, `"latency_ms":812.5`)},
		{What: "signed: an integer past 2^53", Class: evidence.Tampered, Line: 5, text: with(`"latency_ms":812`, `"latency_ms":9007199254740993`)},
		{What: "signed: minus zero", Class: evidence.Tampered, Line: 5, text: with(`"latency_ms":812`, `"latency_ms":-0`)},
		{What: "signed: a negative cost", Class: evidence.Tampered, Line: 5, text: with(`"cost_usd":"`, `"cost_usd":"-`)},
		{What: "signed: a cost with fewer decimals", Class: evidence.Tampered, Line: 5, text: with(`"0.000011000"`, `"0.000011"`)},
		{What: "signed: of another organization", Class: evidence.Tampered, Line: 5, text: with(string(testkit.EvidenceOrg), "0199aa00-0000-7000-8000-000000000002")},
		{What: "signed: no id", Class: evidence.Tampered, Line: 5, text: with(`"id":"0199bb00`, `"id":"x199bb00`)},
		{What: "signed: another version", Class: evidence.Tampered, Line: 5, text: with(`"v":1`, `"v":2`)},
		{What: "signed: no record at all", Class: evidence.Tampered, Line: 5, text: signed(`[]`)},
		{What: "signed: a head of another chain", Class: evidence.Tampered, Line: 8, text: lie(func(p *evidence.Part) { p.Last[0]++ })},
		{What: "signed: a head of another organization", Class: evidence.Tampered, Line: 8, text: lie(func(p *evidence.Part) { p.Org = otherOrg.Org })},
		{What: "signed: a head of more records", Class: evidence.Tampered, Line: 8, text: lie(func(p *evidence.Part) { p.To, p.Latest = 7, 7 })},
		{What: "signed: a longer chain than the header says", Class: evidence.Tampered, Line: 8, text: lie(func(p *evidence.Part) { p.Latest = 9 })},
		{What: "signed: pruned without a record", Class: evidence.Tampered, Line: 4, text: unsaid.File(t)},
		{What: "signed: pruned at another hash", Class: evidence.Tampered, Line: 4, text: lied.File(t)},
		{What: "signed: rewritten since the saved state", State: state(base().Usage(1), 4, one), Class: evidence.Tampered, Line: 5,
			text: func() []byte { e := base().Usage(1); e.Records[2] = e.Records[1]; return e.File(t) }()},
		{What: "signed: cut since the saved state", State: state(base().Usage(1), 4, one), Class: evidence.Stale, Line: 1, text: edit(same)},
		{What: "records missing since the saved state", State: state(base(), 2, one), Class: evidence.Gap, Line: 1, text: join(base().Lines(t, base().Part(4, 6)))},
		{What: "the largest cost", VKeys: []string{one}, Class: evidence.OK, text: with(`"0.000011000"`, `"9223372036.854775807"`)},
		{What: "signed: a cost past all others", Class: evidence.Tampered, Line: 5, text: with(`"0.000011000"`, `"10000000000.000000000"`)},
	}
}

func same(l []string) []string { return l }

const finalRecord = `{"at":"2026-11-21T10:00:00.000000Z","client_id":"0199aa00-0000-7000-8000-000000000001","cost_usd":"0.000001000","instance":"i-1",` +
	`"parse_status":"ok","previous_cost_usd":"0.000011000","price_version":"","quantities":{},"ref":"0199bb00-0000-7000-8000-000000000003",` +
	`"sub_account_id":null,"sw":"","tokens":{"in":0,"out":0,"total":0},"type":"usage.final","v":1}`

// TestVectors holds the verifier against the vectors in contrib, which any
// other verifier can be held against too, and writes them with -update.
func TestVectors(t *testing.T) {
	t.Parallel()
	made := makeVectors(t)
	for i := range made {
		v := &made[i]
		v.File, v.Exit = fmt.Sprintf("%02d-%s.ndjson", i+1, slug(v.What)), v.Class.Exit()
		v.VKeys = append([]string{}, v.VKeys...)
		r := judge(t, v.text, v)
		if r.Class != v.Class || r.Line != v.Line {
			t.Errorf("%s: %+v, want %s in line %d", v.File, r, v.Class, v.Line)
		}
		v.Cost = r.Cost
		if r.Class != evidence.OK {
			v.Cost = ""
		}
		path := filepath.Join(vectors, v.File)
		if *update {
			write(t, path, v.text)
		}
		if stored, err := os.ReadFile(path); err != nil || string(stored) != string(v.text) {
			t.Errorf("%s is not what it should be (%v); go test -update writes it", path, err)
		}
	}
	index, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(vectors, "index.json")
	if *update {
		write(t, path, append(index, '\n'))
	}
	if stored, err := os.ReadFile(path); err != nil || string(stored) != string(index)+"\n" {
		t.Errorf("%s is not what it should be (%v); go test -update writes it", path, err)
	}
}

func judge(t *testing.T, text []byte, v *vector) evidence.Report {
	o := evidence.Options{VKeys: v.VKeys}
	if v.State != nil {
		o.State = new(evidence.State)
		if err := json.Unmarshal(v.State, o.State); err != nil {
			t.Fatal(err)
		}
	}
	return verify(t, text, o)
}

func slug(what string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(what), ": ", "-"), ", ", "-")), "-")
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestVectorsOfTheOther holds the verifier for Node.js against the vectors.
func TestVectorsOfTheOther(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(vectors, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, v := range list {
		t.Run(v.File, func(t *testing.T) {
			t.Parallel()
			args := []string{verifier}
			for _, k := range v.VKeys {
				args = append(args, "--vkey", k)
			}
			state := filepath.Join(t.TempDir(), "state.json")
			if string(v.State) != "null" {
				s := new(evidence.State)
				if err := json.Unmarshal(v.State, s); err != nil {
					t.Fatal(err)
				}
				if err := s.Write(state); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--state", state)
			}
			command := exec.CommandContext(t.Context(), "node", append(args, filepath.Join(vectors, v.File))...)
			said, err := command.Output()
			code := command.ProcessState.ExitCode()
			var got evidence.Report
			if json.Unmarshal(said, &got) != nil || code != v.Exit || got.Class != v.Class || got.Line != v.Line || v.Cost != "" && got.Cost != v.Cost {
				t.Errorf("exit %d, %s (%v), want %s in line %d", code, said, err, v.Class, v.Line)
			}
		})
	}
}
