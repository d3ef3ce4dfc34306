package modelgate

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"time"
)

// Unit is something that is counted and priced. Quantities are integers:
// whole tokens, characters and searches, and millionths of images, requests,
// seconds, sessions and megapixels, so that half a second is still exact.
type Unit uint8

// The units, named as in the configuration. Units of one kind are neighbours:
// tokens up to UnitAudioOutput, the provider's tools from UnitSearch to
// UnitGroundedRequest.
const (
	UnitInput           Unit = iota // uncached input tokens
	UnitCachedInput                 // input tokens read from a prompt cache
	UnitCacheWrite                  // input tokens written to it for five minutes
	UnitCacheWrite1h                // … for an hour
	UnitOutput                      // output tokens, without reasoning
	UnitReasoning                   // output tokens that are not shown
	UnitAudioInput                  // audio tokens in
	UnitAudioOutput                 // audio tokens out
	UnitImage                       // pictures made
	UnitSecond                      // seconds of video or sound
	UnitCharacters                  // Unicode code points of text
	UnitSearch                      // searches, or search units of a reranker
	UnitFileSearch                  // searches in files that the provider keeps
	UnitCodeSession                 // containers in which the provider runs code
	UnitGroundedRequest             // calls that were answered from searches
	UnitMegapixel                   // pixels made
	UnitRequest                     // calls
	UnitCount
)

// units says how each unit is spelled and how much of it a quoted price is
// for.
var units = [UnitCount]struct {
	name string
	per  int64
}{
	UnitInput:           {"input", 1_000_000},
	UnitCachedInput:     {"cached_input", 1_000_000},
	UnitCacheWrite:      {"cache_write", 1_000_000},
	UnitCacheWrite1h:    {"cache_write_1h", 1_000_000},
	UnitOutput:          {"output", 1_000_000},
	UnitReasoning:       {"reasoning", 1_000_000},
	UnitAudioInput:      {"audio_input", 1_000_000},
	UnitAudioOutput:     {"audio_output", 1_000_000},
	UnitImage:           {"image", 1},
	UnitSecond:          {"second", 1},
	UnitCharacters:      {"characters", 1_000_000},
	UnitSearch:          {"search", 1_000},
	UnitFileSearch:      {"file_search", 1_000},
	UnitCodeSession:     {"code_session", 1},
	UnitGroundedRequest: {"grounded_request", 1_000},
	UnitMegapixel:       {"megapixel", 1},
	UnitRequest:         {"request", 1},
}

// String is the name in the configuration.
func (u Unit) String() string { return units[u].name }

// quoted is how many quoted prices make the price of a million quanta: what is
// quoted by the piece is counted in millionths.
func (u Unit) quoted() int64 {
	if units[u].per == 1_000 {
		return 1_000
	}
	return 1
}

// UnitByName finds a unit by its name in the configuration.
func UnitByName(name string) (Unit, bool) {
	for u := range UnitCount {
		if units[u].name == name {
			return u, true
		}
	}
	return 0, false
}

// Rates are prices by unit. The zero value has none. Rates are comparable.
type Rates struct {
	nano [UnitCount]int64 // nano-USD per million quanta
	set  uint32           // bit u: the unit has a price, which may be 0
}

// Set prices a unit: usd per million tokens or characters, per thousand
// searches or grounded requests, else per image, second, megapixel, session or
// request. It fails for a price below zero or out of range.
func (r *Rates) Set(u Unit, usd Nano) error {
	if usd < 0 || int64(usd) > math.MaxInt64/u.quoted() {
		return fmt.Errorf("price of %s: out of range", u)
	}
	r.SetPerMillion(u, int64(usd)*u.quoted())
	return nil
}

// SetPerMillion prices a unit in nano-USD per million quanta.
func (r *Rates) SetPerMillion(u Unit, nano int64) {
	r.nano[u] = nano
	r.set |= 1 << u
}

// Unset takes the price of a unit away.
func (r *Rates) Unset(u Unit) {
	r.nano[u] = 0
	r.set &^= 1 << u
}

// Has reports whether the unit has a price of its own.
func (r *Rates) Has(u Unit) bool { return r.set&(1<<u) != 0 }

// PerMillion is the price of a million quanta of a unit in nano-USD, 0 where
// it has none of its own.
func (r *Rates) PerMillion(u Unit) int64 { return r.nano[u] }

// Sole is the one unit that has a price; false where there are several or
// none.
func (r *Rates) Sole() (Unit, bool) {
	return Unit(bits.TrailingZeros32(r.set)), bits.OnesCount32(r.set) == 1
}

// Empty reports whether no unit has a price.
func (r *Rates) Empty() bool { return r.set == 0 }

// Over is base with the prices of r in place of its own.
func (r *Rates) Over(base Rates) Rates {
	for u := range UnitCount {
		if r.Has(u) {
			base.nano[u] = r.nano[u]
		}
	}
	base.set |= r.set
	return base
}

// String spells the rates as in the configuration, such as
// "input=0.25 output=2". A usage row keeps it.
func (r Rates) String() string {
	var b []byte
	for i, rate := range r.List() {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, rate.Unit.String()...), '=')
		b = rate.USD.append(b)
	}
	return string(b)
}

// Decimal is the price of one token, character, search, picture and so on in
// USD, as a decimal number; "" where the unit has no price of its own. With a
// markup it is the billed price, rounded half to even: at 15 decimals where the
// unit is quoted by the thousand or million, which 15 decimals hold exactly, else
// at 9, as in a usage row.
func (r *Rates) Decimal(u Unit, m Markup) string {
	if !r.Has(u) {
		return ""
	}
	scale := 15
	if units[u].per == 1 {
		scale = 9
	}
	return string(appendFixed(nil, int64(Nano(r.nano[u]).Billed(m)), scale))
}

// Rate is the price of one unit, as it is quoted.
type Rate struct {
	Unit Unit
	Per  int64 // how much of the unit the price is for
	USD  Nano
}

// List is the units that have a price of their own.
func (r Rates) List() []Rate {
	var out []Rate
	for u := range UnitCount {
		if r.Has(u) {
			out = append(out, Rate{u, units[u].per, Nano(r.nano[u] / u.quoted())})
		}
	}
	return out
}

// Price is what a model costs. It is immutable once in use; nil means that no
// price is known. What applies is Base, overlaid by the newest Dated entry
// that has begun, by the highest Tier passed, and by the UTC window the call
// began in; the cost is multiplied by every Multiplier that matches. The
// package pricing computes it.
type Price struct {
	Base        Rates
	Images      []ImagePrice
	Dated       []DatedPrice
	Tiers       []TierPrice
	Windows     []WindowPrice
	Multipliers []Multiplier

	once      sync.Once
	baseLabel string
}

// BaseLabel is Base in words. It is made once, because most calls are priced
// by Base alone. Safe for concurrent use.
func (p *Price) BaseLabel() string {
	p.once.Do(func() { p.baseLabel = p.Base.String() })
	return p.baseLabel
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

// Multiplier scales the cost, but for that of tools and requests, when the reply says a field has a value, such
// as service_tier flex. Millionths: 500,000 halves.
type Multiplier struct {
	Field, Value string
	Millionths   int64
}
