package store

import (
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
)

// mint keeps the n-th token of a key, for an end user. It is as old as the first
// rows of tests.
func mint(t *testing.T, db *DB, client modelgate.ClientID, sub modelgate.SubAccountID, key modelgate.KeyID, n int, user string, most modelgate.Nano) modelgate.TokenID {
	t.Helper()
	m := access.Minted{ClientID: client, SubAccountID: sub, KeyID: key, Token: modelgate.Token{
		ID: modelgate.TokenID(id(n)), EndUser: user, Models: []string{"a/*"}, Origins: []string{"https://a.example"},
		Attribution: map[string]string{"team": "x"}, RequestsPerMinute: 5, Cap: most, CreatedAt: db.now().Add(-12 * time.Hour), ExpiresAt: db.now().Add(time.Hour),
	}}
	must(t, db.MintToken(t.Context(), m, digest(n), 3, audit("token.mint")))
	return m.ID
}

func tokensOf(t *testing.T, db *DB, client modelgate.ClientID, l access.TokenList) []access.Minted {
	t.Helper()
	list, _, err := db.Tokens(t.Context(), client, l)
	must(t, err)
	return list
}

func TestTokenCaller(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		sub := createSubAccount(t, db, client, 11)
		key := issue(t, db, client, sub.ID, 21)
		token := mint(t, db, client, sub.ID, key.ID, 31, "u", 5)
		before, err := db.TokenVersion(ctx)
		must(t, err)
		c, err := db.TokenCaller(ctx, digest(31), nil)
		must(t, err)
		if c.KeyID != key.ID || c.SubAccountID != sub.ID || c.Token.ID != token || c.Token.EndUser != "u" || c.Token.Origins[0] != "https://a.example" ||
			c.Token.Attribution["team"] != "x" || c.Token.RequestsPerMinute != 5 || !c.ExpiresAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("the caller is %+v with %+v", c, c.Token)
		}
		if len(c.Budgets) != 1 || c.Budgets[0].Level != modelgate.LevelToken || c.Budgets[0].Limit != 5 {
			t.Errorf("its budgets are %+v", c.Budgets)
		}
		for _, unknown := range []modelgate.Digest{digest(21), digest(99)} {
			_, err = db.TokenCaller(ctx, unknown, nil)
			wantKind(t, "the digest of no token", err, modelgate.Unauthorized)
		}
		_, err = db.Caller(ctx, digest(31), nil)
		wantKind(t, "a token as a key", err, modelgate.Unauthorized)
		must(t, db.RevokeToken(ctx, client, access.TokenScope{}, token, audit("token.revoke")))
		_, err = db.TokenCaller(ctx, digest(31), nil)
		wantKind(t, "a revoked token", err, modelgate.Unauthorized)
		if after, err := db.TokenVersion(ctx); err != nil || after == before {
			t.Errorf("the version is %d after and before the revocation, %v", after, err)
		}
		mint(t, db, client, sub.ID, key.ID, 32, "u", 0)
		_, err = db.RevokeKey(ctx, client, access.KeyScope{}, key.ID, audit("key.revoke"))
		must(t, err)
		_, err = db.TokenCaller(ctx, digest(32), nil)
		wantKind(t, "a token of a revoked key", err, modelgate.Unauthorized)
	})
}

func TestTokensAreListedAndRevokedWithinScope(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client, other := createClient(t, db, 1), createClient(t, db, 2)
		sub := createSubAccount(t, db, client, 11)
		root, bound := issue(t, db, client, "", 21).ID, issue(t, db, client, sub.ID, 22).ID
		first := mint(t, db, client, "", root, 31, "u", 1)
		mint(t, db, client, sub.ID, bound, 32, "u", 1)
		mint(t, db, client, sub.ID, bound, 33, "v", 1)
		m := access.Minted{ClientID: client, KeyID: root, Token: modelgate.Token{ID: modelgate.TokenID(id(34)), Models: []string{"a"}, CreatedAt: noon, ExpiresAt: noon.Add(1)}}
		wantKind(t, "a fourth of three", db.MintToken(ctx, m, digest(34), 3, audit("token.mint")), modelgate.Conflict)
		for name, test := range map[string]struct {
			list access.TokenList
			want int
		}{
			"all":          {access.TokenList{}, 3},
			"a user's":     {access.TokenList{EndUser: "u"}, 2},
			"a customer's": {access.TokenList{TokenScope: access.TokenScope{SubAccountID: sub.ID}}, 2},
			"a key's":      {access.TokenList{TokenScope: access.TokenScope{KeyID: root}}, 1},
			"a page":       {access.TokenList{Limit: 2}, 2},
		} {
			if got := len(tokensOf(t, db, client, test.list)); got != test.want {
				t.Errorf("%s: %d tokens, want %d", name, got, test.want)
			}
		}
		if got := tokensOf(t, db, other, access.TokenList{}); len(got) != 0 {
			t.Errorf("another organization sees %+v", got)
		}
		wantKind(t, "foreign", db.RevokeToken(ctx, other, access.TokenScope{}, first, audit("token.revoke")), modelgate.NotFound)
		wantKind(t, "of another key", db.RevokeToken(ctx, client, access.TokenScope{KeyID: bound}, first, audit("token.revoke")), modelgate.NotFound)
		wantKind(t, "of another customer", db.RevokeToken(ctx, client, access.TokenScope{SubAccountID: sub.ID}, first, audit("token.revoke")), modelgate.NotFound)
		n, err := db.RevokeTokensOf(ctx, client, access.TokenScope{SubAccountID: sub.ID}, "u", audit("token.revoke"))
		if err != nil || n != 1 {
			t.Errorf("revoked %d, %v; want the customer's one", n, err)
		}
		if got := tokensOf(t, db, client, access.TokenList{}); len(got) != 2 {
			t.Errorf("%d tokens are left, want 2", len(got))
		}
	})
}

// What the calls of a token cost counts towards its cap, on any instance and after
// a crash: Reconcile finds the same from the rows.
func TestTokenSpend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		token := mint(t, db, client, "", key, 31, "u", 3500)
		c, err := db.TokenCaller(ctx, digest(31), nil)
		must(t, err)
		k := c.Budgets[0].Counter(client, noon)
		ask := func(instance string, seq int64, amount modelgate.Nano) modelgate.Nano {
			held, err := db.Lease(ctx, instance, []modelgate.Ask{{Counter: k, Least: amount, Most: amount, Room: amount, Seq: seq}})
			must(t, err)
			return held[0].Granted
		}
		if got := ask("i", 1, 2000); got != 2000 {
			t.Errorf("granted %d of 3500", got)
		}
		if got := ask("j", 1, 2000); got != 0 {
			t.Errorf("granted %d to another instance, past the cap", got)
		}
		for n := range 2 {
			r := row(client, n+1)
			r.KeyID, r.Attribution = key, c.Token.Pairs()
			r.Holds = r.Holds.Add(&c.Budgets[0])
			book(t, db, "i", r)
		}
		list := tokensOf(t, db, client, access.TokenList{})
		if len(list) != 1 || list[0].Spend != 2000 || list[0].ID != token {
			t.Errorf("the list is %+v", list)
		}
		if n := number(t, db, "SELECT held FROM spend WHERE scope = 'token'"); n != 0 {
			t.Errorf("%d is held after all calls are booked", n)
		}
		found, err := db.Reconcile(ctx, client)
		if err != nil || len(found) > 0 {
			t.Errorf("reconcile: %+v, %v", found, err)
		}
		must(t, exec(db, "UPDATE spend SET settled = settled + 1 WHERE scope = 'token'"))
		if found, err = db.Reconcile(ctx, client); err != nil || len(found) != 1 || found[0].Key != "token/"+string(token)+"/ever" {
			t.Errorf("reconcile of a wrong counter: %+v, %v", found, err)
		}
	})
}

// Tokens that ended long ago go, with their counters.
func TestTokensAreSwept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *DB) {
		client := createClient(t, db, 1)
		key := issue(t, db, client, "", 21).ID
		mint(t, db, client, "", key, 31, "u", 5000)
		c, err := db.TokenCaller(t.Context(), digest(31), nil)
		must(t, err)
		r := row(client, 1)
		r.KeyID, r.Attribution = key, c.Token.Pairs()
		book(t, db, "i", r)
		db.now = func() time.Time { return noon.Add(time.Hour + 10*24*time.Hour) }
		mint(t, db, client, "", key, 32, "u", 5000)
		for query, want := range map[string]int64{
			"SELECT COUNT(*) FROM browser_token":                1,
			"SELECT COUNT(*) FROM budget WHERE scope = 'token'": 1,
			"SELECT COUNT(*) FROM spend WHERE scope = 'token'":  0,
		} {
			if got := number(t, db, query); got != want {
				t.Errorf("%s = %d, want %d", query, got, want)
			}
		}
		if found, err := db.Reconcile(t.Context(), client); err != nil || len(found) > 0 {
			t.Errorf("reconcile: %+v, %v", found, err)
		}
	})
}
