package httpx

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// WeakTag is a weak entity tag (RFC 9110, 8.8.3) of an answer that depends on
// these texts alone.
func WeakTag(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// TagMatches reports whether the values of If-None-Match have a tag, which are
// compared weakly (RFC 9110, 13.1.2).
func TagMatches(values []string, tag string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
	}
	return false
}
