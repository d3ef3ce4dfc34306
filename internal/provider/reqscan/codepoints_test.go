package reqscan

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCodePoints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`""`:                                  0,
		`"abc"`:                               3,
		`"é漢😀"`:                               3,
		`"\u00e9\n\\\""`:                      4,
		`"\ud83d\ude00"`:                      1,
		`"a\ud83d\ude00b"`:                    3,
		`"\ud83d"`:                            1,
		`"\ud83dx"`:                           2,
		`"\ude00\ud83d"`:                      2,
		`["ab", "é", 5, ["zzz"]]`:             3,
		`[]`:                                  0,
		`12345`:                               0,
		`{"text":"abc"}`:                      0,
		`null`:                                0,
		`"` + strings.Repeat("漢", 5000) + `"`: 5000,
	} {
		value := valueOf(t, text)
		if got := value.CodePoints(); got != want {
			t.Errorf("CodePoints of %.60s = %d, want %d", text, got, want)
		}
		if decoded, _ := value.Text(); value.Kind() == JSONString && int64(utf8.RuneCountInString(decoded)) != want {
			t.Errorf("Text of %.60s has %d code points, want %d", text, utf8.RuneCountInString(decoded), want)
		}
	}
}
