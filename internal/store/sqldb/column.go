// Package sqldb is what the store and the packages below it share to speak SQL:
// how values become columns, reading rows, and statements that are run for many
// tuples. It knows no table.
package sqldb

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Micros is how an instant is stored; 0 is the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Instant is the instant that is stored as us, in UTC; 0 is the zero time.
func Instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Clean makes a text that both engines store alike: PostgreSQL refuses
// invalid UTF-8 and NUL, and a row must not be lost for what a provider or a
// client put into a name.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
