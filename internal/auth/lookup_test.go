package auth

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"modelgate"
)

// counted is a Source that knows every key.
type counted struct {
	queries int
	seen    *modelgate.Caller // with the last query
}

func (c *counted) Caller(_ context.Context, _ modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error) {
	c.queries++
	c.seen = seen
	return modelgate.Caller{KeyID: "k1", ClientID: "c1"}, nil
}

func (*counted) ControlVersion(context.Context) (int64, error) { return 1, nil }

func (c *counted) keyring() *Authenticator {
	return New(Options{
		Source: c, Unreachable: func(error) bool { return false },
		Touch: func(context.Context, map[modelgate.KeyID]time.Time) error { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// A call that saw nothing of a key, and comes to ask when the query that it
// would have joined has ended, takes what that found, unless that has been
// forgotten or is of another control version.
func TestNoQueryForWhatWasJustFound(t *testing.T) {
	t.Parallel()
	source := &counted{}
	k := source.keyring()
	digest := modelgate.NewSecret().Digest()
	late := func(what string, seen *entry[modelgate.Caller], want int) {
		t.Helper()
		source.queries = 0
		if _, err := k.ask(t.Context(), k.shard(digest), digest, seen, Origin{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if source.queries != want {
			t.Errorf("%s: %d queries, want %d", what, source.queries, want)
		}
	}
	late("the first", nil, 1)
	late("one that saw nothing", nil, 0)
	found := k.shard(digest).get(digest)
	late("one that saw what is known", found, 1)
	late("one that saw what was known before", found, 0)
	k.epoch.Add(1)
	late("at another control version", found, 1)
	k.Forget(digest)
	late("after it was forgotten", nil, 1)
}

// TestQueryTellsWhoWasSeen: the source is told what an earlier query found, as
// long as that has not been forgotten.
func TestQueryTellsWhoWasSeen(t *testing.T) {
	t.Parallel()
	source := &counted{}
	k := source.keyring()
	secret := modelgate.NewSecret()
	identify := func() *modelgate.Caller {
		t.Helper()
		k.epoch.Add(1) // what is known is stale
		caller, err := k.Identify(t.Context(), secret.Reveal(), Origin{})
		if err != nil {
			t.Fatal(err)
		}
		return caller
	}
	first := identify()
	if source.seen != nil {
		t.Errorf("the first query is told of %v", source.seen)
	}
	second := identify()
	if source.seen != first || second == first {
		t.Errorf("the second query is told of %p, want %p", source.seen, first)
	}
	k.Forget(secret.Digest())
	if identify(); source.seen != nil {
		t.Errorf("after it was forgotten, the query is told of %v", source.seen)
	}
}
