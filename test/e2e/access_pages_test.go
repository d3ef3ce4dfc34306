package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAccessPages plays the matrix once more through the sessions of the
// dashboard, of the reseller's portal and of the neighbour's: a session may do
// what its key may, in the place where that key signs in, and in a portal
// keys are read and issued on a portal's terms.
func TestAccessPages(t *testing.T) {
	t.Parallel()
	b, callers := newBlock(t)
	cases := 0
	for _, at := range []site{{"/dashboard", false}, {"/p/portal-own", true}, {"/p/" + foreignPortal, true}} {
		b.call(b.manager, "PUT /gw/branding", `{"portal_slug":"portal-own","product_name":"Own","allow_self_issue":true}`, "") // as before the last site
		var visitors []caller
		for _, c := range callers {
			if visitor := at.visitor(b, c); !c.token { // tokens are for no page
				visitors = append(visitors, visitor)
			}
		}
		routes := at.routes()
		b.last = b.state()
		for i := range routes {
			for j := range visitors {
				for k, w := range everyOwner {
					// Who is not signed in gets the same 401 from every route: a
					// quarter of these cases does for the usual run.
					if !*full && !visitors[j].live && (i+j+k)%4 != 0 {
						continue
					}
					cases++
					b.play(&routes[i], &visitors[j], w)
				}
			}
		}
	}
	cases += b.sessions(callers)
	t.Logf("%d cases; %d calls reached the provider", cases, b.passed)
	b.endedSessions()
	b.books()
	if cases < 3000 {
		t.Errorf("%d cases, want at least 3000", cases)
	}
}

// site is where pages live.
type site struct {
	root   string
	portal bool
}

// admits reports whether a key may sign in there.
func (at site) admits(c *caller) bool {
	return c.live && !c.token && c.bound == at.portal && at.root != "/p/"+foreignPortal
}

// visitor signs a caller in: from then on it shows a cookie and no key. One
// who may not sign in shows its key, which is nothing there.
func (at site) visitor(b *block, c caller) caller {
	b.Helper()
	a := b.call("", "POST "+at.root+"/session", fmt.Sprintf(`{"key":%q}`, c.key), "")
	what := fmt.Sprintf("%s signs in at %s: %d %s", c.name, at.root, a.status, a.body)
	want := refusal(401)
	switch {
	case at.admits(&c):
		want = outcome{status: http.StatusOK}
	case c.live && c.token:
		want = tokenRefusal
	case c.live && c.bound && !at.portal:
		want = refusal(403)
	}
	b.judge(what, want, a, false)
	b.leaks(what, &accessRoute{}, &c, a)
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	if (cookie != "") != at.admits(&c) {
		b.Errorf("%s: the cookie is %q", what, cookie)
	}
	if c.live = at.admits(&c); c.live {
		c.key, c.cookie = "", cookie
	}
	return c
}

// routes are those of the API below the root.
func (at site) routes() []accessRoute {
	routes := slices.DeleteFunc(slices.Concat(managementRoutes(), doorRoutes()), func(r accessRoute) bool {
		return !strings.Contains(r.pattern, " /gw/") && (at.portal || !strings.Contains(r.pattern, " /v1/"))
	})
	for i := range routes {
		r := &routes[i]
		inner := *r
		r.native = ""
		if at.portal {
			inner = inPortal(inner)
			r.scope, r.expect = inner.scope, inner.expect
		}
		r.request = func(b *block, c *caller, w whose) (string, string) {
			target, body := inner.request(b, c, w)
			return strings.Replace(target, " ", " "+at.root, 1), body
		}
	}
	return routes
}

// inPortal is a route as a portal has it, which issues keys: who reads
// statistics reads keys and budgets, everyone pays into the wallet, and issues and
// revokes keys on the portal's terms, and those of the reseller only who manages keys.
func inPortal(r accessRoute) accessRoute {
	switch r.pattern {
	case "GET /gw/keys", "GET /gw/budgets":
		r.scope = statsScope
	case "POST /gw/keys":
		r.scope = ""
		return selfIssue(r)
	case "POST /gw/wallet/checkout":
		r.scope = ""
	case "DELETE /gw/keys/{id}":
		r.scope = ""
		expect := r.expect
		r.expect = func(c *caller, w whose) outcome {
			if !slices.Contains(c.scopes, manageScope) {
				return refusal(404)
			}
			return expect(c, w)
		}
	}
	return r
}

// selfIssue is the issuance of keys on a portal's terms.
func selfIssue(r accessRoute) accessRoute {
	request := r.request
	r.request = func(b *block, c *caller, w whose) (string, string) {
		target, body := request(b, c, w)
		if w == ofOther { // as much as the key may have, which is too much for a portal
			return target, strings.Replace(body, `"scopes":[]`, `"scopes":["keys:manage"]`, 1)
		}
		return target, strings.Replace(body, `"scopes":[]`, `"scopes":["inference:use"],"expires_in_seconds":60`, 1)
	}
	return r
}

// sessions asks the routes of sessions themselves, as everyone who may sign in
// somewhere and as those who may not: a session tells who it is of in its own
// place, and is nothing in any other, whatever its cookie is called there.
func (b *block) sessions(callers []caller) int {
	b.Helper()
	b.call(b.manager, "PUT /gw/branding", `{"portal_slug":"portal-own","product_name":"Own","allow_self_issue":true}`, "")
	cases := 0
	ask := func(what string, want outcome, c *caller, target string) {
		cases++
		a := b.as(c, target)
		b.judge(what+": "+target, want, a, false)
		b.leaks(what+": "+target, &accessRoute{}, c, a)
	}
	places := map[string]site{"dashboard": {"/dashboard", false}, "portal-portal-own": {"/p/portal-own", true}, "portal-" + foreignPortal: {"/p/" + foreignPortal, true}}
	for _, c := range callers {
		for home, at := range places {
			visitor := at.visitor(b, c)
			_, sealed, _ := strings.Cut(visitor.cookie, "=")
			for name, other := range places {
				want := refusal(401)
				if visitor.live && name == home {
					want = outcome{status: http.StatusOK}
				}
				if visitor.live {
					visitor.cookie = name + "=" + sealed
				}
				ask(c.name, want, &visitor, "GET "+other.root+"/session")
				ask(c.name, refusal(405), &visitor, "PUT "+other.root+"/session")
				ask(c.name, outcome{status: http.StatusNoContent}, &visitor, "DELETE "+other.root+"/session")
			}
		}
	}
	return cases
}

// endedSessions revokes, expires and suspends keys behind their sessions.
func (b *block) endedSessions() {
	b.Helper()
	mine := b.id[own].subAccount
	revoked := b.member(b.call(b.manager, "POST /gw/keys", `{"scopes":["stats:read"]}`, ""), "key")
	at := site{root: "/dashboard"}
	visitor := at.visitor(b, caller{name: "a key to be revoked", key: revoked, live: true})
	keys := b.call(b.manager, "GET /gw/keys?limit=1", "", "")
	id := strings.Split(keys.body, `"`)[3]
	b.judge("before it is revoked", outcome{status: 200}, b.as(&visitor, "GET /dashboard/gw/me"), false)
	b.judge("revoke", outcome{status: 204}, b.call(b.manager, "DELETE /gw/keys/"+id, "", ""), false)
	b.judge("after it is revoked", refusal(401), b.as(&visitor, "GET /dashboard/gw/me"), false)
	b.judge("after it is revoked", refusal(401), b.as(&visitor, "GET /dashboard/session"), false)

	bound := b.member(b.call(b.manager, "POST /gw/keys", fmt.Sprintf(`{"scopes":["stats:read"],"sub_account_id":%q}`, mine), ""), "key")
	portal := site{"/p/portal-own", true}
	customer := portal.visitor(b, caller{name: "a key to be suspended", key: bound, live: true, bound: true})
	b.judge("before it is suspended", outcome{status: 200}, b.as(&customer, "GET /p/portal-own/gw/usage"), false)
	b.judge("suspend", outcome{status: 204}, b.call(b.manager, "PATCH /gw/subaccounts/"+mine, `{"status":"suspended"}`, ""), false)
	b.judge("after it is suspended", refusal(401), b.as(&customer, "GET /p/portal-own/gw/usage"), false)
}

// as makes a request without a body as a signed-in caller.
func (b *block) as(c *caller, target string) answer {
	b.Helper()
	return b.send(c, target, "", "")
}
