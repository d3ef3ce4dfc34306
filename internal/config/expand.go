package config

import (
	"errors"
	"strings"
)

var (
	errDollar   = errors.New("has a lone $; write ${NAME} for a variable and $$ for a dollar sign")
	errUnclosed = errors.New("has ${ without }")
	errName     = errors.New("has ${} with a name that no environment variable has; use letters, digits and _")
)

// unsetError names an environment variable that is needed and not set.
type unsetError string

func (e unsetError) Error() string {
	return "environment variable " + string(e) + " is not set; set it, or write ${" + string(e) + ":-} if it may be empty"
}

// expand replaces ${NAME} and ${NAME:-default} in a value, and $$ by a dollar
// sign; the default stands in for a variable that is unset or empty. What is
// put in is not looked at again. It reports whether a variable was named.
func expand(s string, env func(string) (string, bool)) (text string, named bool, err error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			return b.String(), named, nil
		}
		if rest, ok := strings.CutPrefix(after, "$"); ok {
			b.WriteByte('$')
			s = rest
			continue
		}
		inner, ok := strings.CutPrefix(after, "{")
		if !ok {
			return "", named, errDollar
		}
		inner, rest, ok := strings.Cut(inner, "}")
		if !ok {
			return "", named, errUnclosed
		}
		value, err := variable(inner, env)
		if err != nil {
			return "", named, err
		}
		b.WriteString(value)
		s, named = rest, true
	}
}

// variable is the value of NAME or NAME:-default.
func variable(inner string, env func(string) (string, bool)) (string, error) {
	name, fallback, optional := strings.Cut(inner, ":-")
	if !isVariable(name) {
		return "", errName
	}
	value, set := env(name)
	switch {
	case optional && (!set || value == ""):
		return fallback, nil
	case !set:
		return "", unsetError(name)
	}
	return value, nil
}

func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
