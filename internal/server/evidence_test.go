package server

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/evidence"
	"modelgate/internal/store"
	chain "modelgate/internal/store/evidence"
	"modelgate/test/testkit"
)

// TestNewSigning: a configured key signs, also where a file could hold one, and those
// before it hand over to it.
func TestNewSigning(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Server.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecret("sqlite:x.db")
	db, err := OpenStore(t.Context(), cfg, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	old, key := testkit.EvidenceKey(t, 1), testkit.EvidenceKey(t, 2)
	for statements, keys := range [][]evidence.Key{{old}, {key, old}} {
		cfg.Evidence.SigningKey, cfg.Evidence.PreviousSigningKeys = config.NewSecret(keys[0].Reveal()), nil
		for _, k := range keys[1:] {
			cfg.Evidence.PreviousSigningKeys = append(cfg.Evidence.PreviousSigningKeys, config.NewSecret(k.Reveal()))
		}
		signs, err := NewSigning(cfg, db, nil)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := signs.Signer(t.Context())
		if err != nil || signer.Key.VKey() != keys[0].VKey() || len(signer.Rotations) != statements {
			t.Errorf("%+v, %v; want %s to sign after %d rotations", signer, err, keys[0].VKey(), statements)
		}
	}
}

// What is too old leaves the chain, signed, and what stays can be verified. A
// chain that was damaged stays, and says so.
func TestRetentionPrunesEvidence(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Server.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecret("sqlite:x.db")
	db, err := OpenStore(t.Context(), cfg, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	signs, err := NewSigning(cfg, db, nil)
	if err != nil {
		t.Fatal(err)
	}
	var clients [2]modelgate.ClientID
	for i := range clients {
		client := modelgate.Client{
			ID: modelgate.ClientID(modelgate.NewIDs(time.Now).New().String()), Name: fmt.Sprint("old ", i), RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Invoiced,
			MaxKeys: modelgate.DefaultMaxKeys, Ceiling: modelgate.OpenCeiling(), CreatedAt: time.Now().Add(-500 * 24 * time.Hour).UTC().Truncate(time.Microsecond),
		}
		record := Audit(modelgate.Actor{Operator: "test"}, "client.create")
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
	raw := testkit.OpenSQLite(t, filepath.Join(cfg.Server.DataDir, "x.db"))
	if _, err := raw.Exec("INSERT INTO evidence_chunk SELECT client_id, 2, 2, prev, hash, $1, $1, batch_id FROM evidence_chunk WHERE client_id = $2", time.Now().UnixMicro(), string(damaged)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("UPDATE evidence_head SET seq = 2 WHERE client_id = $1", string(damaged)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("DELETE FROM evidence_batch WHERE id = (SELECT batch_id FROM evidence_chunk WHERE client_id = $1)", string(damaged)); err != nil {
		t.Fatal(err)
	}
	s := &Server{db: db, signing: signs}
	spare, err := s.pruneEvidence(context.WithoutCancel(t.Context()), time.Now().Add(-400*24*time.Hour))
	if err != nil || len(spare) != 1 || spare[damaged] == nil {
		t.Errorf("pruneEvidence = %v, %v; want the damaged one to be spared", spare, err)
	}
	part, err := db.Evidence(t.Context(), sound, chain.Range{})
	if err != nil || part.From != 2 || part.To != 2 || part.Anchor == "" {
		t.Errorf("%+v, %v; want the record of the pruning alone", part, err)
	}
	if found, err := db.Reconcile(t.Context(), sound); err != nil || len(found) != 0 {
		t.Errorf("Reconcile = %v, %v", found, err)
	}
}
