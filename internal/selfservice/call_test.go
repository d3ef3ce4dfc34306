package selfservice

import (
	"strings"
	"testing"
)

// TestNameList holds the header of ignored parameters to 256 bytes.
func TestNameList(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b c", "d,e"}, "a,b+c,d%2Ce"},
		{[]string{long(256)}, long(256)},
		{[]string{long(257)}, "..."},
		{[]string{"a", long(254)}, "a," + long(254)},
		{[]string{"a", long(255)}, "a,..."},
		{[]string{long(252), "bbb"}, long(252) + ",bbb"},
		{[]string{long(252), "bbbb"}, long(252) + ",..."},
		{[]string{long(253), "bbb"}, "..."},
	} {
		if got := nameList(c.names); got != c.want {
			t.Errorf("nameList(%.20q) = %.40q (%d bytes), want %.40q", c.names, got, len(got), c.want)
		}
	}
}
