package httpfield

import (
	"strconv"
	"strings"
)

// UnescapeQuery is url.QueryUnescape for queries as they come: a percent sign
// that begins no escape stands for itself, as most servers read it.
func UnescapeQuery(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+':
			out = append(out, ' ')
		case c == '%' && i+2 < len(s):
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				out = append(out, c)
				continue
			}
			out = append(out, byte(n))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
