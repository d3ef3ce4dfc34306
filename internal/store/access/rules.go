package access

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"
	"weak"

	"modelgate"
)

// rules reads the rules of callers. Sets of rules that are alike, as those of
// many keys are, are read once and shared as long as somebody has one. Callers
// are kept in memory for as long as their keys are in use, and whatever they
// refer to is looked at in every collection: a set is two objects, however many
// rules it has. For 100,000 keys with ten rules each that saves 64 MB where no
// two keys are alike, and 150 MB where all are. Nothing of it may be changed. A
// place knows one set; what falls on it next takes its place. The zero value is
// ready. It is safe for concurrent use.
type rules struct {
	mu   sync.Mutex
	sets [rulePlaces]ruleSet
}

const rulePlaces = 4096

// ruleSet is a set that was read.
type ruleSet struct {
	written [sha256.Size]byte
	first   weak.Pointer[modelgate.Entitlement]
	length  int
}

// read is the set that is written as JSON.
func (r *rules) read(text []byte) (modelgate.Entitlements, error) {
	sum := sha256.Sum256(text)
	if known := r.known(&sum); known != nil {
		return known, nil
	}
	var set modelgate.Entitlements
	if err := json.Unmarshal(text, &set); err != nil {
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
	out := compact(set)
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.place(sum) = ruleSet{*sum, weak.Make(&out[0]), len(out)}
	return out
}

// compact is a copy of a set whose texts are parts of one.
func compact(set modelgate.Entitlements) modelgate.Entitlements {
	var all strings.Builder
	length := 0
	for i := range set {
		length += len(set[i].Provider) + len(set[i].ModelPattern)
	}
	all.Grow(length)
	for i := range set {
		all.WriteString(set[i].Provider)
		all.WriteString(set[i].ModelPattern)
	}
	rest := all.String()
	part := func(of string) (part string) {
		part, rest = rest[:len(of)], rest[len(of):]
		return part
	}
	out := make(modelgate.Entitlements, len(set))
	for i, e := range set {
		out[i] = modelgate.Entitlement{
			Axis:     oneOf(e.Axis, modelgate.AxisProvider, modelgate.AxisVendor, modelgate.AxisKind),
			Provider: part(e.Provider), ModelPattern: part(e.ModelPattern),
			Effect: oneOf(e.Effect, modelgate.Allow, modelgate.Deny),
		}
	}
	return out
}

// oneOf is the one of the constants that a value equals, which takes no
// memory, or the value.
func oneOf[T ~string](v T, constants ...T) T {
	if i := slices.Index(constants, v); i >= 0 {
		return constants[i]
	}
	return v
}

// ruleColumn scans a JSON column of rules, and leaves what is there where the
// column is NULL.
type ruleColumn struct {
	rules *rules
	into  *modelgate.Entitlements
}

// Scan implements sql.Scanner.
func (c ruleColumn) Scan(src any) (err error) {
	switch v := src.(type) {
	case nil:
	case string:
		*c.into, err = c.rules.read([]byte(v))
	case []byte:
		*c.into, err = c.rules.read(v)
	default:
		err = fmt.Errorf("a JSON column of rules holds %T", src)
	}
	return err
}
