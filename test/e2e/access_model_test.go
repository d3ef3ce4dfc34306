package e2e

import (
	"net/http"
	"slices"
	"strings"
)

// caller is one kind of key, or of the want of one.
type caller struct {
	name   string
	key    string // "" presents none
	cookie string // of a session; "" for none
	live   bool
	bound  bool // to the sub-account called mine
	scopes []string
	// barred callers have the scope to call models and no entitlement.
	barred bool
	// token callers have a browser token in place of a key.
	token bool
}

// whose is what a request names.
type whose string

// The owners of what is named. Where a route names nothing, a request tries to
// name it all the same, in the query, in headers and in the body.
const (
	own               whose = "own"
	ofOrganization    whose = "the organization's"
	ofOtherSubAccount whose = "another sub-account's"
	ofOther           whose = "another organization's"
	unknown           whose = "unknown"
	malformed         whose = "malformed"
)

var everyOwner = []whose{own, ofOrganization, ofOtherSubAccount, ofOther, unknown, malformed}

// outcome is what the rules say of a request.
type outcome struct {
	status  int
	kind    string // of the error; "" for none
	message string // "" for any
}

// passes is a request that reaches a provider, which answers what it likes.
var passes = outcome{status: -1}

// refusal is an outcome of the error table.
func refusal(status int) outcome {
	kinds := map[int]string{400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict"}
	return outcome{status: status, kind: kinds[status]}
}

// rights are the rules on who may use a route, in their order: authentication, scope, and that a key of a sub-account is its end
// customer's. What a request names is judged after that.
func (c *caller) rights(r *accessRoute) (refused outcome, ok bool) {
	switch {
	case !c.live:
		return refusal(401), false
	case c.token && !r.ofTokens():
		return tokenRefusal, false
	case r.scope != "" && !slices.Contains(c.scopes, r.scope):
		return refusal(403), false
	case r.organization && c.bound:
		return refusal(403), false
	}
	return outcome{}, true
}

// tokenRefusal is for a browser token on a route that is none of its own.
var tokenRefusal = outcome{status: http.StatusForbidden, kind: "forbidden", message: "a token cannot use this route"}

// ofTokens reports whether a browser token reaches the route: doors, the provider
// proxy, and the few reads of the gateway that say what a token may do.
func (r *accessRoute) ofTokens() bool {
	return r.scope == inferenceScope && !strings.Contains(r.pattern, " /gw/") ||
		slices.Contains([]string{"GET /gw/me", "GET /gw/models", "GET /gw/quota", "GET /v1/models", "GET /v1/models/{slug...}"}, r.pattern)
}

// reaches reports whether a caller may touch what has this owner.
func (c *caller) reaches(w whose) bool {
	switch w {
	case own:
		return true
	case ofOrganization, ofOtherSubAccount:
		return !c.bound
	}
	return false
}

// either is an outcome for what the caller reaches and one for all else.
func (c *caller) either(w whose, reached, other int) outcome {
	result := other
	if c.reaches(w) {
		result = reached
	}
	if result < 300 {
		return outcome{status: result}
	}
	return refusal(result)
}

// plain is a 200, but for what is malformed where that is refused.
func plain(w whose, bad int) outcome {
	if w == malformed && bad != 0 {
		return refusal(bad)
	}
	return outcome{status: http.StatusOK}
}
