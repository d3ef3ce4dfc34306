package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"unsafe"
	"weak"

	"modelgate"
)

// rules reads the rules of callers. Sets of rules that are alike, as those of
// many keys are, and of one key each time it is read anew, are read once and
// shared as long as somebody has one; texts that come again, as they do from
// rule to rule, are shared, too. Callers are kept in memory for as long as their
// keys are in use, and whatever they refer to is looked at in every collection.
// Nothing of a set may therefore be changed. A place holds one text or set; what
// falls on it next takes its place. The zero value is ready. It is safe for
// concurrent use.
type rules struct {
	mu     sync.Mutex
	seed   maphash.Seed
	seeded bool
	texts  [rulePlaces]string
	sets   [rulePlaces]ruleSet
}

const rulePlaces = 4096

// ruleSet is a set that was read.
type ruleSet struct {
	written [sha256.Size]byte
	first   weak.Pointer[modelgate.Entitlement]
	length  int
}

// read is the set that is written as JSON.
func (r *rules) read(written []byte) (modelgate.Entitlements, error) {
	sum := sha256.Sum256(written)
	if known := r.known(&sum); known != nil {
		return known, nil
	}
	var set modelgate.Entitlements
	if err := json.Unmarshal(written, &set); err != nil {
		return nil, err
	}
	return r.keep(&sum, set), nil
}

func (r *rules) place(sum *[sha256.Size]byte) *ruleSet {
	return &r.sets[binary.LittleEndian.Uint64(sum[:])%rulePlaces]
}

// known is the set that was read from such a text, where somebody has it still.
func (r *rules) known(sum *[sha256.Size]byte) modelgate.Entitlements {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.place(sum)
	if p.written != *sum {
		return nil
	}
	first := p.first.Value()
	if first == nil {
		return nil
	}
	return unsafe.Slice(first, p.length)
}

// keep is a copy of a set that takes as little as it can, and is known from
// then on.
func (r *rules) keep(sum *[sha256.Size]byte, set modelgate.Entitlements) modelgate.Entitlements {
	if len(set) == 0 {
		return set
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(modelgate.Entitlements, len(set))
	for i, e := range set {
		out[i] = modelgate.Entitlement{
			Axis: modelgate.Axis(r.share(string(e.Axis))), Provider: r.share(e.Provider),
			ModelPattern: r.share(e.ModelPattern), Effect: modelgate.Effect(r.share(string(e.Effect))),
		}
	}
	*r.place(sum) = ruleSet{*sum, weak.Make(&out[0]), len(out)}
	return out
}

// share is a text, the one that was returned for it before where it is still
// known. The lock is held.
func (r *rules) share(s string) string {
	if !r.seeded {
		r.seed, r.seeded = maphash.MakeSeed(), true
	}
	known := &r.texts[maphash.String(r.seed, s)%rulePlaces]
	if *known != s {
		*known = s
	}
	return *known
}

// ruleColumn scans a JSON column of rules.
type ruleColumn struct {
	rules *rules
	into  *modelgate.Entitlements
}

// Scan implements sql.Scanner.
func (c ruleColumn) Scan(src any) (err error) {
	switch v := src.(type) {
	case string:
		*c.into, err = c.rules.read([]byte(v))
	case []byte:
		*c.into, err = c.rules.read(v)
	default:
		err = fmt.Errorf("a JSON column of rules holds %T", src)
	}
	return err
}
