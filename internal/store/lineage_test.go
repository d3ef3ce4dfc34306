package store

import (
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
	"modelgate/internal/store/spend"
)

// descend issues the n-th key below another.
func descend(t *testing.T, db *DB, client modelgate.ClientID, sub modelgate.SubAccountID, issuer modelgate.KeyID, n int) modelgate.KeyID {
	t.Helper()
	k, err := db.IssueKey(t.Context(), client, access.IssueRequest{SubAccountID: sub, Issuer: issuer, Admit: admit(n)}, audit("key.issue"))
	must(t, err)
	return k.ID
}

// Every call of a key counts towards its ancestors, takes off their leases what
// it has reserved there, and is found there again by Reconcile.
func TestSpendCountsTowardsAncestors(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11)
		top := issue(t, db, client, sub.ID, 21).ID
		middle := descend(t, db, client, sub.ID, top, 22)
		leaf := descend(t, db, client, sub.ID, middle, 23)
		budget := modelgate.Budget{Level: modelgate.LevelKey, ID: string(top), Period: modelgate.Day, Limit: modelgate.USD}
		must(t, db.PutBudget(ctx, client, "", budget, audit("budget.put")))
		c, err := db.Caller(ctx, digest(23), nil)
		must(t, err)
		if len(c.Ancestors) != 2 || c.Ancestors[0].KeyID != middle || c.Ancestors[1].KeyID != top || len(c.Budgets) != 1 || c.Budgets[0].Generation != 2 {
			t.Fatalf("the caller is bound by %+v, %+v", c.Ancestors, c.Budgets)
		}
		k := c.Budgets[0].Counter(client, noon)
		_, err = db.Lease(ctx, "i", []modelgate.Ask{{Counter: k, Least: 5000, Most: 5000, Room: 5000, Seq: 1}})
		must(t, err)
		spent := func(id modelgate.KeyID) modelgate.Nano {
			n, err := db.Spend(ctx, client, modelgate.LevelKey, string(id), spend.Period{Period: modelgate.Day, Start: modelgate.Day.Start(noon)})
			must(t, err)
			return n
		}
		for n, key := range []modelgate.KeyID{leaf, middle, top, leaf} {
			r := row(client, n+1)
			r.SubAccountID, r.KeyID = sub.ID, key
			if key == leaf {
				r.Holds = r.Holds.Add(&c.Budgets[0])
			}
			book(t, db, "i", r)
		}
		if l, m, o := spent(leaf), spent(middle), spent(top); l != 2000 || m != 3000 || o != 4000 {
			t.Errorf("spend of leaf %v, middle %v, top %v, want 2000, 3000 and 4000", l, m, o)
		}
		if n := number(t, db, "SELECT SUM(held) FROM spend"); n != 3000 {
			t.Errorf("held %d, want the 3000 that the two calls of the leaf left of 5000", n)
		}
		// An ancestor that is revoked alone binds no more, and keeps what it counted.
		_, err = db.RevokeKeyAlone(ctx, client, access.KeyScope{}, middle, audit("key.revoke"))
		must(t, err)
		if c, err = db.Caller(ctx, digest(23), nil); err != nil || len(c.Ancestors) != 1 || c.Budgets[0].Generation != 2 {
			t.Errorf("below a revoked ancestor: %+v, %v", c.Ancestors, err)
		}
		last := row(client, 9)
		last.SubAccountID, last.KeyID = sub.ID, leaf
		book(t, db, "i", last)
		found, err := db.Reconcile(ctx, client)
		must(t, err)
		if len(found) > 0 {
			t.Errorf("reconcile: %+v", found)
		}
		// A budget that an instance of the version before has set is the organization's.
		must(t, exec(db, "DELETE FROM owned_budget"))
		list, err := db.Budgets(ctx, client, spend.BudgetList{At: noon.Add(time.Hour)})
		if err != nil || len(list) != 1 || list[0].Owner != modelgate.OwnerOrganization {
			t.Errorf("a budget without an owner: %+v, %v", list, err)
		}
	})
}

// A key that is revoked, also on another instance, issues no more.
func TestRevokedKeyIssuesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11)
		top := issue(t, db, client, sub.ID, 21).ID
		child := descend(t, db, client, sub.ID, top, 22)
		digests, err := db.RevokeKey(ctx, client, access.KeyScope{}, top, audit("key.revoke"))
		must(t, err)
		if len(digests) != 2 || digests[0] != digest(21) || digests[1] != digest(22) {
			t.Errorf("RevokeKey = %d digests, want those of the key and its child", len(digests))
		}
		_, err = db.IssueKey(ctx, client, access.IssueRequest{SubAccountID: sub.ID, Issuer: child, Admit: admit(23)}, audit("key.issue"))
		wantKind(t, "issue by a revoked key", err, modelgate.Unauthorized)
	})
}
