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
	days   map[string]*DayTotal
	labels map[string]*pricing.Label
}

// DayTotal is what all rows of a day come to.
type DayTotal struct {
	Rows int64
	Cost modelgate.Nano
	Open int64 // rows of jobs that have not ended
}

// sums are those of a cell. Amounts are in USD.
type sums struct {
	Quantity *big.Rat `json:"quantity"`
	Cost     *big.Rat `json:"cost"`
	Rated    bool     `json:"rated"` // there was a price
	Rows     int64    `json:"rows"`
	// Unsure is the cost of rows whose usage is estimated, Open that of jobs which
	// have not ended. Late is the quantity of calls that ended the day after.
	Unsure *big.Rat `json:"unsure"`
	Open   *big.Rat `json:"open"`
	Late   *big.Rat `json:"late"`
}

func newSums() *sums {
	return &sums{Quantity: new(big.Rat), Cost: new(big.Rat), Unsure: new(big.Rat), Open: new(big.Rat), Late: new(big.Rat)}
}

// NewBooks are empty.
func NewBooks() *Books {
	return &Books{cells: make(map[Cell]*sums), days: make(map[string]*DayTotal), labels: make(map[string]*pricing.Label)}
}

// Total is what the rows of a day come to.
func (b *Books) Total(day string) DayTotal {
	if t := b.days[day]; t != nil {
		return *t
	}
	return DayTotal{}
}

// Add adds a row. Rows of which it is not known what each unit cost are
// compared as a whole.
func (b *Books) Add(r *modelgate.UsageRow) {
	day := dayOf(r.At)
	total := b.days[day]
	if total == nil {
		total = new(DayTotal)
		b.days[day] = total
	}
	total.Rows++
	total.Cost += r.Cost
	if r.ParseStatus == modelgate.ParseProvisional {
		total.Open++
	}
	label, known := b.labels[r.PriceLabel]
	if !known {
		label, _ = pricing.ParseLabel(r.PriceLabel) // nil for what is no label
		b.labels[r.PriceLabel] = label
	}
	row := rowPart{status: r.ParseStatus, late: dayOf(r.At.Add(time.Duration(r.LatencyMS)*time.Millisecond)) != day}
	var parts []unitPart
	exact := new(big.Rat)
	if label != nil {
		parts = unitParts(nil, label, &r.Usage, r.CallBegin.Model, exact)
		if advice, ok := r.Usage.Advisor(); ok && label.Advisor != nil {
			parts = unitParts(parts, label.Advisor, &advice, r.Usage.AdvisorModel, exact)
		}
	}
	off := exact.Sub(exact, usd(int64(r.Cost)))
	if label == nil || off.Abs(off).Cmp(usd(2)) > 0 {
		b.cell(Cell{Day: day, Model: r.CallBegin.Model}).add(row, new(big.Rat), usd(int64(r.Cost)), true)
		return
	}
	for _, p := range parts {
		p.cell.Day = day
		b.cell(p.cell).add(row, p.quantity, p.cost, p.rated)
	}
}

type rowPart struct {
	status modelgate.ParseStatus
	late   bool
}

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
	s.Rows++
	s.Rated = s.Rated || rated
	s.Quantity.Add(s.Quantity, quantity)
	s.Cost.Add(s.Cost, cost)
	switch row.status {
	case modelgate.ParseOK:
	case modelgate.ParseProvisional:
		s.Open.Add(s.Open, cost)
	default:
		s.Unsure.Add(s.Unsure, cost)
	}
	if row.late {
		s.Late.Add(s.Late, quantity)
	}
}

// merge adds the sums of another cell.
func (s *sums) merge(o *sums) {
	s.Rows += o.Rows
	s.Rated = s.Rated || o.Rated
	for to, from := range map[*big.Rat]*big.Rat{s.Quantity: o.Quantity, s.Cost: o.Cost, s.Unsure: o.Unsure, s.Open: o.Open, s.Late: o.Late} {
		to.Add(to, from)
	}
}

// Each visits what each cell costs.
func (b *Books) Each(visit func(c Cell, usd *big.Rat)) {
	for c, s := range b.cells {
		visit(c, s.Cost)
	}
}
