package modelgate_test

import (
	"testing"

	"modelgate"
)

// TestTokenKinds counts each kind of tokens once.
func TestTokenKinds(t *testing.T) {
	t.Parallel()
	var u modelgate.Usage
	for i, n := range u.Counters() {
		if n == nil {
			continue
		}
		one := modelgate.Usage{}
		*one.Counters()[i] = 7
		k := one.TokenKinds()
		if sum := k.Input + k.CachedInput + k.CacheWrite + k.Output + k.AudioInput + k.AudioOutput; sum != one.TotalTokens() {
			t.Errorf("of 7 %s: kinds %+v, total %d", modelgate.CounterName(i), k, one.TotalTokens())
		}
	}
}
