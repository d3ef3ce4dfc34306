package prove

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/internal/gatetest"
	"modelgate/internal/seal"
	"modelgate/internal/store"
)

// TestBillingKeyStaysInside looks for an organization's processor key, and for
// its end, in everything that comes out of a gateway whose processor repeats
// it.
func TestBillingKeyStaysInside(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		dir := t.TempDir()
		s := newSeller(t, gatetest.GatewayOptions{Database: database, Dir: dir}, 2)
		s.mapTo(s.customers[1], "cus_gone")
		var said strings.Builder
		note := func(key, target, body string) {
			status, text := s.ask(key, target, body)
			fmt.Fprintln(&said, target, status, text)
		}
		for _, e := range s.customers {
			s.call(e.key)
		}
		s.eventually("all is tried", time.Minute, func() bool { return s.pending() == 0 })
		note(s.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q,"name":"refuse"}`, s.customers[0].sub))
		s.processor.Revoke(sellerKey) // now it answers with the end of the key
		s.call(s.customers[0].key)
		s.eventually("the key is refused", time.Minute, func() bool { return s.pending() == 0 })
		note(s.key, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q}`, s.customers[0].sub))
		note(s.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":7,"api_key":%q}`, sellerKey))
		note(s.key, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":"%s `, sellerKey))
		for _, target := range []string{"GET /gw/processor/config", "GET /gw/processor/events", "GET /gw/usage", "GET /gw/evidence", "GET /gw/subaccounts", "GET /metrics"} {
			note(s.key, target, "")
		}
		stdout, stderr, _ := s.Run("reconcile", "--config", s.ConfigFile, "--json")
		s.settle()
		places := map[string]string{
			"answers": said.String(), "log": s.Log(), "operator's command": stdout + stderr, "database": dump(t, s.driver, s.source),
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if raw, err := os.ReadFile(file); err == nil {
				places[filepath.Base(file)] = string(raw)
			}
		}
		for place, text := range places {
			for _, part := range []string{sellerKey, sellerKey[len(sellerKey)-8:], sellerKey[len(sellerKey)-4:], base64.StdEncoding.EncodeToString([]byte(sellerKey))} {
				if i := strings.Index(text, part); i >= 0 {
					t.Errorf("%s: %q in …%q…", place, part, text[max(0, i-60):min(len(text), i+60)])
				}
			}
		}
		if !strings.Contains(places["answers"], "401") || !strings.Contains(places["database"], "processor/") {
			t.Errorf("the processor has refused nothing, or the dump is empty:\n%s", places["answers"])
		}
	})
}

// TestBillingRotation kills the rotation of the master key again and again
// while it goes over many secrets: all of them can be read at any moment, and
// in the end without the old key.
func TestBillingRotation(t *testing.T) {
	t.Parallel()
	const secrets = 1000
	kills := size(5, 20)
	dir := t.TempDir()
	key := func(i int) string { return base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%032d", i))) }
	config := filepath.Join(dir, "modelgate.yaml")
	configure := func(current int, previous ...int) []string {
		t.Helper()
		var old []string
		for _, p := range previous {
			old = append(old, key(p))
		}
		text := fmt.Sprintf("server: {data_dir: .}\nmaster_key: %s\nprevious_master_keys: [%s]\n", key(current), strings.Join(old, ", "))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return old
	}
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:modelgate.db", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	first, err := seal.New(key(0))
	if err != nil {
		t.Fatal(err)
	}
	place := func(name string) seal.Place {
		return seal.Place{Table: store.SecretTable, Row: name, Column: store.SecretColumn}
	}
	for i := range secrets {
		name := fmt.Sprintf("processor/%04d", i)
		sealed, err := first.Seal(place(name), []byte("secret of "+name))
		if err == nil {
			_, err = db.AddSecret(t.Context(), store.Secret{Name: name, KeyID: first.Primary(), Value: sealed})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// read opens all of them with the keys of a configuration.
	read := func(current string, previous ...string) {
		t.Helper()
		keys, err := seal.New(current, previous...)
		if err != nil {
			t.Fatal(err)
		}
		all, err := db.SecretsNotUnder(t.Context(), "", "", secrets+1)
		if err != nil || len(all) != secrets {
			t.Fatalf("%d secrets, %v", len(all), err)
		}
		for _, s := range all {
			if text, err := keys.Open(place(s.Name), s.Value); err != nil || string(text) != "secret of "+s.Name || seal.KeyOf(s.Value) != s.KeyID {
				t.Fatalf("%s: %q, %v", s.Name, text, err)
			}
		}
	}
	run := func() *exec.Cmd {
		t.Helper()
		cmd := exec.Command(gatetest.Binary(t), "master-key", "rotate", "--config", config)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	midway := 0
	for i := range kills {
		old := configure(i+1, i, i-1)
		cmd := run()
		// Killed when some have moved: the rest of its batches is never written.
		keys, err := seal.New(key(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			counts, err := db.CountSecrets(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			moved := int64(0)
			for _, c := range counts {
				if c.KeyID == keys.Primary() {
					moved = c.Count
				}
			}
			if moved > int64(i*secrets/kills/2) {
				break
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, or was faster
		if counts, err := db.CountSecrets(t.Context()); err != nil {
			t.Fatal(err)
		} else if len(counts) > 1 {
			midway++
		}
		read(key(i+1), old...)
		// Finished by the next life, so that two generations of keys are enough.
		if out, err := exec.Command(gatetest.Binary(t), "master-key", "rotate", "--config", config).CombinedOutput(); err != nil {
			t.Fatalf("rotate: %v\n%s", err, out)
		}
		read(key(i + 1))
	}
	if midway == 0 {
		t.Error("no kill came while secrets were moving")
	}
	fmt.Fprintf(t.Output(), "rotation of the master key: %d secrets, %d kills, %d of them midway, all secrets read after each\n", secrets, kills, midway)

	// Two secrets change places: neither opens.
	all, err := db.SecretsNotUnder(t.Context(), "", "", 2)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := seal.New(key(kills))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Open(place(all[0].Name), all[1].Value); err == nil {
		t.Error("a secret opens in another's place")
	}
}
