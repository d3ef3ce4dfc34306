// Package target judges the paths and queries of requests, so that every server on
// the way reads them alike, and matches paths with patterns.
package target

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"modelgate/internal/provider/reqscan"
)

// MaxPath is how many bytes the path of a request target may have.
const MaxPath = 8 << 10

// Judge reports whether a raw request target (request-line form, query
// included) has a path that every server on the way reads alike. It refuses
// with a *SyntaxError: any form but /path, a fragment, a control byte, and
// in the path dot segments, empty segments before the last, bytes that
// RFC 3986 has escaped, semicolons, broken percent escapes, a path over
// MaxPath, and escapes of . / \ ; % and control characters or of bytes that
// are not UTF-8.
//
// The query string is judged only for control bytes, spaces and fragments.
// One legitimate use of an escaped slash is recognised by EscapedSlug.
func Judge(requestURI string) error {
	if !strings.HasPrefix(requestURI, "/") {
		return targetErrorf("it must begin with /")
	}
	if err := JudgeRaw(requestURI); err != nil {
		return err
	}
	path, _, _ := strings.Cut(requestURI, "?")
	if len(path) > MaxPath {
		return targetErrorf("its path is longer than %d bytes", MaxPath)
	}
	if err := judgeBytes(path); err != nil {
		return err
	}
	return judgeSegments(path)
}

func targetErrorf(format string, args ...any) error {
	return reqscan.Errorf("request target is not acceptable: "+format, args...)
}

// JudgeRaw refuses, with a *SyntaxError, what may stand neither in a path nor in a
// query nor in a host.
func JudgeRaw(requestURI string) error {
	for i := range len(requestURI) {
		if c := requestURI[i]; c <= 0x20 || c == 0x7f || c == '#' {
			return targetErrorf("byte 0x%02x must be percent-encoded", c)
		}
	}
	return nil
}

// judgeBytes looks at each byte and escape of the path.
func judgeBytes(path string) error {
	escaped := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		if isAlphanumeric(c) || strings.IndexByte("/-._~!$&'()*+,=:@", c) >= 0 {
			continue
		}
		if c != '%' {
			return targetErrorf("byte 0x%02x must not stand in a path", c)
		}
		c, ok := percentByte(path[i:])
		if !ok {
			return targetErrorf("broken percent escape at byte %d", i)
		}
		if c < 0x20 || c == 0x7f || strings.IndexByte(`./\;%`, c) >= 0 {
			return targetErrorf("the escape %s must not stand in a path", path[i:i+3])
		}
		escaped = true
		i += 2
	}
	if escaped && !utf8.ValidString(Unescape(path)) {
		return targetErrorf("its path is not UTF-8")
	}
	return nil
}

// judgeSegments refuses dot segments and empty segments.
func judgeSegments(path string) error {
	if strings.Contains(path, "//") {
		return targetErrorf("its path holds an empty segment")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return targetErrorf("its path holds a dot segment")
		}
	}
	return nil
}

// percentByte is the byte of the escape %XX that s begins with.
func percentByte(s string) (byte, bool) {
	if len(s) < 3 || s[0] != '%' {
		return 0, false
	}
	high, ok := reqscan.HexDigit(s[1])
	low, ok2 := reqscan.HexDigit(s[2])
	return high<<4 | low, ok && ok2
}

// Unescape resolves the percent escapes of a judged path. Broken ones
// stay as they are.
func Unescape(path string) string {
	if decoded, err := url.PathUnescape(path); err == nil {
		return decoded
	}
	return path
}

// EscapedSlug reads the one target that Judge refuses although clients
// send it: a single catalog entry with its slug as one segment,
// /v1/models/author%2Fmodel, as the OpenAI SDKs escape it. It reports false
// for every other target and for a slug that could not be in a catalog.
func EscapedSlug(requestURI string) (slug string, ok bool) {
	path, _, _ := strings.Cut(requestURI, "?")
	segment, ok := strings.CutPrefix(path, "/v1/models/")
	if !ok || len(path) > MaxPath || strings.Contains(segment, "/") || JudgeRaw(requestURI) != nil {
		return "", false
	}
	slug, err := url.PathUnescape(segment)
	if err != nil || !isSlug(slug) {
		return "", false
	}
	return slug, true
}

// isSlug reports whether s is author/model in the characters of a catalog,
// without dot segments.
func isSlug(s string) bool {
	parts := strings.Split(s, "/")
	for i, part := range parts {
		if part == "" || !isAlphanumeric(part[0]) && i < 2 || part == "." || part == ".." {
			return false
		}
		for j := range len(part) {
			if c := part[j]; !isAlphanumeric(c) && strings.IndexByte("._-:@", c) < 0 {
				return false
			}
		}
	}
	return len(parts) > 1
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
