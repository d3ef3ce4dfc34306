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

	"github.com/agnivade/levenshtein"

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

// scalarType is how fields of one type are read. Want says what belongs there,
// and parse fails for anything else.
type scalarType struct {
	want  string
	parse func(scalar) (any, bool)
}

// scalarTypes are the types that are no texts; see scalarOf.
var scalarTypes = map[reflect.Type]scalarType{
	reflect.TypeFor[bool]():           {"true or false, without quotes", parseBool},
	reflect.TypeFor[int]():            {"a whole number, without quotes", parseInt},
	reflect.TypeFor[int64]():          {"a whole number, without quotes", parseInt64},
	reflect.TypeFor[modelgate.Nano](): {"a number with at most 9 decimals, without quotes", parseUSD},
	reflect.TypeFor[time.Duration]():  {"a duration such as 500ms, 5s or 1m30s", parseDuration},
	reflect.TypeFor[Size]():           {"a number of bytes such as 10485760 or 10MiB", parseSize},
	reflect.TypeFor[time.Time]():      {"a date such as 2026-12-01 or a time such as 2026-12-01T08:00:00Z", parseDate},
	reflect.TypeFor[clock]():          {"a time of the day, UTC, from 00:00 to 24:00", parseClock},
	reflect.TypeFor[Enforce]():        {"estimate, strict or off, or true or false", parseEnforce},
	reflect.TypeFor[slog.Level]():     {"debug, info, warn or error", parseLevel},
	reflect.TypeFor[Secret]():         {want: wantText},
}

const wantText = "text"

// scalarOf is how fields of a type are read that one scalar fills; false for
// other types.
func scalarOf(t reflect.Type) (scalarType, bool) {
	if s, ok := scalarTypes[t]; ok {
		return s, true
	}
	return scalarType{want: wantText}, t.Kind() == reflect.String
}

// into puts the scalar into a field. Its errors do not hold the value.
func (s scalar) into(field reflect.Value) error {
	kind, _ := scalarOf(field.Type())
	switch {
	case kind.parse != nil:
		value, ok := kind.parse(s)
		if !ok {
			return fmt.Errorf("want %s", kind.want)
		}
		field.Set(reflect.ValueOf(value))
		if d, ok := value.(time.Duration); ok && d < 0 {
			return errors.New("must not be negative")
		}
	case s.kind == typed:
		return errors.New("want text; put the value in quotes")
	case field.Type() == reflect.TypeFor[Secret]():
		field.Set(reflect.ValueOf(NewSecret(strings.TrimSpace(s.text))))
	default:
		field.SetString(s.text)
	}
	return nil
}

func parseBool(s scalar) (any, bool) {
	return s.text == "true", s.kind != quoted && (s.text == "true" || s.text == "false")
}

func parseInt(s scalar) (any, bool) {
	n, ok := s.integer(math.MaxInt32)
	return int(n), ok
}

func parseInt64(s scalar) (any, bool) { return s.integer(math.MaxInt64) }

func parseUSD(s scalar) (any, bool) {
	usd, err := modelgate.ParseUSD(s.text)
	return usd, err == nil && s.kind != quoted
}

func parseDuration(s scalar) (any, bool) {
	d, err := time.ParseDuration(s.text)
	return d, err == nil
}

// integer reads decimal digits; YAML's underscores and other bases are not
// for configuration files that people check by eye.
func (s scalar) integer(most int64) (int64, bool) {
	n, err := strconv.ParseInt(s.text, 10, 64)
	return n, err == nil && n <= most && s.kind != quoted
}

func parseSize(s scalar) (any, bool) {
	text, unit := s.text, Size(1)
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return Size(n) * unit, err == nil && Size(n) <= math.MaxInt64/unit
}

func parseDate(s scalar) (any, bool) {
	t, err := time.Parse(time.DateOnly, s.text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, s.text)
	}
	return t.UTC(), err == nil
}

func parseClock(s scalar) (any, bool) {
	if s.text == "24:00" {
		return clock(24 * 60), true
	}
	t, err := time.Parse("15:04", s.text)
	return clock(t.Hour()*60 + t.Minute()), err == nil && len(s.text) == len("15:04")
}

func parseEnforce(s scalar) (any, bool) {
	switch s.text {
	case "true":
		return EnforceEstimate, true
	case "false":
		return EnforceOff, true
	}
	return Enforce(s.text), slices.Contains([]Enforce{EnforceEstimate, EnforceStrict, EnforceOff}, Enforce(s.text))
}

func parseLevel(s scalar) (any, bool) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s.text))
	return level, err == nil && s.text == strings.ToLower(level.String())
}

// unknownKey says what a key could have been.
func unknownKey(key string, t reflect.Type) string {
	names := slices.Sorted(maps.Keys(fieldsOf(reflect.Zero(t))))
	distance := func(name string) int { return levenshtein.ComputeDistance(key, name) }
	nearest := slices.MinFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	if distance(nearest) < 3 {
		return "unknown key; did you mean " + nearest + "?"
	}
	return "unknown key; the keys here are " + strings.Join(names, ", ")
}
