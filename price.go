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

// The units, named as in the configuration.
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
	unitCount
)

// unitNames spells the units, with how many quanta one price of the
// configuration is for: tokens are priced by the million.
var unitNames = [unitCount]struct {
	name string
	per  int64 // quanta covered by the configured price
}{
	UnitInput:           {"input", 1_000_000},
	UnitCachedInput:     {"cached_input", 1_000_000},
	UnitCacheWrite:      {"cache_write", 1_000_000},
	UnitCacheWrite1h:    {"cache_write_1h", 1_000_000},
	UnitOutput:          {"output", 1_000_000},
	UnitReasoning:       {"reasoning", 1_000_000},
	UnitAudioInput:      {"audio_input", 1_000_000},
	UnitAudioOutput:     {"audio_output", 1_000_000},
	UnitImage:           {"image", 1_000_000},
	UnitSecond:          {"second", 1_000_000},
	UnitCharacters:      {"characters", 1_000_000},
	UnitSearch:          {"search", 1_000},
	UnitFileSearch:      {"file_search", 1_000},
	UnitCodeSession:     {"code_session", 1_000_000},
	UnitGroundedRequest: {"grounded_request", 1_000},
	UnitMegapixel:       {"megapixel", 1_000_000},
	UnitRequest:         {"request", 1_000_000},
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
	set  uint32           // bit u: the unit has a price, which may be 0
}

// tool reports whether the unit is something that a tool of the provider's
// does, of which every kind needs a price of its own.
func (u Unit) tool() bool { return u >= UnitSearch && u <= UnitGroundedRequest }

// scaled reports whether multipliers touch the unit: they are about tokens and
// what is made of them.
func (u Unit) scaled() bool { return !u.tool() && u != UnitRequest }

// Set prices a unit: usd per million tokens or characters, per thousand
// searches or grounded requests, else per image, second, megapixel, session or
// request.
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

// sole is the one unit that has a price; false where there are several or
// none.
func (r *Rates) sole() (Unit, bool) {
	if bits.OnesCount32(r.set) != 1 {
		return 0, false
	}
	return Unit(bits.TrailingZeros32(r.set)), true
}

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
	for !r.has(u) {
		next, ok := dearer(u)
		if !ok {
			return 0, false
		}
		u = next
	}
	return r.nano[u], true
}

// dearer is the neighbour whose price a unit without one has. It always has
// a lower number.
func dearer(u Unit) (Unit, bool) {
	switch u {
	case UnitCachedInput, UnitCacheWrite, UnitAudioInput:
		return UnitInput, true
	case UnitCacheWrite1h:
		return UnitCacheWrite, true
	case UnitReasoning, UnitAudioOutput:
		return UnitOutput, true
	}
	return 0, false
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

// Rate is the price of one unit, as it is quoted.
type Rate struct {
	Unit Unit
	Per  int64 // how much of the unit the price is for
	USD  Nano
}

// List is the units that have a price of their own.
func (r Rates) List() []Rate {
	var out []Rate
	for u := range unitCount {
		if !r.has(u) {
			continue
		}
		per := int64(1) // images, seconds, megapixels and requests are quoted by the piece
		switch {
		case u <= UnitAudioOutput || u == UnitCharacters:
			per = 1_000_000
		case unitNames[u].per == 1_000:
			per = 1_000
		}
		out = append(out, Rate{u, per, Nano(r.nano[u] / (1_000_000 / unitNames[u].per))})
	}
	return out
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

// Multiplier scales the cost, but for that of tools and requests, when the reply says a field has a value, such
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
