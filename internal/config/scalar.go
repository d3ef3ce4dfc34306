package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelgate"
)

// scalar is a value of the file with its variables replaced.
type scalar struct {
	text string
	kind scalarKind
}

// scalarKind is what a scalar looks like in YAML, which decides whether it
// can be a text, a number or a truth value.
type scalarKind int

const (
	plain    scalarKind = iota // without quotes, and nothing but text
	quoted                     // in quotes or a block: always a text
	typed                      // a number or a truth value
	expanded                   // from the environment: whatever the field wants
)

// Size is a number of bytes.
type Size int64

// String is the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// clock is a minute of the day, 0 to 1440.
type clock int

// The complaints about scalars; wanted says which belongs to a field.
const (
	wantText     = "text"
	wantBool     = "true or false, without quotes"
	wantInteger  = "a whole number, without quotes"
	wantDecimal  = "a number with at most 9 decimals, without quotes"
	wantDuration = "a duration such as 500ms, 5s or 1m30s"
	wantSize     = "a number of bytes such as 10485760 or 10MiB"
	wantDate     = "a date such as 2026-12-01 or a time such as 2026-12-01T08:00:00Z"
	wantClock    = "a time of the day, UTC, from 00:00 to 24:00"
	wantEnforce  = "estimate, strict or off, or true or false"
	wantLevel    = "debug, info, warn or error"
)

// wanted is what a field wants, in words.
func wanted(p any) string {
	switch p.(type) {
	case *bool:
		return wantBool
	case *int, *int64:
		return wantInteger
	case *modelgate.Nano:
		return wantDecimal
	case *time.Duration:
		return wantDuration
	case *Size:
		return wantSize
	case *time.Time:
		return wantDate
	case *clock:
		return wantClock
	case *Enforce:
		return wantEnforce
	case *slog.Level:
		return wantLevel
	}
	return wantText
}

// isScalar reports whether p points to a field that one scalar fills.
func isScalar(p any) bool {
	_, secret := p.(*Secret)
	return secret || wanted(p) != wantText || reflect.TypeOf(p).Elem().Kind() == reflect.String
}

// into puts the scalar into the field p points to. Its errors do not hold the
// value.
func (s scalar) into(p any) error {
	ok := true
	switch p := p.(type) {
	case *bool:
		*p = s.text == "true"
		ok = s.kind != quoted && (*p || s.text == "false")
	case *int:
		var n int64
		n, ok = s.integer(math.MaxInt32)
		*p = int(n)
	case *int64:
		*p, ok = s.integer(math.MaxInt64)
	case *modelgate.Nano:
		var err error
		*p, err = modelgate.ParseUSD(s.text)
		ok = err == nil && s.kind != quoted
	case *time.Duration:
		var err error
		*p, err = time.ParseDuration(s.text)
		if ok = err == nil; ok && *p < 0 {
			return errors.New("must not be negative")
		}
	case *Size:
		*p, ok = parseSize(s.text)
	case *time.Time:
		*p, ok = parseDate(s.text)
	case *clock:
		*p, ok = parseClock(s.text)
	case *Enforce:
		*p, ok = parseEnforce(s.text)
	case *slog.Level:
		*p, ok = parseLevel(s.text)
	default:
		return s.intoText(p)
	}
	if !ok {
		return fmt.Errorf("want %s", wanted(p))
	}
	return nil
}

func (s scalar) intoText(p any) error {
	if s.kind == typed {
		return errors.New(`want text; put the value in quotes`)
	}
	if secret, ok := p.(*Secret); ok {
		*secret = NewSecret(strings.TrimSpace(s.text))
		return nil
	}
	reflect.ValueOf(p).Elem().SetString(s.text)
	return nil
}

// integer reads decimal digits; YAML's underscores and other bases are not
// for configuration files that people check by eye.
func (s scalar) integer(most int64) (int64, bool) {
	n, err := strconv.ParseInt(s.text, 10, 64)
	return n, err == nil && n <= most && s.kind != quoted
}

func parseSize(s string) (Size, bool) {
	unit := Size(1)
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return Size(n) * unit, err == nil && Size(n) <= math.MaxInt64/unit
}

func parseDate(s string) (time.Time, bool) {
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, true
	}
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err == nil
}

func parseClock(s string) (clock, bool) {
	if s == "24:00" {
		return 24 * 60, true
	}
	t, err := time.Parse("15:04", s)
	return clock(t.Hour()*60 + t.Minute()), err == nil && len(s) == len("15:04")
}

func parseEnforce(s string) (Enforce, bool) {
	switch s {
	case "true":
		return EnforceEstimate, true
	case "false":
		return EnforceOff, true
	}
	return Enforce(s), slices.Contains([]Enforce{EnforceEstimate, EnforceStrict, EnforceOff}, Enforce(s))
}

func parseLevel(s string) (slog.Level, bool) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if s == strings.ToLower(level.String()) {
			return level, true
		}
	}
	return 0, false
}

// unknownKey says what a key could have been.
func unknownKey(key string, t reflect.Type) string {
	names := slices.Sorted(maps.Keys(fieldsOf(reflect.Zero(t))))
	nearest, least := "", 3
	for _, name := range names {
		if d := distance(key, name); d < least {
			nearest, least = name, d
		}
	}
	if nearest != "" {
		return "unknown key; did you mean " + nearest + "?"
	}
	return "unknown key; the keys here are " + strings.Join(names, ", ")
}

// distance is how many letters must be put in, taken out or changed to make b
// of a, 99 where the lengths alone make it many.
func distance(a, b string) int {
	if len(a) > len(b)+3 || len(b) > len(a)+3 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func itoa(n int) string { return strconv.Itoa(n) }
