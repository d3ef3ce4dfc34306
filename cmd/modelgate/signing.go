package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/evidence"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	"modelgate/internal/worker"
)

// noSigning is answered where no key can be.
const noSigning = "evidence cannot be signed: set evidence.signing_key, or a master_key, in the gateway's configuration"

var (
	errNoSigning = modelgate.Errorf(modelgate.Unavailable, noSigning)
	// errNoSuchKey says that a private key is not where it should be.
	errNoSuchKey = errors.New("the private key is not there")
	// errKeyGone is what clients hear of it.
	errKeyGone = modelgate.Errorf(modelgate.Unavailable, "evidence cannot be signed: the gateway does not have the private key that signs; its operator can help")
)

// KeyStore is where private signing keys lie.
type KeyStore interface {
	// find returns the n-th key, or errNoSuchKey.
	find(ctx context.Context, k store.EvidenceKey) (evidence.Key, error)
	// next is the key that can become the n-th; the place keeps it.
	next(ctx context.Context, n int64, name string) (evidence.Key, error)
	// only forgets all keys but one.
	only(ctx context.Context, k store.EvidenceKey) error
	// lock keeps other processes from changing keys.
	lock() (unlock func() error, err error)
}

// signing knows which key signs evidence. Which one that is stands in the
// database, as a public key; the private ones are elsewhere.
type signing struct {
	db    *store.DB
	place KeyStore // nil for none
	name  string   // of new keys
	now   func() time.Time

	mu     sync.Mutex
	signer *evidence.Signer
	rows   int // of the table of keys, as of signer
}

func newSigning(cfg *config.Config, db *store.DB, master *secrets.Keys) (*signing, error) {
	s := &signing{db: db, name: signingName(cfg), now: time.Now}
	switch {
	case !cfg.Evidence.SigningKey.Empty():
		place := &configuredKeys{}
		for _, secret := range append([]config.Secret{cfg.Evidence.SigningKey}, cfg.Evidence.PreviousSigningKeys...) {
			if secret.Empty() {
				continue
			}
			key, err := evidence.ParseKey(secret.Reveal())
			if err != nil {
				return nil, fmt.Errorf("evidence.signing_key: %w", err)
			}
			place.keys = append(place.keys, key)
		}
		s.place = place
	case onSQLite(cfg):
		s.place = keyFile(filepath.Join(cfg.Server.DataDir, "evidence.key"))
	case master != nil:
		s.place = &sealedKeys{db, master}
	}
	return s, nil
}

// signingName is the name of new keys: whose gateway it is, as far as that is
// known.
func signingName(cfg *config.Config) string {
	if u, err := url.Parse(cfg.Server.BaseURL); err == nil && u.Host != "" {
		return u.Host + "/evidence"
	}
	return "modelgate/evidence"
}

// Signer is what signs now. The first call with a database makes the first
// key; a configured key that is new follows the one before it.
func (s *signing) Signer(ctx context.Context) (*evidence.Signer, error) {
	if s.place == nil {
		return nil, errNoSigning
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	signer, err := s.current(ctx)
	if errors.Is(err, errNoSuchKey) {
		err = fmt.Errorf("%w: %w", errKeyGone, err)
	}
	return signer, err
}

func (s *signing) current(ctx context.Context) (*evidence.Signer, error) {
	keys, err := s.db.EvidenceKeys(ctx)
	if err != nil {
		return nil, err
	}
	if s.signer != nil && len(keys) == s.rows {
		return s.signer, nil
	}
	place, configured := s.place.(*configuredKeys)
	if len(keys) == 0 || configured && place.isNew(keys) {
		if keys, err = s.follow(ctx, handOver); err != nil {
			return nil, err
		}
	}
	key, err := s.place.find(ctx, keys[len(keys)-1])
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", keys[len(keys)-1].VKey, err)
	}
	s.signer, s.rows = &evidence.Signer{Key: key, Rotations: statements(keys)}, len(keys)
	return s.signer, nil
}

// statements are those by which the keys up to the last one followed each
// other, since the last time that one was lost.
func statements(keys []store.EvidenceKey) []string {
	var out []string
	for _, k := range keys {
		if k.Statement == "" {
			out = nil
			continue
		}
		out = append(out, k.Statement)
	}
	return out
}

// keyRotation says how a key follows another.
type keyRotation string

const (
	handOver keyRotation = "hand over" // by a statement of the one before
	lostKey  keyRotation = "lost key"  // without, because that one is lost
)

// follow makes the next key the one that signs and returns all keys.
func (s *signing) follow(ctx context.Context, how keyRotation) ([]store.EvidenceKey, error) {
	unlock, err := s.place.lock()
	if err != nil {
		return nil, err
	}
	defer unlock() // nothing depends on it: the end of the process unlocks too
	keys, err := s.db.EvidenceKeys(ctx)
	if err != nil {
		return nil, err
	}
	next, err := s.place.next(ctx, int64(len(keys))+1, s.name)
	if err != nil {
		return nil, err
	}
	k := store.EvidenceKey{N: int64(len(keys)) + 1, VKey: next.VKey(), At: s.now().UTC()}
	if len(keys) > 0 && how == handOver {
		last := keys[len(keys)-1]
		old, err := s.place.find(ctx, last)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has to sign that %s follows it; if it is lost, run `modelgate evidence key rotate --lost` and tell every verifier the new key",
				err, last.VKey, next.VKey())
		}
		if k.Statement, err = old.Rotate(k.VKey, k.At); err != nil {
			return nil, err
		}
	}
	err = s.db.AddEvidenceKey(ctx, k, func() modelgate.Audit { return audit("evidence key rotate", "", "", "", nil) })
	if err != nil && !errors.Is(err, store.ErrKeyOrder) {
		return nil, err // ErrKeyOrder: another instance was faster, with the same key or another
	}
	if keys, err = s.db.EvidenceKeys(ctx); err != nil {
		return nil, err
	}
	return keys, s.place.only(ctx, keys[len(keys)-1])
}

// configuredKeys are those of the configuration file, the one that is to sign
// first.
type configuredKeys struct{ keys []evidence.Key }

// isNew reports whether the key that is to sign never did.
func (c *configuredKeys) isNew(keys []store.EvidenceKey) bool {
	for _, k := range keys {
		if k.VKey == c.keys[0].VKey() {
			return false
		}
	}
	return true
}

func (c *configuredKeys) find(_ context.Context, k store.EvidenceKey) (evidence.Key, error) {
	for _, key := range c.keys {
		if key.VKey() == k.VKey {
			return key, nil
		}
	}
	return evidence.Key{}, fmt.Errorf("%w: the configuration has another evidence.signing_key", errNoSuchKey)
}

func (c *configuredKeys) next(context.Context, int64, string) (evidence.Key, error) {
	return c.keys[0], nil
}
func (c *configuredKeys) only(context.Context, store.EvidenceKey) error { return nil }
func (c *configuredKeys) lock() (func() error, error)                   { return func() error { return nil }, nil }

// keyFile is a file of private keys, one a line: usually one, and the next
// beside it while it follows.
type keyFile string

func (f keyFile) read() ([]evidence.Key, error) {
	text, err := os.ReadFile(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys []evidence.Key
	for line := range strings.Lines(string(text)) {
		key, err := evidence.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// write replaces the file in one step, and what it held with it.
func (f keyFile) write(keys []evidence.Key) error {
	out, err := os.OpenFile(string(f)+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if _, err = fmt.Fprintln(out, k.Reveal()); err != nil {
			break
		}
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Rename(string(f)+".new", string(f)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(string(f)))
}

// syncFolder makes last what was renamed in a folder: a key must not be gone
// after a crash that the database has as the one that signs.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (f keyFile) find(_ context.Context, k store.EvidenceKey) (evidence.Key, error) {
	keys, err := f.read()
	if err != nil {
		return evidence.Key{}, err
	}
	for _, key := range keys {
		if key.VKey() == k.VKey {
			return key, nil
		}
	}
	return evidence.Key{}, fmt.Errorf("%w: %s does not have it", errNoSuchKey, f)
}

func (f keyFile) next(_ context.Context, _ int64, name string) (evidence.Key, error) {
	keys, err := f.read()
	if err != nil {
		return evidence.Key{}, err
	}
	key, err := evidence.NewKey(name)
	if err != nil {
		return evidence.Key{}, err
	}
	return key, f.write(append(keys, key))
}

func (f keyFile) only(ctx context.Context, k store.EvidenceKey) error {
	key, err := f.find(ctx, k)
	if err != nil {
		return err
	}
	return f.write([]evidence.Key{key})
}

func (f keyFile) lock() (func() error, error) {
	file, err := os.OpenFile(string(f)+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}

// sealedKeys lie in the database, sealed under the master key.
type sealedKeys struct {
	db     *store.DB
	master *secrets.Keys
}

func sealedName(n int64) string { return fmt.Sprintf("evidence/%d", n) }

func (s *sealedKeys) open(secret store.Secret) (evidence.Key, error) {
	text, err := s.master.Open(secrets.Place{Table: store.SecretTable, Row: secret.Name, Column: store.SecretColumn}, secret.Value)
	if err != nil {
		return evidence.Key{}, err
	}
	return evidence.ParseKey(string(text))
}

func (s *sealedKeys) find(ctx context.Context, k store.EvidenceKey) (evidence.Key, error) {
	secret, err := s.db.Secret(ctx, sealedName(k.N))
	if modelgate.KindOf(err) == modelgate.NotFound {
		return evidence.Key{}, fmt.Errorf("%w: the database does not have it; was it in evidence.signing_key?", errNoSuchKey)
	}
	if err != nil {
		return evidence.Key{}, err
	}
	key, err := s.open(secret)
	if err == nil && key.VKey() != k.VKey {
		err = errNoSuchKey
	}
	return key, err
}

// next agrees with instances that want the same at the same time.
func (s *sealedKeys) next(ctx context.Context, n int64, name string) (evidence.Key, error) {
	key, err := evidence.NewKey(name)
	if err != nil {
		return evidence.Key{}, err
	}
	row := sealedName(n)
	value, err := s.master.Seal(secrets.Place{Table: store.SecretTable, Row: row, Column: store.SecretColumn}, []byte(key.Reveal()))
	if err != nil {
		return evidence.Key{}, err
	}
	kept, err := s.db.AddSecret(ctx, store.Secret{Name: row, KeyID: s.master.Primary(), Value: value})
	if err != nil {
		return evidence.Key{}, err
	}
	return s.open(kept)
}

// only keeps the old keys: they are as well sealed as the new one.
func (s *sealedKeys) only(context.Context, store.EvidenceKey) error { return nil }
func (s *sealedKeys) lock() (func() error, error)                   { return func() error { return nil }, nil }

// openEvidence makes what signs evidence and what chains it. Without a key
// the service runs all the same: records do not wait for it.
func (s *server) openEvidence(cfg *config.Config) (err error) {
	if s.signing, err = newSigning(cfg, s.db, s.master); err != nil {
		return err
	}
	if _, err := s.signing.Signer(s.env.ctx); err != nil {
		s.log.Warn("exports of evidence are answered 503", "error", err)
	}
	s.chains = &worker.Sequencer{Ledger: s.db, Instance: s.spool.Instance(), Now: time.Now, Log: s.log}
	return nil
}

// pruneChunks bounds what one transaction deletes of a chain.
const pruneChunks = 200

// pruneEvidence deletes records that are too old, before the rows that they
// are about. Where nothing signs, they stay: their end could not be. The rows of
// a client whose records cannot be pruned are to be spared.
func (s *server) pruneEvidence(ctx context.Context, before time.Time) (spare map[modelgate.ClientID]error, err error) {
	signer, err := s.signing.Signer(ctx)
	if errors.Is(err, errNoSigning) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	clients, err := s.db.EvidenceClients(ctx)
	if err != nil {
		return nil, err
	}
	spare = make(map[modelgate.ClientID]error)
	for _, client := range clients {
		err := s.pruneChain(ctx, client, before, signer)
		if err != nil && (ctx.Err() != nil || store.Unreachable(err)) {
			return nil, err
		}
		if err != nil {
			spare[client] = err
		}
	}
	return spare, nil
}

// pruneChain deletes what is too old of one client's chain.
func (s *server) pruneChain(ctx context.Context, client modelgate.ClientID, before time.Time, signer *evidence.Signer) error {
	for {
		record := audit("", "evidence.prune", "", "", nil)
		record.Actor = modelgate.Actor{System: true}
		more, err := s.db.PruneEvidence(ctx, client, store.Pruning{
			Before: store.Cutoff(before), Chunks: pruneChunks, Audit: record,
			Sign: func(h modelgate.EvidenceHead) (string, error) { return signer.Key.Anchor(h, time.Now()) },
		})
		if err != nil || !more {
			return err
		}
	}
}
