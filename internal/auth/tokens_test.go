package auth_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"modelgate"
	"modelgate/internal/auth"
)

// mint is a database that finds tokens only.
type mint struct{ database }

func (m *mint) TokenCaller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	return m.Caller(ctx, d, seen)
}

func (m *mint) TokenVersion(ctx context.Context) (int64, error) { return m.ControlVersion(ctx) }

// A token is found by rules of keys, in places of its own: it is no key, a
// revocation elsewhere is seen about a second later, and it has an end.
func TestTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		_, secret := (&modelgate.TokenRequest{ExpiresInSeconds: 30}).Mint(modelgate.NewIDs(time.Now).New())
		tokens := &mint{database{keys: map[modelgate.Digest]modelgate.Caller{}}}
		token := &modelgate.Token{ID: "t", Origins: []string{"https://a.example"}, ExpiresAt: time.Now().Add(30 * time.Second)}
		tokens.keys[secret.Digest()] = b.db.keys[b.digest]
		key := tokens.keys[secret.Digest()]
		tokens.keys[secret.Digest()] = key.As(token)
		b.Authenticator = auth.New(auth.Options{Source: b.db, Tokens: tokens, Unreachable: func(error) bool { return false }, Touch: b.db.touch,
			Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		b.run(t)
		identify := func(origin string) error {
			r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + secret.Reveal()}}, RemoteAddr: "127.0.0.1:1"}
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			c, err := auth.Identify(b.Authenticator, r.WithContext(t.Context()), auth.AnyHeader)
			if err == nil && (c.Token == nil || c.KeyID != "k1") {
				t.Errorf("the caller is %+v", c)
			}
			return err
		}
		if err := identify("https://a.example"); err != nil {
			t.Errorf("a token: %v", err)
		}
		for _, origin := range []string{"", "https://b.example"} {
			if err := identify(origin); err != modelgate.ErrTokenOrigin {
				t.Errorf("from %q: %v", origin, err)
			}
		}
		if n := tokens.queries.Load(); n != 1 {
			t.Errorf("%d look-ups of one token", n)
		}
		b.want(t, "the key", "")
		time.Sleep(2 * time.Second)
		b.db.mu.Lock()
		if _, noted := b.db.touched["k1"]; !noted {
			t.Error("the use of a token is no use of its key")
		}
		b.db.mu.Unlock()
		tokens.change(func() { delete(tokens.keys, secret.Digest()); tokens.version++ })
		time.Sleep(2 * time.Second)
		if err := identify("https://a.example"); modelgate.KindOf(err) != modelgate.Unauthorized {
			t.Errorf("revoked elsewhere: %v", err)
		}
		b.want(t, "the key", "")
		tokens.change(func() { tokens.keys[secret.Digest()] = key.As(token); tokens.version++ })
		b.ForgetSubAccount("s1")
		if err := identify("https://a.example"); err != nil {
			t.Errorf("back again: %v", err)
		}
		tokens.change(func() { delete(tokens.keys, secret.Digest()) })
		b.ForgetTokens("c1")
		if err := identify("https://a.example"); modelgate.KindOf(err) != modelgate.Unauthorized {
			t.Errorf("revoked here: %v", err)
		}
		time.Sleep(30 * time.Second)
		tokens.change(func() { tokens.keys[secret.Digest()] = key.As(token) })
		b.ForgetSubAccount("s1")
		if err := identify("https://a.example"); modelgate.KindOf(err) != modelgate.Unauthorized {
			t.Errorf("past its end: %v", err)
		}
	})
}

func TestTokenWithoutSource(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, secret := (&modelgate.TokenRequest{ExpiresInSeconds: 30}).Mint(modelgate.NewIDs(time.Now).New())
	if _, err := b.Identify(t.Context(), secret.Reveal(), auth.Origin{}); modelgate.KindOf(err) != modelgate.Unauthorized {
		t.Errorf("a token where none can be: %v", err)
	}
}

// BenchmarkIdentifyKnown compares a known token with a known key.
func BenchmarkIdentifyKnown(b *testing.B) {
	key := modelgate.NewSecret()
	_, token := (&modelgate.TokenRequest{ExpiresInSeconds: 30}).Mint(modelgate.NewIDs(time.Now).New())
	db := &mint{database{keys: map[modelgate.Digest]modelgate.Caller{}}}
	caller := modelgate.Caller{KeyID: "k", ClientID: "c"}
	db.keys[key.Digest()] = caller
	db.keys[token.Digest()] = caller.As(&modelgate.Token{ID: "t", Origins: []string{"https://a.example"}, ExpiresAt: time.Now().Add(time.Hour)})
	a := auth.New(auth.Options{Source: db, Tokens: db, Unreachable: func(error) bool { return false }, Touch: db.touch,
		Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	for name, secret := range map[string]modelgate.Secret{"key": key, "token": token} {
		b.Run(name, func(b *testing.B) {
			r := (&http.Request{Header: http.Header{"Authorization": {"Bearer " + secret.Reveal()}, "Origin": {"https://a.example"}}, RemoteAddr: "127.0.0.1:1"}).WithContext(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := auth.Identify(a, r, auth.AnyHeader); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
