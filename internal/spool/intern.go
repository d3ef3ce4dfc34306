package spool

import (
	"hash/maphash"

	"modelgate"
)

const (
	// textSlots and pairSlots bound how many texts and attributions a Decoder
	// remembers. A place holds one; what falls on it next takes its place.
	textSlots, pairSlots = 4096, 512
	// maxShared is the longest text that is remembered, and maxPairs the
	// longest attribution, in bytes.
	maxShared, maxPairs = 128, 256
)

// Decoder reads the payloads of entries. Texts and attributions that come
// again, as those of one key do with each of its calls, are shared between
// the records that it returns: they take room once however many records wait
// to be booked. Nothing of a record may therefore be changed. One goroutine may
// use it.
type Decoder struct {
	seed  maphash.Seed
	texts [textSlots]string
	pairs [pairSlots]attribution
}

// NewDecoder is a Decoder that remembers nothing.
func NewDecoder() *Decoder { return &Decoder{seed: maphash.MakeSeed()} }

// attribution is the caller's pairs as they were written, and with the
// gateway's own, which the other two fields decide.
type attribution struct {
	written string
	key     modelgate.KeyID
	sub     modelgate.SubAccountID
	pairs   map[string]string
}

// share is a text, the one that was returned for it before where it is still
// known.
func (d *Decoder) share(b []byte) string {
	switch {
	case len(b) == 0:
		return ""
	case len(b) > maxShared:
		return string(b)
	}
	known := &d.texts[maphash.Bytes(d.seed, b)%textSlots]
	if *known != string(b) {
		*known = string(b)
	}
	return *known
}

// attribution reads the pairs of a BEGIN, which are all that is left of it,
// and adds the gateway's own.
func (r *record) attribution(b *modelgate.CallBegin) map[string]string {
	d := r.decoder
	place := maphash.Bytes(d.seed, r.rest) ^ maphash.String(d.seed, string(b.KeyID))
	known := &d.pairs[place%pairSlots]
	if known.pairs != nil && known.written == string(r.rest) && known.key == b.KeyID && known.sub == b.SubAccountID {
		r.rest = nil
		return known.pairs
	}
	written := r.rest
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	pairs := make(map[string]string, n+2)
	for range n {
		k := r.text()
		pairs[k] = r.text()
	}
	b.Attribute(pairs)
	if !r.failed && len(r.rest) == 0 && len(written) <= maxPairs {
		*known = attribution{string(written), b.KeyID, b.SubAccountID, pairs}
	}
	return pairs
}
