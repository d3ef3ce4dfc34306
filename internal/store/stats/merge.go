package stats

import (
	"hash/fnv"
	"maps"
	"slices"
	"strings"
)

const (
	// maxInline is how many entries of a dimension a root page holds. A
	// dimension with more gets pages of its own.
	maxInline = 64
	// Parts is the number of such pages. The hash of an entry's first text
	// selects its page.
	Parts = 32
	// maxDimensions bounds the dimensions that are stored for an hour or a day.
	// Statistics of further attribution keys are made from the rows.
	maxDimensions = 64
)

// partOf is the page of an entry in a dimension with pages of its own.
func partOf(key string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(firstText(key))) // a hash never fails
	return int64(h.Sum32() % Parts)
}

// merge is the changes that one transaction makes to pages.
type merge struct {
	pages map[pageKey]Page
	// adds are entries for dimensions with pages of their own.
	adds map[pageKey]map[string]*Sums
}

func (m *merge) page(k pageKey) Page {
	p := m.pages[k]
	if p == nil {
		p = Page{}
		m.pages[k] = p
	}
	return p
}

func (m *merge) addToRoot(at span, dimensions tally) {
	root := m.page(pageKey{span: at})
	known := make(map[string]bool)
	for key := range root {
		name, rest, _ := strings.Cut(key, "\x00")
		if name == "" {
			name = rest
		}
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		entries := dimensions[name]
		values, own := root.ownPages(name)
		switch {
		case own && values <= maxValues(name):
			m.addToDimension(pageKey{span: at, dimension: name}, entries)
		case own: // too many values: nothing is stored
		case !known[name] && len(known) >= maxDimensions && name != dimProvider && name != dimModel:
			root.setOwnPages(noRoom, 1)
		default:
			for key, sum := range entries {
				root.Add(name+"\x00"+key, *sum)
			}
			known[name] = true
			m.splitOff(at, root, name)
		}
	}
}

func (m *merge) addToDimension(k pageKey, entries map[string]*Sums) {
	for key, sum := range entries {
		k.part = partOf(key)
		if m.adds[k] == nil {
			m.adds[k] = make(map[string]*Sums)
		}
		m.adds[k][key] = sum
	}
}

// splitOff gives a dimension its own pages if the root page holds too many of
// its entries.
func (m *merge) splitOff(at span, root Page, name string) {
	own := make(map[string]*Sums)
	for key, sum := range root {
		if entry, ok := strings.CutPrefix(key, name+"\x00"); ok {
			own[entry] = &sum
		}
	}
	if len(own) <= maxInline {
		return
	}
	for key := range own {
		delete(root, name+"\x00"+key)
	}
	root.setOwnPages(name, 0)
	k := pageKey{span: at, dimension: name}
	for k.part = range Parts { // the database has none of them yet
		m.pages[k] = Page{}
	}
	m.addToDimension(k, own)
}

// missing are the pages that are added to and not loaded yet.
func (m *merge) missing() []pageKey {
	var keys []pageKey
	for k := range m.adds {
		if m.pages[k] == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// addToParts adds to the dimensions with pages of their own. It returns those
// that have too many values now; their pages are to be deleted.
func (m *merge) addToParts() (dropped []pageKey) {
	over := make(map[pageKey]bool)
	for k, entries := range m.adds {
		p, root := m.page(k), m.pages[pageKey{span: k.span}]
		before := values(p)
		for key, sum := range entries {
			p.Add(key, *sum)
		}
		n, _ := root.ownPages(k.dimension)
		n += values(p) - before
		root.setOwnPages(k.dimension, n)
		if n > maxValues(k.dimension) {
			over[pageKey{span: k.span, dimension: k.dimension}] = true
		}
	}
	maps.DeleteFunc(m.pages, func(k pageKey, p Page) bool {
		return over[pageKey{span: k.span, dimension: k.dimension}] || k.dimension != "" && len(p) == 0
	})
	return slices.SortedFunc(maps.Keys(over), pageKey.compare)
}
