package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/store/access"
)

func ptr[T any](v T) *T { return &v }

func TestClients(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		want := newClient(1)
		want.Limits.RequestsPerSecond = ptr(7)
		want.Ceiling.Entitlements = append(want.Ceiling.Entitlements, modelgate.Entitlement{
			Axis: modelgate.AxisVendor, Provider: "acme", ModelPattern: "*", Effect: modelgate.Deny})
		must(t, db.CreateClient(ctx, want, audit("client.create")))
		createClient(t, db, 2)

		got, err := db.Client(ctx, want.ID)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Client (-want +got):\n%s", d)
		}
		all, err := db.Clients(ctx)
		must(t, err)
		if len(all) != 2 || all[0].ID != want.ID {
			t.Errorf("Clients = %v, want both in order", all)
		}
		_, err = db.Client(ctx, "nobody")
		wantKind(t, "Client(nobody)", err, modelgate.NotFound)
		bad := newClient(3)
		bad.Billing = "barter"
		wantKind(t, "CreateClient(barter)", db.CreateClient(ctx, bad, audit("client.create")), modelgate.BadRequest)
	})
}

func TestUpdateClient(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		change := func(c *modelgate.Client) error {
			c.ID, c.CreatedAt = "hijack", time.Time{}
			c.Name, c.MaxKeys, c.MaxRules, c.RoutingPolicy = "renamed", 3, 2000, modelgate.EUOnly
			return nil
		}
		must(t, db.UpdateClient(ctx, client, change, audit("client.set")))
		want := newClient(1)
		want.Name, want.MaxKeys, want.MaxRules, want.RoutingPolicy = "renamed", 3, 2000, modelgate.EUOnly
		got, err := db.Client(ctx, client)
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("after UpdateClient (-want +got):\n%s", d)
		}
		refusal := errors.New("no")
		err = db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.Name = "x"; return refusal }, audit("client.set"))
		if !errors.Is(err, refusal) {
			t.Errorf("UpdateClient = %v, want what fn returned", err)
		}
		err = db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.MaxKeys = -1; return nil }, audit("client.set"))
		wantKind(t, "UpdateClient(max_keys -1)", err, modelgate.BadRequest)
		wantKind(t, "UpdateClient(nobody)", db.UpdateClient(ctx, "nobody", change, audit("client.set")), modelgate.NotFound)
		if got, _ := db.Client(ctx, client); got.Name != "renamed" {
			t.Errorf("a refused update left the name %q", got.Name)
		}
	})
}

func TestSubAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		s := createSubAccount(t, db, client, 11)
		twin := s
		twin.ID = modelgate.SubAccountID(id(12))
		wantKind(t, "the same slug", db.CreateSubAccount(ctx, twin, audit("sub_account.create")), modelgate.Conflict)
		twin.ClientID = other
		must(t, db.CreateSubAccount(ctx, twin, audit("sub_account.create")))
		twin.ID, twin.ClientID = "x", "nobody"
		wantKind(t, "no client", db.CreateSubAccount(ctx, twin, audit("sub_account.create")), modelgate.NotFound)

		patch := modelgate.SubAccountPatch{Markup: ptr(modelgate.Markup(12_500_000)), Name: ptr("new")}
		must(t, db.PatchSubAccount(ctx, client, s.ID, patch, audit("sub_account.patch")))
		s.Markup, s.Name = 12_500_000, "new"
		got, err := db.SubAccount(ctx, client, s.ID)
		must(t, err)
		if d := cmp.Diff(s, got); d != "" {
			t.Errorf("after the patch (-want +got):\n%s", d)
		}
		all, err := db.SubAccounts(ctx, client)
		must(t, err)
		if d := cmp.Diff([]modelgate.SubAccount{s}, all); d != "" {
			t.Errorf("SubAccounts (-want +got):\n%s", d)
		}
		_, err = db.SubAccount(ctx, other, s.ID)
		wantKind(t, "a foreign SubAccount", err, modelgate.NotFound)
		wantKind(t, "a foreign patch", db.PatchSubAccount(ctx, other, s.ID, patch, audit("sub_account.patch")), modelgate.NotFound)
	})
}

func TestBranding(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		_, err := db.Branding(ctx, client)
		wantKind(t, "Branding before any", err, modelgate.NotFound)

		want := modelgate.Branding{ClientID: client, PortalSlug: "acme", ProductName: "Acme AI", LogoURL: ptr("https://a/l.png"), AllowSelfIssue: true}
		got, err := db.PutBranding(ctx, want, audit("branding.put"))
		must(t, err)
		want.CreatedAt, want.UpdatedAt = noon, noon
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("PutBranding (-want +got):\n%s", d)
		}
		db.now = func() time.Time { return noon.Add(time.Hour) }
		want.LogoURL, want.AccentColor, want.AllowSelfIssue = nil, ptr("#00ff00"), false
		_, err = db.PutBranding(ctx, want, audit("branding.put"))
		must(t, err)
		want.UpdatedAt = noon.Add(time.Hour)
		for name, read := range map[string]func() (modelgate.Branding, error){
			"Branding":       func() (modelgate.Branding, error) { return db.Branding(ctx, client) },
			"BrandingBySlug": func() (modelgate.Branding, error) { return db.BrandingBySlug(ctx, "acme") },
		} {
			got, err := read()
			must(t, err)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
		_, err = db.PutBranding(ctx, modelgate.Branding{ClientID: other, PortalSlug: "acme", ProductName: "x"}, audit("branding.put"))
		wantKind(t, "a taken portal slug", err, modelgate.Conflict)
		_, err = db.PutBranding(ctx, modelgate.Branding{ClientID: "nobody", PortalSlug: "free", ProductName: "x"}, audit("branding.put"))
		wantKind(t, "no client", err, modelgate.NotFound)
		_, err = db.BrandingBySlug(ctx, "nowhere")
		wantKind(t, "an unknown slug", err, modelgate.NotFound)
	})
}

// TestControlVersion holds against each change whether it can make a cached
// caller wrong, and that each leaves its audit record.
func TestControlVersion(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11).ID
		key := issue(t, db, client, "", 21).ID
		patch := func(p modelgate.SubAccountPatch) func() error {
			return func() error { return db.PatchSubAccount(ctx, client, sub, p, audit("sub_account.patch")) }
		}
		revoke := func() error {
			_, err := db.RevokeKey(ctx, client, access.KeyScope{}, key, audit("key.revoke"))
			return err
		}
		for _, c := range []struct {
			name   string
			raises bool
			change func() error
		}{
			{"create client", false, func() error { return db.CreateClient(ctx, newClient(2), audit("client.create")) }},
			{"update client", true, func() error {
				return db.UpdateClient(ctx, client, func(*modelgate.Client) error { return nil }, audit("client.set"))
			}},
			{"create sub-account", false, func() error {
				s := modelgate.SubAccount{ID: "s2", ClientID: client, Slug: "s2", Status: modelgate.SubAccountActive}
				return db.CreateSubAccount(ctx, s, audit("sub_account.create"))
			}},
			{"suspend", true, patch(modelgate.SubAccountPatch{Status: ptr(modelgate.SubAccountSuspended)})},
			{"markup", true, patch(modelgate.SubAccountPatch{Markup: ptr(modelgate.Markup(1))})},
			{"rename", false, patch(modelgate.SubAccountPatch{Name: ptr("n")})},
			{"issue", false, func() error {
				_, err := db.IssueKey(ctx, client, access.IssueRequest{Admit: admit(22)}, audit("key.issue"))
				return err
			}},
			{"key limits", true, func() error {
				return db.SetKeyLimits(ctx, client, key, modelgate.Limits{}, audit("key.limits"))
			}},
			{"revoke", true, revoke},
			{"revoke again", false, revoke},
			{"branding", false, func() error {
				_, err := db.PutBranding(ctx, modelgate.Branding{ClientID: client, PortalSlug: "p", ProductName: "p"}, audit("branding.put"))
				return err
			}},
		} {
			before, err := db.ControlVersion(ctx)
			must(t, err)
			audits := number(t, db, "SELECT COUNT(*) FROM audit")
			must(t, c.change())
			after, err := db.ControlVersion(ctx)
			must(t, err)
			if raised := after > before; raised != c.raises {
				t.Errorf("%s: raised the control version %t, want %t", c.name, raised, c.raises)
			}
			if got := number(t, db, "SELECT COUNT(*) FROM audit"); got != audits+1 {
				t.Errorf("%s: wrote %d audit records, want 1", c.name, got-audits)
			}
		}
	})
}

func TestAuditIsPartOfTheChange(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21)
		broken := audit("key.revoke")
		broken.ID = ""
		if _, err := db.RevokeKey(ctx, client, access.KeyScope{}, key.ID, broken); err == nil {
			t.Fatal("RevokeKey without an audit id succeeded")
		}
		if k, _ := db.FindKey(ctx, key.ID); k.Status != modelgate.KeyActive {
			t.Errorf("the key is %s although its audit could not be written", k.Status)
		}
		for _, wrong := range []modelgate.Actor{{}, {KeyID: key.ID, Operator: "test"}, {Operator: "test", System: true}} {
			a := audit("key.revoke")
			a.Actor = wrong
			if _, err := db.RevokeKey(ctx, client, access.KeyScope{}, key.ID, a); err == nil {
				t.Errorf("RevokeKey by %+v succeeded", wrong)
			}
		}
		if k, _ := db.FindKey(ctx, key.ID); k.Status != modelgate.KeyActive {
			t.Errorf("the key is %s although its audit has no actor", k.Status)
		}
		full := audit("key.limits")
		full.Change, full.Actor = []byte(`{"burst":3}`), modelgate.Actor{KeyID: key.ID}
		must(t, db.SetKeyLimits(ctx, client, key.ID, modelgate.Limits{Burst: ptr(3)}, full))
		var got [7]string
		must(t, db.read.QueryRow(`SELECT id, client_id, actor, target_type, target_id, change, request_id
			FROM audit WHERE action = 'key.limits'`).Scan(&got[0], &got[1], &got[2], &got[3], &got[4], &got[5], &got[6]))
		want := [7]string{full.ID, string(client), `{"key_id":"` + string(key.ID) + `"}`, "thing", "t", `{"burst":3}`, "r"}
		if got != want {
			t.Errorf("audit = %q, want %q", got, want)
		}
		var target string
		must(t, db.read.QueryRow("SELECT target_id FROM audit WHERE action = 'key.issue'").Scan(&target))
		if target != string(key.ID) {
			t.Errorf("the issuance's target is %s, want the new key", target)
		}
	})
}

func TestNoSecretInTheDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		secret := modelgate.NewSecret()
		r := access.IssueRequest{Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			k, _, err := admit(21)(c)
			k.Prefix = secret.Prefix()
			return k, secret.Digest(), err
		}}
		_, err := db.IssueKey(t.Context(), client, r, audit("key.issue"))
		must(t, err)
		rows, err := db.read.Query("SELECT * FROM api_key")
		must(t, err)
		defer rows.Close()
		columns, err := rows.Columns()
		must(t, err)
		for rows.Next() {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new([]byte)
			}
			must(t, rows.Scan(row...))
			for i, v := range row {
				if strings.Contains(string(*v.(*[]byte)), secret.Reveal()[len(secret.Prefix()):]) {
					t.Errorf("column %s holds the secret", columns[i])
				}
			}
		}
		must(t, rows.Err())
	})
}
