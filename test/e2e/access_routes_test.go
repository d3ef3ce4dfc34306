package e2e

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
)

const (
	manageScope    = "keys:manage"
	statsScope     = "stats:read"
	inferenceScope = "inference:use"
)

// accessRoute is one route of the gateway as the API reference describes it.
type accessRoute struct {
	pattern      string // as in the endpoint table; doors and proxy: what is called
	scope        string // "" is any valid key
	organization bool   // not for keys of a sub-account
	native       string // header that carries the key; "" is Authorization
	changes      bool   // can change rows when it succeeds
	errand       bool   // about a job, so that it is not booked
	request      func(b *block, c *caller, w whose) (target, body string)
	expect       func(c *caller, w whose) outcome
}

// managementRoutes is the table of scopes once more, read off the API reference.
func managementRoutes() []accessRoute {
	anything := func(target string) func(*block, *caller, whose) (string, string) {
		return func(b *block, _ *caller, w whose) (string, string) { return target + b.spoof(w), "" }
	}
	always := func(_ *caller, _ whose) outcome { return outcome{status: http.StatusOK} }
	return append(walletRoutes(), []accessRoute{
		{pattern: "GET /gw/me", request: anything("GET /gw/me"), expect: always},
		{pattern: "GET /gw/models", request: anything("GET /gw/models"), expect: always},
		{pattern: "GET /gw/prices", request: func(b *block, _ *caller, w whose) (string, string) { return "GET /gw/prices" + b.claim(w), "" }, expect: always},
		{pattern: "GET /v1/models", request: anything("GET /v1/models"), expect: always},
		{pattern: "GET /v1/models/{slug...}", request: func(b *block, _ *caller, w whose) (string, string) {
			slug := map[whose]string{unknown: "openai/none", malformed: "none"}[w]
			if slug == "" {
				slug = "openai/gpt-5-mini"
			}
			return "GET /v1/models/" + slug + b.spoof(w), ""
		}, expect: func(_ *caller, w whose) outcome {
			if w == unknown || w == malformed {
				return refusal(404)
			}
			return outcome{status: http.StatusOK}
		}},
		{pattern: "GET /gw/ceiling", scope: manageScope, request: anything("GET /gw/ceiling"), expect: always},
		{pattern: "GET /gw/keys", scope: manageScope, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == own {
				return "GET /gw/keys", ""
			}
			return "GET /gw/keys?limit=1" + map[whose]string{
				ofOther: "&cursor=" + b.cursor[ofOther], ofOtherSubAccount: "&cursor=" + b.cursor[ofOtherSubAccount],
				unknown: "&cursor=AAAA", malformed: "&limit=none", ofOrganization: "&client_id=" + b.id[ofOther].client,
			}[w], ""
		}, expect: func(_ *caller, w whose) outcome {
			if w == own || w == ofOrganization {
				return outcome{status: http.StatusOK}
			}
			return refusal(400)
		}},
		{pattern: "POST /gw/keys", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == ofOrganization { // what names no sub-account, and another organization
				return "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"client_id":%q}`, b.id[ofOther].client)
			}
			return "POST /gw/keys", fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, b.id[w].subAccount)
		}, expect: func(c *caller, w whose) outcome {
			if w == ofOrganization {
				return outcome{status: http.StatusOK}
			}
			return c.either(w, 200, 403)
		}},
		{pattern: "DELETE /gw/keys/{id}", scope: manageScope, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "DELETE /gw/keys/" + b.victim(c, w), ""
		}, expect: func(c *caller, w whose) outcome { return c.either(w, 204, 404) }},
		{pattern: "GET /gw/people", scope: manageScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/people?limit=0", ""
			}
			return "GET /gw/people" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "PATCH /gw/people/{id}", scope: manageScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PATCH /gw/people/" + b.id[w].key, `{"role":"admin"}` // nobody's
		}, expect: func(*caller, whose) outcome { return refusal(404) }},
		{pattern: "DELETE /gw/people/{id}", scope: manageScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "DELETE /gw/people/" + b.id[w].key, ""
		}, expect: func(*caller, whose) outcome { return refusal(404) }},
		{pattern: "GET /gw/sessions", organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/sessions?person_id=anna", ""
			}
			return "GET /gw/sessions" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "DELETE /gw/sessions", organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "DELETE /gw/sessions", ""
			}
			return "DELETE /gw/sessions?person_id=" + unknownUUID + strings.Replace(b.claim(w), "?", "&", 1), ""
		}, expect: func(c *caller, w whose) outcome {
			switch {
			case w == malformed:
				return refusal(400)
			case !slices.Contains(c.scopes, manageScope):
				return refusal(403)
			}
			return refusal(404)
		}},
		{pattern: "DELETE /gw/sessions/{id}", organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "DELETE /gw/sessions/" + b.id[w].key, "" // no session's
		}, expect: func(*caller, whose) outcome { return refusal(404) }},
		{pattern: "GET /gw/tokens", request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/tokens?limit=0", ""
			}
			return "GET /gw/tokens" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "POST /gw/tokens", scope: inferenceScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "POST /gw/tokens", `{"end_user":"","models":["a/b"]}`
			}
			return "POST /gw/tokens" + b.claim(w), fmt.Sprintf(`{"end_user":"u","models":["a/b"],"client_id":%q}`, b.id[ofOther].client)
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "DELETE /gw/tokens", changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "DELETE /gw/tokens", ""
			}
			return "DELETE /gw/tokens?end_user=nobody" + strings.Replace(b.claim(w), "?", "&", 1), ""
		}, expect: func(_ *caller, w whose) outcome {
			if w == malformed {
				return refusal(400)
			}
			return outcome{status: http.StatusNoContent}
		}},
		{pattern: "DELETE /gw/tokens/{id}", changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "DELETE /gw/tokens/" + b.minted(w), ""
		}, expect: func(c *caller, w whose) outcome {
			if !slices.Contains(c.scopes, manageScope) { // minted by another key
				return refusal(404)
			}
			return c.either(w, 204, 404)
		}},
		{pattern: "GET /gw/subaccounts", scope: manageScope, organization: true, request: anything("GET /gw/subaccounts"), expect: always},
		{pattern: "POST /gw/subaccounts", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "POST /gw/subaccounts", `{"name":"n"`
			}
			return "POST /gw/subaccounts" + b.spoof(w), fmt.Sprintf(`{"name":"n","slug":%q,"client_id":%q}`, b.fresh("s"), b.id[ofOther].client)
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "PATCH /gw/subaccounts/{id}", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PATCH /gw/subaccounts/" + b.id[w].subAccount, `{"name":"renamed"}`
		}, expect: func(c *caller, w whose) outcome {
			if w == ofOrganization { // no sub-account of its own: the path names a key
				return refusal(404)
			}
			return c.either(w, 204, 404)
		}},
		{pattern: "GET /gw/quota", request: func(b *block, _ *caller, w whose) (string, string) {
			return "GET /gw/quota" + b.claim(w), ""
		}, expect: always},
		{pattern: "GET /gw/budgets", scope: manageScope, request: anything("GET /gw/budgets"), expect: always},
		{pattern: "GET /gw/limits", scope: manageScope, request: func(b *block, _ *caller, w whose) (string, string) { return "GET /gw/limits" + b.claim(w), "" }, expect: always},
		{pattern: "PUT /gw/limits", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PUT /gw/limits" + b.claim(w), fmt.Sprintf(`{"scope":"key","id":%q,"unit":"tokens","window":"minute","limit":1000000000}`, b.id[w].key)
		}, expect: func(c *caller, w whose) outcome { return c.either(w, 204, 404) }},
		{pattern: "DELETE /gw/limits", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "DELETE /gw/limits?scope=key&unit=usd&window=minute&id=" + b.id[w].key, "" // there is none to remove
		}, expect: func(*caller, whose) outcome { return refusal(404) }},
		{pattern: "PUT /gw/budgets", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PUT /gw/budgets" + b.spoof(w), fmt.Sprintf(`{"scope":"key","id":%q,"period":"month","limit_usd":5000,"client_id":%q}`, b.id[w].key, b.id[ofOther].client)
		}, expect: func(c *caller, w whose) outcome { return c.either(w, 204, 404) }},
		{pattern: "PUT /gw/budgets", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PUT /gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"day","limit_usd":5000}`, b.id[w].subAccount)
		}, expect: func(c *caller, w whose) outcome {
			switch {
			case c.bound:
				return refusal(403)
			case w == ofOrganization: // no sub-account of its own: the id is a key's
				return refusal(404)
			}
			return c.either(w, 204, 404)
		}},
		{pattern: "DELETE /gw/budgets", scope: manageScope, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "DELETE /gw/budgets?scope=key&period=day&id=" + b.budgeted(c, w), ""
		}, expect: func(c *caller, w whose) outcome { return c.either(w, 204, 404) }},
		{pattern: "DELETE /gw/budgets", scope: manageScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "DELETE /gw/budgets?scope=client&period=day&id=" + b.id[w].client, ""
		}, expect: func(c *caller, _ whose) outcome {
			if c.bound {
				return refusal(403)
			}
			return refusal(400) // the organization is the key's, and is not named
		}},
		{pattern: "GET /gw/branding", scope: manageScope, organization: true, request: anything("GET /gw/branding"), expect: always},
		{pattern: "PUT /gw/branding", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			slug := map[whose]string{ofOther: foreignPortal, malformed: "No Slug"}[w]
			if slug == "" {
				slug = "portal-own"
			}
			return "PUT /gw/branding" + b.spoof(w), fmt.Sprintf(`{"portal_slug":%q,"product_name":"P","allow_self_issue":false,"client_id":%q}`, slug, b.id[ofOther].client)
		}, expect: func(_ *caller, w whose) outcome {
			if w == ofOther {
				return refusal(409)
			}
			return plain(w, 400)
		}},
		{pattern: "GET /gw/evidence", scope: statsScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/evidence?limit=0", ""
			}
			return "GET /gw/evidence?limit=1" + strings.Replace(b.spoof(w), "?", "&", 1), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/series", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/series?interval=minute", ""
			}
			return "GET /gw/series" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/calls", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/calls?sort=name", ""
			}
			return "GET /gw/calls" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/report", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/report?interval=minute", ""
			}
			return "GET /gw/report" + b.claim(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/focus", scope: statsScope, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/focus?from=2026-01-01", ""
			}
			return "GET /gw/focus?from=2026-01-01&to=2026-01-02" + strings.Replace(b.claim(w), "?", "&", 1), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/stats", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			query := map[whose]string{
				own: "?group_by=provider", ofOther: "?group_by=key_id&client_id=" + b.id[ofOther].client,
				ofOtherSubAccount: "?group_by=team&sub_account_id=" + b.id[ofOtherSubAccount].subAccount,
				unknown:           "?group_by=nobody", malformed: "?group_by=no%20key", ofOrganization: "?group_by=sub_account_id",
			}[w]
			return "GET /gw/stats" + query, ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "POST /gw/billing/checkout", scope: manageScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "POST /gw/billing/checkout" + b.spoof(w), fmt.Sprintf(`{"amount_usd":10,"client_id":%q}`, b.id[ofOther].client)
		}, expect: func(*caller, whose) outcome { return refusal(400) }}, // an invoiced organization
		{pattern: "GET /gw/processor/config", scope: statsScope, organization: true, request: anything("GET /gw/processor/config"), expect: always},
		{pattern: "PUT /gw/processor/config", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "PUT /gw/processor/config", `{"enabled":1}`
			}
			return "PUT /gw/processor/config" + b.spoof(w), fmt.Sprintf(`{"enabled":false,"client_id":%q}`, b.id[ofOther].client)
		}, expect: func(_ *caller, w whose) outcome {
			if w == malformed {
				return refusal(400)
			}
			return outcome{status: http.StatusNoContent}
		}},
		{pattern: "GET /gw/alerts", scope: statsScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) { return "GET /gw/alerts" + b.claim(w), "" }, expect: always},
		{pattern: "PUT /gw/alerts", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "PUT /gw/alerts", `{"webhook_url":"http://a.example"}`
			}
			return "PUT /gw/alerts" + b.claim(w), fmt.Sprintf(`{"webhook_url":"https://%s.example","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz","client_id":%q}`, b.fresh("hook"), b.id[ofOther].client)
		}, expect: func(_ *caller, w whose) outcome {
			if w == malformed {
				return refusal(400)
			}
			return outcome{status: http.StatusNoContent}
		}},
		{pattern: "DELETE /gw/alerts", scope: manageScope, organization: true, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			// For there to be something to remove.
			b.call(b.manager, "PUT /gw/alerts", `{"webhook_url":"https://removed.example","secret":"whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"}`, "")
			b.last = b.state()
			return "DELETE /gw/alerts" + b.claim(w), ""
		}, expect: func(*caller, whose) outcome {
			return outcome{status: http.StatusNoContent}
		}},
		{pattern: "PUT /gw/processor/mappings/{sub_account_id}", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "PUT /gw/processor/mappings/" + b.id[w].subAccount, fmt.Sprintf(`{"stripe_customer_id":%q}`, b.fresh("cus"))
		}, expect: func(c *caller, w whose) outcome {
			if w == ofOrganization { // no sub-account of its own: the path names a key
				return refusal(404)
			}
			return c.either(w, 204, 404)
		}},
		{pattern: "DELETE /gw/processor/mappings/{sub_account_id}", scope: manageScope, organization: true, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "DELETE /gw/processor/mappings/" + b.mapped(c, w), ""
		}, expect: func(c *caller, w whose) outcome {
			if w == ofOrganization { // no sub-account of its own: the path names a key
				return refusal(404)
			}
			return c.either(w, 204, 404)
		}},
		{pattern: "POST /gw/processor/customers", scope: manageScope, organization: true, changes: true, request: func(b *block, _ *caller, w whose) (string, string) {
			return "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q,"name":%q}`, b.id[w].subAccount, b.fresh("customer"))
		}, expect: func(c *caller, w whose) outcome {
			if w == ofOrganization { // no sub-account of its own: the path names a key
				return refusal(404)
			}
			return c.either(w, 200, 404)
		}},
		{pattern: "GET /gw/processor/events", scope: statsScope, organization: true, request: func(b *block, _ *caller, w whose) (string, string) {
			if w == malformed {
				return "GET /gw/processor/events?limit=none", ""
			}
			return "GET /gw/processor/events" + b.spoof(w), ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "POST /gw/processor/events/{usage_record_id}/retry", scope: manageScope, organization: true, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			return "POST /gw/processor/events/" + b.failedEvent(c, w) + "/retry", ""
		}, expect: func(c *caller, w whose) outcome { return c.either(w, 204, 404) }},
		{pattern: "POST /gw/processor/events/retry", scope: manageScope, organization: true, changes: true, request: func(b *block, c *caller, w whose) (string, string) {
			b.failedEvent(c, own)
			return "POST /gw/processor/events/retry" + b.claim(w), ""
		}, expect: always},
		{pattern: "GET /gw/async", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			query := map[whose]string{own: "?scope=client", malformed: "?scope=all", unknown: "?status=none&kind=none", ofOrganization: "?scope=key&created_after=never"}[w]
			if query == "" {
				query = "?scope=client&client_id=" + b.id[w].client + "&sub_account_id=" + b.id[w].subAccount + "&key_id=" + b.id[w].key
			}
			return "GET /gw/async" + query, ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
		{pattern: "GET /gw/usage", scope: statsScope, request: func(b *block, _ *caller, w whose) (string, string) {
			return "GET /gw/usage?id=" + b.id[w].row, ""
		}, expect: func(_ *caller, w whose) outcome { return plain(w, 400) }},
	}...)
}

// doorBodies is a request of each door, with a model that serves it.
func doorBodies() map[string]struct{ model, body string } {
	const messages = `"max_tokens":5,"messages":[{"role":"user","content":"hi"}]`
	return map[string]struct{ model, body string }{
		"/v1/chat/completions":      {"openai/gpt-5-mini", `{"model":"$M",` + messages + `}`},
		"/v1/messages":              {"anthropic/claude-haiku-4.5", `{"model":"$M",` + messages + `}`},
		"/v1/messages/count_tokens": {"anthropic/claude-haiku-4.5", `{"model":"$M",` + messages + `}`},
		"/v1/responses":             {"openai/gpt-5-mini", `{"model":"$M","input":"hi"}`},
		"/v1/completions":           {"openai/gpt-5-mini", `{"model":"$M","prompt":"hi"}`},
		"/v1/embeddings":            {"openai/text-embedding-3-small", `{"model":"$M","input":"hi"}`},
		"/v1/images/generations":    {"openai/gpt-image-1", `{"model":"$M","prompt":"hi"}`},
		"/v1/images/edits":          {"openai/gpt-image-1", "form"},
		"/v1/videos":                {"openai/sora-2", `{"model":"$M","prompt":"hi","seconds":"4"}`},
		"/v1/reranks":               {"cohere/rerank-v3.5", `{"model":"$M","query":"q","documents":["a"]}`},
		"/v1/rerank":                {"cohere/rerank-v3.5", `{"model":"$M","query":"q","documents":["a"]}`},
		"/v2/rerank":                {"cohere/rerank-v3.5", `{"model":"$M","query":"q","documents":["a"]}`},
		"/v1/audio/speech":          {"openai/tts-1", `{"model":"$M","input":"hi","voice":"x"}`},
		"/v1/audio/transcriptions":  {"openai/whisper-1", "form"},
		"/v1/audio/translations":    {"openai/whisper-1", "form"},
	}
}

// doorRoutes makes a route of each door.
func doorRoutes() []accessRoute {
	var routes []accessRoute
	for path, d := range doorBodies() {
		routes = append(routes, accessRoute{pattern: "POST " + path, scope: inferenceScope,
			request: func(b *block, _ *caller, w whose) (string, string) {
				model := map[whose]string{unknown: "openai/none", malformed: "none"}[w]
				if model == "" {
					model = d.model
				}
				if d.body == "form" {
					return "POST " + path + b.claim(w), form(model)
				}
				return "POST " + path + b.claim(w), strings.ReplaceAll(d.body, "$M", model)
			},
			expect: func(c *caller, w whose) outcome {
				switch {
				case w == unknown:
					return refusal(404)
				case w == malformed:
					return refusal(400)
				case c.barred:
					return refusal(403)
				}
				return passes
			}})
	}
	return routes
}

const boundary = "matrix-boundary"

// form is a multipart body with a model and a file.
func form(model string) string {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	_ = w.SetBoundary(boundary) // a fixed one that is valid; a buffer takes everything
	_ = w.WriteField("model", model)
	_ = w.WriteField("prompt", "hi")
	for _, name := range []string{"file", "image"} {
		part, _ := w.CreateFormFile(name, "x.png")
		_, _ = part.Write([]byte("\x89PNG\r\n\x1a\nxxxx"))
	}
	_ = w.Close()
	return text.String()
}

// proxyRoutes are calls of the provider proxy: a model in the body, none, and
// a path that is not to be shared.
func proxyRoutes() []accessRoute {
	const messages = `"max_tokens":5,"messages":[{"role":"user","content":"hi"}]`
	named := func(path, body string, native string) accessRoute {
		return accessRoute{pattern: "POST " + path, scope: inferenceScope, native: native,
			request: func(b *block, _ *caller, w whose) (string, string) {
				if w == malformed {
					return "POST " + path, `{"model":1}`
				}
				return "POST " + path + b.claim(w), body
			},
			expect: func(c *caller, w whose) outcome {
				switch {
				case w == malformed:
					return refusal(400)
				case c.barred, c.token && !strings.Contains(body, `"native-`): // a token is for models of the catalog
					return refusal(403)
				}
				return passes
			}}
	}
	without := func(pattern string, whole bool) accessRoute {
		return accessRoute{pattern: pattern, scope: inferenceScope,
			request: func(b *block, _ *caller, w whose) (string, string) { return pattern + b.claim(w), "" },
			expect: func(c *caller, _ whose) outcome {
				if c.barred || c.token || !whole {
					return refusal(403)
				}
				return passes
			}}
	}
	return []accessRoute{
		named("/openai/v1/chat/completions", `{"model":"gpt-5-mini",`+messages+`}`, ""),
		named("/openai/v1/chat/completions", `{"model":"native-gpt-5-mini",`+messages+`}`, ""),
		named("/openai/v1/embeddings", `{"model":"text-embedding-3-small","input":"x"}`, ""),
		named("/anthropic/v1/messages", `{"model":"claude-haiku-4-5",`+messages+`}`, "X-Api-Key"),
		named("/cohere/v2/rerank", `{"model":"rerank-v3.5","query":"q","documents":["a"]}`, ""),
		without("GET /openai/v1/models", true),
		without("GET /openai/v1/files", false),
		without("DELETE /openai/v1/files/file-1", false),
		without("GET /openai/v1/organization/users", false),
	}
}

// jobRoutes are the paths that name a job, at the door and on the provider's
// own.
func jobRoutes() []accessRoute {
	var routes []accessRoute
	for _, pattern := range []string{
		"GET /v1/videos/{id}", "GET /v1/videos/{id}/content", "DELETE /v1/videos/{id}",
		"GET /openai/v1/videos/{id}", "GET /openai/v1/videos/{id}/content", "DELETE /openai/v1/videos/{id}",
	} {
		routes = append(routes, accessRoute{pattern: pattern, scope: inferenceScope, errand: true,
			request: func(b *block, c *caller, w whose) (string, string) {
				task := b.id[w].task
				if strings.HasPrefix(pattern, "DELETE") {
					task = b.task(c, w)
				}
				return strings.ReplaceAll(pattern, "{id}", task) + b.claim(w), ""
			},
			expect: func(c *caller, w whose) outcome {
				switch {
				case !c.reaches(w), c.token: // of another end user
					return refusal(404)
				case c.barred:
					return refusal(403)
				}
				return passes
			}})
	}
	return routes
}
