// Package signing knows which key signs evidence. The database holds the public
// keys and their order; the private ones are in the configuration, in a file, or
// in the database under the master key.
package signing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"modelgate"
	"modelgate/internal/atomicfile"
	"modelgate/internal/evidence"
	"modelgate/internal/secrets"
	"modelgate/internal/store"
	chain "modelgate/internal/store/evidence"
)

var (
	// ErrNotConfigured is the answer where there is no place for a private key.
	ErrNotConfigured = modelgate.Errorf(modelgate.Unavailable, "evidence cannot be signed: set evidence.signing_key, or a master_key, in the gateway's configuration")
	// errNotFound says that a private key is not where it should be.
	errNotFound = errors.New("the private key is not there")
	// errKeyGone is what clients are told then.
	errKeyGone = modelgate.Errorf(modelgate.Unavailable, "evidence cannot be signed: the gateway does not have the private key that signs; its operator can help")
)

// keyStore is where private signing keys are kept.
type keyStore interface {
	// find returns the private key of k, or errNotFound.
	find(ctx context.Context, k chain.Key) (evidence.Key, error)
	// next returns the key that can become the n-th, and keeps it.
	next(ctx context.Context, n int64, name string) (evidence.Key, error)
}

// Options say where private keys are. The first that is set counts: Configured,
// File, Master. Without any of them nothing is signed.
type Options struct {
	Store *store.DB
	// Configured are private keys as evidence.Key.Reveal writes them; the first
	// one is to sign, the others did before.
	Configured []string
	File       string // a path
	Master     *secrets.Keys
	Name       string // of new keys
	// Audit begins the record of a new key.
	Audit func() modelgate.Audit
}

// Signing hands out the key that signs evidence. Safe for concurrent use.
type Signing struct {
	Options
	keys keyStore // nil for none

	mu     sync.Mutex
	signer *evidence.Signer
	rows   int // of the table of keys, as of signer
}

// New fails where a configured key cannot be read.
func New(o Options) (*Signing, error) {
	s := &Signing{Options: o}
	switch {
	case len(o.Configured) > 0:
		var keys configuredKeys
		for _, text := range o.Configured {
			key, err := evidence.ParseKey(text)
			if err != nil {
				return nil, fmt.Errorf("evidence.signing_key: %w", err)
			}
			keys = append(keys, key)
		}
		s.keys = keys
	case o.File != "":
		s.keys = keyFile(o.File)
	case o.Master != nil:
		s.keys = &sealedKeys{o.Store, o.Master}
	}
	return s, nil
}

// Signer is what signs now. The first call with a database makes the first
// key; a configured key that is new follows the one before it.
func (s *Signing) Signer(ctx context.Context) (*evidence.Signer, error) {
	if s.keys == nil {
		return nil, ErrNotConfigured
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	signer, err := s.current(ctx)
	if errors.Is(err, errNotFound) {
		err = fmt.Errorf("%w: %w", errKeyGone, err)
	}
	return signer, err
}

func (s *Signing) current(ctx context.Context) (*evidence.Signer, error) {
	keys, err := s.Store.EvidenceKeys(ctx)
	if err != nil {
		return nil, err
	}
	if s.signer != nil && len(keys) == s.rows {
		return s.signer, nil
	}
	configured, ok := s.keys.(configuredKeys)
	if len(keys) == 0 || ok && configured.isNew(keys) {
		if keys, err = s.follow(ctx, HandOver); err != nil {
			return nil, err
		}
	}
	key, err := s.keys.find(ctx, keys[len(keys)-1])
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", keys[len(keys)-1].VKey, err)
	}
	s.signer, s.rows = &evidence.Signer{Key: key, Rotations: statements(keys)}, len(keys)
	return s.signer, nil
}

// statements are those by which the keys up to the last one followed each
// other, since the last time that one was lost.
func statements(keys []chain.Key) []string {
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

// Rotation says how a key follows another.
type Rotation string

// The ways.
const (
	HandOver Rotation = "hand over" // by a statement of the one before
	LostKey  Rotation = "lost key"  // without one, because that key is lost
)

// Rotate makes the next key the one that signs. Errors: ErrNotConfigured, and
// one that tells an operator what to do where the configured key signs already.
func (s *Signing) Rotate(ctx context.Context, how Rotation) error {
	if s.keys == nil {
		return ErrNotConfigured
	}
	keys, err := s.Store.EvidenceKeys(ctx)
	if err != nil {
		return err
	}
	if configured, ok := s.keys.(configuredKeys); ok && !configured.isNew(keys) {
		return errors.New("evidence.signing_key signs already: put a new one there, as `modelgate evidence key new` prints it, and the old one into evidence.previous_signing_keys")
	}
	_, err = s.follow(ctx, how)
	return err
}

// follow makes the next key the one that signs and returns all keys.
func (s *Signing) follow(ctx context.Context, how Rotation) ([]chain.Key, error) {
	file, inFile := s.keys.(keyFile)
	if inFile {
		unlock, err := file.lock()
		if err != nil {
			return nil, err
		}
		defer unlock() // nothing depends on it: the end of the process unlocks too
	}
	keys, err := s.Store.EvidenceKeys(ctx)
	if err != nil {
		return nil, err
	}
	next, err := s.keys.next(ctx, int64(len(keys))+1, s.Name)
	if err != nil {
		return nil, err
	}
	k := chain.Key{N: int64(len(keys)) + 1, VKey: next.VKey(), At: time.Now().UTC()}
	if len(keys) > 0 && how == HandOver {
		last := keys[len(keys)-1]
		old, err := s.keys.find(ctx, last)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has to sign that %s follows it; if it is lost, run `modelgate evidence key rotate --lost` and tell every verifier the new key",
				err, last.VKey, next.VKey())
		}
		if k.Statement, err = old.Rotate(k.VKey, k.At); err != nil {
			return nil, err
		}
	}
	err = s.Store.AddEvidenceKey(ctx, k, s.Audit)
	if err != nil && !errors.Is(err, chain.ErrKeyOrder) {
		return nil, err // ErrKeyOrder: another instance was faster, with the same key or another
	}
	if keys, err = s.Store.EvidenceKeys(ctx); err != nil || !inFile {
		return keys, err
	}
	return keys, file.keepOnly(ctx, keys[len(keys)-1])
}

// configuredKeys are those of the configuration file, the one that is to sign
// first.
type configuredKeys []evidence.Key

// isNew reports whether the key that is to sign has never signed.
func (c configuredKeys) isNew(keys []chain.Key) bool {
	return !slices.ContainsFunc(keys, func(k chain.Key) bool { return k.VKey == c[0].VKey() })
}

// findKey returns the private key of k.
func findKey(keys []evidence.Key, k chain.Key) (evidence.Key, bool) {
	i := slices.IndexFunc(keys, func(key evidence.Key) bool { return key.VKey() == k.VKey })
	if i < 0 {
		return evidence.Key{}, false
	}
	return keys[i], true
}

func (c configuredKeys) find(_ context.Context, k chain.Key) (evidence.Key, error) {
	if key, ok := findKey(c, k); ok {
		return key, nil
	}
	return evidence.Key{}, fmt.Errorf("%w: the configuration has another evidence.signing_key", errNotFound)
}

func (c configuredKeys) next(context.Context, int64, string) (evidence.Key, error) {
	return c[0], nil
}

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

// write replaces the file, durably: a key must not be gone after a crash that the
// database has as the one that signs.
func (f keyFile) write(keys []evidence.Key) error {
	var text strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&text, k.Reveal())
	}
	return atomicfile.Write(string(f), []byte(text.String()), 0o600)
}

func (f keyFile) find(_ context.Context, k chain.Key) (evidence.Key, error) {
	keys, err := f.read()
	if err != nil {
		return evidence.Key{}, err
	}
	if key, ok := findKey(keys, k); ok {
		return key, nil
	}
	return evidence.Key{}, fmt.Errorf("%w: %s does not have it", errNotFound, f)
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

// keepOnly forgets all keys but one.
func (f keyFile) keepOnly(ctx context.Context, k chain.Key) error {
	key, err := f.find(ctx, k)
	if err != nil {
		return err
	}
	return f.write([]evidence.Key{key})
}

// lock keeps other processes from changing keys.
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

func (s *sealedKeys) find(ctx context.Context, k chain.Key) (evidence.Key, error) {
	secret, err := s.db.Secret(ctx, sealedName(k.N))
	if modelgate.KindOf(err) == modelgate.NotFound {
		return evidence.Key{}, fmt.Errorf("%w: the database does not have it; was it in evidence.signing_key?", errNotFound)
	}
	if err != nil {
		return evidence.Key{}, err
	}
	key, err := s.open(secret)
	if err == nil && key.VKey() != k.VKey {
		err = errNotFound
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
