package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestRollupPages round-trips, and takes no bytes for a page that are none.
func TestRollupPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := Page{}
		for _, k := range rapid.SliceOf(rapid.StringMatching(`[a-c\x00]{0,6}`)).Draw(rt, "keys") {
			p.Add(k, Sums{rapid.Int64().Draw(rt, "requests"), rapid.Int64Range(0, 9).Draw(rt, "tokens"), rapid.Int64().Draw(rt, "cost")})
		}
		for _, k := range rapid.SliceOf(rapid.StringMatching(`[a-z]{0,3}`)).Draw(rt, "dimensions with pages of their own") {
			p.setOwnPages(k, rapid.Int64Range(0, 1<<40).Draw(rt, "values"))
		}
		data := p.Encode()
		got, err := decodePage(data)
		if d := cmp.Diff(p, got); err != nil || d != "" {
			rt.Fatalf("%v (-want +got):\n%s", err, d)
		}
		if n := len(data); n > 0 {
			if _, err := decodePage(data[:rapid.IntRange(0, n-1).Draw(rt, "cut")]); err == nil {
				rt.Fatalf("a page that is cut is read")
			}
		}
		if _, err := decodePage(append(data, 0)); err == nil {
			rt.Fatalf("a page with more behind it is read")
		}
	})
}

// FuzzRollupPage reads what may be any bytes.
func FuzzRollupPage(f *testing.F) {
	p := Page{}
	p.Add("team\x00search\x00openai", Sums{1, 2, 3})
	p.setOwnPages("user", 7)
	f.Add(p.Encode())
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePage(data)
		if err != nil {
			return
		}
		again, err := decodePage(p.Encode())
		if d := cmp.Diff(p, again); err != nil || d != "" {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	})
}

// TestSums: tokens stop at the largest integer, and what takes some away, when
// a job ends with less than it was taken for, may come first.
func TestSums(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ have, add, want int64 }{
		{1, 2, 3},
		{108_000, -8_000, 100_000},
		{-8_000, 108_000, 100_000},
		{-8_000, 5_000, -3_000},
		{-8_000, -1, -8_001},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, -5, math.MaxInt64 - 5},
	} {
		s := Sums{Tokens: c.have}
		if s.add(Sums{Tokens: c.add}); s.Tokens != c.want {
			t.Errorf("%d and %d tokens are %d, want %d", c.have, c.add, s.Tokens, c.want)
		}
	}
}
