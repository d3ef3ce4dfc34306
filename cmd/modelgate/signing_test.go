package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/evidence"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// signingWith opens what signs, with a configuration.
func signingWith(t *testing.T, db *store.DB, cfg *config.Config, master *secrets.Keys) *signing {
	t.Helper()
	s, err := newSigning(cfg, db, master)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signingDB(t *testing.T, url, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{URL: url, DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// signs is the key that signs, and by how many statements it came to that.
func signs(t *testing.T, s *signing) (string, int) {
	t.Helper()
	signer, err := s.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return signer.Key.VKey(), len(signer.Rotations)
}

func TestSigningKeyInAFile(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Server.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecret("sqlite:x.db")
	db := signingDB(t, "sqlite:x.db", cfg.Server.DataDir)
	running := signingWith(t, db, cfg, nil)
	first, n := signs(t, running)
	if again, _ := signs(t, signingWith(t, db, cfg, nil)); again != first || n != 0 {
		t.Errorf("%s signs, then %s", first, again)
	}
	if _, err := signingWith(t, db, cfg, nil).follow(t.Context(), handOver); err != nil {
		t.Fatal(err)
	}
	second, n := signs(t, running)
	if second == first || n != 1 {
		t.Errorf("after a rotation by a command the service signs with %s (%d statements)", second, n)
	}
	if _, err := signingWith(t, db, cfg, nil).follow(t.Context(), lostKey); err != nil {
		t.Fatal(err)
	}
	third, n := signs(t, running)
	if third == second || n != 0 {
		t.Errorf("after a loss %s signs, with %d statements", third, n)
	}
	file := filepath.Join(cfg.Server.DataDir, "evidence.key")
	for what, damage := range map[string]func() error{
		"without the file": func() error { return os.Remove(file) },
		"with another key": func() error { return os.WriteFile(file, []byte(testkit.EvidenceKey(t, 1).Reveal()+"\n"), 0o600) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if signer, err := signingWith(t, db, cfg, nil).Signer(t.Context()); modelgate.KindOf(err) != modelgate.Unavailable || !strings.Contains(err.Error(), third) {
			t.Errorf("%s: %v, %v; want it unavailable, and the key named", what, signer, err)
		}
	}
}

func TestSigningKeySealedInTheDatabase(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	cfg := config.Default()
	cfg.Database.URL = config.NewSecret(url)
	db := signingDB(t, url, "")
	if _, err := signingWith(t, db, cfg, nil).Signer(t.Context()); !errors.Is(err, errNoSigning) {
		t.Errorf("without any key: %v", err)
	}
	master, err := secrets.New("MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=")
	if err != nil {
		t.Fatal(err)
	}
	a, b := signingWith(t, db, cfg, master), signingWith(t, db, cfg, master)
	one, _ := signs(t, a)
	if two, _ := signs(t, b); two != one {
		t.Errorf("instances sign with %s and %s", one, two)
	}
	if _, err := a.follow(t.Context(), handOver); err != nil {
		t.Fatal(err)
	}
	if two, n := signs(t, b); two == one || n != 1 {
		t.Errorf("after a rotation the other instance signs with %s (%d statements)", two, n)
	}
}

func TestSigningKeyInTheConfiguration(t *testing.T) {
	t.Parallel()
	url := testkit.Postgres(t)
	db := signingDB(t, url, "")
	keys := []evidence.Key{testkit.EvidenceKey(t, 1), testkit.EvidenceKey(t, 2), testkit.EvidenceKey(t, 3)}
	with := func(now evidence.Key, before ...evidence.Key) *signing {
		cfg := config.Default()
		cfg.Database.URL, cfg.Evidence.SigningKey = config.NewSecret(url), config.NewSecret(now.Reveal())
		for _, k := range before {
			cfg.Evidence.PreviousSigningKeys = append(cfg.Evidence.PreviousSigningKeys, config.NewSecret(k.Reveal()))
		}
		return signingWith(t, db, cfg, nil)
	}
	if got, _ := signs(t, with(keys[0])); got != keys[0].VKey() {
		t.Errorf("%s signs", got)
	}
	if _, err := with(keys[1]).Signer(t.Context()); !errors.Is(err, errNoSuchKey) {
		t.Errorf("a new key without the old one: %v", err)
	}
	if got, n := signs(t, with(keys[1], keys[0])); got != keys[1].VKey() || n != 1 {
		t.Errorf("a new key beside the old one: %s signs, %d statements", got, n)
	}
	if _, err := with(keys[0]).Signer(t.Context()); !errors.Is(err, errNoSuchKey) {
		t.Errorf("an instance with the old key alone: %v", err)
	}
}

// What is too old leaves the chain, signed, and what stays can be verified. A
// chain that was damaged stays, and says so.
func TestRetentionPrunesEvidence(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Server.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecret("sqlite:x.db")
	db := signingDB(t, "sqlite:x.db", cfg.Server.DataDir)
	var clients [2]modelgate.ClientID
	for i := range clients {
		client := newClient(fmt.Sprint("old ", i), time.Now().Add(-500*24*time.Hour))
		record := audit("test", "client.create", "client", string(client.ID), client)
		record.At = client.CreatedAt
		if err := db.CreateClient(t.Context(), client, record); err != nil {
			t.Fatal(err)
		}
		if err := db.ChainAllEvidence(t.Context(), client.ID); err != nil {
			t.Fatal(err)
		}
		clients[i] = client.ID
	}
	damaged, sound := clients[0], clients[1]
	raw, err := sql.Open("sqlite", filepath.Join(cfg.Server.DataDir, "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("INSERT INTO evidence_chunk SELECT client_id, 2, 2, prev, hash, $1, $1, batch_id FROM evidence_chunk WHERE client_id = $2", time.Now().UnixMicro(), string(damaged)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("UPDATE evidence_head SET seq = 2 WHERE client_id = $1", string(damaged)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("DELETE FROM evidence_batch WHERE id = (SELECT batch_id FROM evidence_chunk WHERE client_id = $1)", string(damaged)); err != nil {
		t.Fatal(err)
	}
	s := &server{db: db, signing: signingWith(t, db, cfg, nil)}
	spare, err := s.pruneEvidence(context.WithoutCancel(t.Context()), time.Now().Add(-400*24*time.Hour))
	if err != nil || len(spare) != 1 || spare[damaged] == nil {
		t.Errorf("pruneEvidence = %v, %v; want the damaged one to be spared", spare, err)
	}
	part, err := db.Evidence(t.Context(), sound, store.EvidenceRange{})
	if err != nil || part.From != 2 || part.To != 2 || part.Anchor == "" {
		t.Errorf("%+v, %v; want the record of the pruning alone", part, err)
	}
	if found, err := db.Reconcile(t.Context(), sound); err != nil || len(found) != 0 {
		t.Errorf("Reconcile = %v, %v", found, err)
	}
}
