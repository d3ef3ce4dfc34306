package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/internal/evidence"
	"modelgate/test/testkit"
)

// histories are chains of every kind, and the lines of a file of each.
func histories(t *testing.T) (all [][]string) {
	t.Helper()
	for _, e := range []*testkit.Evidence{
		testkit.NewEvidence(t).Audit(t, "client.create", `{"name":"Größe","max_keys":10}`).Usage(9),
		testkit.NewEvidence(t).Usage(8).Prune(t, 3).Usage(2),
		testkit.NewEvidence(t).Usage(3).Rotate(t, 2).Usage(3).Rotate(t, 3),
	} {
		all = append(all, e.Lines(t, e.Part(e.Pruned+1, int64(len(e.Records)))))
	}
	other := testkit.NewEvidence(t)
	other.Org = "0199aa00-0000-7000-8000-000000000002"
	other.Usage(9)
	return append(all, other.Lines(t, other.Part(1, 9)))
}

// mutant is a file with one thing done to it; the kind says what.
func mutant(r *rand.Rand, files [][]string) (kind string, text []byte) {
	lines := append([]string{}, files[r.IntN(len(files))]...)
	i, j := r.IntN(len(lines)), r.IntN(len(lines))
	whole := func() []byte { return []byte(strings.Join(lines, "")) }
	switch r.IntN(7) {
	case 0:
		text = whole()
		text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		return "bit", text
	case 1:
		lines = append(lines[:i], lines[i+1:]...)
		return "delete", whole()
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
		return "swap", whole()
	case 3:
		lines = append(lines[:i+1], lines[i:]...)
		return "duplicate", whole()
	case 4:
		from := files[r.IntN(len(files))]
		lines[i] = from[r.IntN(len(from))]
		return "splice", whole()
	case 5:
		text = whole()
		return "cut", text[:r.IntN(len(text))]
	}
	text = whole()
	at := r.IntN(len(text))
	return "insert", append(append(append([]byte{}, text[:at]...), byte(r.IntN(256))), text[at:]...)
}

func verified(t *testing.T, text []byte, o evidence.Options) evidence.Report {
	t.Helper()
	report, err := evidence.Verify(bytes.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestHistoryMutants changes files in every way; none may pass, and no good
// file may fail.
func TestHistoryMutants(t *testing.T) {
	t.Parallel()
	files, good := histories(t), map[string]bool{}
	for _, lines := range files {
		good[strings.Join(lines, "")] = true
	}
	key := evidence.Options{VKeys: []string{testkit.EvidenceKey(t, 1).VKey()}}
	r := rand.New(rand.NewPCG(8, 1))
	tried, mutants, missed, same := map[string]int{}, 0, 0, 0
	for n := 0; n < size(5_000, 120_000); n++ {
		kind, text := mutant(r, files)
		if good[string(text)] {
			same++ // a line swapped with itself, or spliced into its own place
			continue
		}
		tried[kind]++
		mutants++
		if report := verified(t, text, key); report.Class == evidence.OK {
			missed++
			t.Errorf("a mutant by %s passed: %+v", kind, report)
		}
	}
	if least := size(4_500, 100_000); mutants < least || len(tried) != 7 {
		t.Errorf("%d mutants of %d kinds, want at least %d of 7", mutants, len(tried), least)
	}
	alarms := 0
	for n := range size(100, 1_000) {
		e := testkit.NewEvidence(t).Usage(1 + n%37)
		from := int64(1 + n%len(e.Records))
		text := []byte(strings.Join(e.Lines(t, e.Part(from, int64(len(e.Records)))), ""))
		if report := verified(t, text, key); report.Class != evidence.OK {
			alarms++
			t.Errorf("a good file failed: %+v", report)
		}
	}
	t.Logf("mutants %v, %d missed; %d were no change; %d good files, %d false alarms", tried, missed, same, size(100, 1_000), alarms)
}

// TestHistoryRewritten has somebody with the database and the signing key
// write another history, from every record on: a saved head tells.
func TestHistoryRewritten(t *testing.T) {
	t.Parallel()
	const records = 40
	first := verified(t, testkit.NewEvidence(t).Usage(records).File(t), evidence.Options{})
	state := evidence.NewState(&first)
	for n := range records {
		forged := testkit.NewEvidence(t).Usage(n).Audit(t, "forged", "null").Usage(records + 5)
		cut := testkit.NewEvidence(t).Usage(n)
		for what, text := range map[string][]byte{"rewritten": forged.File(t), "cut": cut.File(t)} {
			if report := verified(t, text, evidence.Options{}); report.Class != evidence.OK {
				t.Errorf("%s at %d fails without a saved head: %+v", what, n, report)
			}
			if report := verified(t, text, evidence.Options{State: state}); report.Class == evidence.OK {
				t.Errorf("%s at %d passes in spite of the saved head", what, n)
			}
		}
	}
}

// signedMutant is a file whose chain and signature are right and one of whose
// records is not what the gateway would have written.
func signedMutant(t *testing.T, r *rand.Rand) []byte {
	e := testkit.NewEvidence(t).Usage(4)
	record := e.Records[r.IntN(len(e.Records))]
	for range 1 + r.IntN(2) {
		at := r.IntN(len(record))
		pieces := []string{`"`, `\`, `{`, `}`, `,`, `:`, `0`, `-`, `\u0000`, `\u0008`, `\ud800`, "é", "\x00", "\xff", `null`, ` `, `1e3`, `"v":1,`}
		piece := pieces[r.IntN(len(pieces))]
		record = append(append(append([]byte{}, record[:at]...), piece...), record[min(len(record), at+r.IntN(3)):]...)
	}
	e.Records[r.IntN(len(e.Records))] = bytes.ReplaceAll(record, []byte("\n"), nil)
	return e.File(t)
}

// TestHistoryVerifiersAgree gives both verifiers the same fuzzed files: they
// say the same of the same line.
func TestHistoryVerifiersAgree(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), testkit.EvidenceKey(t, 1).VKey()
	files, r := histories(t), rand.New(rand.NewPCG(8, 2))
	args, want := []string{"../../contrib/evidence/verify.mjs", "--vkey", key}, []evidence.Report{}
	for n := range size(500, 10_000) {
		var text []byte
		switch n % 10 {
		case 0:
			text = []byte(strings.Join(files[r.IntN(len(files))], ""))
		case 1, 2, 3, 4:
			text = signedMutant(t, r)
		default:
			_, text = mutant(r, files)
		}
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args, want = append(args, path), append(want, verified(t, text, evidence.Options{VKeys: []string{key}}))
	}
	said, _ := exec.CommandContext(t.Context(), "node", args...).Output() // the code is that of the first bad file
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d reports on %d files", len(lines), len(want))
	}
	found := map[evidence.Class]int{}
	for i, line := range lines {
		var got evidence.Report
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		w := want[i]
		found[w.Class]++
		if got.Class != w.Class || got.Line != w.Line || w.Class == evidence.OK && (got.Cost != w.Cost || got.Hash != w.Hash) {
			t.Errorf("file %d: %s in line %d (%s), the other says %s in line %d (%s)", i, w.Class, w.Line, w.Reason, got.Class, got.Line, got.Reason)
		}
	}
	t.Logf("%d files: %v", len(want), found)
}
