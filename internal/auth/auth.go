// Package auth turns a presented secret into the caller behind it, and the
// cookie of a page into its session. It keeps both in memory, so that a call
// costs no database read, and bounds how long a change made elsewhere can go
// unseen.
package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"modelgate"
)

// Source is where callers come from.
type Source interface {
	// Caller is the live caller with the digest; an unauthorized
	// modelgate.Error says that there is none. A key past its expiry is
	// returned: the authenticator judges that on every call. seen is what was found
	// before, nil for nothing: what of a key never changes may be taken from it.
	Caller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error)
	// ControlVersion changes whenever a change revokes, suspends or limits.
	ControlVersion(context.Context) (int64, error)
}

// TokenSource is where the callers behind browser tokens come from.
type TokenSource interface {
	// TokenCaller is Source.Caller for tokens. One past its end is returned, too.
	TokenCaller(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (modelgate.Caller, error)
	// TokenVersion changes whenever ControlVersion does or tokens are revoked.
	TokenVersion(context.Context) (int64, error)
}

// Options are what New needs; all but Tokens, Client and Capacity are required.
type Options struct {
	Source Source
	Tokens TokenSource // nil knows no token
	// Unreachable tells an error that says the database did not answer from
	// one that is an answer.
	Unreachable func(error) bool
	// Touch stores when keys were last used.
	Touch func(context.Context, map[modelgate.KeyID]time.Time) error
	// Now must carry a monotonic reading, as time.Now does: a step of the wall
	// clock then makes no caller younger or older.
	Now func() time.Time
	Log *slog.Logger
	// Client is the address of a client by that of its peer and the lines of
	// X-Forwarded-For; nil believes no such line.
	Client   func(peer netip.Addr, forwarded []string) netip.Addr
	Capacity int // callers kept; 0 means 100,000
}

// Authenticator identifies callers. Safe for concurrent use; Run must be running
// for control versions, refreshes ahead and last uses.
type Authenticator struct {
	cache[modelgate.Caller]
	touches touches[modelgate.KeyID]
	tokens  cache[modelgate.Caller] // so that any number of tokens displaces no key
}

// New makes an empty authenticator.
func New(o Options) *Authenticator {
	k := &Authenticator{touches: newTouches(o.Touch)}
	k.source = source[modelgate.Caller]{find: remembering(o.Source.Caller), version: o.Source.ControlVersion}
	if o.Tokens != nil {
		k.tokens.source = source[modelgate.Caller]{find: remembering(o.Tokens.TokenCaller), version: o.Tokens.TokenVersion}
	}
	for _, c := range [...]*cache[modelgate.Caller]{&k.cache, &k.tokens} {
		c.unreachable, c.now, c.log, c.client = o.Unreachable, o.Now, o.Log, o.Client
		c.init(cmp.Or(o.Capacity, defaultCapacity))
	}
	return k
}

// remembering is a look-up of callers that remember what was decided about them.
func remembering(find func(context.Context, modelgate.Digest, *modelgate.Caller) (modelgate.Caller, error)) func(context.Context, modelgate.Digest, *modelgate.Caller) (*modelgate.Caller, error) {
	return func(ctx context.Context, d modelgate.Digest, seen *modelgate.Caller) (*modelgate.Caller, error) {
		caller, err := find(ctx, d, seen)
		if err != nil {
			return nil, err
		}
		caller.Remember()
		return &caller, nil
	}
}

// Run keeps the authenticator up to date until ctx ends, then stores the last uses
// that are left.
func (a *Authenticator) Run(ctx context.Context) {
	var tokens sync.WaitGroup
	defer tokens.Wait()
	if a.tokens.source.find != nil {
		// The use of a token is noted as that of its key.
		tokens.Go(func() { a.tokens.run(ctx, "last uses of tokens", func(context.Context) error { return nil }) })
	}
	a.run(ctx, "last uses of keys", a.touches.flush)
}

// Identify is the caller behind a key or a browser token, which is shared and must not be
// changed. Errors: unauthorized, with a detail where the secret is not
// well-formed; unavailable while the database does not
// answer and nothing recent is known, else internal.
//
// An address from which many secrets come that are no keys gets the same
// answer without a look-up, but for a hundred look-ups a second that all such
// addresses share. A key that this instance knows is not affected by where it
// comes from.
func (a *Authenticator) Identify(ctx context.Context, secret string, from Origin) (*modelgate.Caller, error) {
	digest := digestOf(secret)
	c := &a.cache
	if modelgate.IsToken(secret) {
		c = &a.tokens
	}
	e := c.shard(digest).get(digest)
	if e == nil && !modelgate.WellFormed(secret) {
		return nil, notKey(secret)
	}
	if c.source.find == nil {
		return nil, modelgate.ErrUnauthorized
	}
	return a.identify(ctx, c, digest, e, from)
}

// IdentifyDigest is Identify for who has presented the secret of a key before
// and is known by its digest since.
func (a *Authenticator) IdentifyDigest(ctx context.Context, digest modelgate.Digest, from Origin) (*modelgate.Caller, error) {
	return a.identify(ctx, &a.cache, digest, a.shard(digest).get(digest), from)
}

// identify judges what a cache knows of a secret, e, which may be nil.
func (a *Authenticator) identify(ctx context.Context, c *cache[modelgate.Caller], digest modelgate.Digest, e *entry[modelgate.Caller], from Origin) (*modelgate.Caller, error) {
	e, now, err := c.current(ctx, digest, e, from)
	if err != nil {
		return nil, err
	}
	// What is judged on every call.
	if !e.value.Live(now) {
		return nil, modelgate.ErrUnauthorized
	}
	if e.use.due(now.Sub(a.start)) {
		a.touches.add(e.value.KeyID, now)
	}
	return e.value, nil
}

// digestOf is modelgate.DigestOf without the copy on the heap.
func digestOf(secret string) modelgate.Digest {
	var onStack [maxPresented]byte
	if len(secret) > len(onStack) {
		return modelgate.DigestOf(secret)
	}
	return sha256.Sum256(onStack[:copy(onStack[:], secret)])
}

// ForgetSubAccount is Forget for every key and token bound to a sub-account, and
// for every one that was found unknown, as those of a suspended one are.
func (a *Authenticator) ForgetSubAccount(id modelgate.SubAccountID) {
	gone := func(e *entry[modelgate.Caller]) bool { return e.value == nil || e.value.SubAccountID == id }
	a.forget(gone)
	a.tokens.forget(gone)
}

// ForgetClient is Forget for every key and token of an organization.
func (a *Authenticator) ForgetClient(id modelgate.ClientID) {
	a.forget(func(e *entry[modelgate.Caller]) bool { return e.value != nil && e.value.ClientID == id })
	a.ForgetTokens(id)
}

// ForgetRevoked is Forget for keys of an organization that were revoked, and for the
// tokens that they minted.
func (a *Authenticator) ForgetRevoked(id modelgate.ClientID, keys []modelgate.Digest) {
	for _, d := range keys {
		a.Forget(d)
	}
	a.ForgetTokens(id)
}

// ForgetTokens is Forget for every browser token of an organization.
func (a *Authenticator) ForgetTokens(id modelgate.ClientID) {
	a.tokens.forget(func(e *entry[modelgate.Caller]) bool { return e.value != nil && e.value.ClientID == id })
}
