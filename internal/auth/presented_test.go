package auth_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelgate/internal/auth"
)

func TestPresented(t *testing.T) {
	t.Parallel()
	const a, b = "gw_live_aaaa", "gw_live_bbbb"
	type headers = http.Header
	for _, c := range []struct {
		name        string
		h           headers
		management  string // "" is unauthorized
		doorOrProxy string
	}{
		{"none", headers{}, "", ""},
		{"bearer", headers{"Authorization": {"Bearer " + a}}, a, a},
		{"lower case", headers{"Authorization": {"bearer " + a}}, a, a},
		{"upper case", headers{"Authorization": {"BEARER " + a}}, a, a},
		{"bare", headers{"Authorization": {a}}, a, a},
		{"more spaces", headers{"Authorization": {" Bearer   " + a + " "}}, a, a},
		{"tab after the scheme", headers{"Authorization": {"Bearer\t" + a}}, "", ""},
		{"tab around", headers{"Authorization": {"\tBearer " + a + "\t"}}, a, a},
		{"scheme alone", headers{"Authorization": {"Bearer"}}, "", ""},
		{"scheme and space", headers{"Authorization": {"Bearer "}}, "", ""},
		{"scheme twice", headers{"Authorization": {"Bearer Bearer " + a}}, "", ""},
		{"scheme glued", headers{"Authorization": {"Bearer" + a}}, "Bearer" + a, "Bearer" + a},
		{"basic", headers{"Authorization": {"Basic " + a}}, "", ""},
		{"empty", headers{"Authorization": {""}}, "", ""},
		{"two lines, same", headers{"Authorization": {"Bearer " + a, a}}, a, a},
		{"two lines, different", headers{"Authorization": {"Bearer " + a, "Bearer " + b}}, "", ""},
		{"comma", headers{"Authorization": {"Bearer " + a + ", Bearer " + a}}, "", ""},
		{"comma glued", headers{"Authorization": {a + "," + a}}, "", ""},
		{"NUL", headers{"Authorization": {a + "\x00"}}, "", ""},
		{"inner space", headers{"Authorization": {a + " x"}}, "", ""},
		{"beyond ASCII", headers{"Authorization": {a + "é"}}, "", ""},
		{"128 bytes", headers{"Authorization": {strings.Repeat("x", 128)}}, strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"129 bytes", headers{"Authorization": {strings.Repeat("x", 129)}}, "", ""},
		{"x-api-key", headers{"X-Api-Key": {a}}, "", a},
		{"api-key", headers{"Api-Key": {a}}, "", a},
		{"x-goog-api-key", headers{"X-Goog-Api-Key": {a}}, "", a},
		{"x-api-key with a scheme", headers{"X-Api-Key": {"Bearer " + a}}, "", a},
		{"x-api-key with a scheme beside a key", headers{"Authorization": {a}, "X-Api-Key": {"bearer " + a}}, a, a},
		{"x-goog-api-key with a scheme", headers{"X-Goog-Api-Key": {"BEARER  " + a}}, "", a},
		{"x-api-key of another scheme", headers{"X-Api-Key": {"Basic " + a}}, "", ""},
		{"x-api-key twice, different", headers{"X-Api-Key": {a, b}}, "", ""},
		{"two headers, same", headers{"Authorization": {"Bearer " + a}, "X-Api-Key": {a}}, a, a},
		{"two headers, different", headers{"Authorization": {"Bearer " + a}, "X-Api-Key": {b}}, a, ""},
		{"two native headers, different", headers{"Api-Key": {a}, "X-Goog-Api-Key": {b}}, "", ""},
		{"empty beside a key", headers{"Authorization": {""}, "X-Api-Key": {a}}, "", a},
		{"bad beside a key", headers{"Authorization": {"Basic x"}, "X-Api-Key": {a}}, "", ""},
		{"cookie", headers{"Cookie": {"key=" + a}}, "", ""},
		{"proxy authorization", headers{"Proxy-Authorization": {"Bearer " + a}}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for place, want := range map[auth.Place]string{auth.AuthorizationOnly: c.management, auth.AnyHeader: c.doorOrProxy} {
				got, err := auth.Presented(c.h, place)
				if got != want || (err != nil) != (want == "") {
					t.Errorf("Presented(%v, %s) = %q, %v, want %q", c.h, place, got, err, want)
				}
			}
		})
	}
}

// reference reads the same headers by the words of the documentation: a
// secret is 1 to 128 visible ASCII characters without a comma; around it may
// stand blanks, before it the word bearer and blanks.
func reference(h http.Header, p auth.Place) string {
	names := []string{"Authorization"}
	if p == auth.AnyHeader {
		names = append(names, "X-Api-Key", "Api-Key", "X-Goog-Api-Key")
	}
	var secrets []string
	for _, name := range names {
		for _, value := range h[name] {
			found := bearerForm.FindStringSubmatch(value)
			if found == nil || len(found[1]) > 128 {
				return ""
			}
			if found[1] != "" {
				secrets = append(secrets, found[1])
			}
		}
	}
	slices.Sort(secrets)
	if secrets = slices.Compact(secrets); len(secrets) != 1 {
		return ""
	}
	return secrets[0]
}

var bearerForm = regexp.MustCompile(`^[ \t]*(?:(?i:bearer) +|(?i:bearer)[ \t]*$)?([!-+\--~]*)[ \t]*$`)

func FuzzPresented(f *testing.F) {
	f.Add("Bearer gw_live_x", "gw_live_x", "", "")
	f.Add("bearer  a,b", "", "", "")
	f.Add("\tBasic x", "\x00", "", "")
	f.Add("Bearer", "gw_live_x", "gw_live_x", "gw_live_y")
	f.Add("BEARER\tx", "", "", "x")
	f.Add("BEARER\t", "", "", "0")
	f.Add("bearer bearer", " a", "a\t", "Bearer")
	f.Add("Bearer \u00a0a", "a\u200b", strings.Repeat("a", 129), "")
	f.Fuzz(func(t *testing.T, authorization, xAPIKey, apiKey, again string) {
		h := http.Header{"Authorization": {authorization, again}, "X-Api-Key": {xAPIKey}, "Api-Key": {apiKey}}
		for _, place := range []auth.Place{auth.AuthorizationOnly, auth.AnyHeader} {
			secret, err := auth.Presented(h, place)
			if want := reference(h, place); secret != want || (err != nil) != (want == "") {
				t.Errorf("Presented(%q, %s) = %q, %v, want %q", h, place, secret, err, want)
			}
		}
	})
}
