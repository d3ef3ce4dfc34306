package stats

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
)

// Sums are the number of some calls, their tokens and their cost in nano-USD.
// Tokens stop at the largest integer. Costs cannot get there, because the spend
// counters would overflow first.
type Sums struct{ Requests, Tokens, Cost int64 }

func (s *Sums) add(o Sums) {
	s.Requests += o.Requests
	// A batch adds less than zero where jobs ended with less than was estimated.
	if s.Tokens > math.MaxInt64-max(o.Tokens, 0) {
		s.Tokens = math.MaxInt64
	} else {
		s.Tokens += o.Tokens
	}
	s.Cost += o.Cost
}

// Page is the content of a row of rollup: sums by key. A key is a list of texts
// joined by NUL, which no stored text contains:
//
//	provider dimension      provider
//	model dimension         model, slug, author, region, provider
//	an attribution key      value, provider
//
// The provider is always the last text. A root page holds many dimensions, with
// the name of the dimension as the first text of each key. Its keys with an
// empty first text name the dimensions that have pages of their own; Requests
// is then the number of different values (first texts) in these. Of a dimension
// with more than maxValues values nothing is stored.
//
// Encoded, a page is the byte PageFormat, the number of keys and, for each key,
// the length of the prefix it shares with the key before, the length of the
// rest, the rest, and the three sums. Numbers are varints.
type Page map[string]Sums

// noRoom, in place of the name of a dimension with pages of its own, says that
// a root page left out further dimensions.
const noRoom = ""

// PageFormat is the first byte of an encoded page.
const PageFormat = 1

// ErrPage says that a page or a delta cannot be decoded.
var ErrPage = errors.New("a rollup page is damaged")

// Add adds to the sums of a key.
func (p Page) Add(key string, s Sums) {
	sum := p[key]
	sum.add(s)
	p[key] = sum
}

// ownPages returns the number of values of a dimension that has pages of its
// own, for a root page.
func (p Page) ownPages(dimension string) (values int64, ok bool) {
	s, ok := p["\x00"+dimension]
	return s.Requests, ok
}

func (p Page) setOwnPages(dimension string, values int64) {
	p["\x00"+dimension] = Sums{Requests: values}
}

// values counts the different first texts of keys.
func values[V any](entries map[string]V) int64 {
	seen := make(map[string]struct{}, len(entries))
	for key := range entries {
		seen[firstText(key)] = struct{}{}
	}
	return int64(len(seen))
}

// Encode makes the content of a row.
func (p Page) Encode() []byte {
	return encode(len(p), func(yield func(string, Sums) bool) {
		for _, key := range slices.Sorted(maps.Keys(p)) {
			if !yield(key, p[key]) {
				return
			}
		}
	})
}

// encode encodes n entries. Sorted keys take the least space.
func encode(n int, entries iter.Seq2[string, Sums]) []byte {
	b := binary.AppendUvarint(append(make([]byte, 0, 24*n+8), PageFormat), uint64(n))
	last := ""
	for key, s := range entries {
		shared := 0
		for shared < len(last) && shared < len(key) && last[shared] == key[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(key)-shared))
		b = append(b, key[shared:]...)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, s.Requests), s.Tokens), s.Cost)
		last = key
	}
	return b
}

func decodePage(data []byte) (Page, error) {
	p := Page{}
	err := walkPage(data, func(key []byte, s Sums) { p[string(key)] = s })
	return p, err
}

// walkPage calls fn with each entry of an encoded page. The key is valid until
// fn returns.
func walkPage(data []byte, fn func(key []byte, s Sums)) error {
	rest, ok := bytes.CutPrefix(data, []byte{PageFormat})
	d := decoder{rest: rest, failed: !ok}
	var key []byte
	for n := d.length(); n > 0; n-- {
		shared := d.length()
		tail := d.take(d.length())
		s := Sums{d.number(), d.number(), d.number()}
		if d.failed || shared > len(key) {
			return ErrPage
		}
		key = append(key[:shared], tail...)
		fn(key, s)
	}
	if d.failed || len(d.rest) > 0 {
		return ErrPage
	}
	return nil
}

// decoder takes encoded values off rest. Once it has failed it returns zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) number() int64 {
	v, n := binary.Varint(d.rest)
	return d.skip(v, n)
}

// length decodes a count of bytes or entries, each of which takes a byte or more.
func (d *decoder) length() int {
	v, n := binary.Uvarint(d.rest)
	if v > math.MaxInt32 {
		n = 0
	}
	return int(d.skip(int64(v), n))
}

func (d *decoder) skip(v int64, n int) int64 {
	if n <= 0 {
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.failed, d.rest = true, nil
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}
