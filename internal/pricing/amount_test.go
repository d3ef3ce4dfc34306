package pricing

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"modelgate"
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
	want := divideHalfEven(n, new(big.Int).SetUint64(d))
	if got := modelgate.DivideHalfEven(hi, lo, d); got != want {
		t.Fatalf("(%d, %d) / %d = %d, want %d", hi, lo, d, got, want)
	}
}
