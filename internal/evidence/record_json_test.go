package evidence

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAppendTimeIsItsLayout: records have been written with the format.
func TestAppendTimeIsItsLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1<<37, 1<<38).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		at = at.In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone")))
		if got, want := string(appendTime([]byte("x"), at)), "x"+FormatTime(at); got != want {
			t.Fatalf("an instant is written %s, want %s", got, want)
		}
	})
}

// TestPlainTextsNeedNoEscapes compares the short way of plain texts with the
// long one.
func TestPlainTextsNeedNoEscapes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("azAZ09 -/.\"\\\x00\x01\x1f\x7f\u0080é\ufffd\U0001F600"))).Draw(t, "text")
		if got := string(appendText(nil, s)); plain(s) != (got == `"`+s+`"` && isASCII(s)) {
			t.Fatalf("%q is written %s, plain: %t", s, got, plain(s))
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
