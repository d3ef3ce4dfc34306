package pages

import (
	"encoding/base64"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/fuzzing"
)

func newTestSeals(t *testing.T, key string, now func() time.Time) *seals {
	t.Helper()
	s, err := newSeals([]byte(key), now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTicketsEnd(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := newTestSeals(t, "session key", clock)
	digest := modelgate.DigestOf("a key")
	caller := &modelgate.Caller{KeyID: "01890a5d-ac96-774b-bcce-b302099a8057"}

	text, ends := s.seal(caller, digest, "dashboard")
	if want := now.Add(12 * time.Hour); !ends.Equal(want) {
		t.Errorf("ends %s, want %s", ends, want)
	}
	got, ok := s.open(text, "dashboard")
	if !ok || got.key != caller.KeyID || got.digest != digest || !got.expires.Equal(ends) {
		t.Errorf("open = %+v, %v", got, ok)
	}
	if again, _ := s.seal(caller, digest, "dashboard"); again == text {
		t.Error("two tickets are alike")
	}

	short := &modelgate.Caller{KeyID: caller.KeyID, ExpiresAt: now.Add(time.Minute)}
	if _, ends := s.seal(short, digest, "dashboard"); !ends.Equal(short.ExpiresAt) {
		t.Errorf("a ticket outlives its key: %s", ends)
	}

	now = now.Add(12*time.Hour - time.Second)
	if _, ok := s.open(text, "dashboard"); !ok {
		t.Error("ended early")
	}
	now = now.Add(time.Second)
	if _, ok := s.open(text, "dashboard"); ok {
		t.Error("opens after its end")
	}
}

func TestTicketsAreBound(t *testing.T) {
	t.Parallel()
	s := newTestSeals(t, "session key", time.Now)
	caller := &modelgate.Caller{KeyID: "01890a5d-ac96-774b-bcce-b302099a8057"}
	text, _ := s.seal(caller, modelgate.DigestOf("a key"), "portal-a\x00client")
	for _, audience := range []string{"dashboard", "portal-a", "portal-a\x00other", ""} {
		if _, ok := s.open(text, audience); ok {
			t.Errorf("opens for %q", audience)
		}
	}
	if _, ok := newTestSeals(t, "another key", time.Now).open(text, "portal-a\x00client"); ok {
		t.Error("opens under another key")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] ^= 1
		if _, ok := s.open(base64.RawURLEncoding.EncodeToString(raw), "portal-a\x00client"); ok {
			t.Errorf("opens with byte %d changed", i)
		}
		raw[i] ^= 1
	}
}

// sealedTicket is a ticket under "session key" for the dashboard, sealed once
// and for all at sealedAt.
const sealedTicket = "XLicuCUDV2Xok1GGfDD1xU1Jer2CnBViuMY_SCur7jMKqRR9ngYE4dxDdoF0ty_1TWvK2XkMPvx_cmxhx-GQGvjg3LI16qmIrXcZxjbRjU2crElQ"

func sealedAt() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// A ticket has one spelling: the decoder itself skips line breaks and ignores
// the last bits.
func TestTicketsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	s := newTestSeals(t, "session key", sealedAt)
	if _, ok := s.open(sealedTicket, "dashboard"); !ok {
		t.Fatal("the genuine ticket does not open")
	}
	last := len(sealedTicket) - 1
	for _, text := range []string{sealedTicket[:9] + "\r" + sealedTicket[9:], "\n" + sealedTicket, sealedTicket + "\n", sealedTicket[:last] + string(sealedTicket[last]+1)} {
		if _, ok := s.open(text, "dashboard"); ok {
			t.Errorf("opens %q", text)
		}
	}
}

func FuzzOpen(f *testing.F) {
	s, err := newSeals([]byte("session key"), sealedAt)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealedTicket)
	f.Add("")
	fuzzing.Fuzz(f, func(t *testing.T, text string) {
		if _, ok := s.open(text, "dashboard"); ok && text != sealedTicket {
			t.Errorf("a forged ticket opens: %q", text)
		}
	})
}
