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
// provider proxy also the native headers of the providers' formats.
const (
	AuthorizationOnly Place = "authorization"
	AnyHeader         Place = "any"
)

const (
	authorization = "Authorization"
	maxPresented  = 128 // bytes; a key has 56
)

// keyHeaders are the headers that a key may be in. Authorization comes first.
var keyHeaders = [...]string{authorization, "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// Presented is the secret a request carries, which need not be a key. None,
// two that differ, and anything that cannot be one are unauthorized, with a
// detail that says which it is.
func Presented(h http.Header, p Place) (string, error) {
	secret, empty := "", ""
	for _, name := range keyHeaders {
		for _, value := range h[name] {
			value = stripBearer(strings.Trim(value, " \t"))
			switch {
			case value == "":
				empty = name
			case value == secret:
			case secret != "":
				return "", refused("the headers hold two different keys; send one")
			case !presentable(value):
				return "", notKey(value)
			default:
				secret = value
			}
		}
		if p == AuthorizationOnly {
			break
		}
	}
	if secret == "" {
		return "", noKey(h, p, empty)
	}
	return secret, nil
}

// stripBearer takes an optional scheme off, in any letter case and with one
// or more spaces.
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

// Identify is the caller of a request by the key or browser token in its headers.
// Errors are those of Presented and of Authenticator.Identify, and
// modelgate.ErrTokenOrigin.
func Identify(keys Identifier, r *http.Request, p Place) (*modelgate.Caller, error) {
	secret, err := Presented(r.Header, p)
	if err != nil {
		return nil, err
	}
	c, err := keys.Identify(r.Context(), secret, OriginOf(r))
	if err == nil && c.Token != nil && !c.Token.PermitsOrigin(strings.Join(r.Header["Origin"], ", ")) {
		return nil, modelgate.ErrTokenOrigin
	}
	return c, err
}
