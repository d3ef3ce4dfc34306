package focus

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
)

// period is what is gathered of an hour or a day.
type period struct {
	labels   *labels
	from, to time.Time
	groups   map[groupKey]*group
	lines    int
}

// groupKey is what the lines of a group have in common.
type groupKey struct {
	subAccount                            modelgate.SubAccountID
	provider, model, slug, author, region string
	tags                                  string // as JSON
}

// group is the calls of a groupKey.
type group struct {
	lines map[lineKey]*line
	cost  *big.Int // of all its calls, in nano-USD
	// whole counts the calls whose cost their price label does not explain, such
	// as those whose cost the provider states: they cost wholeCost.
	whole     line
	wholeCost *big.Int
}

// lineKey tells the lines of a group apart.
type lineKey struct {
	unit    modelgate.Unit
	price   string // of the unit
	details string // SkuPriceDetails, "" for none
}

// line is a line of a file.
type line struct {
	price             *big.Int
	quanta            int64
	requests, partial int64
}

func (l *line) note(r *modelgate.UsageRow) {
	l.requests++
	if r.ParseStatus != modelgate.ParseOK {
		l.partial++
	}
}

// group is the group of a row. What a sub-account is not to know, its lines do
// not tell: where the calls of the model went.
func (p *period) group(r *modelgate.UsageRow) *group {
	e, b := p.labels.export, &r.CallBegin
	key := groupKey{subAccount: b.SubAccountID, provider: b.Provider, model: b.Model, slug: b.Slug, author: b.Author, region: b.Region}
	if e.Billed {
		key.provider, key.region = "", ""
		if key.slug != "" {
			key.model = ""
		}
	}
	if len(e.Tags) > 0 {
		tags := make(map[string]string, len(e.Tags))
		for _, name := range e.Tags {
			if value, ok := b.Attribution[name]; ok {
				tags[name] = value
			}
		}
		text, _ := json.Marshal(tags) // sorts the keys, and always succeeds
		key.tags = string(text)
	}
	g := p.groups[key]
	if g == nil {
		g = &group{lines: make(map[lineKey]*line), cost: new(big.Int), wholeCost: new(big.Int)}
		p.groups[key] = g
		p.lines++ // it may need one for its rounding
	}
	return g
}

// labels are the prices of an export's rows by their labels.
type labels struct {
	export *Export
	known  map[labelKey]*prices
}

type labelKey struct {
	text   string
	markup modelgate.Markup
}

// prices are what a label says, with the markup; nil where it is no label.
type prices struct {
	label    *pricing.Label
	priced   [modelgate.UnitCount]bool
	price    [modelgate.UnitCount]*big.Int
	text     [modelgate.UnitCount]string
	nano     [modelgate.UnitCount]float64 // a quantum costs, without the markup
	details  string
	advisors *prices
}

// maxLabels bounds the labels that are remembered: prices that change daily make
// a few for each model.
const maxLabels = 10_000

func (l *labels) of(r *modelgate.UsageRow) *prices {
	key := labelKey{text: r.PriceLabel}
	if l.export.Billed {
		key.markup = l.export.Accounts[r.SubAccountID].Markup
	}
	made, there := l.known[key]
	if !there {
		if label, err := pricing.ParseLabel(key.text); err == nil {
			made = newPrices(label, key.markup, !l.export.Billed)
		}
		if len(l.known) >= maxLabels {
			clear(l.known)
		}
		l.known[key] = made
	}
	return made
}

func newPrices(label *pricing.Label, m modelgate.Markup, detailed bool) *prices {
	made := &prices{label: label}
	for u := range modelgate.UnitCount {
		rate, ok := label.Rate(u)
		if !ok || u == modelgate.UnitMinute {
			continue
		}
		made.priced[u] = true
		made.price[u] = unitPrice(u, rate, m)
		made.text[u] = decimal(made.price[u], priceDecimals)
		made.nano[u], _ = rate.Float64()
	}
	if detailed {
		made.details = details(label)
	}
	if label.Advisor != nil {
		made.advisors = newPrices(label.Advisor, m, detailed)
	}
	return made
}

// details are SkuPriceDetails: what the rates depend on.
func details(l *pricing.Label) string {
	all := make(map[string]any)
	if l.Above > 0 {
		all["x_above"] = l.Above
	}
	for _, c := range l.Says {
		all["x_"+c.Field] = c.Value
	}
	if len(all) == 0 {
		return ""
	}
	text, _ := json.Marshal(all) // always succeeds
	return string(text)
}

// part is what a row adds to a line.
type part struct {
	key    lineKey
	price  *big.Int
	quanta int64
}

// parts are what a row is charged for, nil where that is not what it costs: its
// label is none, or the cost is from elsewhere.
func (p *prices) parts(r *modelgate.UsageRow) []part {
	if p == nil {
		return nil
	}
	made, nano := p.charge(nil, &r.Usage)
	if advice, ok := r.Usage.Advisor(); ok && p.advisors != nil {
		var more float64
		made, more = p.advisors.charge(made, &advice)
		nano += more
	}
	cost := float64(r.Cost)
	if math.Abs(nano-cost) > 1+cost/1e9 {
		return nil
	}
	return made
}

// charge appends the parts of a usage, and returns about what they cost in
// nano-USD.
func (p *prices) charge(made []part, u *modelgate.Usage) ([]part, float64) {
	nano := 0.0
	for i, quanta := range u.Quantities() {
		unit := modelgate.Unit(i)
		// A call is counted, but charged only where it has a price of its own.
		if quanta == 0 || !p.priced[unit] || !p.label.Charges(unit, u) {
			continue
		}
		made = append(made, part{lineKey{unit, p.text[unit], p.details}, p.price[unit], quanta})
		nano += p.nano[unit] / 1e6 * float64(quanta)
	}
	return made, nano
}

// write writes the lines of the period in the order of their groups.
func (p *period) write(out *table) {
	keys := make([]groupKey, 0, len(p.groups))
	for key := range p.groups {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.subAccount, b.subAccount), cmp.Compare(a.slug, b.slug), cmp.Compare(a.provider, b.provider),
			cmp.Compare(a.model, b.model), cmp.Compare(a.region, b.region), cmp.Compare(a.tags, b.tags), cmp.Compare(a.author, b.author))
	})
	for _, key := range keys {
		p.writeGroup(out, key, p.groups[key])
	}
}

func (p *period) writeGroup(out *table, key groupKey, g *group) {
	e := p.labels.export
	common := e.common(p, key)
	rest := new(big.Int)
	if e.Billed {
		rest.Set(billed(g.cost, e.Accounts[key.subAccount].Markup))
	} else {
		rest.Set(billed(g.cost, 0))
	}
	lines := make([]lineKey, 0, len(g.lines))
	for k := range g.lines {
		lines = append(lines, k)
	}
	slices.SortFunc(lines, func(a, b lineKey) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.details, b.details), cmp.Compare(a.price, b.price))
	})
	for _, k := range lines {
		l := g.lines[k]
		cost := lineCost(k.unit, l.price, l.quanta)
		rest.Sub(rest, cost)
		out.write(common.usage(k.unit, l, cost, k.details, k.unit.String()))
	}
	if g.whole.requests > 0 {
		l := &g.whole
		l.quanta = l.requests * 1_000_000
		var m modelgate.Markup
		if e.Billed {
			m = e.Accounts[key.subAccount].Markup
		}
		l.price = unitPrice(modelgate.UnitRequest, new(big.Rat).SetFrac(g.wholeCost, big.NewInt(l.requests)), m)
		cost := lineCost(modelgate.UnitRequest, l.price, l.quanta)
		rest.Sub(rest, cost)
		out.write(common.usage(modelgate.UnitRequest, l, cost, "", "call"))
	}
	if rest.Sign() != 0 {
		out.write(common.adjustment(rest))
	}
}

func count(n int64) string { return strconv.FormatInt(n, 10) }
