package httpx_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/httpx"
)

type input struct {
	Name    *string                 `json:"name" null:"absent"`
	Scopes  *[]modelgate.Scope      `json:"scopes"`
	Tuples  *modelgate.Entitlements `json:"entitlements"`
	Seconds *int64                  `json:"expires_in_seconds"`
	Markup  *modelgate.Markup       `json:"markup_pct"`
	Limit   *modelgate.Nano         `json:"limit_usd"`
	Flag    *bool                   `json:"flag"`
	Logo    *string                 `json:"logo_url" null:"absent"`
	_       struct{}                `ignore:"made_at,made_by"`
}

func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	name, flag, seconds := "x", true, int64(60)
	scopes := []modelgate.Scope{}
	tuples := modelgate.Entitlements{{Provider: "p", ModelPattern: "*", Effect: modelgate.Allow}}
	markup, limit := modelgate.Markup(12_500_000), 5*modelgate.USD
	for body, want := range map[string]input{
		`{}`:                                {},
		` {"name":"x","flag":true} ` + "\n": {Name: &name, Flag: &flag},
		`{"client_id":{"b":[null,{}]},"tenant":null,"made_by":1}`: {},
		`{"scopes":[]}`: {Scopes: &scopes},
		`{"entitlements":[{"provider":"p","model_pattern":"*","effect":"allow"}]}`:             {Tuples: &tuples},
		`{"entitlements":[{"axis":null,"provider":"p","model_pattern":"*","effect":"allow"}]}`: {Tuples: &tuples},
		`{"expires_in_seconds":60,"markup_pct":12.5,"limit_usd":5e0}`:                          {Seconds: &seconds, Markup: &markup, Limit: &limit},
		`{"logo_url":null,"name":null}`:                                                        {},
		`{"logo_url":"x"}`:                                                                     {Logo: &name},
		`{"name":"\u0078","org":"\\u0000"}`:                                                    {Name: &name},
	} {
		var got input
		if err := httpx.DecodeJSON([]byte(body), &got); err != nil {
			t.Errorf("%s: %v", body, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

func TestDecodeJSONRefuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                                   "malformed JSON at byte 0",
		`{`:                                  "malformed JSON at byte 1",
		`{"name":"x"} {}`:                    "malformed JSON at byte 13",
		`{"name":"x"}x`:                      "malformed JSON at byte 12",
		`{"name":"a","name":"a"}`:            "malformed JSON: duplicate member name",
		`{"org":{"y":1,"y":2}}`:              "malformed JSON: duplicate member org.y",
		`{"name":"` + "\xff" + `"}`:          "malformed JSON at byte 9",
		`{"name":"\ud800"}`:                  "malformed JSON at byte 9",
		`{"org":"a\u0000b"}`:                 "org: U+0000 is not allowed",
		`[]`:                                 "body must be a JSON object",
		`null`:                               "body must not be null",
		`"x"`:                                "body must be a JSON object",
		`{"name":1}`:                         "name must be a string",
		`{"scopes":null}`:                    "scopes must not be null",
		`{"scopes":"stats:read"}`:            "scopes must be an array",
		`{"scopes":[null]}`:                  "scopes[0] must not be null",
		`{"scopes":["stats:read",3]}`:        "scopes[1] must be a string",
		`{"entitlements":null}`:              "entitlements must not be null",
		`{"entitlements":[{"axis":5}]}`:      "entitlements[0].axis must be a string",
		`{"entitlements":[{"axis":""}]}`:     "entitlements[0].axis: must not be empty; use provider, vendor or kind, or leave it out for provider",
		`{"entitlements":[{"effect":null}]}`: "entitlements[0].effect must not be null",
		`{"entitlements":[{"org":1}]}`:       `unknown member "entitlements[0].org"; members are axis, provider, model_pattern, effect`,
		`{"entitlements":[{"Axis":1}]}`:      `unknown member "entitlements[0].Axis"; did you mean "axis"?`,
		`{"nam":"x"}`:                        `unknown member "nam"; did you mean "name"?`,
		`{"na":"x"}`:                         `unknown member "na"; members are name, scopes, entitlements, expires_in_seconds, markup_pct, limit_usd, flag, logo_url`,
		`{"":1}`:                             `unknown member ""; members are name, scopes, entitlements, expires_in_seconds, markup_pct, limit_usd, flag, logo_url`,
		`{"entitlements":[[]]}`:              "entitlements[0] must be a JSON object",
		`{"expires_in_seconds":"60"}`:        "expires_in_seconds must be an integer",
		`{"expires_in_seconds":1.5}`:         "expires_in_seconds must be an integer",
		`{"expires_in_seconds":1e30}`:        "expires_in_seconds must be an integer",
		`{"expires_in_seconds":99999999999999999999}`: "expires_in_seconds must be an integer",
		`{"flag":"true"}`:                   "flag must be true or false",
		`{"markup_pct":"5"}`:                "markup_pct must be a number from 0 to 10000",
		`{"markup_pct":null}`:               "markup_pct must not be null",
		`{"markup_pct":10000.0000001}`:      "markup_pct must be a number from 0 to 10000",
		`{"limit_usd":true}`:                "limit_usd: not a USD amount with at most 9 decimals",
		`{"logo_url":3}`:                    "logo_url must be a string",
		`{"client_id":{"a\nb":1,"a\nb":2}}`: `malformed JSON: duplicate member client_id.a\nb`,
	} {
		err := httpx.DecodeJSON([]byte(body), &input{})
		if modelgate.KindOf(err) != modelgate.BadRequest || err.Error() != want {
			t.Errorf("%s: %v, want bad_request %q", body, err, want)
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	f.Add([]byte(`{"name":"x","scopes":["stats:read"],"markup_pct":1e2}`))
	f.Add([]byte(`{"entitlements":[{"axis":"kind","effect":null}]}`))
	f.Add([]byte(`{"name":"\u0000"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var in input
		if err := httpx.DecodeJSON(body, &in); err != nil && modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("%q: %v, want bad_request", body, err)
		}
	})
}

func TestWriteJSON(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	err := httpx.WriteJSON(w, struct {
		At    time.Time         `json:"at"`
		None  *time.Time        `json:"none"`
		List  []string          `json:"list"`
		Pairs map[string]string `json:"pairs"`
		Cost  modelgate.Nano    `json:"cost"`
		Text  string            `json:"text"`
	}{
		At:    time.Date(2026, 1, 2, 3, 4, 5, 678_901_999, time.FixedZone("", 3600)),
		Pairs: map[string]string{"b": "2", "a": "1"}, Cost: 1_500, Text: "<&>",
	})
	want := `{"at":"2026-01-02T02:04:05.678901Z","none":null,"list":[],"pairs":{"a":"1","b":"2"},"cost":0.0000015,"text":"<&>"}` + "\n"
	if err != nil || w.Code != 200 || w.Body.String() != want {
		t.Errorf("WriteJSON = %d %s %v, want %s", w.Code, w.Body, err, want)
	}
	if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", w.Header())
	}
	w = httptest.NewRecorder()
	if err := httpx.WriteJSON(w, struct{ F func() }{}); err == nil || w.Body.Len() > 0 {
		t.Errorf("a value that has no JSON: %v, wrote %q", err, w.Body)
	}
}
