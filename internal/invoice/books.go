package invoice

import (
	"math/big"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
)

// Books are the sums of a provider's usage rows by cell. Use NewBooks.
type Books struct {
	cells  map[Cell]*sums
	own    *big.Rat // what the rows cost, in USD
	labels map[string]*pricing.Label
}

// sums are those of a cell.
type sums struct {
	quantity, cost *big.Rat
	rated          bool // there was a price
	rows           int64
	// unsure is the part of rows whose usage is estimated, late that of calls
	// that ended the day after.
	unsureCost, unsureQuantity, late *big.Rat
}

func newSums() *sums {
	return &sums{quantity: new(big.Rat), cost: new(big.Rat), unsureCost: new(big.Rat), unsureQuantity: new(big.Rat), late: new(big.Rat)}
}

// NewBooks are empty.
func NewBooks() *Books {
	return &Books{cells: make(map[Cell]*sums), own: new(big.Rat), labels: make(map[string]*pricing.Label)}
}

// Add adds a row. Rows of which it is not known what each unit cost are
// compared as a whole.
func (b *Books) Add(r *modelgate.UsageRow) {
	b.own.Add(b.own, usd(int64(r.Cost)))
	label, known := b.labels[r.PriceLabel]
	if !known {
		label, _ = pricing.ParseLabel(r.PriceLabel) // nil for what is no label
		b.labels[r.PriceLabel] = label
	}
	day := dayOf(r.At)
	row := rowPart{unsure: r.ParseStatus != modelgate.ParseOK, late: dayOf(r.At.Add(time.Duration(r.LatencyMS)*time.Millisecond)) != day}
	var parts []unitPart
	total := new(big.Rat)
	if label != nil {
		parts = unitParts(nil, label, &r.Usage, r.CallBegin.Model, total)
		if advice, ok := r.Usage.Advisor(); ok && label.Advisor != nil {
			parts = unitParts(parts, label.Advisor, &advice, r.Usage.AdvisorModel, total)
		}
	}
	off := total.Sub(total, usd(int64(r.Cost)))
	if label == nil || off.Abs(off).Cmp(usd(2)) > 0 {
		b.cell(Cell{Day: day, Model: r.CallBegin.Model}).add(row, new(big.Rat), usd(int64(r.Cost)), true)
		return
	}
	for _, p := range parts {
		p.cell.Day = day
		b.cell(p.cell).add(row, p.quantity, p.cost, p.rated)
	}
}

type rowPart struct{ unsure, late bool }

// unitPart is what a row has of a unit.
type unitPart struct {
	cell           Cell
	quantity, cost *big.Rat
	rated          bool
}

// unitParts appends what a usage has of each unit, and adds its cost to total.
// Bills have reasoning among the output, and tools without their model.
func unitParts(parts []unitPart, label *pricing.Label, u *modelgate.Usage, model string, total *big.Rat) []unitPart {
	long := ""
	if label.Above > 0 {
		long = Long
	}
	variant := variantOf(u.ServiceTier, u.Speed, long)
	for i, quanta := range u.Quantities() {
		unit := modelgate.Unit(i)
		rate, rated := label.Rate(unit)
		if quanta == 0 || !label.Charges(unit, u) || !rated && (unit == modelgate.UnitRequest || unit == modelgate.UnitMinute) {
			continue
		}
		p := unitPart{cell: Cell{Model: model, Unit: unit.String(), Variant: variant}, quantity: natural(unit, quanta), cost: new(big.Rat), rated: rated}
		if rated {
			p.cost.Mul(rate, big.NewRat(quanta, 1_000_000)).Quo(p.cost, big.NewRat(int64(modelgate.USD), 1))
			total.Add(total, p.cost)
		}
		switch {
		case unit == modelgate.UnitReasoning:
			p.cell.Unit = modelgate.UnitOutput.String()
		case unit.Kind() == modelgate.ProviderTool:
			p.cell.Model, p.cell.Variant = "", ""
		}
		parts = append(parts, p)
	}
	return parts
}

// natural is a quantity as bills count it: in pieces and seconds.
func natural(u modelgate.Unit, quanta int64) *big.Rat {
	if u.Per() == 1 {
		return big.NewRat(quanta, 1_000_000)
	}
	return big.NewRat(quanta, 1)
}

func usd(nano int64) *big.Rat { return big.NewRat(nano, int64(modelgate.USD)) }

func (b *Books) cell(c Cell) *sums {
	s := b.cells[c]
	if s == nil {
		s = newSums()
		b.cells[c] = s
	}
	return s
}

func (s *sums) add(row rowPart, quantity, cost *big.Rat, rated bool) {
	s.rows++
	s.rated = s.rated || rated
	s.quantity.Add(s.quantity, quantity)
	s.cost.Add(s.cost, cost)
	if row.unsure {
		s.unsureCost.Add(s.unsureCost, cost)
		s.unsureQuantity.Add(s.unsureQuantity, quantity)
	}
	if row.late {
		s.late.Add(s.late, quantity)
	}
}

// merge adds the sums of another cell.
func (s *sums) merge(o *sums) {
	s.rows += o.rows
	s.rated = s.rated || o.rated
	for to, from := range map[*big.Rat]*big.Rat{s.quantity: o.quantity, s.cost: o.cost, s.unsureCost: o.unsureCost, s.unsureQuantity: o.unsureQuantity, s.late: o.late} {
		to.Add(to, from)
	}
}
