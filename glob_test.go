package modelgate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"modelgate"
)

// globOracle tries every way a pattern can match: slow and plainly right. It
// compares runes, so an invalid byte counts as one.
func globOracle(pattern, s []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(s) == 0
	case pattern[0] == '*':
		return globOracle(pattern[1:], s) || len(s) > 0 && globOracle(pattern, s[1:])
	case len(s) == 0:
		return false
	}
	return (pattern[0] == '?' || pattern[0] == s[0]) && globOracle(pattern[1:], s[1:])
}

func TestGlob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"*", "openai/gpt-5", true},
		{"**", "", true},
		{"?", "", false},
		{"?*", "", false},
		{"?", "é", true},
		{"?", "ab", false},
		{"??", "é", false},
		{"?", "\xff", true},
		{"??", "\xe4\xbd", true},
		{"gpt-*", "gpt-5", true},
		{"gpt-*", "gpt-", true},
		{"gpt-*", "GPT-5", false},
		{"gpt-*", "xgpt-5", false},
		{"*-mini", "gpt-5-mini", true},
		{"*-mini", "gpt-5-minimum", false},
		{"a*/c", "a/b/c", true},
		{"*a*b", "aaab", true},
		{"*ab", "aab", true},
		{"*aab*", "aaabaa", true},
		{"*??bc", "世bc", false},
		{"*ab*ab", "abab", true},
		{"*ab*ab", "ab", false},
		{"[a-z]", "b", false},
		{"[a-z]", "[a-z]", true},
		{"{a,b}", "a", false},
		{`\*`, "*", false},
		{`\*`, `\anything`, true},
		{"a.c", "abc", false},
		{"gpt-5", "gpt-5 ", false},
	} {
		if got := modelgate.Glob(c.pattern, c.s); got != c.want {
			t.Errorf("Glob(%q, %q) = %v, want %v", c.pattern, c.s, got, c.want)
		}
	}
}

// Texts are made from the pattern, or else hardly any would match.
func TestGlobMatchesTheOracle(t *testing.T) {
	t.Parallel()
	letter := rapid.SampledFrom([]rune("aab/é世"))
	sign := rapid.OneOf(letter, rapid.SampledFrom([]rune("**?")))
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(sign, 0, 9, -1).Draw(t, "pattern")
		var text strings.Builder
		for _, c := range pattern {
			switch c {
			case '*':
				text.WriteString(rapid.StringOfN(letter, 0, 3, -1).Draw(t, "run"))
			case '?':
				text.WriteRune(letter.Draw(t, "one"))
			default:
				text.WriteRune(c)
			}
		}
		checkGlob(t, pattern, text.String())
		spoilt := []rune(text.String() + "a")
		spoilt[rapid.IntRange(0, len(spoilt)-1).Draw(t, "at")] = letter.Draw(t, "other")
		checkGlob(t, pattern, string(spoilt))
	})
}

func checkGlob(t interface{ Fatalf(string, ...any) }, pattern, s string) {
	if got, want := modelgate.Glob(pattern, s), globOracle([]rune(pattern), []rune(s)); got != want {
		t.Fatalf("Glob(%q, %q) = %v, want %v", pattern, s, got, want)
	}
}

func TestHasGlob(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{"": false, "gpt-5": false, "gpt-*": true, "gpt-?": true, "[a]": false} {
		if got := modelgate.HasGlob(s); got != want {
			t.Errorf("HasGlob(%q) = %v, want %v", s, got, want)
		}
	}
}

// Patterns come from JSON and are valid UTF-8; what they are held against
// need not be.
func FuzzGlob(f *testing.F) {
	for _, c := range [][2]string{
		{"*", ""}, {"*a*b", "aab"}, {"?é*", "xéy"}, {"??", "\xe4\xbd"}, {"gpt-*-mini", "gpt-5-mini"}, {"a", "a"}, {"**?", "�"},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(s) > 24 || strings.Count(pattern, "*") > 4 || !utf8.ValidString(pattern) || strings.ContainsRune(pattern, utf8.RuneError) {
			return // the oracle is exponential, and reads invalid bytes as U+FFFD
		}
		checkGlob(t, pattern, s)
	})
}
