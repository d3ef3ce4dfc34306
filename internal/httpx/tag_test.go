package httpx

import "testing"

func TestTagMatches(t *testing.T) {
	t.Parallel()
	tag := WeakTag("a", "b")
	if tag == WeakTag("ab", "") || tag != WeakTag("a", "b") {
		t.Error("tags do not stand for their texts")
	}
	for value, want := range map[string]bool{
		tag: true, tag[2:]: true, "*": true, `"x" , ` + tag: true, "": false, `"x"`: false, "W/": false, tag[:len(tag)-1]: false,
	} {
		if got := TagMatches([]string{`"other"`, value}, tag); got != want {
			t.Errorf("%q matches: %t, want %t", value, got, want)
		}
	}
}
