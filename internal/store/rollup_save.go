package store

import (
	"cmp"
	"context"
	"database/sql"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const (
	// maxInline is how many entries of a dimension a root page holds before
	// they get pages of their own, rollupParts of them by the hash of their
	// first text.
	maxInline   = 64
	rollupParts = 32
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
	return int64(h.Sum32() % rollupParts)
}

// head is a row of usage_head.
type head struct {
	rolledFrom   int64
	prunedBefore int64
	prunedCost   modelgate.Nano // filled in by readHead only
}

const usageHeadColumnCount = 6

// lockHeads locks the clients' heads until the transaction ends, and fills
// them in. All transactions take them in the same order, and before counters.
func (db *DB) lockHeads(ctx context.Context, tx *sql.Tx, clients map[modelgate.ClientID]head) error {
	names := slices.Sorted(maps.Keys(clients))
	return db.runMany(ctx, tx, sqldb.BatchExec{
		Text: headInsert,
		N:    len(names),
		Args: func(dst []any, i int) []any { return append(dst, string(names[i]), 0, 0, 0, 0, 0) },
		Scan: func(s sqldb.Scanner) error {
			var name modelgate.ClientID
			var h head
			err := s.Scan(&name, &h.rolledFrom, &h.prunedBefore)
			clients[name] = h
			return err
		},
	})
}

// rollUp adds a tally to the stored rollups of clients whose heads are locked.
func (db *DB) rollUp(ctx context.Context, tx *sql.Tx, hours tally) error {
	if len(hours) == 0 {
		return nil
	}
	s := rollupSave{pages: make(map[pageKey]*rollupPage), adds: make(map[pageKey]map[string]*sums)}
	both := hours.days()
	maps.Copy(both, hours)
	keys := make([]pageKey, 0, len(both))
	for at := range both {
		keys = append(keys, pageKey{span: at})
	}
	if err := db.loadPages(ctx, tx, keys, s.pages); err != nil {
		return err
	}
	for at, dimensions := range both {
		s.addToRoot(at, dimensions)
	}
	if err := db.loadPages(ctx, tx, s.missing(), s.pages); err != nil {
		return err
	}
	for _, k := range s.addToParts() {
		if _, err := tx.ExecContext(ctx, sqlDropRollup, k.args(nil)[:5]...); err != nil {
			return err
		}
	}
	return db.savePages(ctx, tx, s.pages)
}

// rollupSave is what one transaction does to pages.
type rollupSave struct {
	pages map[pageKey]*rollupPage
	// adds are entries for pages of grown dimensions.
	adds map[pageKey]map[string]*sums
}

func (s *rollupSave) page(k pageKey) *rollupPage {
	p := s.pages[k]
	if p == nil {
		p = newRollupPage()
		s.pages[k] = p
	}
	return p
}

func (s *rollupSave) addToRoot(at span, dimensions map[string]map[string]*sums) {
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
				root.add(name+"\x00"+key, *sum)
			}
			inline[name] = 1
			s.grow(at, root, name)
		}
	}
}

func (s *rollupSave) addToDimension(k pageKey, entries map[string]*sums) {
	for key, sum := range entries {
		k.part = partOf(key)
		if s.adds[k] == nil {
			s.adds[k] = make(map[string]*sums)
		}
		s.adds[k][key] = sum
	}
}

// grow gives a dimension of which a root page holds too much its own pages.
func (s *rollupSave) grow(at span, root *rollupPage, name string) {
	own := make(map[string]*sums)
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
	for k.part = range rollupParts { // new ones, which need not be looked for
		s.pages[k] = newRollupPage()
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
			p.add(key, *sum)
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

// sqlDropRollup deletes the pages of a grown dimension.
const sqlDropRollup = `DELETE FROM rollup
WHERE client_id = $1 AND sub_account_id = $2 AND grain = $3 AND dimension = $4 AND start = $5
-- sqlDropRollup`

const rollupColumns = `client_id, sub_account_id, grain, dimension, start, part, data`

const (
	rollupKeyCount    = 6
	rollupColumnCount = 7
)

// loadPages reads the pages that there are.
func (db *DB) loadPages(ctx context.Context, tx *sql.Tx, keys []pageKey, into map[pageKey]*rollupPage) error {
	slices.SortFunc(keys, pageKey.compare)
	return db.runMany(ctx, tx, sqldb.BatchExec{
		Text:  rollupSelect,
		N:     len(keys),
		Fresh: db.engine.freshPlan,
		Args:  func(dst []any, i int) []any { return keys[i].args(dst) },
		Scan: func(s sqldb.Scanner) error {
			k, data, err := scanPage(s)
			if err != nil {
				return err
			}
			into[k], err = decodePage(data)
			return err
		},
	})
}

func scanPage(s sqldb.Scanner) (k pageKey, data []byte, err error) {
	err = s.Scan(&k.client, &k.subAccount, &k.grain, &k.dimension, &k.start, &k.part, &data)
	return k, data, err
}

func (db *DB) savePages(ctx context.Context, tx *sql.Tx, pages map[pageKey]*rollupPage) error {
	keys := slices.SortedFunc(maps.Keys(pages), pageKey.compare)
	err := db.runMany(ctx, tx, sqldb.BatchExec{
		Text: rollupInsert,
		N:    len(keys),
		Args: func(dst []any, i int) []any { return append(keys[i].args(dst), pages[keys[i]].encode()) },
	})
	return wrap("save rollups", err)
}
