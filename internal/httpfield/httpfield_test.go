package httpfield

import "testing"

func TestIsToken(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"X-Api-Key": true, "!#$%&'*+-.^_`|~09azAZ": true, "": false, "a b": false, "a:": false, "a\r": false, "ä": false, "a(": false, "a\x7f": false,
	} {
		if got := IsToken(text); got != want || IsToken([]byte(text)) != want {
			t.Errorf("IsToken(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestIsValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"": true, "Bearer x": true, "ä": true, "a\tb": false, "a\nb": false, "\x00": false, "\x7f": false} {
		if got := IsValue(text); got != want {
			t.Errorf("IsValue(%q) = %v, want %v", text, got, want)
		}
	}
}
