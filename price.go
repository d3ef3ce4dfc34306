package modelgate

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

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

// MarshalText is String.
func (r Rates) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what String makes.
func (r *Rates) UnmarshalText(text []byte) error {
	*r = Rates{}
	for word := range strings.FieldsSeq(string(text)) {
		name, value, _ := strings.Cut(word, "=")
		unit, ok := UnitByName(name)
		usd, err := ParseUSD(value)
		if !ok || err != nil {
			return fmt.Errorf("rates: %q is not unit=price", word)
		}
		if err := r.Set(unit, usd); err != nil {
			return err
		}
	}
	return nil
}

// Price is what a model costs. It is immutable once in use; nil means that no
// price is known. What applies is Base, overlaid by the highest tier passed, by
// the UTC windows that the call began in, and by the variant that the reply
// names; the cost is multiplied by every multiplier that matches and by Factor.
// The package pricing computes it. As JSON a price is what jobs keep of it.
type Price struct {
	Base        Rates         `json:"base,omitzero"`
	Images      []MediaPrice  `json:"images,omitempty"`  // by the picture
	Seconds     []MediaPrice  `json:"seconds,omitempty"` // by the second
	Tiers       []TierPrice   `json:"tiers,omitempty"`
	Windows     []WindowPrice `json:"-"`
	Variants    []Variant     `json:"variants,omitempty"`
	Multipliers []Multiplier  `json:"multipliers,omitempty"`
	// Factor is the premium or discount of the provider's account, in
	// millionths; 0 is none.
	Factor int64 `json:"factor,omitempty"`
	// Dated are prices that take the place of this one for a time. Of several
	// the one that began last holds. They have no Dated themselves.
	Dated  []DatedPrice `json:"-"`
	Origin PriceOrigin  `json:"-"`

	label string // of Base
}

// Prepare makes the label of Base ahead, because most calls are priced by Base
// alone. Base must not change afterwards, but by another Prepare.
func (p *Price) Prepare() { p.label = p.Base.String() }

// BaseLabel is Base in words.
func (p *Price) BaseLabel() string {
	if p.label == "" {
		return p.Base.String()
	}
	return p.label
}

// MediaPrice is the price of one picture or second by what it is like; an empty
// field matches any. The first that matches applies.
type MediaPrice struct {
	Size    string `json:"size,omitempty"`
	Quality string `json:"quality,omitempty"`
	Audio   string `json:"audio,omitempty"` // "true" with sound, "false" without
	USD     Nano   `json:"usd"`
}

// Matches reports whether the price is for what a usage is like.
func (m *MediaPrice) Matches(u *Usage) bool {
	return (m.Size == "" || m.Size == u.Size) && (m.Quality == "" || m.Quality == u.Quality) && (m.Audio == "" || m.Audio == u.Audio)
}

// DatedPrice is a price that holds in [From, Until); a zero Until is for ever.
type DatedPrice struct {
	From, Until time.Time
	Price       *Price
}

// TierPrice holds for the whole call when its prompt, cached tokens
// included, has more than Above tokens.
type TierPrice struct {
	Above int64 `json:"above"`
	Rates Rates `json:"rates"`
}

// WindowPrice holds for calls that begin in [From, To), minutes of the UTC
// day; From > To passes midnight. Days has bit d for each time.Weekday d on
// which the window begins; 0 is every day.
type WindowPrice struct {
	From, To int
	Days     uint8
	Rates    Rates
}

// Condition is a field of the reply and the value that it has to have. The
// fields are service_tier, speed and inference_geo.
type Condition struct {
	Field string `json:"field"`
	Value string `json:"value"`
}

// Variant holds for calls whose reply says all of When, and whose prompt has
// more than Above tokens (0: any). Multipliers on these fields do not apply.
type Variant struct {
	When  []Condition `json:"when"`
	Above int64       `json:"above,omitempty"`
	Rates Rates       `json:"rates"`
}

// Multiplier scales the cost, but for that of tools and requests, when the
// reply says a field has a value, such as service_tier flex. Millionths:
// 500,000 halves.
type Multiplier struct {
	Field      string `json:"field"`
	Value      string `json:"value"`
	Millionths int64  `json:"millionths"`
}

// PriceOrigin says where a price is from. The zero value says nothing.
type PriceOrigin struct {
	Lists      []string  // names and days of the lists that state it
	Checked    time.Time // when it was last compared with them
	ApprovedBy string    // who approved it; "" where nobody did
	ApprovedAt time.Time
	Note       string
}
