package evidence_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"modelgate/internal/evidence"
	"modelgate/test/testkit"
)

func verify(t testing.TB, file []byte, o evidence.Options) evidence.Report {
	t.Helper()
	r, err := evidence.Verify(bytes.NewReader(file), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGoodFiles(t *testing.T) {
	t.Parallel()
	some := testkit.NewEvidence(t).Audit(t, "client.create", `{"name":"é <b>","max_keys":1000,"factor":1.5}`).Usage(20)
	for name, file := range map[string][]byte{
		"whole":    some.File(t),
		"empty":    testkit.NewEvidence(t).File(t),
		"part":     join(some.Lines(t, some.Part(5, 9))),
		"nothing":  join(some.Lines(t, some.Part(7, 6))),
		"rotated":  testkit.NewEvidence(t).Usage(3).Rotate(t, 2).Usage(3).Rotate(t, 3).File(t),
		"pruned":   testkit.NewEvidence(t).Usage(9).Prune(t, 4).Usage(2).File(t),
		"pruned 2": testkit.NewEvidence(t).Usage(9).Prune(t, 4).Rotate(t, 2).Prune(t, 8).File(t),
	} {
		for _, keys := range [][]string{nil, {testkit.EvidenceKey(t, 1).VKey()}} {
			r := verify(t, file, evidence.Options{VKeys: keys})
			if r.Class != evidence.OK || r.Line != 0 || r.Trusted != (keys != nil) || r.Records != r.To-r.From+1 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	r := verify(t, some.File(t), evidence.Options{})
	if r.Usage != 20 || r.Audit != 1 || r.Cost != "0.000520000" || r.To != 21 {
		t.Errorf("the whole file: %+v", r)
	}
}

func join(lines []string) []byte { return []byte(strings.Join(lines, "")) }

func TestTrust(t *testing.T) {
	t.Parallel()
	one, two, other := testkit.EvidenceKey(t, 1).VKey(), testkit.EvidenceKey(t, 2).VKey(), testkit.EvidenceKey(t, 9).VKey()
	file := testkit.NewEvidence(t).Usage(3).Rotate(t, 2).File(t)
	old := testkit.NewEvidence(t).Usage(3).File(t)
	for _, c := range []struct {
		name string
		file []byte
		keys []string
		want evidence.Class
	}{
		{"the key", file, []string{two}, evidence.OK},
		{"the key before", file, []string{one}, evidence.OK},
		{"one of two", file, []string{other, one}, evidence.OK},
		{"another", file, []string{other}, evidence.UnknownKey},
		{"a later one", old, []string{two}, evidence.UnknownKey},
	} {
		if r := verify(t, c.file, evidence.Options{VKeys: c.keys}); r.Class != c.want {
			t.Errorf("%s: %+v, want %s", c.name, r, c.want)
		}
	}
	if _, err := evidence.Verify(bytes.NewReader(file), evidence.Options{VKeys: []string{"x"}}); err == nil {
		t.Error("a malformed key was accepted")
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	good := testkit.NewEvidence(t).Usage(10)
	check := func(name string, file []byte, want evidence.Class) {
		t.Helper()
		s, err := evidence.ReadState(path)
		if err != nil {
			t.Fatal(err)
		}
		r := verify(t, file, evidence.Options{State: s})
		if r.Class != want {
			t.Errorf("%s: %+v, want %s", name, r, want)
		}
		if r.Class == evidence.OK {
			if err := evidence.NewState(&r).Write(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("first", good.File(t), evidence.OK)
	check("the same again", good.File(t), evidence.OK)
	cut := testkit.NewEvidence(t).Usage(9)
	check("cut and signed", cut.File(t), evidence.Stale)
	rewritten := testkit.NewEvidence(t).Usage(9).Audit(t, "x", "null").Usage(5)
	check("rewritten and signed", rewritten.File(t), evidence.Tampered)
	check("rewritten and signed, from there", join(rewritten.Lines(t, rewritten.Part(11, 15))), evidence.Tampered)
	good.Usage(5)
	check("older part", join(good.Lines(t, good.Part(1, 9))), evidence.Stale)
	check("a gap", join(good.Lines(t, good.Part(12, 15))), evidence.Gap)
	check("the next part", join(good.Lines(t, good.Part(11, 13))), evidence.OK)
	check("the end was known", join(good.Lines(t, good.Part(14, 15))), evidence.OK)
	other := testkit.NewEvidence(t)
	other.Org = "0199aa00-0000-7000-8000-000000000002"
	check("another organization", other.Usage(20).File(t), evidence.Tampered)
	good.Rotate(t, 2)
	check("the next key", good.File(t), evidence.OK)
	stolen := testkit.NewEvidence(t).Usage(16)
	check("the key before", stolen.File(t), evidence.UnknownKey)
}
