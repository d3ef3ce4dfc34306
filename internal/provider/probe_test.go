package provider_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"modelgate/internal/provider"
)

// TestProbe asks providers of several formats that answer in their own ways.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, format  string
		status        int
		body          string
		asked         string // of the provider: path and query
		credential    provider.CredentialState
		listed        int // -1: null
		missing       []string
		missingIsNull bool
	}{
		{"openai", "openai", 200, `{"data":[{"id":"a"},{"id":"c"}]}`, "/v1/models", "accepted", 2, []string{"b"}, false},
		{"anthropic", "anthropic", 200, `{"data":[{"id":"a"},{"id":"b"}],"has_more":false}`, "/v1/models?limit=1000", "accepted", 2, nil, false},
		{"a part of the list", "anthropic", 200, `{"data":[{"id":"x"}],"has_more":true}`, "/v1/models?limit=1000", "accepted", 1, nil, true},
		{"gemini", "gemini", 200, `{"models":[{"name":"models/a"},{"name":"models/b"}]}`, "/v1beta/models?pageSize=1000", "accepted", 2, nil, false},
		{"a bare list", "openai", 200, `[{"id":"a"},{"id":"b"}]`, "/v1/models", "accepted", 2, nil, false},
		{"refused", "openai", 401, `{"error":{}}`, "/v1/models", "refused", -1, nil, true},
		{"no list", "openai", 404, `nothing`, "/v1/models", "not_checked", -1, nil, true},
		{"no JSON", "openai", 200, `<html>`, "/v1/models", "accepted", -1, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked, secret string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked, secret = r.URL.RequestURI(), r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			p, err := provider.New(provider.Config{Name: "p", Format: c.format, BaseURL: s.URL, Credentials: []string{"sk-1"}})
			if err != nil {
				t.Fatal(err)
			}
			got := p.Probe(t.Context(), []string{"a", "b"})
			if asked != c.asked || !strings.Contains(secret, "sk-1") {
				t.Errorf("asked for %s with %q", asked, secret)
			}
			if !got.Reachable || got.ConnectMS == nil || got.TLSMS != nil || got.HTTPStatus == nil || *got.HTTPStatus != c.status || got.LatencyMS == nil || got.Error != nil {
				t.Errorf("got %+v", got)
			}
			if got.Credential != c.credential || (got.ModelsListed == nil) != (c.listed < 0) || c.listed >= 0 && *got.ModelsListed != c.listed {
				t.Errorf("got %+v", got)
			}
			if (got.Missing == nil) != c.missingIsNull || !slices.Equal(got.Missing, c.missing) {
				t.Errorf("missing %#v", got.Missing)
			}
		})
	}
}

// TestProbeOfNobody: faults are part of the answer.
func TestProbeOfNobody(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	unknown := httptest.NewTLSServer(http.NotFoundHandler()) // an authority that nobody trusts
	defer unknown.Close()
	for name, base := range map[string]string{"gone": gone.URL, "not trusted": unknown.URL} {
		p, err := provider.New(provider.Config{Name: "p", Format: "openai", BaseURL: base, Credentials: []string{"sk-1"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Probe(t.Context(), nil); got.Reachable || got.Error == nil || got.Credential != provider.CredentialNotChecked || got.HTTPStatus != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
