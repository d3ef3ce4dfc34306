package modelgate

import "strings"

// Glob reports whether s matches pattern. `*` matches any run of characters,
// `/` included, `?` matches exactly one character, nothing else is special
// and letter case counts. Invalid UTF-8 counts as one character a byte.
//
// On a mismatch it goes back to the last `*` only, so the work is at most
// len(pattern) × len(s) and no pattern can make it explode.
func Glob(pattern, s string) bool {
	if pattern == "*" {
		return true
	}
	if !HasGlob(pattern) {
		return pattern == s
	}
	matched, _ := glob(pattern, s)
	return matched
}

// glob does the work of Glob and counts it: one step for each look at a
// character.
func glob(pattern, s string) (matched bool, steps int) {
	p, i := 0, 0
	star, mark := -1, 0
	for ; i < len(s); steps++ {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == '?':
			i += runeLen(s[i:])
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark += runeLen(s[mark:])
			p, i = star+1, mark
		default:
			return false, steps
		}
	}
	return strings.Trim(pattern[p:], "*") == "", steps
}

// HasGlob reports whether the pattern has a special character; one that has
// none is concrete.
func HasGlob(pattern string) bool {
	return strings.IndexByte(pattern, '*') >= 0 || strings.IndexByte(pattern, '?') >= 0
}

// runeLen is the length in bytes of the first character of s, which is not
// empty.
func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
