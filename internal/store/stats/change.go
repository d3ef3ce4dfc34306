package stats

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

const (
	// maxInline is how many entries of a dimension a root page holds before
	// they get pages of their own, Parts of them by the hash of their
	// first text.
	maxInline = 64
	// Parts is how many pages a dimension has that has pages of its own.
	Parts = 32
	// maxDimensions bounds how many dimensions of an hour or day are kept.
	// Further attribution keys are summed from the rows.
	maxDimensions = 64
)

// pageKey is the key of a row of rollup; the dimension of a root page is "".
type pageKey struct {
	span
	dimension string
	part      int64
}

func (k pageKey) compare(o pageKey) int {
	return cmp.Or(cmp.Compare(k.client, o.client), cmp.Compare(k.subAccount, o.subAccount), cmp.Compare(k.grain, o.grain),
		cmp.Compare(k.dimension, o.dimension), cmp.Compare(k.start, o.start), cmp.Compare(k.part, o.part))
}

// args appends the columns of the key.
func (k pageKey) args(dst []any) []any {
	return append(dst, string(k.client), string(k.subAccount), string(k.grain), k.dimension, k.start, k.part)
}

// partOf is where a grown dimension keeps an entry.
func partOf(key string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(firstText(key))) // a hash never fails
	return int64(h.Sum32() % Parts)
}

// rollupSave is what one transaction does to pages.
type rollupSave struct {
	pages map[pageKey]*Page
	// adds are entries for pages of grown dimensions.
	adds map[pageKey]map[string]*Sums
}

func (s *rollupSave) page(k pageKey) *Page {
	p := s.pages[k]
	if p == nil {
		p = NewPage()
		s.pages[k] = p
	}
	return p
}

func (s *rollupSave) addToRoot(at span, dimensions map[string]map[string]*Sums) {
	root := s.page(pageKey{span: at})
	inline := make(map[string]int)
	for key := range root.entries {
		inline[firstText(key)]++
	}
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		entries := dimensions[name]
		values, grown := root.grown[name]
		switch {
		case grown && values <= maxValues(name):
			s.addToDimension(pageKey{span: at, dimension: name}, entries)
		case grown: // too much: nothing of it is kept
		case inline[name] == 0 && len(inline)+len(root.grown) >= maxDimensions && name != dimProvider && name != dimModel:
			root.grown[noRoom] = 1
		default:
			for key, sum := range entries {
				root.Add(name+"\x00"+key, *sum)
			}
			inline[name] = 1
			s.grow(at, root, name)
		}
	}
}

func (s *rollupSave) addToDimension(k pageKey, entries map[string]*Sums) {
	for key, sum := range entries {
		k.part = partOf(key)
		if s.adds[k] == nil {
			s.adds[k] = make(map[string]*Sums)
		}
		s.adds[k][key] = sum
	}
}

// grow gives a dimension of which a root page holds too much its own pages.
func (s *rollupSave) grow(at span, root *Page, name string) {
	own := make(map[string]*Sums)
	for key, sum := range root.entries {
		if entry, ok := strings.CutPrefix(key, name+"\x00"); ok {
			own[entry] = &sum
		}
	}
	if len(own) <= maxInline {
		return
	}
	for key := range own {
		delete(root.entries, name+"\x00"+key)
	}
	root.grown[name] = 0
	k := pageKey{span: at, dimension: name}
	for k.part = range Parts { // new ones, which need not be looked for
		s.pages[k] = NewPage()
	}
	s.addToDimension(k, own)
}

// missing are the pages that are added to and not here yet.
func (s *rollupSave) missing() []pageKey {
	var keys []pageKey
	for k := range s.adds {
		if s.pages[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// addToParts adds to the pages of grown dimensions, and returns those of which
// there is too much now; nothing of them is to be kept.
func (s *rollupSave) addToParts() (dropped []pageKey) {
	over := make(map[pageKey]bool)
	for k, entries := range s.adds {
		p := s.page(k)
		before := p.values()
		for key, sum := range entries {
			p.Add(key, *sum)
		}
		values := s.pages[pageKey{span: k.span}].grown[k.dimension] + p.values() - before
		s.pages[pageKey{span: k.span}].grown[k.dimension] = values
		if values > maxValues(k.dimension) {
			over[pageKey{span: k.span, dimension: k.dimension}] = true
		}
	}
	for k, p := range s.pages {
		if over[pageKey{span: k.span, dimension: k.dimension}] || k.dimension != "" && len(p.entries) == 0 {
			delete(s.pages, k)
		}
	}
	return slices.SortedFunc(maps.Keys(over), pageKey.compare)
}
