package invoice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
)

// lineKey tells the lines of a bill apart.
type lineKey struct {
	day, name, project, key string
	class                   Class
	model, unit, variant    string
	counted                 bool // it states a quantity
}

// lineSums are lines of which those that differ in their amounts alone are one.
type lineSums map[lineKey]*Line

func (s lineSums) add(l *Line) {
	k := lineKey{l.Day, l.Name, l.Project, l.Key, l.Class, l.Model, l.Unit, l.Variant, l.Quantity != nil}
	have := s[k]
	if have == nil {
		s[k] = l
		return
	}
	have.Amount.Add(have.Amount, l.Amount)
	have.Decimals = max(have.Decimals, l.Decimals)
	have.Merged += 1 + l.Merged
	if l.Quantity != nil {
		have.Quantity.Add(have.Quantity, l.Quantity)
	}
}

// list is in an order that depends on the lines alone.
func (s lineSums) list() []Line {
	lines := make([]Line, 0, len(s))
	for _, l := range s {
		lines = append(lines, *l)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Class, b.Class), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Variant, b.Variant), a.Amount.Cmp(b.Amount))
	})
	return lines
}

// StoredLines are lines of one day as they are kept. Equal bills give equal text.
func StoredLines(lines []Line) (string, error) {
	sums := make(lineSums)
	for i := range lines {
		l := lines[i]
		l.Amount = new(big.Rat).Set(l.Amount)
		if l.Quantity != nil {
			l.Quantity = new(big.Rat).Set(l.Quantity)
		}
		sums.add(&l)
	}
	text, err := json.Marshal(sums.list())
	return string(text), err
}

// LinesOf reads what StoredLines made.
func LinesOf(day, text string) ([]Line, error) {
	var lines []Line
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		return nil, fmt.Errorf("the bill of %s: %w", day, err)
	}
	for i := range lines {
		lines[i].Day = day
	}
	return lines, nil
}

// storedCell is a cell as it is kept.
type storedCell struct {
	Cell
	sums
}

// Stored are the cells of a day as they are kept.
func (b *Books) Stored(day string) (string, error) {
	cells := []storedCell{}
	for c, s := range b.cells {
		if c.Day == day {
			cells = append(cells, storedCell{c, *s})
		}
	}
	slices.SortFunc(cells, func(a, b storedCell) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Variant, b.Variant))
	})
	text, err := json.Marshal(cells)
	return string(text), err
}

// Load adds the cells of a day that Stored has made, with what its rows cost.
func (b *Books) Load(day, cells string, total DayTotal) error {
	var list []storedCell
	if err := json.Unmarshal([]byte(cells), &list); err != nil {
		return fmt.Errorf("the sums of %s: %w", day, err)
	}
	for i := range list {
		c := &list[i]
		if c.Quantity == nil || c.Cost == nil || c.Unsure == nil || c.Open == nil || c.Late == nil {
			return fmt.Errorf("the sums of %s are damaged", day)
		}
		b.cell(c.Cell).merge(&c.sums)
	}
	b.days[day] = &total
	return nil
}
