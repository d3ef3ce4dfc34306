package modelgate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"modelgate"
)

func TestNewSecret(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^gw_live_[0-9a-f]{48}$`)
	seen := make(map[string]bool)
	for range 1000 {
		s := modelgate.NewSecret()
		text := s.Reveal()
		switch {
		case !shape.MatchString(text):
			t.Fatalf("a secret has the shape %q", text)
		case seen[text]:
			t.Fatal("two secrets are the same")
		case !modelgate.WellFormed(text):
			t.Fatalf("%q is not well-formed", text)
		case text[48:] != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text[:48]))):
			t.Fatalf("%q does not end in the CRC-32 of the rest", text)
		case s.Prefix() != text[:16]:
			t.Fatalf("prefix %q of %q", s.Prefix(), text)
		case s.Digest() != sha256.Sum256([]byte(text)) || s.Digest() != modelgate.DigestOf(text):
			t.Fatalf("the digest of %q is not its SHA-256", text)
		}
		seen[text] = true
	}
}

// No change of a single character gets past the checksum.
func TestWellFormedRefusesMutations(t *testing.T) {
	t.Parallel()
	text := modelgate.NewSecret().Reveal()
	for i := range len(text) {
		for _, c := range []byte("0123456789abcdefABCDEFgGxz_- \x00\xc3") {
			if mutant := text[:i] + string(rune(c)) + text[i+1:]; mutant != text && modelgate.WellFormed(mutant) {
				t.Errorf("%q is well-formed", mutant)
			}
		}
	}
	for _, s := range []string{
		"", "gw_live_", text[:55], text + "0", " " + text, text + "\n", "Bearer " + text, strings.ToUpper(text),
		"gw_test_" + text[8:], "gw_live_" + strings.ToUpper(text[8:]), "gw_live_" + strings.Repeat("0", 48),
	} {
		if modelgate.WellFormed(s) {
			t.Errorf("%q is well-formed", s)
		}
	}
}

// A secret stays out of everything that prints values, by itself and within
// others, in exported and unexported fields.
func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := modelgate.NewSecret()
	hidden := s.Reveal()[len("gw_live_"):]
	values := []any{
		s, &s, []modelgate.Secret{s}, map[string]modelgate.Secret{"k": s}, struct{ S modelgate.Secret }{s}, struct{ s modelgate.Secret }{s},
		struct{ s *modelgate.Secret }{&s}, struct{ s []modelgate.Secret }{[]modelgate.Secret{s}}, any(s), errors.New(s.String()),
	}
	for _, v := range values {
		for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %b %c %U %e %g %t %T %p %08v %z") {
			out := fmt.Sprintf(verb, v)
			plain := strings.Contains(out, hidden)
			encoded := strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", hidden)) || strings.Contains(out, fmt.Sprint([]byte(hidden)[:4]))
			if plain || encoded {
				t.Errorf("%s prints the secret: %s", verb, out)
			}
		}
		if b, err := json.Marshal(v); err == nil && bytes.Contains(b, []byte(hidden)) {
			t.Errorf("%T: JSON holds the secret", v)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		if strings.Contains(log.String(), hidden) {
			t.Errorf("%T: the log holds the secret", v)
		}
	}
	for _, verb := range []string{"%v", "%s", "%#v", "%d", "%q", "%x"} {
		if got := fmt.Sprintf(verb, s); got != "[redacted]" {
			t.Errorf("%s prints %s, want [redacted]", verb, got)
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", s)
	if !strings.Contains(log.String(), `"v":"[redacted]"`) {
		t.Errorf("log %s does not say that something was redacted", log.String())
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add("gw_live_000000000000000000000000000000000000000000000000")
	f.Add("gw_live_0000000000000000000000000000000000000000af3d9e5c")
	f.Add("gw_live_\xff")
	shape := regexp.MustCompile(`\Agw_live_[0-9a-f]{48}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		want := shape.MatchString(s) && fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s[:48]))) == s[48:]
		if got := modelgate.WellFormed(s); got != want {
			t.Fatalf("WellFormed(%q) = %v, want %v", s, got, want)
		}
	})
}

func TestCleanKeyName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 100)
	for name, want := range map[string]string{
		" Nightly import ": "Nightly import", long: long, "=cmd": "=cmd",
		"": "", "  ": "", long + "x": "", "a\nb": "", "a\x00": "", "\u200b": "", "a\u202eb": "", "a\xff": "",
	} {
		got, err := modelgate.CleanKeyName(name)
		if got != want || (err == nil) != (want != "") || err != nil && modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("CleanKeyName(%q) = %q, %v, want %q", name, got, err, want)
		}
		wish := modelgate.KeyRequest{Scopes: []modelgate.Scope{}, Name: &name}
		key, _, err := wish.Issue("c", modelgate.OpenCeiling(), &modelgate.Catalog{}, modelgate.UUID{})
		if key.Name != want || (err == nil) != (want != "") {
			t.Errorf("issued with the name %q: %q, %v, want %q", name, key.Name, err, want)
		}
	}
}
