package stats

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
)

// Sums are what some calls come to: their number, tokens and nano-USD. Tokens
// stop at the largest integer; costs cannot get there, because the spend
// counters would overflow first.
type Sums struct{ Requests, Tokens, Cost int64 }

func (s *Sums) add(o Sums) {
	s.Requests += o.Requests
	// What a batch adds is below zero where jobs ended with less than they were
	// taken for.
	if s.Tokens > math.MaxInt64-max(o.Tokens, 0) {
		s.Tokens = math.MaxInt64
	} else {
		s.Tokens += o.Tokens
	}
	s.Cost += o.Cost
}

// Page is the content of a row of rollup, a list of entries. The
// key of an entry is made of texts, joined by NUL, which no stored text has:
//
//	provider dimension      provider
//	model dimension         model, slug, author, region, provider
//	an attribution key      value, provider
//
// so that the provider is always last. A root page holds entries of many
// dimensions, with the dimension in front, and what has grown out of it.
//
// Encoded it is pageFormat, the number of grown dimensions, their names and
// counts, the number of entries, and for each entry how many bytes its key has
// in common with the one before, the rest of the key, and the sums; numbers
// are varints.
type Page struct {
	// grown maps a dimension that has pages of its own to how many values
	// (first texts) there are in it. Of one with more than maxValues
	// nothing is kept. noRoom in it says that further dimensions were left
	// out. Root pages only.
	grown   map[string]int64
	entries map[string]Sums
}

// noRoom is no dimension.
const noRoom = ""

// PageFormat is the first byte of an encoded page.
const PageFormat = 1

// ErrPage says that a page or delta cannot be read.
var ErrPage = errors.New("a rollup page is damaged")

// NewPage has no entries.
func NewPage() *Page {
	return &Page{grown: map[string]int64{}, entries: map[string]Sums{}}
}

// Add adds to an entry.
func (p *Page) Add(key string, s Sums) {
	sum := p.entries[key]
	sum.add(s)
	p.entries[key] = sum
}

// values counts the different first texts.
func (p *Page) values() int64 {
	seen := make(map[string]struct{}, len(p.entries))
	for key := range p.entries {
		seen[firstText(key)] = struct{}{}
	}
	return int64(len(seen))
}

// Encode makes the content of a row.
func (p *Page) Encode() []byte {
	b := make([]byte, 0, 32*len(p.entries)+32*len(p.grown)+8)
	b = append(b, PageFormat)
	b = binary.AppendUvarint(b, uint64(len(p.grown)))
	for _, name := range slices.Sorted(maps.Keys(p.grown)) {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
		b = binary.AppendVarint(b, p.grown[name])
	}
	b = binary.AppendUvarint(b, uint64(len(p.entries)))
	last := ""
	for _, key := range slices.Sorted(maps.Keys(p.entries)) {
		b = appendEntry(b, last, key, p.entries[key])
		last = key
	}
	return b
}

func appendEntry(b []byte, last, key string, s Sums) []byte {
	shared := 0
	for shared < len(last) && shared < len(key) && last[shared] == key[shared] {
		shared++
	}
	b = binary.AppendUvarint(b, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(key)-shared))
	b = append(b, key[shared:]...)
	return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, s.Requests), s.Tokens), s.Cost)
}

// encodeDelta makes a root page of what a batch adds. Its entries are not
// sorted: it is read soon, and once.
func encodeDelta(dimensions map[string]map[string]*Sums) []byte {
	n := 0
	for _, entries := range dimensions {
		n += len(entries)
	}
	b := make([]byte, 0, 24*n+8)
	b = append(b, PageFormat, 0)
	b = binary.AppendUvarint(b, uint64(n))
	last := ""
	for name, entries := range dimensions {
		for entry, s := range entries {
			key := name + "\x00" + entry
			b = appendEntry(b, last, key, *s)
			last = key
		}
	}
	return b
}

func decodePage(data []byte) (*Page, error) {
	p := NewPage()
	err := walkPage(data, func(name []byte, values int64) { p.grown[string(name)] = values },
		func(key []byte, s Sums) { p.entries[string(key)] = s })
	return p, err
}

// walkPage reads an encoded page. What the functions get is theirs until they
// return.
func walkPage(data []byte, grown func(name []byte, values int64), entry func(key []byte, s Sums)) error {
	r := pageReader{rest: data}
	if !bytes.HasPrefix(data, []byte{PageFormat}) {
		return ErrPage
	}
	r.take(1)
	for n := r.length(); n > 0; n-- {
		name := r.take(r.length())
		values := r.number()
		if r.broken {
			return ErrPage
		}
		grown(name, values)
	}
	var key []byte
	for n := r.length(); n > 0; n-- {
		shared := r.length()
		rest := r.take(r.length())
		s := Sums{r.number(), r.number(), r.number()}
		if r.broken || shared > len(key) {
			return ErrPage
		}
		key = append(key[:shared], rest...)
		entry(key, s)
	}
	if r.broken || len(r.rest) > 0 {
		return ErrPage
	}
	return nil
}

// pageReader takes a page apart; once it is broken it reads zeros.
type pageReader struct {
	rest   []byte
	broken bool
}

func (r *pageReader) number() int64 {
	v, n := binary.Varint(r.rest)
	return r.step(v, n)
}

// length is a count of bytes or entries, each of which takes a byte or more.
func (r *pageReader) length() int {
	v, n := binary.Uvarint(r.rest)
	if v > math.MaxInt32 {
		n = 0
	}
	return int(r.step(int64(v), n))
}

func (r *pageReader) step(v int64, n int) int64 {
	if n <= 0 {
		r.broken, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *pageReader) take(n int) []byte {
	if n > len(r.rest) {
		r.broken, r.rest = true, nil
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}
