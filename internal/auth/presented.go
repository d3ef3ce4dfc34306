package auth

import (
	"context"
	"net/http"
	"strings"

	"modelgate"
)

// Place says in which headers a surface takes a key.
type Place string

// The places: the management API reads Authorization alone, doors and
// provider proxy also the native headers of the providers' formats
// (spec: Authentication 2).
const (
	AuthorizationOnly Place = "authorization"
	AnyHeader         Place = "any"
)

const (
	authorization = "Authorization"
	maxPresented  = 128 // bytes; a key has 56
)

// Presented is the secret a request carries, which need not be a key. None,
// two that differ, and anything that cannot be one are unauthorized.
func Presented(h http.Header, p Place) (string, error) {
	secret := ""
	for _, name := range [...]string{authorization, "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		for _, value := range h[name] {
			value = stripBearer(strings.Trim(value, " \t"))
			switch {
			case value == "" || value == secret:
			case secret != "" || !presentable(value):
				return "", modelgate.ErrUnauthorized
			default:
				secret = value
			}
		}
		if p == AuthorizationOnly {
			break
		}
	}
	if secret == "" {
		return "", modelgate.ErrUnauthorized
	}
	return secret, nil
}

// stripBearer takes an optional scheme off, in any letter case and with one
// or more spaces (spec: Authentication 3).
func stripBearer(value string) string {
	const scheme = "bearer"
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return value
	}
	rest := value[len(scheme):]
	if rest == "" {
		return ""
	}
	if rest[0] != ' ' {
		return value
	}
	return strings.TrimLeft(rest, " ")
}

// presentable refuses what only a confused or hostile client sends: two keys
// joined by a comma, control bytes, spaces, anything outside ASCII or long.
func presentable(value string) bool {
	if len(value) > maxPresented {
		return false
	}
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == ',' {
			return false
		}
	}
	return true
}

// Identifier finds the caller behind a secret; Authenticator is one.
type Identifier interface {
	Identify(ctx context.Context, secret string, from Origin) (*modelgate.Caller, error)
}

// Identify is the caller of a request by the key in its headers. Errors are those
// of Presented and of Authenticator.Identify.
func Identify(keys Identifier, r *http.Request, p Place) (*modelgate.Caller, error) {
	secret, err := Presented(r.Header, p)
	if err != nil {
		return nil, err
	}
	return keys.Identify(r.Context(), secret, OriginOf(r))
}
