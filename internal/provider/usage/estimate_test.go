package usage

import "testing"

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 4: 1, 5: 2, 400: 100, 1<<63 - 1: 1 << 61} {
		if got := EstimateTokens(bytes); got != want {
			t.Errorf("EstimateTokens(%d) = %d, want %d", bytes, got, want)
		}
	}
}
