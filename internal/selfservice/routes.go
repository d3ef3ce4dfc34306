package selfservice

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelgate"
)

// reach says which keys an endpoint is for.
type reach string

// A key that is bound to a sub-account belongs to an end customer. It reaches the
// data of its sub-account, and none of the organization's.
const (
	everyone     reach = "everyone"
	organization reach = "organization"
)

// endpoint is one line of the scope table.
type endpoint struct {
	pattern string // method and path; {name} is one segment, {name...} the rest
	scope   modelgate.Scope
	reach   reach
	serve   serveFunc
}

type serveFunc func(*API, context.Context, *exchange) error

// strictRoutes refuse parameters of the query that they do not know. New routes
// belong here.
func strictRoutes() []endpoint {
	return []endpoint{
		{"GET /gw/prices", modelgate.AnyKey, everyone, call((*API).prices)},
		{"GET /gw/quota", modelgate.AnyKey, everyone, call((*API).quota)},
		{"GET /v1/models/{slug...}", modelgate.AnyKey, everyone, call((*API).openModel)},
		{"DELETE /gw/budgets", modelgate.KeysManage, everyone, change((*API).deleteBudget)},
		{"GET /gw/calls", modelgate.StatsRead, everyone, (*API).calls},
		{"GET /gw/report", modelgate.StatsRead, everyone, (*API).report},
		{"GET /gw/limits", modelgate.KeysManage, everyone, call((*API).limits)},
		{"PUT /gw/limits", modelgate.KeysManage, everyone, change((*API).putLimit)},
		{"DELETE /gw/limits", modelgate.KeysManage, everyone, change((*API).deleteLimit)},
		{"GET /gw/alerts", modelgate.StatsRead, organization, call((*API).alerts)},
		{"PUT /gw/alerts", modelgate.KeysManage, organization, change((*API).putAlerts)},
		{"DELETE /gw/alerts", modelgate.KeysManage, organization, change((*API).deleteAlerts)},
		{"GET /gw/tokens", modelgate.AnyKey, everyone, call((*API).tokens)},
		{"POST /gw/tokens", modelgate.InferenceUse, everyone, call((*API).mintToken)},
		{"DELETE /gw/tokens", modelgate.AnyKey, everyone, change((*API).revokeTokens)},
		{"DELETE /gw/tokens/{id}", modelgate.AnyKey, everyone, change((*API).revokeToken)},
		{"GET /gw/wallets", modelgate.StatsRead, organization, call((*API).wallets)},
		{"GET /gw/wallets/{sub_account_id}", modelgate.StatsRead, organization, call((*API).wallet)},
		{"PUT /gw/wallets/{sub_account_id}", modelgate.KeysManage, organization, change((*API).putWallet)},
		{"GET /gw/wallets/{sub_account_id}/entries", modelgate.StatsRead, organization, call((*API).entries)},
		{"POST /gw/wallets/{sub_account_id}/entries", modelgate.KeysManage, organization, call((*API).addEntry)},
		{"GET /gw/wallet", modelgate.StatsRead, everyone, call((*API).ownWallet)},
		{"GET /gw/wallet/entries", modelgate.StatsRead, everyone, call((*API).ownEntries)},
		{"POST /gw/wallet/checkout", modelgate.KeysManage, everyone, call((*API).topUp)},
		{"GET /gw/processor/webhook", modelgate.StatsRead, organization, call((*API).processorWebhook)},
		{"PUT /gw/processor/webhook", modelgate.KeysManage, organization, change((*API).putProcessorWebhook)},
		{"GET /gw/people", modelgate.KeysManage, organization, call((*API).people)},
		{"PATCH /gw/people/{id}", modelgate.KeysManage, organization, change((*API).patchMember)},
		{"DELETE /gw/people/{id}", modelgate.KeysManage, organization, change((*API).removeMember)},
		{"GET /gw/sessions", modelgate.AnyKey, organization, call((*API).sessions)},
		{"DELETE /gw/sessions", modelgate.AnyKey, organization, change((*API).endSessions)},
		{"DELETE /gw/sessions/{id}", modelgate.AnyKey, organization, change((*API).endSession)},
		{"GET /gw/series", modelgate.StatsRead, everyone, call((*API).series)},
		{"GET /gw/focus", modelgate.StatsRead, everyone, (*API).focus},
		{"POST /gw/processor/events/retry", modelgate.KeysManage, organization, call((*API).retryEvents)},
	}
}

// lenientRoutes ignore parameters of the query that they do not know, because their
// clients may send some, and name them in a header. The members of a body are
// declared by the tags of its struct (see httpx.DecodeJSON), and the parameters of a
// query by reading them.
func lenientRoutes() []endpoint {
	return []endpoint{
		{"GET /gw/me", modelgate.AnyKey, everyone, call((*API).me)},
		{"GET /gw/models", modelgate.AnyKey, everyone, call((*API).models)},
		{"GET /v1/models", modelgate.AnyKey, everyone, call((*API).openModels)},

		{"GET /gw/ceiling", modelgate.KeysManage, everyone, call((*API).ceiling)},
		{"GET /gw/keys", modelgate.KeysManage, everyone, call((*API).listKeys)},
		{"POST /gw/keys", modelgate.KeysManage, everyone, call((*API).issueKey)},
		{"DELETE /gw/keys/{id}", modelgate.KeysManage, everyone, change((*API).revokeKey)},

		{"GET /gw/subaccounts", modelgate.KeysManage, organization, call((*API).listSubAccounts)},
		{"POST /gw/subaccounts", modelgate.KeysManage, organization, call((*API).createSubAccount)},
		{"PATCH /gw/subaccounts/{id}", modelgate.KeysManage, organization, change((*API).patchSubAccount)},

		{"GET /gw/budgets", modelgate.KeysManage, everyone, call((*API).budgets)},
		{"PUT /gw/budgets", modelgate.KeysManage, everyone, change((*API).putBudget)},

		{"GET /gw/branding", modelgate.KeysManage, organization, call((*API).branding)},
		{"PUT /gw/branding", modelgate.KeysManage, organization, call((*API).putBranding)},

		{"GET /gw/stats", modelgate.StatsRead, everyone, call((*API).stats)},
		{"POST /gw/billing/checkout", modelgate.KeysManage, organization, call((*API).checkout)},

		{"GET /gw/processor/config", modelgate.StatsRead, organization, call((*API).processorConfig)},
		{"PUT /gw/processor/config", modelgate.KeysManage, organization, change((*API).putProcessor)},
		{"PUT /gw/processor/mappings/{sub_account_id}", modelgate.KeysManage, organization, change((*API).putMapping)},
		{"DELETE /gw/processor/mappings/{sub_account_id}", modelgate.KeysManage, organization, change((*API).deleteMapping)},
		{"POST /gw/processor/customers", modelgate.KeysManage, organization, call((*API).createCustomer)},
		{"GET /gw/processor/events", modelgate.StatsRead, organization, call((*API).processorEvents)},
		{"POST /gw/processor/events/{usage_record_id}/retry", modelgate.KeysManage, organization, change((*API).retryEvent)},

		{"GET /gw/usage", modelgate.StatsRead, everyone, call((*API).usage)},
		{"GET /gw/evidence", modelgate.StatsRead, organization, (*API).evidence},
		{"GET /gw/async", modelgate.StatsRead, everyone, call((*API).jobs)},
	}
}

// openToTokens reports whether the endpoint may be called with a browser token.
func (e *endpoint) openToTokens() bool {
	switch e.pattern {
	case "GET /gw/me", "GET /gw/models", "GET /gw/quota", "GET /v1/models", "GET /v1/models/{slug...}":
		return true
	}
	return false
}

// admit refuses a session without the scope or out of reach.
func (e *endpoint) admit(s Session) error {
	if s.Caller.Token != nil && !e.openToTokens() {
		return modelgate.ErrTokenRoute
	}
	if scope := e.scopeFor(s); !s.Caller.Has(scope) {
		return modelgate.ErrMissingScope(scope)
	}
	if e.reach == organization && s.Caller.SubAccountID != "" {
		return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot use this route of the organization")
	}
	return nil
}

// opensTo reports whether the route is open to a role besides those of its scopes.
func (e *endpoint) opensTo(role modelgate.Role) bool {
	switch role {
	case modelgate.RoleDeveloper:
		return slices.Contains([]string{"GET /gw/keys", "POST /gw/keys", "DELETE /gw/keys/{id}"}, e.pattern)
	case modelgate.RoleBilling:
		return e.pattern == "GET /gw/keys" || e.pattern == "GET /gw/branding" || e.pattern == "GET /gw/subaccounts" || e.pattern == "PATCH /gw/subaccounts/{id}" ||
			slices.ContainsFunc([]string{"/gw/budgets", "/gw/billing/", "/gw/processor/", "/gw/wallets"}, func(part string) bool { return strings.Contains(e.pattern, " "+part) })
	}
	return false
}

// scopeFor is the scope that a session needs. In a portal, stats:read also reads
// budgets, and every customer may pay. The endpoints for keys check
// allow_self_issue themselves.
func (e *endpoint) scopeFor(s Session) modelgate.Scope {
	if e.opensTo(s.Caller.Role) {
		return modelgate.AnyKey
	}
	if s.Portal {
		switch e.pattern {
		case "GET /gw/keys", "POST /gw/keys", "DELETE /gw/keys/{id}", "POST /gw/wallet/checkout":
			return modelgate.AnyKey
		case "GET /gw/budgets":
			if !s.Caller.Has(modelgate.KeysManage) {
				return modelgate.StatsRead
			}
		}
	}
	return e.scope
}

// route is an endpoint with its pattern taken apart.
type route struct {
	endpoint
	method   string
	segments []string
	strict   bool // of strictRoutes
}

// compile makes the routes of all that is served.
func compile() (all []route) {
	for i, table := range [][]endpoint{lenientRoutes(), strictRoutes()} {
		for _, e := range table {
			method, path, _ := strings.Cut(e.pattern, " ")
			all = append(all, route{e, method, strings.Split(path, "/"), i > 0})
		}
	}
	return all
}

// find is the route of a request and the values of its path, or the methods
// that the path has, or neither. It compares the path as it was sent, segment by
// segment. The path is not cleaned: //gw/keys and /gw/keys/ are other paths.
func (a *API) find(r *http.Request) (found *route, values, methods []string) {
	segments := strings.Split(r.URL.EscapedPath(), "/")
	for i := range a.routes {
		route := &a.routes[i]
		values, ok := route.values(segments)
		switch {
		case !ok:
		case route.method == r.Method, route.method == http.MethodGet && r.Method == http.MethodHead:
			return route, values, nil
		default:
			methods = append(methods, route.method)
			if route.method == http.MethodGet {
				methods = append(methods, http.MethodHead)
			}
		}
	}
	return nil, nil, methods
}

// values are what the pattern's names stand for, decoded.
func (r *route) values(segments []string) ([]string, bool) {
	var values []string
	for i, want := range r.segments {
		if i >= len(segments) {
			return nil, false
		}
		got := segments[i]
		switch {
		case !strings.HasPrefix(want, "{"):
			if got != want {
				return nil, false
			}
			continue
		case strings.HasSuffix(want, "...}"):
			got = strings.Join(segments[i:], "/")
			segments = segments[:i+1]
		}
		value, err := url.PathUnescape(got)
		if err != nil || value == "" {
			return nil, false
		}
		values = append(values, value)
	}
	return values, len(segments) == len(r.segments)
}

// noRoute is the error of a path that has only these methods, or none.
func noRoute(w http.ResponseWriter, methods []string) error {
	if len(methods) == 0 {
		return modelgate.Errorf(modelgate.NotFound, "no such path")
	}
	slices.Sort(methods)
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	return modelgate.Errorf(modelgate.MethodNotAllowed, "method not allowed; use %s", allow)
}
