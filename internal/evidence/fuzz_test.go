package evidence

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzCanonical holds what the scanner accepts against another's canonical
// form: it must be that form already.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[true,null,"x"]}`, `{"é":-5,"\u0001":"\n"}`, `{"a":1,"a":2}`, `{"b":1,"a":2}`,
		`{"a":01}`, `{"a":-0}`, `{"a":1.5}`, `{"a":9007199254740993}`, `{"a":"\/"}`, `{"a":"\ud800"}`, `{"\ue000":1,"😀":2}`, "{\"\ue000\":1,\"😀\":2}", "{\"😀\":1,\"\ue000\":2}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		members, ok := scanObject(text, nil)
		if !ok || !utf8.Valid(text) {
			return
		}
		canonical := jsontext.Value(bytes.Clone(text))
		if err := canonical.Canonicalize(); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("%q is accepted, and canonical is %q (%v)", text, canonical, err)
		}
		for _, m := range members {
			if len(m.value) == 0 {
				t.Fatalf("%q has an empty member", text)
			}
		}
	})
}

// FuzzVerify gives the verifier any bytes: it says something about them, and
// never that they are good unless they are a vector's.
func FuzzVerify(f *testing.F) {
	files, err := filepath.Glob("../../contrib/evidence/vectors/*.ndjson")
	if err != nil || len(files) == 0 {
		f.Fatal("no vectors", err)
	}
	good := make(map[string]bool)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		good[string(text)] = true
		f.Add(text)
	}
	lines := bufio.NewReaderSize(nil, maxLine+1) // Verify takes it as its own
	f.Fuzz(func(t *testing.T, text []byte) {
		lines.Reset(bytes.NewReader(text))
		r, err := Verify(lines, Options{})
		if err != nil || r.Class == "" || (r.Class == OK) != (r.Line == 0) {
			t.Fatalf("%+v, %v", r, err)
		}
		if r.Class == OK && !good[string(text)] {
			t.Fatalf("a file that nobody signed is good: %q", text)
		}
	})
}
