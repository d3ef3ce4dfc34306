package invoice

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"modelgate"
)

// Scope is what of a bill concerns this gateway, and what the operator pays.
type Scope struct {
	Provider string
	From, To time.Time // whole UTC days; To is not included
	// Projects and Keys are the ids of this gateway's; empty for all.
	Projects, Keys []string
	// Factor is what of the rows' cost the operator pays on a day.
	Factor func(day string) *big.Rat
	// Compared reports whether a day of the range is compared; nil is all of them. Rows
	// of other days tell what has moved over midnight.
	Compared func(day string) bool
}

// has reports whether a day is compared.
func (s *Scope) has(day string) bool {
	return day >= dayOf(s.From) && day < dayOf(s.To) && (s.Compared == nil || s.Compared(day))
}

// pair is both sides of a cell.
type pair struct {
	Cell
	own      *sums
	lines    int64
	amount   *big.Rat
	quantity *big.Rat // of the bill; nil where some line does not say
	volume   *big.Rat // the part of the difference that is the bill's quantity less the rows'
	rate     *big.Rat // of the bill, else of the rows
	causes   map[string]*big.Rat
}

// comparison is one under way.
type comparison struct {
	scope Scope
	pairs map[Cell]*pair
	// earlier is the quantity of calls of the day before that ended on the day of a
	// cell, where the day before is not compared.
	earlier map[Cell]*big.Rat
	causes  map[string]*big.Rat
	cells   map[string]int
	open    *big.Rat // what no cause explains, absolute per cell
	grain   *big.Rat // half of the last decimal of the bill
	report  *Report
}

// Compare explains a bill by the rows of the same days.
func Compare(lines []Line, books *Books, scope Scope) *Report {
	c := &comparison{
		scope: scope, pairs: make(map[Cell]*pair), earlier: make(map[Cell]*big.Rat), causes: make(map[string]*big.Rat), cells: make(map[string]int), open: new(big.Rat),
		report: &Report{Provider: scope.Provider, From: dayOf(scope.From), To: dayOf(scope.To), Cells: []CellDifference{}, Unmapped: []UnmappedLine{}},
	}
	invoiced, all := new(big.Rat), new(big.Rat)
	decimals := 0
	for i := range lines {
		invoiced.Add(invoiced, lines[i].Amount)
		all.Add(all, new(big.Rat).Abs(lines[i].Amount))
		decimals = max(decimals, lines[i].Decimals)
	}
	c.grain = new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Mul(big.NewInt(2), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
	c.pairUp(c.own(lines), books)
	exact, expected := new(big.Rat), new(big.Rat)
	for _, p := range c.pairs {
		exact.Add(exact, p.own.Cost)
		expected.Add(expected, c.split(p))
	}
	own := new(big.Rat)
	for day, total := range books.days {
		if scope.has(day) {
			own.Add(own, usd(int64(total.Cost)))
		}
	}
	c.note(nil, Rounding, new(big.Rat).Sub(exact, own)) // rows are rounded one by one
	c.crossMidnight()
	for _, p := range c.pairs {
		c.settle(p)
	}
	c.finish(invoiced, all, own, expected)
	return c.report
}

// own leaves the lines that the rows must explain, and names what the others
// are for.
func (c *comparison) own(lines []Line) (own []Line) {
	foreign := func(ids []string, id string) bool { return len(ids) > 0 && !slices.Contains(ids, id) }
	unmapped := make(map[string]*big.Rat)
	for _, l := range lines {
		switch {
		case l.Class == Credit:
			c.note(nil, Credits, l.Amount)
		case foreign(c.scope.Projects, l.Project), foreign(c.scope.Keys, l.Key):
			c.note(nil, OtherTraffic, l.Amount)
		case l.Class == Storage:
			c.note(nil, StorageCost, l.Amount)
		case l.Class == Unmapped:
			c.note(nil, UnmappedLines, l.Amount)
			if unmapped[l.Name] == nil {
				unmapped[l.Name] = new(big.Rat)
			}
			unmapped[l.Name].Add(unmapped[l.Name], l.Amount)
		default:
			own = append(own, l)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unmapped)) {
		c.report.Unmapped = append(c.report.Unmapped, UnmappedLine{name, Nano(unmapped[name])})
	}
	return own
}

// pairUp puts lines and rows into the same cells. Where either side has one
// amount for all units of a model, all are one cell.
func (c *comparison) pairUp(lines []Line, books *Books) {
	names := newNames(books.cells, lines)
	whole := make(map[Cell]bool)
	model := func(cell Cell) Cell { return Cell{Day: cell.Day, Model: cell.Model} }
	for cell := range books.cells {
		if at := names.of(cell); at.Unit == "" {
			whole[model(at)] = true
		}
	}
	for i := range lines {
		if at := names.of(lines[i].cell()); at.Unit == "" {
			whole[model(at)] = true
		}
	}
	find := func(cell Cell) *pair {
		at := names.of(cell)
		if whole[model(at)] {
			at = model(at)
		}
		p := c.pairs[at]
		if p == nil {
			p = &pair{Cell: at, own: newSums(), amount: new(big.Rat), quantity: new(big.Rat), volume: new(big.Rat), causes: make(map[string]*big.Rat)}
			c.pairs[at] = p
		}
		return p
	}
	for cell, s := range books.cells {
		if c.scope.has(cell.Day) {
			find(cell).own.merge(s)
		} else if at := names.of(cell).on(1); c.scope.has(at.Day) {
			if c.earlier[at] == nil {
				c.earlier[at] = new(big.Rat)
			}
			c.earlier[at].Add(c.earlier[at], s.Late)
		}
	}
	for i := range lines {
		l := &lines[i]
		p := find(l.cell())
		p.lines += 1 + l.Merged
		p.amount.Add(p.amount, l.Amount)
		if l.Quantity == nil || p.quantity == nil {
			p.quantity = nil
			continue
		}
		p.quantity.Add(p.quantity, l.Quantity)
	}
}

func (l *Line) cell() Cell { return Cell{Day: l.Day, Model: l.Model, Unit: l.Unit, Variant: l.Variant} }

// split divides the difference of a pair into price and volume, and returns what
// was expected. Both are exact: their sum is the difference.
func (c *comparison) split(p *pair) (expected *big.Rat) {
	factor := c.scope.Factor(p.Day)
	expected = new(big.Rat).Mul(p.own.Cost, factor)
	c.note(p, ContractFactor, new(big.Rat).Sub(expected, p.own.Cost))
	difference := new(big.Rat).Sub(p.amount, expected)
	switch {
	case p.Unit == "" || p.lines > 0 && p.quantity == nil:
		if c.rounds(p, difference) {
			c.note(p, Rounding, difference)
			return expected
		}
		p.volume.Set(difference)
		return expected
	case p.lines == 0, p.own.Rows == 0, p.quantity.Sign() == 0, p.own.Quantity.Sign() == 0:
		p.volume.Set(difference)
		if p.own.Quantity.Sign() > 0 {
			p.rate = new(big.Rat).Quo(expected, p.own.Quantity)
		} else if p.quantity != nil && p.quantity.Sign() > 0 {
			p.rate = new(big.Rat).Quo(p.amount, p.quantity)
		}
		return expected
	}
	p.rate = new(big.Rat).Quo(p.amount, p.quantity)
	more := new(big.Rat).Sub(p.quantity, p.own.Quantity)
	p.volume.Mul(more, p.rate)
	price := difference.Sub(difference, p.volume)
	unit, _ := modelgate.UnitByName(p.Unit)
	switch {
	case c.rounds(p, price):
		c.note(p, Rounding, price)
	case !p.own.Rated:
		c.note(p, Unpriced, price)
	case unit.Kind() == modelgate.ProviderTool:
		c.note(p, ToolPrice, price)
	default:
		c.note(p, Price, price)
	}
	return expected
}

// rounds reports whether a difference is no more than what rows and lines are
// rounded by.
func (c *comparison) rounds(p *pair, difference *big.Rat) bool {
	most := new(big.Rat).Mul(big.NewRat(p.own.Rows, 2), usd(1))
	most.Add(most, new(big.Rat).Mul(c.grain, big.NewRat(max(p.lines, 1), 1)))
	most.Add(most, new(big.Rat).Mul(new(big.Rat).Abs(p.amount), big.NewRat(1, 1_000_000_000_000))) // a float64 of the provider's
	return new(big.Rat).Abs(difference).Cmp(most) <= 0
}

// crossMidnight finds what a bill has a day later than the rows, because calls
// ended after midnight: opposite volumes of two days, no more than these calls'. Of
// a day that is not compared its rows alone tell.
func (c *comparison) crossMidnight() {
	for cell, p := range c.pairs {
		if p.rate == nil {
			continue
		}
		if before := c.earlier[cell]; before != nil && p.volume.Sign() > 0 {
			c.take(p, Boundary, least(new(big.Rat).Mul(before, p.rate), p.volume))
		}
		if p.volume.Sign() >= 0 || p.own.Late.Sign() == 0 {
			continue
		}
		moved := least(new(big.Rat).Neg(p.volume), new(big.Rat).Mul(p.own.Late, p.rate))
		if tomorrow := cell.on(1); c.scope.has(tomorrow.Day) {
			next := c.pairs[tomorrow]
			if next == nil || next.volume.Sign() <= 0 {
				continue
			}
			moved = least(moved, next.volume)
			c.take(next, Boundary, moved)
		}
		c.take(p, Boundary, new(big.Rat).Neg(moved))
	}
}

// on is the same cell some days later.
func (c Cell) on(days int) Cell {
	if day, err := time.Parse(time.DateOnly, c.Day); err == nil {
		c.Day = dayOf(day.AddDate(0, 0, days))
	}
	return c
}

// settle names what is left of a pair's volume.
func (c *comparison) settle(p *pair) {
	for _, part := range [...]struct {
		cause string
		most  *big.Rat
	}{{Open, p.own.Open}, {Cut, p.own.Unsure}} {
		if p.volume.Sign() != 0 && part.most.Sign() > 0 {
			amount := least(new(big.Rat).Abs(p.volume), part.most)
			if p.volume.Sign() < 0 {
				amount.Neg(amount)
			}
			c.take(p, part.cause, amount)
		}
	}
	rest := Unexplained
	switch {
	case p.rate == nil && p.lines > 0 && p.own.Rows > 0: // only amounts are known
	case p.volume.Sign() > 0:
		rest = MissingRows
	case p.volume.Sign() < 0:
		rest = ExtraRows
	}
	c.take(p, rest, new(big.Rat).Set(p.volume))
}

// take moves a part of a pair's volume to a cause.
func (c *comparison) take(p *pair, cause string, part *big.Rat) {
	p.volume.Sub(p.volume, part)
	c.note(p, cause, part)
}

// note adds an amount to a cause; p is nil for what concerns no cell.
func (c *comparison) note(p *pair, cause string, amount *big.Rat) {
	if amount.Sign() == 0 {
		return
	}
	if c.causes[cause] == nil {
		c.causes[cause] = new(big.Rat)
	}
	c.causes[cause].Add(c.causes[cause], amount)
	c.cells[cause]++
	if !explains(cause) {
		c.open.Add(c.open, new(big.Rat).Abs(amount))
	}
	if p == nil {
		return
	}
	if p.causes[cause] == nil {
		p.causes[cause] = new(big.Rat)
	}
	p.causes[cause].Add(p.causes[cause], amount)
}

func least(first *big.Rat, others ...*big.Rat) *big.Rat {
	for _, o := range others {
		if o.Cmp(first) < 0 {
			first = o
		}
	}
	return new(big.Rat).Set(first)
}

// finish writes the report.
func (c *comparison) finish(invoiced, all, own, expected *big.Rat) {
	r := c.report
	r.Invoiced, r.Own, r.Expected, r.Unexplained = Nano(invoiced), Nano(own), Nano(expected), Nano(c.open)
	switch {
	case all.Sign() > 0:
		r.UnexplainedPercent, _ = new(big.Rat).Mul(new(big.Rat).Quo(c.open, all), big.NewRat(100, 1)).Float64()
	case c.open.Sign() > 0:
		r.UnexplainedPercent = 100
	}
	r.ExplainedPercent = max(100-r.UnexplainedPercent, 0)
	for _, name := range causeOrder {
		if amount := c.causes[name]; amount != nil {
			r.Causes = append(r.Causes, Cause{name, Nano(amount), c.cells[name], explains(name)})
		}
	}
	type ranked struct {
		CellDifference
		size *big.Rat
	}
	var list []ranked
	for _, p := range c.pairs {
		size := new(big.Rat)
		for cause, amount := range p.causes {
			if cause != Rounding && cause != ContractFactor {
				size.Add(size, new(big.Rat).Abs(amount))
			}
		}
		if size.Sign() > 0 {
			list = append(list, ranked{p.difference(), size})
		}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(b.size.Cmp(a.size), cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Variant, b.Variant))
	})
	for _, one := range list[:min(len(list), MaxCells)] {
		r.Cells = append(r.Cells, one.CellDifference)
	}
}

// difference shows a pair.
func (p *pair) difference() CellDifference {
	d := CellDifference{Cell: p.Cell, Invoiced: Nano(p.amount), Own: Nano(p.own.Cost), Causes: make(map[string]modelgate.Nano, len(p.causes))}
	for cause, amount := range p.causes {
		d.Causes[cause] = Nano(amount)
	}
	unit, known := modelgate.UnitByName(p.Unit)
	if !known {
		return d
	}
	d.OwnQuantity, d.OwnRate = decimal(p.own.Quantity), rateText(unit, p.own.Cost, p.own.Quantity)
	if p.quantity != nil {
		d.InvoicedQuantity, d.InvoicedRate = decimal(p.quantity), rateText(unit, p.amount, p.quantity)
	}
	return d
}

// rateText is what so much of a unit costs as a price is quoted for.
func rateText(u modelgate.Unit, amount, quantity *big.Rat) string {
	if quantity.Sign() == 0 {
		return ""
	}
	rate := new(big.Rat).Quo(amount, quantity)
	return decimal(rate.Mul(rate, big.NewRat(u.Per(), 1)))
}

// decimal is a number with at most nine decimals, without trailing zeros.
func decimal(r *big.Rat) string { return Nano(r).String() }
