package keyring_test

import (
	"net/http"
	"strings"
	"testing"

	"modelgate/internal/keyring"
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
		{"x-api-key keeps its scheme", headers{"X-Api-Key": {"Bearer " + a}}, "", ""},
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
			for place, want := range map[keyring.Place]string{keyring.AuthorizationOnly: c.management, keyring.AnyHeader: c.doorOrProxy} {
				got, err := keyring.Presented(c.h, place)
				if got != want || (err != nil) != (want == "") {
					t.Errorf("Presented(%v, %s) = %q, %v, want %q", c.h, place, got, err, want)
				}
			}
		})
	}
}

func FuzzPresented(f *testing.F) {
	f.Add("Bearer gw_live_x", "gw_live_x")
	f.Add("bearer  a,b", "")
	f.Add("\tBasic x", "\x00")
	f.Fuzz(func(t *testing.T, auth, native string) {
		secret, err := keyring.Presented(http.Header{"Authorization": {auth}, "X-Api-Key": {native}}, keyring.AnyHeader)
		if err != nil {
			return
		}
		if !strings.Contains(auth, secret) && !strings.Contains(native, secret) || strings.ContainsAny(secret, ", \x00\n") || len(secret) > 128 {
			t.Errorf("Presented(%q, %q) = %q", auth, native, secret)
		}
	})
}
