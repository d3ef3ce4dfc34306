package httpx_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

func TestCursorRoundTrip(t *testing.T) {
	t.Parallel()
	c := httpx.NewCursors([]byte("key"))
	for _, p := range []httpx.Position{
		{At: time.UnixMicro(1_790_000_000_123_456).UTC(), ID: "0199e3c8-0000-7000-8000-0123456789ab"},
		{At: time.UnixMicro(0).UTC()},
		{At: time.UnixMicro(-5).UTC(), ID: strings.Repeat("x", 64)},
	} {
		text := c.Sign(p, "org\x00keys")
		if got, err := c.Read(text, "org\x00keys"); err != nil || got != p {
			t.Errorf("Read(Sign(%v)) = %v, %v", p, got, err)
		}
		// Another instance with the same key reads it.
		if _, err := httpx.NewCursors([]byte("key")).Read(text, "org\x00keys"); err != nil {
			t.Errorf("another instance: %v", err)
		}
	}
}

func TestCursorRefusesEveryChange(t *testing.T) {
	t.Parallel()
	c := httpx.NewCursors([]byte("key"))
	text := c.Sign(httpx.Position{At: time.UnixMicro(1), ID: "0199e3c8-0000-7000-8000-0123456789ab"}, "org")
	refuse := func(what, text, filter string) {
		t.Helper()
		if _, err := c.Read(text, filter); modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("%s: %v, want bad_request", what, err)
		}
	}
	refuse("another organization", text, "other")
	refuse("cut", text[:len(text)-1], "org")
	refuse("line break", text[:5]+"\n"+text[5:], "org")
	refuse("empty", "", "org")
	refuse("huge", strings.Repeat("A", 1<<20), "org")
	if _, err := httpx.NewCursors([]byte("other key")).Read(text, "org"); err == nil {
		t.Error("another key: no error")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		raw[i/8] ^= 1 << (i % 8)
		refuse("bit flipped", base64.RawURLEncoding.EncodeToString(raw), "org")
		raw[i/8] ^= 1 << (i % 8)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/"
	for i := range text {
		for _, letter := range alphabet {
			if changed := text[:i] + string(letter) + text[i+1:]; changed != text {
				refuse("character changed", changed, "org")
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	c := httpx.NewCursors([]byte("key"))
	f.Add(c.Sign(httpx.Position{At: time.UnixMicro(1), ID: "x"}, "org"))
	f.Add("AQ")
	f.Add("////")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := c.Read(text, "org")
		if err != nil {
			if modelgate.KindOf(err) != modelgate.BadRequest {
				t.Errorf("%q: %v, want bad_request", text, err)
			}
			return
		}
		if again := c.Sign(p, "org"); again != text {
			t.Errorf("%q was accepted, but its position signs as %q", text, again)
		}
	})
}
