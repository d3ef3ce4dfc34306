package e2e

import (
	"fmt"
	"net/http"
	"slices"
)

// withWallet is the sub-account of an owner. Where the caller may ask for its
// wallet there is one, which is not enabled: the calls of the matrix go on.
func (b *block) withWallet(c *caller, w whose) string {
	b.Helper()
	sub := b.id[w].subAccount
	if w != ofOrganization && c.reaches(w) && !c.bound && c.live && slices.ContainsFunc(c.scopes, func(s string) bool { return s == manageScope || s == statsScope }) {
		b.putWallet(sub)
	}
	return sub
}

func (b *block) putWallet(sub string) {
	b.Helper()
	if a := b.call(b.manager, "PUT /gw/wallets/"+sub, `{"enabled":false}`, ""); a.status != http.StatusNoContent {
		b.Fatalf("put wallet of %s: %d %s", sub, a.status, a.body)
	}
	b.last = b.state()
}

// walletRoutes are the routes of wallets.
func walletRoutes() []accessRoute {
	named := func(reached int) func(c *caller, w whose) outcome {
		return func(c *caller, w whose) outcome {
			if w == ofOrganization { // no sub-account of its own: the path names a key
				return refusal(404)
			}
			return c.either(w, reached, 404)
		}
	}
	bound := func(c *caller, _ whose) outcome {
		if !c.bound {
			return refusal(403)
		}
		return outcome{status: http.StatusOK}
	}
	owned := func(target string) func(*block, *caller, whose) (string, string) {
		return func(b *block, c *caller, w whose) (string, string) {
			if c.bound {
				b.putWallet(b.id[own].subAccount)
			}
			return target + b.claim(w), ""
		}
	}
	all := func(b *block, _ *caller, w whose) (string, string) { return "GET /gw/wallets" + b.claim(w), "" }
	return []accessRoute{
		{pattern: "GET /gw/wallets", scope: statsScope, organization: true, request: all, expect: func(*caller, whose) outcome { return outcome{status: http.StatusOK} }},
		{pattern: "GET /gw/wallets/{sub_account_id}", scope: statsScope, organization: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "GET /gw/wallets/" + b.withWallet(c, w), ""
		}, expect: named(200)},
		{pattern: "PUT /gw/wallets/{sub_account_id}", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PUT /gw/wallets/" + b.id[w].subAccount, fmt.Sprintf(`{"enabled":false,"client_id":%q}`, b.id[ofOther].client)
		}, expect: named(204)},
		{pattern: "GET /gw/wallets/{sub_account_id}/entries", scope: statsScope, organization: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "GET /gw/wallets/" + b.withWallet(c, w) + "/entries", ""
		}, expect: named(200)},
		{pattern: "POST /gw/wallets/{sub_account_id}/entries", scope: manageScope, organization: true, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "POST /gw/wallets/" + b.withWallet(c, w) + "/entries", fmt.Sprintf(`{"kind":"purchase","amount_usd":1,"external_id":%q}`, b.fresh("e"))
		}, expect: named(200)},
		{pattern: "GET /gw/wallet", scope: statsScope, request: owned("GET /gw/wallet"), expect: bound},
		{pattern: "GET /gw/processor/webhook", scope: statsScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "GET /gw/processor/webhook" + b.claim(w), ""
		}, expect: func(*caller, whose) outcome { return outcome{status: http.StatusOK} }},
		{pattern: "PUT /gw/processor/webhook", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "PUT /gw/processor/webhook", `{"secret":"short"}`
			}
			return "PUT /gw/processor/webhook" + b.claim(w), `{"secret":""}`
		}, expect: func(_ *caller, w whose) outcome {
			if w == malformed {
				return refusal(400)
			}
			return outcome{status: http.StatusNoContent}
		}},
		{pattern: "POST /gw/wallet/checkout", scope: manageScope, request: func(b *block, _ *caller, w whose) (string, string) {
			return "POST /gw/wallet/checkout" + b.claim(w), `{"amount_usd":0.001}` // refused before anything is begun
		}, expect: func(c *caller, _ whose) outcome {
			if !c.bound {
				return refusal(403)
			}
			return refusal(400)
		}},
		{pattern: "GET /gw/wallet/entries", scope: statsScope, request: owned("GET /gw/wallet/entries"), expect: bound},
	}
}
