package config

import (
	"cmp"
	"errors"
	"regexp"
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

// dollar matches a dollar sign and what belongs to it.
var (
	dollar       = regexp.MustCompile(`\$(\$|\{[^}]*\}?)?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces ${NAME} and ${NAME:-default} in a value, and $$ by a dollar
// sign; the default stands in for a variable that is unset or empty. What is
// put in is not looked at again. It reports whether a variable was named.
func expand(s string, env func(string) (string, bool)) (text string, named bool, err error) {
	text = dollar.ReplaceAllStringFunc(s, func(match string) string {
		if match == "$$" {
			return "$"
		}
		value, problem := variable(match, env)
		err, named = cmp.Or(err, problem), true
		return value
	})
	if err != nil {
		return "", false, err
	}
	return text, named, nil
}

// variableOf is the name of the first variable in a value, "" for none.
func variableOf(s string) string {
	for _, match := range dollar.FindAllString(s, -1) {
		if inner, ok := strings.CutPrefix(match, "${"); ok {
			name, _, _ := strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
			return name
		}
	}
	return ""
}

// variable is the value of ${NAME} or ${NAME:-default}.
func variable(match string, env func(string) (string, bool)) (string, error) {
	if match == "$" {
		return "", errDollar
	}
	inner, closed := strings.CutSuffix(match[len("${"):], "}")
	if !closed {
		return "", errUnclosed
	}
	name, fallback, optional := strings.Cut(inner, ":-")
	value, set := env(name)
	switch {
	case !variableName.MatchString(name):
		return "", errName
	case optional && value == "":
		return fallback, nil
	case !set && !optional:
		return "", unsetError(name)
	}
	return value, nil
}
