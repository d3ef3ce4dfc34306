package testkit

import (
	"bytes"
	"strings"
	"testing"
)

func TestParseRecordingRefuses(t *testing.T) {
	t.Parallel()
	for archive, want := range map[string]string{
		"":                         "no response section",
		"-- request --\nx\n":       "no response section",
		"-- responses.json --\n\n": "unknown",
		"-- response.json --\n-- response.sse --\n":            "one too many",
		"-- headers --\nno colon\n-- response.json --\n":       "section headers",
		"-- headers --\nStatus: often\n-- response.json --\n":  `status "often"`,
		"-- headers --\nStatus: 100\n-- response.json --\n{}":  `status "100"`,
		"--  --\n-- a\nresponse.json --\n--response.json--\nx": "no response section",
	} {
		if _, err := parseRecording([]byte(archive)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseRecording(%q) = %v, want %q", archive, err, want)
		}
	}
}

// FuzzParseTxtar checks that writing what was read gives the same again, and
// that no byte of a file is lost.
func FuzzParseTxtar(f *testing.F) {
	f.Add([]byte("comment\n-- a --\none\n-- b --\n"))
	f.Add([]byte("-- a --\r\none\r\n\r\n-- a --\nlast without end"))
	f.Add([]byte("-- --\n--  --\n-- x\n"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		sections := parseTxtar(archive)
		var again []byte
		for i, s := range sections {
			again = append(again, "-- "+s.name+" --\n"...)
			again = append(again, s.data...)
			if !bytes.Contains(archive, s.data) {
				t.Errorf("section %d has bytes the archive has not: %q", i, s.data)
			}
		}
		second := parseTxtar(again)
		if len(second) != len(sections) {
			t.Fatalf("%d sections, read again %d", len(sections), len(second))
		}
		for i := range sections {
			if second[i].name != sections[i].name || !bytes.Equal(second[i].data, sections[i].data) {
				t.Errorf("section %d = %+v, read again %+v", i, sections[i], second[i])
			}
		}
	})
}
