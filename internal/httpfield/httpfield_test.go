package httpfield

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
)

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

func TestParse(t *testing.T) {
	t.Parallel()
	take := func(name, _ string) (keep, ok bool) { return name != "Host", name != "Upgrade" }
	for text, want := range map[string]http.Header{
		"\r\n": {},
		"accept: a\r\nHost: h\r\nACCEPT:\tb \r\nx:\r\n\r\n": {"Accept": {"a", "b"}, "X": {""}},
	} {
		if got, ok := Parse(text, take); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "a: b", "a: b\r\n", "a: b\n\r\n", "a\r\n\r\n", "a : b\r\n\r\n", " a: b\r\n\r\n", "a: b\r\n c\r\n\r\n", "a: \x00\r\n\r\n", "Upgrade: x\r\n\r\n", "a: b\r\n\r\nc"} {
		if got, ok := Parse(text, take); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestElements(t *testing.T) {
	t.Parallel()
	got := slices.Collect(Elements([]string{"a, b\t,", "", " ,c"}))
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
