package csvfile

import "testing"

func TestNoFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "+1": "'+1", "-1": "-1", "-0.000000001": "-0.000000001", "-1+1": "'-1+1", "-": "'-", "-1.": "'-1.", "-.5": "'-.5", "-x": "'-x",
		"@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "1=1": "1=1", "-Inf": "'-Inf", "-1e5": "'-1e5", "--1": "'--1",
	} {
		if got := noFormula(text); got != want {
			t.Errorf("noFormula(%q) = %q, want %q", text, got, want)
		}
	}
}
