package reqscan

import (
	"bytes"
	"hash/maphash"
)

// Names is the set of member names that a scan looks for. It is immutable
// and safe for concurrent use; build it once per table row with NewNames.
// A nil *Names is the empty set.
type Names struct {
	seed     maphash.Seed
	all      [][]byte
	text     []string // the same
	byLength [][]int
}

// NewNames makes the set of the names given; repeats and empty names are
// dropped. Names are compared exactly, in the spelling a decoded JSON string
// or a form-data part has.
func NewNames(names ...string) *Names {
	set := &Names{seed: maphash.MakeSeed()}
	for _, name := range names {
		if index, _ := set.find([]byte(name)); name == "" || index >= 0 {
			continue
		}
		for len(set.byLength) <= len(name) {
			set.byLength = append(set.byLength, nil)
		}
		set.byLength[len(name)] = append(set.byLength[len(name)], len(set.all))
		set.all, set.text = append(set.all, []byte(name)), append(set.text, name)
	}
	return set
}

// find is the index of name in the set, or -1. Without an exact match,
// variant is the member of the set that name equals under Unicode simple
// case folding, nil for none.
func (n *Names) find(name []byte) (index int, variant []byte) {
	if n == nil {
		return -1, nil
	}
	if !isASCII(name) {
		return n.findFolded(name)
	}
	if len(name) == 0 || len(name) >= len(n.byLength) {
		return -1, nil
	}
	for _, i := range n.byLength[len(name)] {
		candidate := n.all[i]
		if (candidate[0]^name[0])&^0x20 != 0 {
			continue
		}
		if bytes.Equal(candidate, name) {
			return i, nil
		}
		if bytes.EqualFold(candidate, name) {
			variant = candidate
		}
	}
	return -1, variant
}

// findFolded compares with every name, because folding can change the
// number of bytes: U+017F folds to s, U+212A to k.
func (n *Names) findFolded(name []byte) (index int, variant []byte) {
	for i, candidate := range n.all {
		if bytes.Equal(candidate, name) {
			return i, nil
		}
		if bytes.EqualFold(candidate, name) {
			variant = candidate
		}
	}
	return -1, variant
}

// isASCII reports whether every byte is below 0x80.
func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
