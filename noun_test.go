package modelgate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

func TestPlainSlugs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "acme-eu-1": true, "-": true, "0": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "Acme": false, "a_b": false, "a b": false, "a.b": false, "a/b": false, "é": false, "a\n": false, "аcme": false,
	} {
		if got := modelgate.PlainSlug(s); got != want {
			t.Errorf("PlainSlug(%q) = %v, want %v", s, got, want)
		}
		if err := modelgate.CheckSlug("slug", s); want != (err == nil) {
			t.Errorf("CheckSlug(%q) = %v", s, err)
		}
	}
	wantError(t, modelgate.CheckSlug("portal_slug", ""), modelgate.BadRequest, "portal_slug must match [a-z0-9-]{1,64}")
}

func TestCatalogSlugs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"openai/gpt-5": true, "qwen/qwen3:free": true, "google/gemini-2.5@001": true, "a/b/c": true, "Meta/Llama_3.1": true,
		"": false, "gpt-5": false, "/gpt-5": false, "openai/": false, "openai//gpt": false, "openai/ gpt": false, "openai/gpt-5 ": false,
		"-openai/x": false, "openai/.x": false, "open:ai/x": false, "openai/gpt%2d5": false, "openai/gpt\x00": false, "оpenai/gpt-5": false,
		"openai/gpt\u200b-5": false, "openai/gpt?": false, "openai/*": false, "openai/gpt-5#": false, `openai\gpt`: false,
		"o/" + strings.Repeat("x", 256): true, "o/" + strings.Repeat("x", 257): false,
	} {
		if got := modelgate.ValidSlug(s); got != want {
			t.Errorf("ValidSlug(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if got, err := modelgate.CleanName("  Acme  "); err != nil || got != "Acme" {
		t.Errorf("CleanName = %q, %v", got, err)
	}
	for _, s := range []string{"", "  \t\n", "\u00a0\u3000", "\u200b", "\u200d\u200c", "\u2060\ufeff", "\u3164", "\u115f\u1160", "\u2800", "\u0301", "\ufe0f",
		strings.Repeat("x", 201), strings.Repeat("界", 201), "a\nb", "a\x00b", "a\x1b[31mb", "a\u0085b", "a\u202eb", "a\xffb", "a\u2028b"} {
		_, err := modelgate.CleanName(s)
		wantError(t, err, modelgate.BadRequest, "name must")
		client := modelgate.Client{Name: s, RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Invoiced}
		wantError(t, client.Validate(), modelgate.BadRequest, "name must")
	}
	for _, s := range []string{"Zoë & Söhne", "株式会社", "O'Neil, Inc.", "👩\u200d💻 shop",
		strings.Repeat("x", 200), strings.Repeat("界", 200), strings.Repeat("👩", 200), "ไทย", "نظام", "हिन्दी", "!", "7"} {
		if got, err := modelgate.CleanName(s); err != nil || got != s {
			t.Errorf("CleanName(%q) = %q, %v", s, got, err)
		}
	}
}

func TestBrandingValidate(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name   string
		change func(*modelgate.Branding)
		want   string // part of the message, "" for none
	}{
		{"plain", func(*modelgate.Branding) {}, ""},
		{"longest name", func(b *modelgate.Branding) { b.ProductName = strings.Repeat("é", 100) }, ""},
		{"name too long", func(b *modelgate.Branding) { b.ProductName = strings.Repeat("é", 101) }, "product_name"},
		{"name of spaces", func(b *modelgate.Branding) { b.ProductName = "  " }, "product_name"},
		{"name with a line break", func(b *modelgate.Branding) { b.ProductName = "a\nb" }, "product_name"},
		{"name that is no UTF-8", func(b *modelgate.Branding) { b.ProductName = "a\xff" }, "product_name"},
		{"slug", func(b *modelgate.Branding) { b.PortalSlug = "Acme" }, "portal_slug"},
		{"logo", func(b *modelgate.Branding) { b.LogoURL = text("https://cdn.example/logo.svg?v=1#x") }, ""},
		{"logo by http", func(b *modelgate.Branding) { b.LogoURL = text("http://cdn.example/l.png") }, "logo_url"},
		{"logo in capitals", func(b *modelgate.Branding) { b.LogoURL = text("HTTPS://cdn.example/l.png") }, "logo_url"},
		{"logo as script", func(b *modelgate.Branding) { b.LogoURL = text("javascript:alert(1)") }, "logo_url"},
		{"logo without host", func(b *modelgate.Branding) { b.LogoURL = text("https:///l.png") }, "logo_url"},
		{"logo with port only", func(b *modelgate.Branding) { b.LogoURL = text("https://:443/l.png") }, "logo_url"},
		{"logo with password", func(b *modelgate.Branding) { b.LogoURL = text("https://a:b@cdn.example/l.png") }, "logo_url"},
		{"logo that leaves its attribute", func(b *modelgate.Branding) { b.LogoURL = text(`https://x"onerror=alert(1)`) }, "logo_url"},
		{"logo with a tag", func(b *modelgate.Branding) { b.LogoURL = text("https://x/<script>") }, "logo_url"},
		{"logo with a line break", func(b *modelgate.Branding) { b.LogoURL = text("https://x/a\r\nb") }, "logo_url"},
		{"longest logo", func(b *modelgate.Branding) { b.LogoURL = text("https://x/" + strings.Repeat("a", 2038)) }, ""},
		{"logo too long", func(b *modelgate.Branding) { b.LogoURL = text("https://x/" + strings.Repeat("a", 2039)) }, "logo_url"},
		{"colour", func(b *modelgate.Branding) { b.AccentColor = text("#0aF9eD") }, ""},
		{"short colour", func(b *modelgate.Branding) { b.AccentColor = text("#0af") }, "accent_color"},
		{"named colour", func(b *modelgate.Branding) { b.AccentColor = text("crimson") }, "accent_color"},
		{"colour with a style", func(b *modelgate.Branding) { b.AccentColor = text("#0af;}a") }, "accent_color"},
		{"colour in bytes of one letter", func(b *modelgate.Branding) { b.AccentColor = text("#ééé") }, "accent_color"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := modelgate.Branding{PortalSlug: "acme", ProductName: " Acme AI "}
			c.change(&b)
			err := b.Validate()
			if c.want == "" {
				if err != nil || b.ProductName != strings.TrimSpace(b.ProductName) {
					t.Errorf("%v, name %q", err, b.ProductName)
				}
				return
			}
			wantError(t, err, modelgate.BadRequest, c.want)
		})
	}
	b := modelgate.Branding{PortalSlug: "acme", ProductName: "Acme", LogoURL: text(""), AccentColor: text("")}
	if err := b.Validate(); err != nil || b.LogoURL != nil || b.AccentColor != nil {
		t.Errorf("empty texts: %v, %v, %v; want both cleared", err, b.LogoURL, b.AccentColor)
	}
}

func TestClientValidate(t *testing.T) {
	t.Parallel()
	minus := -1
	for _, c := range []struct {
		name   string
		change func(*modelgate.Client)
		want   string
	}{
		{"plain", func(*modelgate.Client) {}, ""},
		{"name", func(c *modelgate.Client) { c.Name = "" }, "name"},
		{"long name", func(c *modelgate.Client) { c.Name = strings.Repeat("x", 201) }, "name"},
		{"policy", func(c *modelgate.Client) { c.RoutingPolicy = "us_only" }, "routing policy"},
		{"billing", func(c *modelgate.Client) { c.Billing = "" }, "billing"},
		{"max keys", func(c *modelgate.Client) { c.MaxKeys = -1 }, "max keys"},
		{"max rules", func(c *modelgate.Client) { c.MaxRules = -1 }, "max rules must be from 1 to 100000"},
		{"too many rules", func(c *modelgate.Client) { c.MaxRules = 100_001 }, "max rules"},
		{"most rules", func(c *modelgate.Client) { c.MaxRules = 100_000 }, ""},
		{"rate", func(c *modelgate.Client) { c.Limits.RequestsPerSecond = &minus }, "limits"},
		{"burst", func(c *modelgate.Client) { c.Limits.Burst = &minus }, "limits"},
		{"concurrency", func(c *modelgate.Client) { c.Limits.Concurrency = &minus }, "limits"},
		{"ceiling", func(c *modelgate.Client) { c.Ceiling.MaxScopes = []modelgate.Scope{"x"} }, "unknown scope"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := modelgate.Client{Name: "Acme", RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Manual, Ceiling: modelgate.OpenCeiling()}
			c.change(&client)
			err := client.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, modelgate.BadRequest, c.want)
		})
	}
}

func TestLimitsFallBack(t *testing.T) {
	t.Parallel()
	one, two, zero := 1, 2, 0
	key := modelgate.Limits{RequestsPerSecond: &one, Concurrency: &zero}
	client := modelgate.Limits{RequestsPerSecond: &two, Burst: &two, Concurrency: &two}
	want := modelgate.Limits{RequestsPerSecond: &one, Burst: &two, Concurrency: &zero}
	if diff := cmp.Diff(want, key.Or(client)); diff != "" {
		t.Error(diff)
	}
}

func TestCaller(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	c := modelgate.Caller{Scopes: []modelgate.Scope{modelgate.StatsRead}, ExpiresAt: now}
	if !c.Has(modelgate.StatsRead) || c.Has(modelgate.KeysManage) || !c.Has(modelgate.AnyKey) {
		t.Error("Has does not answer by the scopes")
	}
	if !c.Live(now.Add(-time.Nanosecond)) || c.Live(now) || !(&modelgate.Caller{}).Live(now) {
		t.Error("a key ends at the instant of its expiry, and one without never does")
	}
	for region, want := range map[string]bool{
		"eu": true, "eu-west-1": true, "eu-": false, "us": false, "us-east-1": false, "europe": false, "EU": false, "": false, "unknown": false, "xeu-1": false,
		// The edges of the EU in the regions of AWS and Google Cloud.
		"eu-central-1": true, "eu-north-1": true, "eu-south-2": true, "eu-west-3": true, "eu-west-2": false, "eu-central-2": false, "eusc-de-east-1": true, "eusc-": false,
		"europe-west1": true, "europe-west4": true, "europe-west9": true, "europe-north1": true, "europe-southwest1": true, "europe-central2": true,
		"europe-west2": false, "europe-west6": false, "global": false, "uk": false,
	} {
		if got := modelgate.InEU(region); got != want {
			t.Errorf("InEU(%q) = %v, want %v", region, got, want)
		}
		bound := modelgate.Caller{RoutingPolicy: modelgate.EUOnly}
		if bound.PermitRegion(region) != want || !(&modelgate.Caller{RoutingPolicy: modelgate.RouteAny}).PermitRegion(region) {
			t.Errorf("PermitRegion(%q) does not follow the policy", region)
		}
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	own, other, listed, wide := &modelgate.Price{}, &modelgate.Price{}, &modelgate.Price{}, &modelgate.Price{}
	b := &modelgate.Model{Slug: "b/two/x", Kind: modelgate.LLM, Price: own, Routes: []modelgate.Route{{Provider: "p", Model: "m"}, {Provider: "q", Model: "m", Price: other}}}
	a := &modelgate.Model{Slug: "a/one", Kind: modelgate.Image, Routes: []modelgate.Route{{Provider: "q", Model: "m"}, {Provider: "q", Model: "n"}}}
	c, err := modelgate.NewCatalog([]*modelgate.Model{b, a}, []modelgate.ProxyPrice{
		{Provider: "q", Model: "x-1", Price: listed}, {Provider: "q", Model: "x*", Price: wide}, {Provider: "q", Model: "m", Price: wide},
	})
	if err != nil {
		t.Fatal(err)
	}
	slugs := func(models []*modelgate.Model) string {
		var out []string
		for _, m := range models {
			out = append(out, m.Slug)
		}
		return strings.Join(out, " ")
	}
	if got := []string{slugs(c.Models()), slugs(c.Serving("q", "m")), slugs(c.ServedBy("q")), slugs(c.ServedBy("p")), slugs(c.Serving("p", "x"))}; !cmp.Equal(got,
		[]string{"a/one b/two/x", "a/one b/two/x", "a/one b/two/x", "b/two/x", ""}) {
		t.Errorf("indexes: %q", got)
	}
	if b.Author() != "b" || b.Name() != "two/x" || c.Find("b/two/x") != b || c.Find("B/two/x") != nil {
		t.Error("a model is not found by its slug")
	}
	if b.PriceOn(0) != own || b.PriceOn(1) != other {
		t.Error("a route's price does not come before its model's")
	}
	for key, want := range map[[2]string]*modelgate.Price{
		{"p", "m"}: own, {"q", "m"}: nil, {"q", "x-1"}: listed, {"q", "x-2"}: wide, {"p", "x-1"}: nil, {"q", "y"}: nil,
	} {
		if got := c.ProxyPrice(key[0], key[1]); got != want {
			t.Errorf("price of %v is %p, want %p", key, got, want)
		}
	}
}

func TestCatalogRefuses(t *testing.T) {
	t.Parallel()
	route := []modelgate.Route{{Provider: "p", Model: "m"}}
	for _, c := range []struct {
		models []*modelgate.Model
		want   string
	}{
		{[]*modelgate.Model{{Slug: "gpt", Kind: modelgate.LLM, Routes: route}}, "is no slug"},
		{[]*modelgate.Model{{Slug: "a/b", Kind: "text", Routes: route}}, "unknown kind"},
		{[]*modelgate.Model{{Slug: "a/b", Kind: modelgate.LLM}}, "no routes"},
		{[]*modelgate.Model{{Slug: "a/b", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "p"}}}}, "needs provider and model"},
		{[]*modelgate.Model{{Slug: "a/b", Kind: modelgate.LLM, Routes: route}, {Slug: "a/b", Kind: modelgate.LLM, Routes: route}}, "duplicate"},
		{[]*modelgate.Model{{Slug: "a/GPT", Kind: modelgate.LLM, Routes: route}, {Slug: "A/gpt", Kind: modelgate.LLM, Routes: route}}, `"A/gpt" and "a/GPT" differ in letter case only`},
		{[]*modelgate.Model{{Slug: "a/b", Kind: modelgate.LLM, Routes: []modelgate.Route{{Provider: "p", Model: strings.Repeat("m", 257)}}}}, "at most 256 bytes"},
	} {
		if _, err := modelgate.NewCatalog(c.models, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewCatalog = %v, want %q", err, c.want)
		}
	}
}

// The statuses, types and texts that clients may match on.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    *modelgate.Error
		status int
		typ    string
		text   string
	}{
		{modelgate.ErrUnauthorized, 401, "unauthorized", "invalid gateway key"},
		{modelgate.ErrMissingScope(modelgate.KeysManage), 403, "forbidden", "missing required scope: keys:manage"},
		{modelgate.ErrModelDenied, 403, "forbidden", "model not permitted for this client"},
		{modelgate.ErrKeyCap, 403, "forbidden", "active key limit reached for this client: revoke unused keys or ask the operator to raise max_keys"},
		{modelgate.ErrRegion("us"), 403, "region_policy", `provider region "us" is blocked by the client's eu_only routing policy`},
		{modelgate.ErrBodyTooLarge, 413, "request_too_large", "request body too large"},
		{modelgate.ErrRateLimited, 429, "rate_limited", "rate limit exceeded"},
		{modelgate.ErrBudget, 402, "budget_exceeded", "budget limit reached"},
		{modelgate.ErrBalance, 402, "insufficient_balance", "account balance exhausted; top up to continue"},
		{modelgate.ErrCredentialGone, 410, "gone", "credential rotated after task creation; re-issue the task"},
		{modelgate.ErrNoRoute("a/b"), 502, "bad_gateway", `inference route for model "a/b" is not available`},
		{modelgate.ErrInternal, 500, "internal", "internal error"},
		{modelgate.ErrCredential, 500, "internal", "credential resolution failed"},
		{modelgate.ErrBareModel("gpt"), 400, "bad_request", `model "gpt" is not a catalog slug; use 'author/model' (see GET /v1/models)`},
		{modelgate.ErrUnknownSlug("a/b"), 404, "not_found", `model "a/b" not found in catalog (see GET /v1/models)`},
		{modelgate.ErrWrongKind("a/b", modelgate.Image, modelgate.LLM), 400, "bad_request", `model "a/b" has kind "image"; this endpoint serves only llm models`},
		{modelgate.ErrWrongDoor("a/b", "/v1/messages"), 400, "bad_request", "model a/b is not served by this endpoint; use /v1/messages or the service SDK"},
		{modelgate.ErrWrongDoor("a/b", ""), 400, "bad_request", "model a/b is not served by this endpoint; use the service SDK"},
		{modelgate.Errorf(modelgate.Conflict, "taken"), 409, "conflict", "taken"},
		{modelgate.Errorf(modelgate.Unavailable, "later"), 503, "unavailable", "later"},
		{modelgate.Errorf("unheard-of", "x"), 500, "internal", "x"},
	} {
		if c.err.Kind.Status() != c.status || c.err.Kind.Type() != c.typ || c.err.Error() != c.text {
			t.Errorf("%d %s %q, want %d %s %q", c.err.Kind.Status(), c.err.Kind.Type(), c.err, c.status, c.typ, c.text)
		}
	}
	wrapped := fmt.Errorf("put budget: %w", modelgate.ErrBudget)
	if modelgate.KindOf(wrapped) != modelgate.BudgetExceeded || modelgate.KindOf(errors.New("x")) != modelgate.Internal || modelgate.KindOf(nil) != "" {
		t.Error("KindOf does not read the chain")
	}
}

func TestInterruptedEnd(t *testing.T) {
	t.Parallel()
	sent := modelgate.CallBegin{Sent: modelgate.SentEstimate{Input: 7, Cost: 70, PriceLabel: "base"}}
	asked := modelgate.CallEnd{StatusCode: 502, ParseStatus: modelgate.ParsePartial, Usage: modelgate.Usage{Input: 7}, Cost: 70, PriceLabel: "base"}
	if diff := cmp.Diff(asked, modelgate.InterruptedEnd(&sent, nil)); diff != "" {
		t.Errorf("sent and not marked (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(modelgate.CallEnd{StatusCode: 502, ParseStatus: modelgate.ParseUnknown}, modelgate.InterruptedEnd(new(modelgate.CallBegin), nil)); diff != "" {
		t.Error(diff)
	}
	seen := modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: 7, Usage: modelgate.Usage{Input: 3}}
	want := modelgate.CallEnd{StatusCode: 502, ParseStatus: modelgate.ParsePartial, Cost: 7, Usage: modelgate.Usage{Input: 3}}
	if diff := cmp.Diff(want, modelgate.InterruptedEnd(&sent, &seen)); diff != "" {
		t.Error(diff)
	}
	if seen.StatusCode != 200 {
		t.Error("the mark itself was changed")
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	begin := modelgate.CallBegin{KeyID: "k", SubAccountID: "s", Provider: "p", Model: "m", Region: "us",
		Attribution: map[string]string{"team": "x", "key_id": "forged"}}
	row := modelgate.Row(begin, modelgate.CallEnd{Cost: 7})
	if row.CallBegin.Provider != "p" || row.CallBegin.Model != "m" || row.CallBegin.Region != "us" || row.Cost != 7 {
		t.Errorf("row %+v is not that of its begin", row)
	}
	if diff := cmp.Diff(map[string]string{"team": "x", "key_id": "k", "sub_account_id": "s"}, row.Attribution); diff != "" {
		t.Errorf("attribution differs (-want +got): %s", diff)
	}
	if begin.Attribution["key_id"] != "forged" {
		t.Error("Row changed the begin")
	}
	row = modelgate.Row(begin, modelgate.CallEnd{Provider: "q", Model: "n", Region: "eu"})
	if row.CallBegin.Provider != "q" || row.CallBegin.Model != "n" || row.CallBegin.Region != "eu" {
		t.Errorf("row %+v is not that of the route that answered", row)
	}
}

func TestClamp(t *testing.T) {
	t.Parallel()
	u := modelgate.Usage{Input: -1, Output: modelgate.MaxQuantity + 1, Seconds: 3}
	if u.Clamp() || u.Input != 0 || u.Output != modelgate.MaxQuantity || u.Seconds != 3 {
		t.Errorf("clamped to %+v", u)
	}
	if !u.Clamp() {
		t.Error("a clamped usage is still out of range")
	}
}

// Only pending moves, and each event leads to one state.
func TestNext(t *testing.T) {
	t.Parallel()
	want := map[modelgate.JobEvent][2]string{
		modelgate.JobSucceeds: {"succeeded", ""}, modelgate.JobFails: {"failed", ""}, modelgate.JobIsCancelled: {"cancelled", ""},
		modelgate.JobLapses: {"expired", "provider"}, modelgate.JobOverdue: {"expired", "deadline"}, modelgate.JobLost: {"expired", "credential_rotated"},
	}
	for event, w := range want {
		if f, ok := (&modelgate.Job{Status: modelgate.JobPending}).Next(event); !ok || string(f.Status) != w[0] || string(f.Reason) != w[1] {
			t.Errorf("Next(pending, %s) = %s %s %v, want %v", event, f.Status, f.Reason, ok, w)
		}
		for _, final := range []modelgate.JobStatus{modelgate.JobSucceeded, modelgate.JobFailed, modelgate.JobCancelled, modelgate.JobExpired} {
			if _, ok := (&modelgate.Job{Status: final}).Next(event); ok {
				t.Errorf("Next(%s, %s) moves it", final, event)
			}
		}
	}
	if _, ok := (&modelgate.Job{Status: modelgate.JobPending}).Next(modelgate.JobRuns); ok {
		t.Error("a job that runs has moved")
	}
}
