package http1

// IsToken reports whether a text is a token (RFC 9110, 5.6.2), as methods and the
// names of headers are.
func IsToken(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == '!', c == '#', c == '$',
			c == '%', c == '&', c == '\'', c == '*', c == '+', c == '^', c == '`', c == '|', c == '~':
		default:
			return false
		}
	}
	return name != ""
}

// IsFieldValue reports whether a value can stand in a header line.
func IsFieldValue(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] == 0x7f {
			return false
		}
	}
	return true
}
