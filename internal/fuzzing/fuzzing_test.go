package fuzzing

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestInputsComeBackFromTheirFile(t *testing.T) {
	t.Parallel()
	s := shapeOf(reflect.TypeFor[func(*testing.T, []byte, string, bool, int8, uint16, rune, byte)]())
	in := input{{text: []byte("a\x00\xff\"\n")}, {text: []byte("é\\")}, {bits: 1}, {bits: 1<<64 - 3}, {bits: 65535}, {bits: 'é'}, {bits: 7}}
	want := corpusHeader + "\n[]byte(\"a\\x00\\xff\\\"\\n\")\nstring(\"é\\\\\")\nbool(true)\nint8(-3)\nuint16(65535)\nint32(233)\nuint8(7)\n"
	if got := formatInput(in, s); got != want {
		t.Errorf("formatInput = %s, want %s", got, want)
	}
	if got, ok := parseInput(want, s); !ok || !reflect.DeepEqual(got, in) {
		t.Errorf("parseInput = %v, %v, want %v", got, ok, in)
	}
	// The engine writes small numbers in these spellings too.
	spelled := strings.NewReplacer("int32(233)", "rune('é')", "uint8(7)", `byte('\a')`).Replace(want)
	if got, ok := parseInput(spelled, s); !ok || !reflect.DeepEqual(got, in) {
		t.Errorf("parseInput = %v, %v, want %v", got, ok, in)
	}
	for _, bad := range []string{"", corpusHeader, "go test fuzz v2\n" + want, strings.Replace(want, "string(", "", 1), want + "int(1)\n"} {
		if _, ok := parseInput(bad, s); ok {
			t.Errorf("parseInput takes %q", bad)
		}
	}
}

func TestMutationsFollowFromTheSeed(t *testing.T) {
	t.Parallel()
	s := shapeOf(reflect.TypeFor[func(*testing.T, []byte, uint16)]())
	seeds := []input{{{text: []byte(`{"model":"a"}`)}, {bits: 1}}, {{}, {bits: 2}}, {{text: bytes.Repeat([]byte("long "), 500)}, {}}}
	draw := func(seed uint64) (all []string) {
		m := newMutator(seeds, nil, rand.New(rand.NewPCG(seed, 0)), s)
		for range 2_000 {
			in := m.next()
			if len(in[0].text) > m.longest+16 {
				t.Fatalf("an input of %d bytes", len(in[0].text))
			}
			all = append(all, string(in[0].text)+strconv.FormatUint(in[1].bits, 10))
		}
		return all
	}
	one := draw(1)
	if !reflect.DeepEqual(one, draw(1)) {
		t.Error("the same seed gives other inputs")
	}
	if reflect.DeepEqual(one, draw(2)) {
		t.Error("another seed gives the same inputs")
	}
	different := make(map[string]bool)
	for _, in := range one {
		different[in] = true
	}
	if len(different) < 1_200 {
		t.Errorf("%d of %d inputs are different", len(different), len(one))
	}
	if string(seeds[0][0].text) != `{"model":"a"}` {
		t.Errorf("a seed became %q", seeds[0][0].text)
	}
}

// A target that fails, panics or stops its goroutine leaves its input where the
// tests of its package read it.
func TestFailingInputIsKept(t *testing.T) {
	t.Parallel()
	s := shapeOf(reflect.TypeFor[func(*testing.T, string)]())
	for name, fail := range map[string]func(failed *bool){
		"reports": func(failed *bool) { *failed = true },
		"stops":   func(failed *bool) { *failed = true; runtime.Goexit() },
		"panics":  func(*bool) { panic("bad") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "testdata", "fuzz", "FuzzX")
			failed, kept := false, ""
			r := &run{
				shape: s, executions: 1 << 30, failed: func() bool { return failed }, report: t.Logf,
				mutator: newMutator([]input{{{text: []byte("abc<")}}}, nil, rand.New(rand.NewPCG(1, 2)), s),
				call: func(in input) {
					if strings.Contains(string(in[0].text), "<<") {
						fail(&failed)
					}
				},
				keep: func(in input) (string, error) {
					file, err := writeFailing(folder, in, s)
					kept = file
					return file, err
				},
			}
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				r.do()
			}()
			if cause := <-ended; (cause != nil) != (name == "panics") {
				t.Fatal(cause)
			}
			text, err := os.ReadFile(kept)
			if err != nil || !strings.Contains(string(text), "<<") {
				t.Errorf("kept %q, %v", text, err)
			}
			if again, err := readCorpus(folder, s); err != nil || len(again) != 1 {
				t.Errorf("the tests read %v, %v", again, err)
			}
		})
	}
}

// FuzzInputs is the package's own target: any file is refused, or written back
// as one that says the same.
func FuzzInputs(f *testing.F) {
	f.Add(corpusHeader + "\n[]byte(\"a\\xff\")\nuint16(3)\n")
	f.Add(corpusHeader + "\n[]byte(`a`)\nuint16('a')\n")
	s := shapeOf(reflect.TypeFor[func(*testing.T, []byte, uint16)]())
	Fuzz(f, func(t *testing.T, text string) {
		in, ok := parseInput(text, s)
		if !ok {
			return
		}
		written := formatInput(in, s)
		again, ok := parseInput(written, s)
		if !ok || formatInput(again, s) != written {
			t.Errorf("%q is written as %q, %v", text, written, ok)
		}
	})
}
