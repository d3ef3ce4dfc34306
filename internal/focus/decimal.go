package focus

import (
	"math/big"
	"strings"

	"modelgate"
)

// Money in a file has costDecimals: a price of priceDecimals times a quantity of
// at most six.
const (
	priceDecimals = 15
	costDecimals  = 21
)

func tens(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// decimal spells v · 10^-scale without an exponent and without trailing zeros.
func decimal(v *big.Int, scale int) string {
	digits := new(big.Int).Abs(v).String()
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	text := digits[:point]
	if fraction := strings.TrimRight(digits[point:], "0"); fraction != "" {
		text += "." + fraction
	}
	if v.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// rounded is a number as an integer, half to even.
func rounded(r *big.Rat) *big.Int {
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	twice := rest.Abs(rest).Lsh(rest, 1).Cmp(r.Denom())
	if twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(int64(r.Sign())))
	}
	return q
}

// surcharge is 1 + markup.
func surcharge(m modelgate.Markup) *big.Rat {
	const whole = 100_000_000 // of a Markup
	return big.NewRat(whole+int64(m), whole)
}

// unitPrice is the price of as much of a unit as its prices are quoted for, in
// 10^-priceDecimals USD: rate is nano-USD for a million quanta.
func unitPrice(u modelgate.Unit, rate *big.Rat, m modelgate.Markup) *big.Int {
	scale := new(big.Rat).SetInt(tens(priceDecimals - 9 - 6 + priced(u)))
	return rounded(scale.Mul(scale, rate).Mul(scale, surcharge(m)))
}

// lineCost is price × quantity, in 10^-costDecimals USD.
func lineCost(u modelgate.Unit, price *big.Int, quanta int64) *big.Int {
	cost := new(big.Int).Mul(price, big.NewInt(quanta))
	return cost.Mul(cost, tens(costDecimals-priceDecimals-priced(u)))
}

// billed is a sum of costs with a markup, in 10^-costDecimals USD and exact.
func billed(sum *big.Int, m modelgate.Markup) *big.Int {
	const whole = 100_000_000
	made := new(big.Int).Mul(sum, big.NewInt(whole+int64(m)))
	return made.Mul(made, tens(costDecimals-9-8))
}
