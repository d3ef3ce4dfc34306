package signing

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/evidence"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

func newSigning(t *testing.T, o Options) *Signing {
	t.Helper()
	o.Name = "test/evidence"
	o.Audit = func() modelgate.Audit {
		return modelgate.Audit{ID: modelgate.NewIDs(time.Now).New().String(), At: time.Now().UTC(), Actor: modelgate.Actor{Operator: "test"}}
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openDB(t *testing.T, url, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// signs is the key that signs, and by how many statements it came to that.
func signs(t *testing.T, s *Signing) (string, int) {
	t.Helper()
	signer, err := s.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signer.Key.VKey(), len(signer.Rotations)
}

func TestSigningKeyInAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, file := openDB(t, "sqlite:x.db", dir), filepath.Join(dir, "evidence.key")
	o := Options{Store: db, File: file}
	running := newSigning(t, o)
	first, n := signs(t, running)
	if again, _ := signs(t, newSigning(t, o)); again != first || n != 0 {
		t.Errorf("%s signs, then %s", first, again)
	}
	if _, err := newSigning(t, o).follow(t.Context(), HandOver); err != nil {
		t.Fatal(err)
	}
	second, n := signs(t, running)
	if second == first || n != 1 {
		t.Errorf("after a rotation by a command the service signs with %s (%d statements)", second, n)
	}
	if _, err := newSigning(t, o).follow(t.Context(), LostKey); err != nil {
		t.Fatal(err)
	}
	third, n := signs(t, running)
	if third == second || n != 0 {
		t.Errorf("after a loss %s signs, with %d statements", third, n)
	}
	for what, damage := range map[string]func() error{
		"without the file": func() error { return os.Remove(file) },
		"with another key": func() error { return os.WriteFile(file, []byte(testkit.EvidenceKey(t, 1).Reveal()+"\n"), 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if signer, err := newSigning(t, o).Signer(t.Context()); modelgate.KindOf(err) != modelgate.Unavailable || !strings.Contains(err.Error(), third) {
			t.Errorf("%s: %v, %v; want it unavailable, and the key named", what, signer, err)
		}
	}
}

func TestSigningKeySealedInTheDatabase(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	db := openDB(t, url, "")
	if _, err := newSigning(t, Options{Store: db}).Signer(t.Context()); !errors.Is(err, ErrNotConfigured) {
		t.Errorf("without any key: %v", err)
	}
	master, err := secrets.New("MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Store: db, Master: master}
	a, b := newSigning(t, o), newSigning(t, o)
	one, _ := signs(t, a)
	if two, _ := signs(t, b); two != one {
		t.Errorf("instances sign with %s and %s", one, two)
	}
	if _, err := a.follow(t.Context(), HandOver); err != nil {
		t.Fatal(err)
	}
	if two, n := signs(t, b); two == one || n != 1 {
		t.Errorf("after a rotation the other instance signs with %s (%d statements)", two, n)
	}
}

func TestSigningKeyInTheConfiguration(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	db := openDB(t, url, "")
	keys := []evidence.Key{testkit.EvidenceKey(t, 1), testkit.EvidenceKey(t, 2), testkit.EvidenceKey(t, 3)}
	with := func(keys ...evidence.Key) *Signing {
		o := Options{Store: db}
		for _, k := range keys {
			o.Configured = append(o.Configured, k.Reveal())
		}
		return newSigning(t, o)
	}
	if got, _ := signs(t, with(keys[0])); got != keys[0].VKey() {
		t.Errorf("%s signs", got)
	}
	if _, err := with(keys[1]).Signer(t.Context()); !errors.Is(err, errNotFound) {
		t.Errorf("a new key without the old one: %v", err)
	}
	if got, n := signs(t, with(keys[1], keys[0])); got != keys[1].VKey() || n != 1 {
		t.Errorf("a new key beside the old one: %s signs, %d statements", got, n)
	}
	if _, err := with(keys[0]).Signer(t.Context()); !errors.Is(err, errNotFound) {
		t.Errorf("an instance with the old key alone: %v", err)
	}
}
