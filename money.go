package modelgate

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Nano is an amount of money in nano-USD (1e-9 USD). It is the only form
// money has in the program; JSON shows it as USD with at most nine decimals.
// The range is about ±9.2 billion USD.
type Nano int64

// USD is one US dollar.
const USD Nano = 1_000_000_000

// ErrAmount says that a text is no amount of money that Nano can hold.
var ErrAmount = errors.New("not a USD amount with at most 9 decimals")

// ParseUSD reads a JSON number or decimal text as an amount in USD: exact,
// at most nine decimals, exponents allowed, never through a float. Errors wrap
// ErrAmount.
func ParseUSD(s string) (Nano, error) {
	d, err := parseDecimal(s)
	zeros := d.exponent + 9 // behind the digits once the unit is 1e-9
	if err != nil || d.digits != "" && (zeros < 0 || len(d.digits)+zeros > 19) {
		return 0, fmt.Errorf("%q: %w", s, ErrAmount)
	}
	if d.digits == "" {
		return 0, nil
	}
	if d.negative {
		d.digits = "-" + d.digits
	}
	v, err := strconv.ParseInt(d.digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: %w", s, ErrAmount)
	}
	return Nano(v), nil
}

// RoundUSD reads a JSON number or decimal text in units of 10^-scale USD as an
// amount, rounded half to even where it has more than nine decimals. Errors
// wrap ErrAmount.
func RoundUSD(s string, scale int) (Nano, error) {
	d, err := parseDecimal(s)
	point := len(d.digits) + d.exponent + 9 - scale // behind so many digits once the unit is 1e-9
	switch {
	case err != nil || d.digits != "" && point > 18:
		return 0, fmt.Errorf("%q: %w", s, ErrAmount)
	case d.digits == "" || point < 0:
		return 0, nil
	}
	kept, rest := d.digits, ""
	if point < len(kept) {
		kept, rest = kept[:point], kept[point:]
	} else {
		kept += strings.Repeat("0", point-len(kept))
	}
	v, _ := strconv.ParseInt("0"+kept, 10, 64) // at most 18 digits
	if rest > "5" || rest == "5" && v%2 == 1 {
		v++
	}
	if d.negative {
		v = -v
	}
	return Nano(v), nil
}

// String is the amount in USD without trailing zeros, such as 0.000123.
func (n Nano) String() string { return string(n.append(nil)) }

func (n Nano) append(b []byte) []byte { return appendFixed(b, int64(n), 9) }

// appendFixed writes v · 10^-scale as a decimal number without trailing
// zeros.
func appendFixed(b []byte, v int64, scale int) []byte {
	u := uint64(v)
	if v < 0 {
		b, u = append(b, '-'), -u
	}
	unit := uint64(math.Pow10(scale))
	b = strconv.AppendUint(b, u/unit, 10)
	rest := u % unit
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	start := len(b)
	b = append(b, strings.Repeat("0", scale)...)
	for i := len(b) - 1; i >= start; i-- {
		b[i] = byte('0' + rest%10)
		rest /= 10
	}
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// MarshalJSON writes a JSON number in USD.
func (n Nano) MarshalJSON() ([]byte, error) { return n.append(nil), nil }

// UnmarshalJSON reads a JSON number in USD; a string is refused.
func (n *Nano) UnmarshalJSON(b []byte) error {
	v, err := ParseUSD(string(b))
	if err != nil {
		return err
	}
	*n = v
	return nil
}

// Add is n + m, held at the ends of the range instead of wrapping round.
func (n Nano) Add(m Nano) Nano {
	sum := n + m
	if m > 0 && sum < n {
		return math.MaxInt64
	}
	if m < 0 && sum > n {
		return math.MinInt64
	}
	return sum
}

// Markup is a sub-account's surcharge in millionths of a percent:
// 12.5 % is 12,500,000. The range is 0 to 10,000 %.
type Markup int64

const (
	wholeMarkup Markup = 100_000_000                  // 100 %
	maxMarkup   Markup = 10_000 * (wholeMarkup / 100) // markup_pct is 0..10000
)

// ErrMarkup says that a number is no markup.
var ErrMarkup = errors.New("markup_pct must be a number from 0 to 10000")

// ParseMarkup reads a percentage: any decimal number from 0 to 10000, of which
// six places are kept, rounded half to even. What lies outside by however
// little is refused.
func ParseMarkup(s string) (Markup, error) {
	d, err := parseDecimal(s)
	if err != nil || d.negative && d.digits != "" {
		return 0, ErrMarkup
	}
	// The point stands behind so many digits once the unit is 1e-6.
	whole := len(d.digits) + d.exponent + 6
	switch {
	case d.digits == "" || whole < 0:
		return 0, nil
	case whole > len("10000000000"): // 10000 has so many
		return 0, ErrMarkup
	}
	kept, rest := d.digits, ""
	if whole < len(kept) {
		kept, rest = kept[:whole], kept[whole:]
	} else {
		kept += strings.Repeat("0", whole-len(kept))
	}
	v, _ := strconv.ParseInt("0"+kept, 10, 64) // at most 12 digits
	if Markup(v) > maxMarkup || Markup(v) == maxMarkup && rest != "" {
		return 0, ErrMarkup
	}
	if rest > "5" || rest == "5" && v%2 == 1 {
		v++
	}
	return Markup(v), nil
}

// decimal is digits × 10^exponent, the digits without zeros at either end.
type decimal struct {
	negative bool
	digits   string // "" for 0
	exponent int
}

// parseDecimal reads a decimal number of any length and precision. What is
// past every exponent that anything is judged by is held at its end.
func parseDecimal(s string) (decimal, error) {
	var d decimal
	mantissa, exponent, scientific := s, "", false
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent, scientific = s[:i], s[i+1:], true
	}
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	if whole == "" || pointed && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return d, ErrAmount
	}
	if scientific {
		e, err := strconv.Atoi(exponent)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return d, ErrAmount
		}
		const far = 1 << 30
		d.exponent = min(max(e, -far), far)
	}
	all := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(all, "0")
	d.exponent += len(all) - len(d.digits) - len(fraction)
	return d, nil
}

// MarshalJSON writes the percentage as a JSON number.
func (m Markup) MarshalJSON() ([]byte, error) { return appendFixed(nil, int64(m), 6), nil }

// UnmarshalJSON reads a JSON number.
func (m *Markup) UnmarshalJSON(b []byte) error {
	v, err := ParseMarkup(string(b))
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Billed is what an end customer pays for a cost of n: n × (1 + markup/100),
// rounded half to even at 1e-9 USD.
func (n Nano) Billed(m Markup) Nano {
	if m == 0 {
		return n
	}
	neg := n < 0
	u := uint64(n)
	if neg {
		u = -u
	}
	hi, lo := bits.Mul64(u, uint64(wholeMarkup+m))
	v := DivideHalfEven(hi, lo, uint64(wholeMarkup))
	if neg {
		return -v
	}
	return v
}

// BilledInMicros is Billed in whole millionths of a dollar, at least one. An end
// customer sees limits so: in nano-dollars, the rounding of a limit that it
// sets itself would reveal the markup.
func (n Nano) BilledInMicros(m Markup) Nano {
	const grain = USD / 1_000_000
	return max(n.Billed(m).Add(grain/2)/grain, 1) * grain
}

// Unbilled is the cost whose billed price is n, as near as a Nano can be, and
// at least 1 for an n above 0.
func (n Nano) Unbilled(m Markup) Nano {
	if m == 0 || n <= 0 {
		return n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(wholeMarkup))
	return max(DivideHalfEven(hi, lo, uint64(wholeMarkup+m)), 1)
}

// DivideHalfEven is hi:lo / d rounded half to even, at most the largest Nano.
func DivideHalfEven(hi, lo, d uint64) Nano {
	if hi >= d {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, d)
	if q >= math.MaxInt64 {
		return math.MaxInt64
	}
	if r > d-r || r == d-r && q&1 == 1 {
		q++
	}
	return Nano(q)
}
