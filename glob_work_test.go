package modelgate

import (
	"strings"
	"testing"
)

// No pattern costs more steps than its length times that of the text: a
// matcher that tried every combination would need over 2^60 here.
func TestGlobWorkIsBounded(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		strings.Repeat("*a", 127) + "*b", strings.Repeat("?*", 128), strings.Repeat("*", 256), strings.Repeat("a*", 127) + "ab",
		"*" + strings.Repeat("a", 254) + "b", strings.Repeat("*?", 127) + "b", strings.Repeat("*é", 80) + "x",
	} {
		for _, s := range []string{strings.Repeat("a", 4096), strings.Repeat("é", 2048), strings.Repeat("ab", 2048), ""} {
			_, steps := glob(pattern, s)
			if bound := (len(pattern) + 1) * (len(s) + 1); steps > bound {
				t.Errorf("%.12s… against %.4s… took %d steps, want at most %d", pattern, s, steps, bound)
			}
		}
	}
}
