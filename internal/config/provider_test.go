package config_test

import (
	"strings"
	"testing"

	"modelgate/internal/config"
	"modelgate/internal/provider"
)

// accepted are a provider's settings as the service hands them on.
func accepted(c config.Provider) error {
	out := provider.Config{
		Name: c.Name, Format: c.Format, BaseURL: c.BaseURL, Paths: c.Paths, Allow: c.Allow, Headers: c.Headers,
		OnDisconnect: provider.Disconnect(c.OnDisconnect), Timeouts: provider.Timeouts(c.Timeouts),
	}
	p, err := provider.New(out)
	if err == nil {
		p.Close()
	}
	return err
}

// The formats of the table and those of the configuration are the same, and
// a format warns about a missing key where calls would fail without one.
func TestFormatsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	for _, f := range provider.Formats() {
		project := ""
		if f.InProject {
			project = ", project: p, location: l"
		}
		path := write(t, "providers: [{name: a, format: "+f.Name+", base_url: \"https://a\""+project+"}]\n")
		faults, warnings := config.Check(path, env(nil))
		if len(faults) > 0 {
			t.Errorf("format %s: %v", f.Name, faults)
		}
		if keyless := len(warnings) == 0; keyless != f.OptionalCredential {
			t.Errorf("format %s goes without a key: %v, want %v", f.Name, keyless, f.OptionalCredential)
		}
	}
	for _, name := range strings.Split(formatList(t), ", ") {
		if _, ok := provider.FormatNamed(name); !ok {
			t.Errorf("the table has no format %s", name)
		}
	}
}

// formatList is what the fault of an unknown format offers.
func formatList(t *testing.T) string {
	t.Helper()
	return offered(t, "providers: [{name: a, format: none, base_url: \"https://a\"}]\n", "want one of ")
}

// offered is what the only fault of a text lists after a phrase.
func offered(t *testing.T, text, phrase string) string {
	t.Helper()
	faults, _ := config.Check(write(t, text), env(nil))
	if len(faults) != 1 {
		t.Fatalf("faults %v, want one", faults)
	}
	_, list, found := strings.Cut(faults[0].Message, phrase)
	if !found {
		t.Fatalf("%s does not say %q", faults[0], phrase)
	}
	return list
}

func TestDoorsAreThoseOfTheGateway(t *testing.T) {
	t.Parallel()
	list := offered(t, "providers: [{name: a, format: vllm, base_url: \"https://a\", paths: {x: /x}}]\n", "the doors are ")
	for _, door := range strings.Split(list, ", ") {
		cfg := load(t, "providers: [{name: a, format: generic, base_url: \"https://a\", paths: {"+door+": \"/up/{model}?a=b\"}}]\n")
		if err := accepted(cfg.Providers[0]); err != nil {
			t.Errorf("door %s: %v", door, err)
		}
	}
}

// What the configuration lets pass, a provider can be made of; what it
// refuses, none could.
func TestPathPatternsAsProvidersReadThem(t *testing.T) {
	t.Parallel()
	for pattern, fine := range map[string]bool{
		"GET /v1/files":            true,
		"* /":                      true,
		"POST /v1/{name}/x":        true,
		"POST /v1/{model}:predict": true,
		"GET /**":                  true,
		"GET /a/":                  true,
		"GET  /a":                  true,
		"get /a":                   false,
		"/a":                       false,
		"GET a":                    false,
		"GET":                      false,
		" /a":                      false,
		"GET /**/a":                false,
		"GET /a**":                 false,
		"GET /*":                   false,
		"GET /{a}/{a}":             false,
		"GET /{a":                  false,
		"GET /{}":                  false,
		"GET /a}":                  false,
		"GET /x{a}":                false,
		"GET /{a}{b}":              false,
		"GET /a//b":                false,
		"GET /a/../b":              false,
		"GET /./b":                 false,
		"GET /a?b":                 false,
		"GET /a%2fb":               false,
		"GET /a%2Eb":               false,
		`GET /a\b`:                 false,
		"GET /a b":                 false,
	} {
		faults, _ := config.Check(write(t, "providers: [{name: a, format: vllm, base_url: \"https://a\", allow: ['"+pattern+"']}]\n"), env(nil))
		err := accepted(config.Provider{Name: "a", Format: "vllm", BaseURL: "https://a", Allow: []string{pattern}})
		if (len(faults) == 0) != fine || (err == nil) != fine {
			t.Errorf("%q: faults %v, provider says %v; want it fine: %v", pattern, faults, err, fine)
		}
	}
}

// The settings that a file can give to a header pass into a provider, and the
// ones it cannot would not.
func TestHeadersAsProvidersReadThem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"X-Org", "openai-project", "Host", "Content-Length", "Connection", "Transfer-Encoding", "Te", "Upgrade", "a b", "a:b"} {
		faults, _ := config.Check(write(t, "providers: [{name: a, format: vllm, base_url: \"https://a\", headers: {'"+name+"': x}}]\n"), env(nil))
		err := accepted(config.Provider{Name: "a", Format: "vllm", BaseURL: "https://a", Headers: map[string]string{name: "x"}})
		if (len(faults) == 0) != (err == nil) {
			t.Errorf("header %q: faults %v, provider says %v", name, faults, err)
		}
	}
}

func TestEverySettingMakesAProvider(t *testing.T) {
	t.Parallel()
	cfg := load(t, everySetting)
	if err := accepted(cfg.Providers[0]); err != nil {
		t.Error(err)
	}
}
