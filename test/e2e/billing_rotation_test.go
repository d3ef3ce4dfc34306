package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// vault is a database with many secrets, and the configuration of the commands
// that go over it.
type vault struct {
	*testing.T
	db      *store.DB
	config  string
	secrets int
}

// masterKey is the n-th master key.
func masterKey(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("%032d", n)))
}

func placeOf(name string) secrets.Place {
	return secrets.Place{Table: store.SecretTable, Row: name, Column: store.SecretColumn}
}

func newVault(t *testing.T, secrets int) *vault {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:modelgate.db", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	v := &vault{t, db, filepath.Join(dir, "modelgate.yaml"), secrets}
	keys := v.keys(0)
	for i := range secrets {
		name := fmt.Sprintf("processor/%04d", i)
		sealed, err := keys.Seal(placeOf(name), []byte("secret of "+name))
		if err == nil {
			_, err = db.AddSecret(t.Context(), store.Secret{Name: name, KeyID: keys.Primary(), Value: sealed})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func (v *vault) keys(current int, previous ...int) *secrets.Keys {
	v.Helper()
	var old []string
	for _, p := range previous {
		old = append(old, masterKey(p))
	}
	keys, err := secrets.New(masterKey(current), old...)
	if err != nil {
		v.Fatal(err)
	}
	return keys
}

// configure makes the n-th key the master key and the one before a previous
// one.
func (v *vault) configure(n int) {
	v.Helper()
	text := fmt.Sprintf("server: {data_dir: .}\nmaster_key: %s\nprevious_master_keys: [%s]\n", masterKey(n), masterKey(n-1))
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		v.Fatal(err)
	}
}

func (v *vault) rotation() *exec.Cmd {
	return exec.Command(testkit.Binary(v), "master-key", "rotate", "--config", v.config)
}

// under counts the secrets of each key.
func (v *vault) under() map[string]int64 {
	v.Helper()
	counts, err := v.db.CountSecrets(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	all := map[string]int64{}
	for _, c := range counts {
		all[c.KeyID] = c.Count
	}
	return all
}

// read opens all of the secrets.
func (v *vault) read(keys *secrets.Keys) {
	v.Helper()
	all, err := v.db.SecretsNotUnder(v.Context(), "", "", v.secrets+1)
	if err != nil || len(all) != v.secrets {
		v.Fatalf("%d secrets, %v", len(all), err)
	}
	for _, s := range all {
		if text, err := keys.Open(placeOf(s.Name), s.Value); err != nil || string(text) != "secret of "+s.Name || secrets.KeyOf(s.Value) != s.KeyID {
			v.Fatalf("%s: %q, %v", s.Name, text, err)
		}
	}
}

// killRotation begins the rotation to the n-th key, kills it once more than so
// many secrets have moved, and reports whether the rest had not.
func (v *vault) killRotation(n, after int) (midway bool) {
	v.Helper()
	v.configure(n)
	primary := v.keys(n).Primary()
	cmd := v.rotation()
	if err := cmd.Start(); err != nil {
		v.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 20*time.Second && v.under()[primary] <= int64(after); {
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed, or was faster
	return len(v.under()) > 1
}

// TestBillingRotation kills the rotation of the master key again and again
// while it goes over many secrets: all of them can be read at any moment, and
// in the end without the old key.
func TestBillingRotation(t *testing.T) {
	t.Parallel()
	kills := size(5, 20)
	v := newVault(t, 1000)
	midway, n := 0, 0
	for midway < kills { // a kill that comes too late does not count
		if n++; n > 10*kills {
			t.Fatalf("%d of %d kills came while secrets were moving, want %d", midway, n-1, kills)
		}
		if v.killRotation(n, n%kills*v.secrets/kills/2) {
			midway++
		}
		v.read(v.keys(n, n-1))
		if out, err := v.rotation().CombinedOutput(); err != nil || !strings.Contains(string(out), "Nothing is left under another key") {
			t.Fatalf("rotate: %v\n%s", err, out)
		}
		v.read(v.keys(n))
	}
	fmt.Fprintf(t.Output(), "rotation of the master key: %d secrets, %d rotations, %d of them killed midway, all secrets read after each kill and each end\n",
		v.secrets, n, midway)
	v.configure(n + 2) // the key that they are under is in no configuration
	if out, err := v.rotation().CombinedOutput(); err == nil || !strings.Contains(string(out), "is not configured") {
		t.Errorf("rotate without the old key: %v\n%s", err, out)
	}
	v.read(v.keys(n))
	// Two secrets change places: neither opens.
	all, err := v.db.SecretsNotUnder(t.Context(), "", "", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.keys(n).Open(placeOf(all[0].Name), all[1].Value); err == nil {
		t.Error("a secret opens in another's place")
	}
}

// TestBillingRotationPassesDamage rotates past a secret that is damaged and one
// whose key is gone: every other moves, and both are named.
func TestBillingRotationPassesDamage(t *testing.T) {
	t.Parallel()
	v := newVault(t, 205)
	all, err := v.db.SecretsNotUnder(t.Context(), "", "", v.secrets)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := v.keys(9).Seal(placeOf(all[150].Name), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	harmed := []store.Secret{all[0], all[150]}
	harmed[0].Value, harmed[1].Value = []byte("damaged"), foreign
	if n, err := v.db.ReplaceSecrets(t.Context(), []store.Secret{all[0], all[150]}, harmed, modelgate.Audit{ID: "a", Action: "harm", Actor: modelgate.Actor{Operator: "test"}}); n != 2 || err != nil {
		t.Fatalf("%d secrets are harmed, %v", n, err)
	}
	v.configure(1)
	for range 2 { // the second finds nothing else
		out, err := v.rotation().CombinedOutput()
		if text := string(out); err == nil || !strings.Contains(text, "2 secrets cannot be opened") || !strings.Contains(text, all[0].Name) || strings.Contains(text, "run this again") {
			t.Errorf("rotate: %v\n%s", err, out)
		}
	}
	if moved := v.under()[v.keys(1).Primary()]; moved != int64(v.secrets-2) {
		t.Errorf("%d secrets have moved, want %d", moved, v.secrets-2)
	}
}

// TestBillingMasterKeyRolls changes the master key of two instances that
// restart one after the other, as the guide says: what either of them encrypts
// the other reads, at every moment.
func TestBillingMasterKeyRolls(t *testing.T) {
	t.Parallel()
	p := testkit.NewProcessor(t, sellerKey)
	o := testkit.GatewayOptions{Database: testkit.Postgres(t)}
	under := func(current int, previous ...int) string {
		var old []string
		for _, n := range previous {
			old = append(old, masterKey(n))
		}
		return fmt.Sprintf("master_key: %s\nprevious_master_keys: [%s]\nprocessor: {base_url: %q}\n", masterKey(current), strings.Join(old, ", "), p.URL)
	}
	o.More = under(1)
	first := newWorld(t, o)
	o.Upstream = first.upstream.URL
	second := *first
	second.Gateway = testkit.StartGateway(t, o)
	both := []*world{first, &second}
	sub := first.want(200, "POST /gw/subaccounts", `{"name":"Globex","slug":"globex"}`)["id"].(string)
	customers := 0
	check := func() {
		t.Helper()
		for _, writer := range both {
			writer.want(204, "PUT /gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, sellerKey))
			for _, reader := range both {
				customers++
				reader.want(200, "POST /gw/processor/customers", fmt.Sprintf(`{"sub_account_id":%q,"name":"c%d"}`, sub, customers))
			}
		}
	}
	check()
	for _, config := range []string{under(1, 2), under(2, 1), under(2)} {
		for _, w := range both {
			o.More = config
			w.Configure(o)
			w.Stop()
			w.Start()
			check()
		}
		if out, _, code := first.Run("master-key", "rotate", "--config", first.ConfigFile); code != 0 {
			t.Errorf("rotate: exit %d\n%s", code, out)
		}
		check()
	}
	if n := len(p.Customers()); n != customers {
		t.Errorf("%d customers at the processor, want %d", n, customers)
	}
}
