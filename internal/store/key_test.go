package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"modelgate"
	"modelgate/internal/store/access"
	"modelgate/internal/store/sqldb"
)

func TestIssueKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11)
		r := access.IssueRequest{SubAccountID: sub.ID, Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			k, d, err := admit(21)(c)
			k.ExpiresAt = noon.Add(time.Hour + 1500*time.Nanosecond)
			k.Denies = modelgate.Entitlements{{Axis: modelgate.AxisKind, Provider: "video", ModelPattern: "*", Effect: modelgate.Deny}}
			k.Backing = []modelgate.Entitlements{{}, modelgate.OpenEntitlements()}
			k.Limits = modelgate.Limits{Concurrency: ptr(2)}
			return k, d, err
		}}
		issued, err := db.IssueKey(ctx, client, r, audit("key.issue"))
		must(t, err)
		found, err := db.FindKey(ctx, issued.ID)
		must(t, err)
		if d := cmp.Diff(issued, found); d != "" {
			t.Errorf("issued and stored differ (-issued +stored):\n%s", d)
		}
		if found.ClientID != client || found.SubAccountID != sub.ID || found.Status != modelgate.KeyActive ||
			!found.ExpiresAt.Equal(noon.Add(time.Hour+time.Microsecond)) || !found.LastUsedAt.IsZero() {
			t.Errorf("stored key = %+v", found)
		}
		refusal := modelgate.Errorf(modelgate.Forbidden, "no")
		_, err = db.IssueKey(ctx, client, access.IssueRequest{Admit: func(modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			return modelgate.Key{}, modelgate.Digest{}, refusal
		}}, audit("key.issue"))
		if !errors.Is(err, refusal) {
			t.Errorf("IssueKey = %v, want what Admit returned", err)
		}
		_, err = db.IssueKey(ctx, "nobody", access.IssueRequest{Admit: admit(22)}, audit("key.issue"))
		wantKind(t, "IssueKey(nobody)", err, modelgate.NotFound)
	})
}

func TestIssueKeyNeedsAnActiveSubAccount(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		suspended := createSubAccount(t, db, client, 11).ID
		foreign := createSubAccount(t, db, other, 12).ID
		status := modelgate.SubAccountPatch{Status: ptr(modelgate.SubAccountSuspended)}
		must(t, db.PatchSubAccount(ctx, client, suspended, status, audit("sub_account.patch")))
		for name, sub := range map[string]modelgate.SubAccountID{"suspended": suspended, "foreign": foreign, "unknown": "x"} {
			_, err := db.IssueKey(ctx, client, access.IssueRequest{SubAccountID: sub, Admit: admit(21)}, audit("key.issue"))
			wantKind(t, "issue for a sub-account that is "+name, err, modelgate.Forbidden)
			if err != nil && !strings.Contains(err.Error(), "sub-account not found or not active") {
				t.Errorf("%s sub-account: IssueKey = %v", name, err)
			}
		}
		if n := number(t, db, "SELECT COUNT(*) FROM api_key"); n != 0 {
			t.Errorf("%d keys were issued", n)
		}
	})
}

func TestKeyCapHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		must(t, db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.MaxKeys = 20; return nil }, audit("client.set")))
		var issued, refused atomic.Int64
		var group sync.WaitGroup
		for n := range 50 {
			group.Go(func() {
				_, err := db.IssueKey(ctx, client, access.IssueRequest{Admit: admit(100 + n)}, audit("key.issue"))
				switch {
				case err == nil:
					issued.Add(1)
				case errors.Is(err, modelgate.ErrKeyCap):
					refused.Add(1)
				default:
					t.Errorf("IssueKey = %v", err)
				}
			})
		}
		group.Wait()
		if issued.Load() != 20 || refused.Load() != 30 {
			t.Errorf("issued %d, refused %d, want 20 and 30", issued.Load(), refused.Load())
		}
		if n := number(t, db, "SELECT COUNT(*) FROM api_key"); n != 20 {
			t.Errorf("%d keys are stored, want 20", n)
		}
	})
}

func TestKeyCapCountsLiveKeysOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		must(t, db.UpdateClient(ctx, client, func(c *modelgate.Client) error { c.MaxKeys = 1; return nil }, audit("client.set")))
		brief := access.IssueRequest{Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			k, d, err := admit(21)(c)
			k.ExpiresAt = noon.Add(time.Minute)
			return k, d, err
		}}
		_, err := db.IssueKey(ctx, client, brief, audit("key.issue"))
		must(t, err)
		second := func(n int) error {
			_, err := db.IssueKey(ctx, client, access.IssueRequest{Admit: admit(n)}, audit("key.issue"))
			return err
		}
		if err := second(22); !errors.Is(err, modelgate.ErrKeyCap) {
			t.Errorf("at the cap: IssueKey = %v, want ErrKeyCap", err)
		}
		db.now = func() time.Time { return noon.Add(time.Minute) }
		must(t, second(22)) // the first has expired
		if err := second(23); !errors.Is(err, modelgate.ErrKeyCap) {
			t.Errorf("at the cap again: IssueKey = %v, want ErrKeyCap", err)
		}
		_, err = db.RevokeKey(ctx, client, access.KeyScope{}, modelgate.KeyID(id(22)), audit("key.revoke"))
		must(t, err)
		must(t, second(23))
	})
}

func TestKeysPages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, client, 11).ID
		var want []modelgate.KeyID // newest first; two of the same instant go by id
		for n := range 7 {
			r := access.IssueRequest{Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
				k, d, err := admit(100 + n)(c)
				k.CreatedAt = noon.Add(time.Duration(n/2) * time.Second)
				return k, d, err
			}}
			if n == 3 {
				r.SubAccountID = sub
			}
			k, err := db.IssueKey(ctx, client, r, audit("key.issue"))
			must(t, err)
			want = append([]modelgate.KeyID{k.ID}, want...)
		}
		issue(t, db, other, "", 200)

		var got []modelgate.KeyID
		var after *sqldb.Cursor
		for more, pages := true, 0; more; pages++ {
			var rows []modelgate.Key
			var err error
			rows, more, err = db.Keys(ctx, client, access.KeyList{Limit: 2, After: after})
			must(t, err)
			for _, k := range rows {
				got = append(got, k.ID)
				after = &sqldb.Cursor{At: k.CreatedAt, ID: string(k.ID)}
			}
			if pages > 4 {
				t.Fatal("paging does not end")
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages (-want +got):\n%s", d)
		}
		all, more, err := db.Keys(ctx, client, access.KeyList{})
		must(t, err)
		if len(all) != 7 || more {
			t.Errorf("without a limit %d keys, more %t, want 7 and false", len(all), more)
		}
		bound, _, err := db.Keys(ctx, client, access.KeyList{SubAccountID: sub})
		must(t, err)
		if len(bound) != 1 || bound[0].ID != modelgate.KeyID(id(103)) {
			t.Errorf("keys of the sub-account = %v, want the fourth alone", bound)
		}
	})
}

func TestRevokeKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub, neighbour := createSubAccount(t, db, client, 11).ID, createSubAccount(t, db, client, 12).ID
		key := issue(t, db, client, sub, 21).ID
		revoke := func(c modelgate.ClientID, s modelgate.SubAccountID) ([]modelgate.Digest, error) {
			return db.RevokeKey(ctx, c, access.KeyScope{SubAccountID: s}, key, audit("key.revoke"))
		}
		_, err := revoke(other, "")
		wantKind(t, "a foreign organization's RevokeKey", err, modelgate.NotFound)
		_, err = revoke(client, neighbour)
		wantKind(t, "a neighbour's RevokeKey", err, modelgate.NotFound)
		if _, err := db.Caller(ctx, digest(21), nil); err != nil {
			t.Fatalf("the key does not work after refused revocations: %v", err)
		}
		for _, scope := range []modelgate.SubAccountID{sub, "", sub} {
			got, err := revoke(client, scope)
			if err != nil || len(got) != 1 || got[0] != digest(21) {
				t.Errorf("RevokeKey = %x, %v, want the key's digest", got, err)
			}
		}
		if _, err := db.Caller(ctx, digest(21), nil); !errors.Is(err, modelgate.ErrUnauthorized) {
			t.Errorf("Caller of a revoked key = %v, want ErrUnauthorized", err)
		}
	})
}

func TestTouchKeysOnlyForward(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		// More than go into one transaction.
		used := map[modelgate.KeyID]time.Time{"unknown": noon}
		for n := range 105 {
			used[issue(t, db, client, "", 1000+n).ID] = noon.Add(time.Duration(n) * time.Second)
		}
		must(t, db.TouchKeys(ctx, used))
		first := modelgate.KeyID(id(1000))
		must(t, db.TouchKeys(ctx, map[modelgate.KeyID]time.Time{first: noon.Add(-time.Hour)}))
		keys, _, err := db.Keys(ctx, client, access.KeyList{})
		must(t, err)
		for _, k := range keys {
			if !k.LastUsedAt.Equal(used[k.ID]) {
				t.Errorf("key %s was last used %v, want %v", k.ID, k.LastUsedAt, used[k.ID])
			}
		}
	})
}

func TestCaller(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		must(t, db.UpdateClient(ctx, client, func(c *modelgate.Client) error {
			c.RoutingPolicy, c.Billing = modelgate.EUOnly, modelgate.Manual
			c.Limits = modelgate.Limits{RequestsPerSecond: ptr(50), Burst: ptr(0)}
			return nil
		}, audit("client.set")))
		sub := createSubAccount(t, db, client, 11).ID
		markup := modelgate.SubAccountPatch{Markup: ptr(modelgate.Markup(5_000_000))}
		must(t, db.PatchSubAccount(ctx, client, sub, markup, audit("sub_account.patch")))
		key := issue(t, db, client, sub, 21)
		must(t, db.SetKeyLimits(ctx, client, key.ID, modelgate.Limits{RequestsPerSecond: ptr(9), Concurrency: ptr(4)}, audit("key.limits")))

		want := modelgate.Caller{
			ClientID: client, KeyID: key.ID, SubAccountID: sub, Markup: 5_000_000, Scopes: key.Scopes,
			Entitlements: modelgate.OpenEntitlements(), Denies: modelgate.Entitlements{}, Backing: []modelgate.Entitlements{},
			RoutingPolicy: modelgate.EUOnly, Billing: modelgate.Manual, Ceiling: modelgate.OpenCeiling(),
			Limits:  modelgate.Limits{RequestsPerSecond: ptr(9), Burst: ptr(0), Concurrency: ptr(4)},
			Budgets: []modelgate.Budget{{Level: modelgate.LevelClient, ID: string(client), Period: modelgate.Total}},
		}
		got, err := db.Caller(ctx, digest(21), nil)
		must(t, err)
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(modelgate.Caller{})); d != "" {
			t.Errorf("Caller (-want +got):\n%s", d)
		}
		for _, c := range []struct {
			status modelgate.SubAccountStatus
			want   error
		}{{modelgate.SubAccountSuspended, modelgate.ErrUnauthorized}, {modelgate.SubAccountActive, nil}} {
			must(t, db.PatchSubAccount(ctx, client, sub, modelgate.SubAccountPatch{Status: &c.status}, audit("sub_account.patch")))
			if _, err := db.Caller(ctx, digest(21), nil); !errors.Is(err, c.want) {
				t.Errorf("Caller while the sub-account is %s = %v, want %v", c.status, err, c.want)
			}
		}
		for _, c := range []struct {
			status modelgate.ClientStatus
			want   error
		}{{modelgate.ClientSuspended, modelgate.ErrUnauthorized}, {modelgate.ClientActive, nil}} {
			before, err := db.ControlVersion(ctx)
			must(t, err)
			must(t, db.UpdateClient(ctx, client, func(o *modelgate.Client) error { o.Status = c.status; return nil }, audit("client.suspend")))
			if _, err := db.Caller(ctx, digest(21), nil); !errors.Is(err, c.want) {
				t.Errorf("Caller while the organization is %s = %v, want %v", c.status, err, c.want)
			}
			if after, err := db.ControlVersion(ctx); err != nil || after <= before {
				t.Errorf("the control version is %d after %d (%v): instances are not told", after, before, err)
			}
		}
		if _, err := db.Caller(ctx, digest(99), nil); !errors.Is(err, modelgate.ErrUnauthorized) {
			t.Errorf("Caller of an unknown digest = %v, want ErrUnauthorized", err)
		}
	})
}

// TestCallerSeenBefore: who was found before lends its rules to the same key
// only, and nothing else.
func TestCallerSeenBefore(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21)
		issue(t, db, client, "", 22)
		first, err := db.Caller(ctx, digest(21), nil)
		must(t, err)
		must(t, db.SetKeyLimits(ctx, client, key.ID, modelgate.Limits{RequestsPerSecond: ptr(9)}, audit("key.limits")))

		seen := first
		seen.Scopes, seen.Limits, seen.Billing = nil, modelgate.Limits{Burst: ptr(3)}, modelgate.Manual
		seen.Denies, seen.Backing = modelgate.OpenEntitlements(), []modelgate.Entitlements{modelgate.OpenEntitlements()}
		want := first
		want.Limits.RequestsPerSecond, want.Denies, want.Backing = ptr(9), seen.Denies, seen.Backing
		got, err := db.Caller(ctx, digest(21), &seen)
		must(t, err)
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(modelgate.Caller{})); d != "" {
			t.Errorf("seen before (-want +got):\n%s", d)
		}
		if &got.Entitlements[0] != &first.Entitlements[0] {
			t.Error("the rules were read anew")
		}

		want, err = db.Caller(ctx, digest(22), nil)
		must(t, err)
		got, err = db.Caller(ctx, digest(22), &seen)
		must(t, err)
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(modelgate.Caller{})); d != "" {
			t.Errorf("another was seen before (-want +got):\n%s", d)
		}
	})
}

func TestCallerOfAnExpiredKeyIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		_, err := db.IssueKey(ctx, client, access.IssueRequest{Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			k, d, err := admit(21)(c)
			k.ExpiresAt = noon.Add(-time.Hour)
			return k, d, err
		}}, audit("key.issue"))
		must(t, err)
		c, err := db.Caller(ctx, digest(21), nil)
		if err != nil || !c.ExpiresAt.Equal(noon.Add(-time.Hour)) || c.Live(noon) {
			t.Errorf("Caller = %+v, %v, want it found and not live", c, err)
		}
	})
}

func TestSetKeyLimitsOfAForeignKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		key := issue(t, db, client, "", 21).ID
		err := db.SetKeyLimits(ctx, other, key, modelgate.Limits{Burst: ptr(1)}, audit("key.limits"))
		wantKind(t, "SetKeyLimits by another", err, modelgate.NotFound)
		err = db.SetKeyLimits(ctx, client, key, modelgate.Limits{Burst: ptr(-1)}, audit("key.limits"))
		wantKind(t, "SetKeyLimits(-1)", err, modelgate.BadRequest)
		_, err = db.FindKey(ctx, "nothing")
		wantKind(t, "FindKey(nothing)", err, modelgate.NotFound)
	})
}

func TestKeysAreFound(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		names := map[int]string{100: "Nightly import", 101: "100% of \\ it", 102: "", 103: "nightly_export", 104: "Über"}
		for n, name := range names {
			owner := client
			if n == 104 {
				owner = other
			}
			_, err := db.IssueKey(t.Context(), owner, access.IssueRequest{Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
				k, d, err := admit(n)(c)
				k.Name, k.Prefix = name, fmt.Sprintf("gw_live_%08x", n)
				return k, d, err
			}}, audit("key.issue"))
			must(t, err)
		}
		for find, want := range map[string][]int{
			"NIGHT": {103, 100}, "import": {100}, "%": {101}, "_": {103}, "\\": {101}, "y_e": {103}, "0% of \\": {101},
			id(102): {102}, strings.ToUpper(id(102)): {102}, id(102)[:8]: nil, "gw_live_00000066": {102}, "GW_LIVE_": {103, 102, 101, 100},
			"live": nil, "ber": nil, "": {103, 102, 101, 100},
		} {
			keys, more, err := db.Keys(t.Context(), client, access.KeyList{Find: find})
			must(t, err)
			var got []modelgate.KeyID
			for _, k := range keys {
				got = append(got, k.ID)
			}
			slices.Sort(got)
			var ids []modelgate.KeyID
			for _, n := range want {
				ids = append(ids, modelgate.KeyID(id(n)))
			}
			slices.Sort(ids)
			if d := cmp.Diff(ids, got); d != "" || more {
				t.Errorf("keys with %q (-want +got), more %t:\n%s", find, more, d)
			}
		}
		all := []modelgate.KeyID{modelgate.KeyID(id(100)), modelgate.KeyID(id(102)), modelgate.KeyID(id(103)), modelgate.KeyID(id(104)), "k"}
		got, err := db.KeyNames(t.Context(), client, all)
		must(t, err)
		want := map[modelgate.KeyID]string{all[0]: "Nightly import", all[2]: "nightly_export"}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("names (-want +got):\n%s", d)
		}
	})
}
