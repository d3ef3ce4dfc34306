package pricing

import (
	"time"

	"modelgate"
)

// At is the rates that hold at an instant for a call of which nothing else is
// known.
func At(p *modelgate.Price, at time.Time) modelgate.Rates {
	return effective(p, &modelgate.Usage{}, at)
}

// Varies reports whether a call can cost more or less than At says.
func Varies(p *modelgate.Price) bool {
	return len(p.Tiers)+len(p.Windows)+len(p.Multipliers) > 0 || len(p.Images) > 1
}

// Known reports whether any unit has a price, at any time. It is false for a
// nil price.
func Known(p *modelgate.Price) bool {
	if p == nil {
		return false
	}
	known := len(p.Images) > 0
	for r := range layers(p) {
		known = known || !r.Empty()
	}
	return known
}

// PerToken reports whether output tokens have a price, as those of a language
// model do. It is false for a nil price.
func PerToken(p *modelgate.Price) bool { return p != nil && p.Base.Has(modelgate.UnitOutput) }

// WithTools is the price with the rates of tools where it has none of its own;
// nil for nil. Searches and grounded requests stand for one another: a price
// that has one of them is not given the other.
func WithTools(p *modelgate.Price, tools modelgate.Rates) *modelgate.Price {
	if p == nil {
		return nil
	}
	if p.Base.Has(modelgate.UnitSearch) || p.Base.Has(modelgate.UnitGroundedRequest) {
		tools.Unset(modelgate.UnitSearch)
		tools.Unset(modelgate.UnitGroundedRequest)
	}
	return &modelgate.Price{
		Base: p.Base.Over(tools), Images: p.Images, Dated: p.Dated, Tiers: p.Tiers, Windows: p.Windows, Multipliers: p.Multipliers,
	}
}

// layers are the base and all rates that can overlay it.
func layers(p *modelgate.Price) func(yield func(*modelgate.Rates) bool) {
	return func(yield func(*modelgate.Rates) bool) {
		more := yield(&p.Base)
		for i := 0; more && i < len(p.Dated); i++ {
			more = yield(&p.Dated[i].Rates)
		}
		for i := 0; more && i < len(p.Tiers); i++ {
			more = yield(&p.Tiers[i].Rates)
		}
		for i := 0; more && i < len(p.Windows); i++ {
			more = yield(&p.Windows[i].Rates)
		}
	}
}

// effective is the base with what applies to the call laid over it.
func effective(p *modelgate.Price, u *modelgate.Usage, at time.Time) modelgate.Rates {
	rates := dated(p, at)
	prompt, passed := u.PromptTokens(), int64(-1)
	base := rates
	for _, t := range p.Tiers {
		if prompt > t.Above && t.Above > passed {
			passed = t.Above
			rates = t.Rates.Over(base)
		}
	}
	rates = windowed(p, at, rates)
	// A picture that no entry of the table matches costs what the dearest
	// does, unless there is a price for any.
	if usd, matched := imagePrice(p, u); len(p.Images) > 0 && (matched || !rates.Has(modelgate.UnitImage)) {
		rates.SetPerMillion(modelgate.UnitImage, int64(usd))
	}
	return rates
}

// dated is the base as it is at the instant.
func dated(p *modelgate.Price, at time.Time) modelgate.Rates {
	rates := p.Base
	var newest time.Time
	for _, d := range p.Dated {
		if !at.Before(d.From) && !d.From.Before(newest) {
			newest = d.From
			rates = d.Rates.Over(p.Base)
		}
	}
	return rates
}

// windowed lays the windows that hold at the instant over rates.
func windowed(p *modelgate.Price, at time.Time, rates modelgate.Rates) modelgate.Rates {
	minute := at.UTC().Hour()*60 + at.UTC().Minute()
	for _, w := range p.Windows {
		if w.From <= w.To && minute >= w.From && minute < w.To || w.From > w.To && (minute >= w.From || minute < w.To) {
			rates = w.Rates.Over(rates)
		}
	}
	return rates
}

// imagePrice is the price of the first entry of the table of images that
// matches the usage, else of the dearest entry; matched is true without a
// table.
func imagePrice(p *modelgate.Price, u *modelgate.Usage) (usd modelgate.Nano, matched bool) {
	for i := range p.Images {
		e := &p.Images[i]
		if (e.Size == "" || e.Size == u.Size) && (e.Quality == "" || e.Quality == u.Quality) {
			return e.USD, true
		}
		usd = max(usd, e.USD)
	}
	return usd, len(p.Images) == 0
}
