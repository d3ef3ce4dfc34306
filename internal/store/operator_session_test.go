package store

import (
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/access"
)

// TestOperatorSessionsEnd: sessions of the console end when they are not used, with
// their life, and with the provider's session.
func TestOperatorSessionsEnd(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		begin := func(n int, ago, idle time.Duration, who access.OperatorAccount) access.OperatorToken {
			t.Helper()
			at := noon.Add(-ago)
			s := access.OperatorToken{
				ID: id(n), Name: "Olga", Role: access.Support, Kind: access.OperatorSession, CreatedAt: at, ExpiresAt: at.Add(time.Hour), Idle: idle, Account: who,
			}
			must(t, db.AddOperatorToken(ctx, s, digest(n), audit("operator.sign_in")))
			return s
		}
		olga := access.OperatorAccount{Provider: "corp", Issuer: "https://idp.test", Subject: "olga", Session: "sid-1"}
		vera := access.OperatorAccount{Provider: "corp", Issuer: "https://idp.test", Subject: "vera", Session: "sid-2"}
		find := func(n int) (access.OperatorToken, bool) {
			t.Helper()
			s, err := db.OperatorToken(ctx, digest(n))
			if modelgate.KindOf(err) != modelgate.NotFound {
				must(t, err)
			}
			return s, err == nil && s.Live(noon)
		}
		used := begin(401, 10*time.Minute, 30*time.Minute, olga)
		begin(402, 20*time.Minute, 30*time.Minute, vera)
		begin(403, 40*time.Minute, 30*time.Minute, olga) // not used for too long
		begin(404, 10*time.Minute, 0, access.OperatorAccount{})
		must(t, db.TouchOperatorSession(ctx, &used))
		if s, live := find(401); !live || !s.LastSeenAt.Equal(noon) || s.Account != olga || s.Idle != 30*time.Minute {
			t.Errorf("%+v", s)
		}
		for n, want := range map[int]bool{402: true, 403: false, 404: true} {
			if s, live := find(n); live != want {
				t.Errorf("%d is live: %v: %+v", n, live, s)
			}
		}
		list, err := db.OperatorTokens(ctx, access.OperatorSession)
		if err != nil || len(list) != 3 {
			t.Errorf("%+v, %v", list, err)
		}
		logout := access.Logout{Issuer: olga.Issuer, TokenID: "a", Expires: noon.Add(time.Minute), Session: olga.Session}
		must(t, db.EndSessionsOfProvider(ctx, logout))
		if _, live := find(401); live {
			t.Error("the session outlives the provider's")
		}
		if _, live := find(402); !live {
			t.Error("another's session has ended")
		}
		must(t, db.EndSessionsOfProvider(ctx, access.Logout{Issuer: vera.Issuer, TokenID: "b", Expires: noon.Add(time.Minute), Subject: vera.Subject}))
		if _, live := find(402); live {
			t.Error("the account's session goes on")
		}
	})
}
