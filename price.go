package modelgate

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"
)

// Unit is something that is counted and priced. Quantities are integers:
// whole tokens, characters and searches, and millionths of images, requests,
// seconds and megapixels, so that half a second is still exact.
type Unit uint8

// The units, named as in the configuration.
const (
	UnitInput        Unit = iota // uncached input tokens
	UnitCachedInput              // input tokens read from a prompt cache
	UnitCacheWrite               // input tokens written to it for five minutes
	UnitCacheWrite1h             // … for an hour
	UnitOutput                   // output tokens, reasoning included
	UnitAudioInput               // audio tokens in
	UnitAudioOutput              // audio tokens out
	UnitImage                    // pictures made
	UnitSecond                   // seconds of video or sound
	UnitCharacters               // Unicode code points of text
	UnitSearch                   // searches, or search units of a reranker
	UnitMegapixel                // pixels made
	UnitRequest                  // calls
	unitCount
)

// unitNames spells the units, with how many quanta one price of the
// configuration is for: tokens are priced by the million.
var unitNames = [unitCount]struct {
	name string
	per  int64 // quanta covered by the configured price
}{
	UnitInput:        {"input", 1_000_000},
	UnitCachedInput:  {"cached_input", 1_000_000},
	UnitCacheWrite:   {"cache_write", 1_000_000},
	UnitCacheWrite1h: {"cache_write_1h", 1_000_000},
	UnitOutput:       {"output", 1_000_000},
	UnitAudioInput:   {"audio_input", 1_000_000},
	UnitAudioOutput:  {"audio_output", 1_000_000},
	UnitImage:        {"image", 1_000_000},
	UnitSecond:       {"second", 1_000_000},
	UnitCharacters:   {"characters", 1_000_000},
	UnitSearch:       {"search", 1_000},
	UnitMegapixel:    {"megapixel", 1_000_000},
	UnitRequest:      {"request", 1_000_000},
}

// String is the name in the configuration.
func (u Unit) String() string { return unitNames[u].name }

// UnitByName finds a unit by its name in the configuration.
func UnitByName(name string) (Unit, bool) {
	for u := range unitCount {
		if unitNames[u].name == name {
			return u, true
		}
	}
	return 0, false
}

// Rates are prices by unit. The zero value has none.
type Rates struct {
	nano [unitCount]int64 // nano-USD per million quanta
	set  uint16           // bit u: the unit has a price, which may be 0
}

// Set prices a unit: usd per million tokens or characters, per thousand
// searches, else per image, second, megapixel or request.
func (r *Rates) Set(u Unit, usd Nano) error {
	factor := 1_000_000 / unitNames[u].per
	if usd < 0 || int64(usd) > math.MaxInt64/factor {
		return fmt.Errorf("price of %s: out of range", u)
	}
	r.nano[u] = int64(usd) * factor
	r.set |= 1 << u
	return nil
}

// has reports whether the unit has a price of its own.
func (r *Rates) has(u Unit) bool { return r.set&(1<<u) != 0 }

// Empty reports whether no unit has a price.
func (r *Rates) Empty() bool { return r.set == 0 }

// over lays the prices of r over those of base.
func (r *Rates) over(base Rates) Rates {
	for u := range unitCount {
		if r.has(u) {
			base.nano[u] = r.nano[u]
		}
	}
	base.set |= r.set
	return base
}

// rate is the price of a unit, by the rule that an unpriced unit costs what
// its dearer neighbour does, never nothing.
func (r *Rates) rate(u Unit) (int64, bool) {
	if r.has(u) {
		return r.nano[u], true
	}
	switch u {
	case UnitCachedInput, UnitCacheWrite, UnitAudioInput:
		return r.rate(UnitInput)
	case UnitCacheWrite1h:
		return r.rate(UnitCacheWrite)
	case UnitAudioOutput:
		return r.rate(UnitOutput)
	}
	return 0, false
}

// Price is what a model costs. It is immutable once in use; nil means that no
// price is known. What applies is Base, overlaid by the newest Dated entry
// that has begun, by the highest Tier passed, and by the UTC window the call
// began in; the cost is multiplied by every Multiplier that matches.
type Price struct {
	Base        Rates
	Images      []ImagePrice
	Dated       []DatedPrice
	Tiers       []TierPrice
	Windows     []WindowPrice
	Multipliers []Multiplier

	once      sync.Once
	baseLabel string // Base in words; most calls are priced by it alone
}

// ImagePrice is the price of one picture by size and quality; an empty field
// matches any. The first that matches applies.
type ImagePrice struct {
	Size, Quality string
	USD           Nano
}

// DatedPrice holds from an instant on.
type DatedPrice struct {
	From  time.Time
	Rates Rates
}

// TierPrice holds for the whole call when its prompt, cached tokens
// included, has more than Above tokens.
type TierPrice struct {
	Above int64
	Rates Rates
}

// WindowPrice holds for calls that begin in [From, To), minutes of the UTC
// day; From > To passes midnight.
type WindowPrice struct {
	From, To int
	Rates    Rates
}

// Multiplier scales the cost when the reply says a field has a value, such
// as service_tier flex. Millionths: 500,000 halves.
type Multiplier struct {
	Field, Value string
	Millionths   int64
}

// Priced says how far a cost could be computed.
type Priced uint8

// The outcomes.
const (
	Unpriced   Priced = iota // no unit of the call has a price: cost 0
	PartPriced               // some unit that was used has none
	FullyPriced
)

// Cost is the price of a usage for a call admitted at the instant at, rounded
// half to even once, together with the rates it was computed with, in the
// words of the configuration. A nil price is Unpriced.
func (p *Price) Cost(u *Usage, at time.Time) (Nano, Priced, string) {
	if p == nil {
		return 0, Unpriced, ""
	}
	rates := p.effective(u, at)
	var hi, lo uint64
	priced := pricing{}
	for unit := range unitCount {
		quantity := u.quantity(unit)
		if quantity <= 0 {
			continue
		}
		rate, ok := rates.rate(unit)
		priced.note(unit, ok)
		if !ok {
			continue
		}
		h, l := bits.Mul64(uint64(quantity), uint64(rate))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, carry = bits.Add64(hi, h, carry)
		if carry != 0 {
			return math.MaxInt64, PartPriced, p.label(rates)
		}
	}
	label := p.label(rates)
	factor, divisor := p.multiplier(u, &label)
	if factor == nil {
		return divideHalfEven(hi, lo, 1_000_000), priced.outcome(rates), label
	}
	sum := new(big.Int).SetUint64(hi)
	sum.Lsh(sum, 64).Or(sum, new(big.Int).SetUint64(lo))
	sum.Mul(sum, factor)
	return divideBigHalfEven(sum, divisor.Mul(divisor, big.NewInt(1_000_000))), priced.outcome(rates), label
}

// label is the rates in words.
func (p *Price) label(r Rates) string {
	p.once.Do(func() { p.baseLabel = p.Base.String() })
	if r == p.Base {
		return p.baseLabel
	}
	return r.String()
}

// effective overlays what applies to this call.
func (p *Price) effective(u *Usage, at time.Time) Rates {
	rates := p.Base
	var newest time.Time
	for _, d := range p.Dated {
		if !at.Before(d.From) && !d.From.Before(newest) {
			newest = d.From
			rates = d.Rates.over(rates)
		}
	}
	prompt, passed := u.PromptTokens(), int64(-1)
	base := rates
	for _, t := range p.Tiers {
		if prompt > t.Above && t.Above > passed {
			passed = t.Above
			rates = t.Rates.over(base)
		}
	}
	minute := at.UTC().Hour()*60 + at.UTC().Minute()
	for _, w := range p.Windows {
		if w.From <= w.To && minute >= w.From && minute < w.To || w.From > w.To && (minute >= w.From || minute < w.To) {
			rates = w.Rates.over(rates)
		}
	}
	for _, i := range p.Images {
		if (i.Size == "" || i.Size == u.Size) && (i.Quality == "" || i.Quality == u.Quality) {
			rates.nano[UnitImage] = int64(i.USD)
			rates.set |= 1 << UnitImage
			break
		}
	}
	return rates
}

// multiplier is the product of the multipliers that match as a fraction, nil
// when there is none.
func (p *Price) multiplier(u *Usage, label *string) (factor, divisor *big.Int) {
	for _, m := range p.Multipliers {
		if u.modifier(m.Field) != m.Value || m.Value == "" {
			continue
		}
		if factor == nil {
			factor, divisor = big.NewInt(1), big.NewInt(1)
		}
		factor.Mul(factor, big.NewInt(m.Millionths))
		divisor.Mul(divisor, big.NewInt(1_000_000))
		*label += fmt.Sprintf(" %s=%s×%s", m.Field, m.Value, appendFixed(nil, m.Millionths, 6))
	}
	return factor, divisor
}

// String spells the rates as in the configuration, such as
// "input=0.25 output=2". A usage row keeps it.
func (r Rates) String() string {
	var b []byte
	for u := range unitCount {
		if !r.has(u) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, unitNames[u].name...), '=')
		b = Nano(r.nano[u] / (1_000_000 / unitNames[u].per)).append(b)
	}
	return string(b)
}

// pricing keeps account of which units of a call had a price. Tokens and the
// media units are two measures of the same thing, so one of them suffices;
// searches come on top.
type pricing struct{ some, tokens, tokensMissing, media, searchMissing bool }

func (p *pricing) note(u Unit, ok bool) {
	p.some = p.some || ok && u != UnitRequest
	switch {
	case u <= UnitAudioOutput && ok:
		p.tokens = true
	case u <= UnitAudioOutput:
		p.tokensMissing = true
	case u == UnitSearch && !ok:
		p.searchMissing = true
	case u != UnitSearch && u != UnitRequest && ok:
		p.media = true
	}
}

func (p pricing) outcome(r Rates) Priced {
	switch {
	case r.Empty():
		return Unpriced
	case p.tokensMissing && !p.media && !p.some && !r.has(UnitRequest):
		return Unpriced
	case p.searchMissing, p.tokensMissing && !p.media && (p.tokens || !r.has(UnitRequest)):
		return PartPriced
	}
	return FullyPriced
}

// Worst is the dearest rates that any tier, date to come, window or
// multiplier of the price can lead to, which is what a strict reservation
// must hold: the cost of a usage never exceeds what Worst says for it.
func (p *Price) Worst(u *Usage) Nano {
	sets := []Rates{p.Base}
	for _, d := range p.Dated {
		sets = append(sets, d.Rates.over(p.Base))
	}
	for _, t := range p.Tiers {
		for _, base := range slices.Clone(sets) {
			sets = append(sets, t.Rates.over(base))
		}
	}
	for _, w := range p.Windows {
		for _, base := range slices.Clone(sets) {
			sets = append(sets, w.Rates.over(base))
		}
	}
	var worst Nano
	for i := range sets {
		flat := Price{Base: sets[i], Images: p.Images}
		cost, _, _ := flat.Cost(u, time.Time{})
		worst = max(worst, cost)
	}
	for field := range p.multiplierFields() {
		dearest := int64(1_000_000)
		for _, m := range p.Multipliers {
			if m.Field == field {
				dearest = max(dearest, m.Millionths)
			}
		}
		hi, lo := bits.Mul64(uint64(worst), uint64(dearest))
		worst = divideHalfEven(hi, lo, 1_000_000).Add(1)
	}
	return worst
}

func (p *Price) multiplierFields() map[string]bool {
	fields := make(map[string]bool)
	for _, m := range p.Multipliers {
		fields[strings.ToLower(m.Field)] = true
	}
	return fields
}
