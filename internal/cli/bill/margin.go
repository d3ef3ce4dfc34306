package bill

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/invoice"
	"modelgate/internal/report"
	"modelgate/internal/store"
)

// By are the words that margins are summed by.
func By() []string { return []string{"provider", "model", "route", "client", "sub_account", "day"} }

// Margin is what calls earn the operator and the resellers. Every sum is exact and
// rounded once.
type Margin struct {
	Group    string         `json:"group"`
	Requests int64          `json:"requests"`
	Cost     modelgate.Nano `json:"cost_usd"`     // what organizations are charged
	Contract modelgate.Nano `json:"contract_usd"` // what the operator pays the providers by contract
	Operator modelgate.Nano `json:"operator_margin_usd"`
	// Billed is what sub-accounts are billed at their present markups, and Reseller
	// that less the cost of their calls; null without such calls.
	Billed   *modelgate.Nano `json:"billed_usd"`
	Reseller *modelgate.Nano `json:"reseller_margin_usd"`
	Percent  *modelgate.Nano `json:"reseller_margin_percent"`
}

// margins sums calls of one group.
type margins struct {
	requests int64
	cost     modelgate.Nano
	byDay    map[[2]string]modelgate.Nano // by provider and day
	figures  report.Figures
}

// Margin prints the margins of the organizations' calls on the days of the flags.
// Of an organization those that may be pruned are an error.
func (c *Command) Margin(db *store.DB, clients []modelgate.Client, factor func(provider, day string) *big.Rat) error {
	from, to, err := c.days()
	if err != nil {
		return err
	}
	groups := make(map[string]*margins)
	markups := make(map[modelgate.SubAccountID]modelgate.Markup)
	for i := range clients {
		if err := c.sum(db, &clients[i], from, to, groups, markups); err != nil {
			return err
		}
	}
	list := make([]Margin, 0, len(groups))
	for name, g := range groups {
		list = append(list, g.margin(name, factor, markups))
	}
	slices.SortFunc(list, func(a, b Margin) int {
		if c.By == "day" {
			return cmp.Compare(a.Group, b.Group)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Group, b.Group))
	})
	return c.Table(list, "GROUP\tREQUESTS\tCOST USD\tCONTRACT USD\tOPERATOR MARGIN USD\tBILLED USD\tRESELLER MARGIN USD\tRESELLER MARGIN PERCENT", func(row func(...any)) {
		for _, m := range list {
			row(m.Group, m.Requests, m.Cost, m.Contract, m.Operator, orDash(m.Billed, modelgate.Nano.String), orDash(m.Reseller, modelgate.Nano.String), orDash(m.Percent, modelgate.Nano.String))
		}
	})
}

// sum adds the calls of an organization to the groups.
func (c *Command) sum(db *store.DB, client *modelgate.Client, from, to time.Time, groups map[string]*margins, markups map[modelgate.SubAccountID]modelgate.Markup) error {
	pruned, _, err := db.UsageBounds(c.Context, client.ID)
	if err != nil {
		return err
	}
	if from.Before(pruned) {
		return UsageError(client.Name + ": usage before " + pruned.Format(time.DateOnly) + " is pruned")
	}
	accounts, err := db.SubAccounts(c.Context, client.ID)
	if err != nil {
		return err
	}
	names := make(map[modelgate.SubAccountID]string, len(accounts))
	for _, a := range accounts {
		markups[a.ID], names[a.ID] = a.Markup, client.Name+"/"+a.Name
	}
	return db.UsageSpan(c.Context, client.ID, "", from, to, func(r *modelgate.UsageRow) error {
		day := r.At.UTC().Format(time.DateOnly)
		provider, model := r.CallBegin.Provider, r.CallBegin.Model
		group := map[string]string{
			"provider": provider, "model": cmp.Or(r.Slug, model), "route": provider + "/" + model, "client": client.Name,
			"sub_account": cmp.Or(names[r.SubAccountID], client.Name), "day": day,
		}[c.By]
		g := groups[group]
		if g == nil {
			g = &margins{byDay: make(map[[2]string]modelgate.Nano)}
			groups[group] = g
		}
		g.requests++
		g.cost = g.cost.Add(r.Cost)
		key := [2]string{provider, day}
		g.byDay[key] = g.byDay[key].Add(r.Cost)
		if r.SubAccountID != "" {
			g.figures.Resell(r.SubAccountID, r.Cost)
		}
		return c.Context.Err()
	})
}

func (g *margins) margin(name string, factor func(provider, day string) *big.Rat, markups map[modelgate.SubAccountID]modelgate.Markup) Margin {
	contract := new(big.Rat)
	for key := range maps.Keys(g.byDay) {
		part := big.NewRat(int64(g.byDay[key]), int64(modelgate.USD))
		contract.Add(contract, part.Mul(part, factor(key[0], key[1])))
	}
	m := Margin{Group: name, Requests: g.requests, Cost: g.cost, Contract: invoice.Nano(contract)}
	m.Operator = m.Cost - m.Contract
	billed, resold, any := g.figures.Billed(func(id modelgate.SubAccountID) modelgate.Markup { return markups[id] })
	if any {
		reseller := billed - resold
		m.Billed, m.Reseller, m.Percent = &billed, &reseller, report.MarginPercent(reseller, billed)
	}
	return m
}
