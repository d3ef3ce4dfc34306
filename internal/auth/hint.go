package auth

import (
	"net/http"
	"strings"

	"modelgate"
)

// The details of a 401 say what was sent instead of a key. They tell nothing
// that the request does not hold itself: a key that is well-formed is refused
// without one, whether it is unknown, revoked or expired.

const sendKey = `send a gateway key as "Authorization: Bearer gw_live_..."`

func refused(detail string) error {
	return &modelgate.DetailError{Err: modelgate.ErrUnauthorized, Detail: detail}
}

// noKey refuses a request without a key. Empty is the header that is there
// without a value, "" for none.
func noKey(h http.Header, p Place, empty string) error {
	if empty != "" {
		return refused("the key in the header " + empty + " is empty; is the variable set that it is taken from? " + sendKey)
	}
	if p == AuthorizationOnly {
		for _, name := range keyHeaders[1:] {
			if h.Get(name) != "" {
				return refused("paths under /gw do not read the header " + name + "; " + sendKey)
			}
		}
	}
	return refused("no key was sent; " + sendKey)
}

// providerKeys are what the keys of providers begin with. A longer prefix comes
// before one that it begins with.
var providerKeys = [...]struct{ prefix, provider string }{
	{"sk-ant-", "Anthropic"},
	{"sk-or-", "OpenRouter"},
	{"sk-", "OpenAI or another provider"},
	{"AIza", "Google"},
	{"gsk_", "Groq"},
	{"xai-", "xAI"},
}

// notKey refuses a value that cannot be a key.
func notKey(value string) error {
	for _, k := range providerKeys {
		if strings.HasPrefix(value, k.prefix) {
			return refused("this is a key of " + k.provider + " (" + k.prefix + "...); the gateway adds the provider's key itself: " + sendKey)
		}
	}
	if modelgate.IsToken(value) {
		return refused("the token is mistyped or cut: " + modelgate.KeyFault(value))
	}
	if strings.HasPrefix(value, "gw_live_") {
		return refused("the gateway key is mistyped or cut: " + modelgate.KeyFault(value))
	}
	return refused("this is not a gateway key; " + sendKey)
}
