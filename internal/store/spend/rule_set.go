package spend

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlRules lists the rules of a client beside their version; a client without
// rules has one row of the number 0.
const sqlRules = `SELECT h.version, COALESCE(r.number, 0), COALESCE(r.scope, ''), COALESCE(r.scope_id, ''), COALESCE(r.period, ''),
  COALESCE(r.match_text, ''), COALESCE(r.unit, ''), COALESCE(r.owner, ''), COALESCE(r.mode, ''), COALESCE(r.alerts, ''), COALESCE(r.amount, 0),
  COALESCE(r.counted_since, 0), COALESCE(r.revision, 0)
FROM rule_head h
LEFT JOIN rule r ON r.client_id = h.client_id
WHERE h.client_id = $1
-- sqlRules`

// headSelect reads the versions of the rules of clients and locks their heads, in
// the order of their ids, until the transaction ends. A shared lock would do, but
// PostgreSQL grants one past somebody who waits to change the row, for as long as
// others share it; and bookings of a client wait for each other soon after this
// anyway, at its counters. SQLite has one writer and needs no lock.
func (s *Store) headSelect(clients int) string {
	return sqldb.Tuples("SELECT client_id, version, COALESCE((SELECT f.version FROM rule_head f WHERE f.client_id = '*'), 0)\nFROM rule_head\nWHERE client_id IN ", 1, clients, 1) +
		"\nORDER BY client_id" + s.db.ForLock + "\n-- headSelect"
}

// target is what a budget is of.
type target struct {
	level modelgate.Level
	id    string
}

// ruleSet is the rules of a client as of a version. It is shared, and nothing
// changes it.
type ruleSet struct {
	version  int64
	all      []*modelgate.Budget // in the order of modelgate.SortRules
	byNumber map[int64]*modelgate.Budget
	of       map[target][]*modelgate.Budget
}

// ruleCache remembers the rules of clients. The zero value is ready.
type ruleCache struct {
	mu    sync.Mutex
	known map[modelgate.ClientID]*ruleSet
}

// knownRuleSets bounds the clients whose rules are remembered.
const knownRuleSets = 1 << 12

// ruleSet is the rules of a client, read again where another version than this
// one is remembered.
func (s *Store) ruleSet(ctx context.Context, q sqldb.Querier, client modelgate.ClientID, version int64) (*ruleSet, error) {
	s.rules.mu.Lock()
	known := s.rules.known[client]
	s.rules.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	set, err := readRules(ctx, q, client)
	if err != nil {
		return nil, err
	}
	s.rules.mu.Lock()
	defer s.rules.mu.Unlock()
	if s.rules.known == nil || len(s.rules.known) >= knownRuleSets {
		s.rules.known = make(map[modelgate.ClientID]*ruleSet)
	}
	s.rules.known[client] = set
	return set, nil
}

// readRules reads the rules of a client.
func readRules(ctx context.Context, q sqldb.Querier, client modelgate.ClientID) (*ruleSet, error) {
	set := &ruleSet{byNumber: make(map[int64]*modelgate.Budget), of: make(map[target][]*modelgate.Budget)}
	var all []*modelgate.Budget
	err := sqldb.Each(ctx, q, func(row sqldb.Scanner) error {
		var b modelgate.Budget
		if err := row.Scan(append([]any{&set.version}, ruleColumns(&b)...)...); err != nil {
			return err
		}
		if b.Rule != 0 {
			all = append(all, &b)
		}
		return nil
	}, sqlRules, string(client))
	if err != nil {
		return nil, err
	}
	modelgate.TakeOver(all)
	modelgate.SortRules(all)
	set.all = all
	for _, b := range all {
		set.byNumber[b.Rule] = b
		of := target{b.Level, b.ID}
		set.of[of] = append(set.of[of], b)
	}
	return set, nil
}

// ruleColumns scan a row of rule from number on.
func ruleColumns(b *modelgate.Budget) []any {
	return []any{&b.Rule, &b.Level, &b.ID, &b.Period, matchColumn{b}, &b.Unit, &b.Owner, &b.Mode, alertsColumn{b}, &b.Limit, sinceColumn{b}, &b.Revision}
}

// matchColumn, alertsColumn and sinceColumn scan a column into a budget.
type (
	matchColumn  struct{ into *modelgate.Budget }
	alertsColumn struct{ into *modelgate.Budget }
	sinceColumn  struct{ into *modelgate.Budget }
)

// Scan implements sql.Scanner.
func (c matchColumn) Scan(src any) (err error) {
	if text := columnText(src); text != "" {
		c.into.Match, err = modelgate.ParseMatch(text)
	}
	return err
}

// Scan implements sql.Scanner.
func (c alertsColumn) Scan(src any) error {
	if columnText(src) == "" {
		return nil
	}
	return sqldb.Document{Into: &c.into.Alerts}.Scan(src)
}

// Scan implements sql.Scanner.
func (c sinceColumn) Scan(src any) error {
	if us, ok := src.(int64); ok && us != 0 {
		c.into.CountedSince = sqldb.Instant(us)
	}
	return nil
}

func columnText(src any) string {
	switch v := src.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// RulesOf adds to a caller the rules that may apply to its calls, as of a
// version of the organization's and one of the configuration file's: those of its
// organization, sub-account and key, and of the key's ancestors, and those of the
// file that the operator has not replaced.
func (s *Store) RulesOf(ctx context.Context, c *modelgate.Caller, version, file int64) error {
	if err := s.ownRules(ctx, c, version); err != nil || file == 0 {
		return sqldb.Wrap("look up rules", err)
	}
	set, err := s.ruleSet(ctx, s.db.Read, modelgate.FileClient, file)
	if err != nil {
		return sqldb.Wrap("look up the configuration's limits", err)
	}
	add := slices.DeleteFunc(slices.Clone(set.all), func(b *modelgate.Budget) bool {
		return b.Level == modelgate.LevelSubAccount && c.SubAccountID == "" || slices.ContainsFunc(c.Rules, b.ReplacedBy)
	})
	if len(add) > 0 {
		c.Rules = slices.Concat(c.Rules, add)
		modelgate.SortRules(c.Rules)
	}
	return nil
}

func (s *Store) ownRules(ctx context.Context, c *modelgate.Caller, version int64) error {
	if version == 0 {
		return nil
	}
	set, err := s.ruleSet(ctx, s.db.Read, c.ClientID, version)
	if err != nil {
		return err
	}
	c.Rules = set.of[target{modelgate.LevelClient, string(c.ClientID)}]
	own := slices.Concat(set.of[target{modelgate.LevelSubAccount, string(c.SubAccountID)}], set.of[target{modelgate.LevelKey, string(c.KeyID)}])
	for i, a := range c.Ancestors {
		for _, b := range set.of[target{modelgate.LevelKey, string(a.KeyID)}] {
			above := *b
			above.Generation = i + 1
			own = append(own, &above)
		}
	}
	if len(own) > 0 {
		c.Rules = slices.Concat(c.Rules, own)
		modelgate.SortRules(c.Rules)
	}
	return nil
}

// Charges begins the charges of a transaction that books rows of some clients.
// From here on nobody changes the rules of these clients until it ends.
func (s *Store) Charges(ctx context.Context, tx *sql.Tx, clients map[modelgate.ClientID]struct{}) (*Charges, error) {
	c := new(Charges)
	names := slices.Sorted(maps.Keys(clients))
	versions, file := make(map[modelgate.ClientID]int64, len(names)), int64(0)
	err := s.db.Batch(ctx, tx, sqldb.BatchExec{
		Text: s.headSelect, N: len(names),
		Args: func(dst []any, i int) []any { return append(dst, sqldb.Clean(string(names[i]))) },
		Scan: func(row sqldb.Scanner) error {
			var id modelgate.ClientID
			var version int64
			err := row.Scan(&id, &version, &file)
			if version != 0 {
				versions[id] = version
			}
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	if file != 0 {
		set, err := s.ruleSet(ctx, tx, modelgate.FileClient, file)
		if err != nil {
			return nil, err
		}
		if len(set.all) > 0 {
			c.file = set
		}
	}
	for id, version := range versions {
		set, err := s.ruleSet(ctx, tx, id, version)
		if err != nil {
			return nil, err
		}
		if len(set.byNumber) == 0 {
			continue
		}
		if c.rules == nil {
			c.rules = make(map[modelgate.ClientID]*ruleSet)
		}
		c.rules[id] = set
	}
	return c, nil
}

// ruled is a call of a client with rules, and what it is to be charged.
type ruled struct {
	row *modelgate.UsageRow
	Charge
}

// addRuled adds what a call is to be charged to the counters of the rules that
// count it, and takes it off those that it was reserved on.
func (a amounts) addRuled(set, file *ruleSet, r ruled, above []modelgate.KeyID) error {
	row := r.row
	traits := row.Traits()
	count := func(list []*modelgate.Budget) error {
		for _, b := range list {
			value, counts := b.Counts(&traits)
			if !counts || row.At.Before(b.CountedSince) {
				continue
			}
			if err := a.plus(b.ValueCounter(row.ClientID, row.At, value), Amount{Settled: r.of(b.Unit).Settled}, false); err != nil {
				return err
			}
		}
		return nil
	}
	lists := [][]*modelgate.Budget{file.all, set.of[target{modelgate.LevelClient, string(row.ClientID)}], set.of[target{modelgate.LevelKey, string(row.KeyID)}]}
	if row.SubAccountID != "" {
		lists = append(lists, set.of[target{modelgate.LevelSubAccount, string(row.SubAccountID)}])
	}
	for _, key := range above {
		lists = append(lists, set.of[target{modelgate.LevelKey, string(key)}])
	}
	for _, list := range lists {
		if err := count(list); err != nil {
			return err
		}
	}
	for _, number := range row.Rules {
		if b := cmp.Or(set.byNumber[number], file.byNumber[number]); b != nil {
			value, _ := b.Value(&traits)
			k := b.ValueCounter(row.ClientID, row.At, value)
			n := r.of(b.Unit)
			if err := a.plus(k, Amount{Held: n.Held, Leased: n.Leased}, true); err != nil {
				return err
			}
		}
	}
	return nil
}
