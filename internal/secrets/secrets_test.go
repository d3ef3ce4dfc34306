package secrets_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/secrets"
)

// key is a master key of 32 equal bytes.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func newKeys(t *testing.T, current string, previous ...string) *secrets.Keys {
	t.Helper()
	k, err := secrets.New(current, previous...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var at = secrets.Place{Table: "secret", Row: "processor/1", Column: "value"}

func TestSealAndOpen(t *testing.T) {
	t.Parallel()
	k := newKeys(t, key(1))
	for _, text := range []string{"", "s", "sk_live_secret", strings.Repeat("x", 10_000)} {
		sealed, err := k.Seal(at, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if text != "" && len(text) > 3 && bytes.Contains(sealed, []byte(text)) {
			t.Error("the sealed value holds the text")
		}
		got, err := k.Open(at, sealed)
		if err != nil || string(got) != text {
			t.Errorf("Open = %q, %v, want %q", got, err, text)
		}
		if secrets.KeyOf(sealed) != k.Primary() {
			t.Errorf("KeyOf = %q, want %q", secrets.KeyOf(sealed), k.Primary())
		}
		again, err := k.Seal(at, []byte(text))
		if err != nil || bytes.Equal(again, sealed) {
			t.Errorf("the same text sealed twice is the same value (%v)", err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	k := newKeys(t, key(1))
	sealed, err := k.Seal(at, []byte("sk_live_secret"))
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]secrets.Place{
		"another table":  {Table: "other", Row: at.Row, Column: at.Column},
		"another row":    {Table: at.Table, Row: "processor/2", Column: at.Column},
		"another column": {Table: at.Table, Row: at.Row, Column: "note"},
		"a part moved":   {Table: at.Table + at.Row, Row: "", Column: at.Column},
	} {
		if _, err := k.Open(place, sealed); !errors.Is(err, secrets.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := k.Open(at, bad); err == nil {
			t.Errorf("byte %d changed: it opens", i)
		}
		if _, err := k.Open(at, sealed[:i]); !errors.Is(err, secrets.ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := newKeys(t, key(2)).Open(at, sealed); !errors.Is(err, secrets.ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
}

func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	old := newKeys(t, key(1))
	sealed, err := old.Seal(at, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	both := newKeys(t, key(2), "", key(1))
	if got, err := both.Open(at, sealed); err != nil || string(got) != "secret" {
		t.Errorf("Open = %q, %v", got, err)
	}
	again, err := both.Seal(at, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if secrets.KeyOf(again) != both.Primary() || both.Primary() == old.Primary() {
		t.Errorf("sealed under %s, want %s", secrets.KeyOf(again), both.Primary())
	}
	if ids := both.IDs(); len(ids) != 2 || ids[0] != both.Primary() || ids[1] != old.Primary() {
		t.Errorf("IDs = %q", ids)
	}
}

func TestNoKey(t *testing.T) {
	t.Parallel()
	none := newKeys(t, "", key(1))
	if none != nil || none.Primary() != "" || none.IDs() != nil {
		t.Errorf("keys without a current one: %v", none)
	}
	if _, err := none.Seal(at, nil); !errors.Is(err, secrets.ErrNoMasterKey) || modelgate.KindOf(err) != modelgate.Unavailable {
		t.Errorf("Seal: %v", err)
	}
	if _, err := none.Open(at, nil); !errors.Is(err, secrets.ErrNoMasterKey) {
		t.Errorf("Open: %v", err)
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	if _, err := secrets.ParseKey(" " + key(1) + "\n"); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "x", key(1)[:40], key(1) + key(1), strings.Repeat("!", 44)} {
		_, err := secrets.ParseKey(text)
		if err == nil || len(text) > 8 && strings.Contains(err.Error(), text) {
			t.Errorf("ParseKey(%q) = %v", text, err)
		}
	}
	if _, err := secrets.New(key(1), "bad"); err == nil {
		t.Error("a bad previous key is taken")
	}
}

// Master keys must not come out by printing what holds them.
func TestKeysDoNotPrint(t *testing.T) {
	t.Parallel()
	k := newKeys(t, key('K'))
	for _, shown := range []string{fmt.Sprintf("%v", k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), fmt.Sprintf("%s", k)} {
		if strings.Contains(shown, "KKKK") || strings.Contains(shown, "75 75 75") || strings.Contains(shown, "0x4b, 0x4b, 0x4b") {
			t.Errorf("printed: %s", shown)
		}
	}
}

// sealedSecret is "secret" at the place `at` under key(1), sealed once and for
// all: what a gateway has stored must open in every later version.
const sealedSecret = "Abq434lEOuzF+RVtyTdYt02jovNg3/lzuMb2lbNz2GqcXQor8vFsek5JHUhj7LNHTEWFrINtKUh3LHM="

func TestOpenOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	sealed, err := base64.StdEncoding.DecodeString(sealedSecret)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := newKeys(t, key(1)).Open(at, sealed); err != nil || string(text) != "secret" {
		t.Errorf("Open = %q, %v", text, err)
	}
}

func FuzzOpen(f *testing.F) {
	k, err := secrets.New(key(1))
	if err != nil {
		f.Fatal(err)
	}
	// Sealing is random and every process of a fuzz run would have a genuine
	// value of its own; this one they share.
	sealed, err := base64.StdEncoding.DecodeString(sealedSecret)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, err := k.Open(at, b); err == nil && !bytes.Equal(b, sealed) {
			t.Errorf("a forged value opens: %q", text)
		}
	})
}
