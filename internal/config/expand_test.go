package config

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"A": "1", "EMPTY": "", "_b9": "x", "NEST": "${A}", "YAML": "]\n- {a: b}"}
	env := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for _, c := range []struct {
		text, want string
		named      bool
		err        error
	}{
		{"", "", false, nil},
		{"plain", "plain", false, nil},
		{"${A}", "1", true, nil},
		{"a${A}b${_b9}c", "a1bxc", true, nil},
		{"${EMPTY}", "", true, nil},
		{"${EMPTY:-other}", "other", true, nil},
		{"${NONE:-}", "", true, nil},
		{"${NONE:-a:-b c}", "a:-b c", true, nil},
		{"${A:-other}", "1", true, nil},
		{"${NEST}", "${A}", true, nil},
		{"${YAML}", "]\n- {a: b}", true, nil},
		{"$$", "$", false, nil},
		{"$${A}", "${A}", false, nil},
		{"$$$$${A}", "$$1", true, nil},
		{"$A", "", false, errDollar},
		{"a$", "", false, errDollar},
		{"${A", "", false, errUnclosed},
		{"${}", "", false, errName},
		{"${9}", "", false, errName},
		{"${a b}", "", false, errName},
		{"${:-x}", "", false, errName},
		{"${NONE}", "", false, unsetError("NONE")},
	} {
		got, named, err := expand(c.text, env)
		if got != c.want || named != c.named || !errors.Is(err, c.err) {
			t.Errorf("expand(%q) = %q, %v, %v; want %q, %v, %v", c.text, got, named, err, c.want, c.named, c.err)
		}
	}
}

// Any text can be written in a file: doubling its dollar signs is enough.
func TestExpandEscapes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		got, named, err := expand(strings.ReplaceAll(text, "$", "$$"), func(string) (string, bool) { return "", false })
		if got != text || named || err != nil {
			t.Fatalf("expand of escaped %q = %q, %v, %v", text, got, named, err)
		}
	})
}

// The value of a variable is never read as YAML.
func TestVariableIsNoYAML(t *testing.T) {
	t.Parallel()
	value := "x\n    auth: none\n    \"}"
	l := loader{env: func(string) (string, bool) { return value, true }}
	doc := l.parse("f", []byte("providers:\n  - name: a\n    format: openai\n    base_url: http://a\n    region: ${V}\n"))
	var f file
	doc.decode(&f)
	if len(l.faults) > 0 || f.Providers[0].Region != value || f.Providers[0].Auth != nil {
		t.Errorf("faults %v, provider %+v", l.faults, f.Providers[0])
	}
}

// A variable fills fields of every type, quoted or not.
func TestVariableOfAnyType(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"N": "7", "B": "true", "D": "3s", "S": "2MiB", "P": "0.25", "L": "debug"}
	l := loader{env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	doc := l.parse("f", []byte(`
server: {drain_delay: "${D}", max_request_bytes: "${S}"}
limits: {burst: "${N}", concurrency: "1${N}"}
log: {level: "${L}"}
providers: [{allow_stored_objects: "${B}", name: "${N}"}]
prices: [{price: {input: "${P}"}}]
`))
	var f file
	doc.decode(&f)
	if len(l.faults) > 0 {
		t.Fatal(l.faults)
	}
	if f.Limits.Burst != 7 || f.Limits.Concurrency != 17 || !f.Providers[0].AllowStoredObjects || f.Providers[0].Name != "7" ||
		f.Server.DrainDelay.String() != "3s" || f.Server.MaxRequestBytes != 2<<20 || f.Prices[0].Price.Input.String() != "0.25" || f.Log.Level.String() != "DEBUG" {
		t.Errorf("%+v", f)
	}
}
