package modelgate

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The largest dividends round up past 64 bits: they must stop at the largest
// amount and not start again at zero.
func TestDivisionStopsAtTheLargestAmount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Uint64Range(1, math.MaxInt64).Draw(t, "divisor")
		hi := rapid.Uint64Range(0, d-1).Draw(t, "hi")
		lo := rapid.Uint64().Draw(t, "lo")
		checkDivision(t, hi, lo, d)
	})
	checkDivision(t, 999_999, math.MaxUint64, 1_000_000)
	checkDivision(t, 1_000_000, 0, 1_000_000)
	checkDivision(t, 0, math.MaxUint64, 1)
	checkDivision(t, math.MaxUint64, math.MaxUint64, 7)
}

func checkDivision(t interface{ Fatalf(string, ...any) }, hi, lo, d uint64) {
	n := new(big.Int).SetUint64(hi)
	n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(lo))
	want := divideBigHalfEven(n, new(big.Int).SetUint64(d))
	if got := divideHalfEven(hi, lo, d); got != want {
		t.Fatalf("(%d, %d) / %d = %d, want %d", hi, lo, d, got, want)
	}
}

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
