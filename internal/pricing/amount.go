package pricing

import (
	"math"
	"math/big"
	"math/bits"

	"modelgate"
)

// amount is a sum of money before it is rounded, in millionths of a nano-USD:
// the part that factors scale, tokens and what is made of them, and the part
// that they do not, tools and requests.
type amount struct {
	scaled, plain uint128
	sixtieths     uint128 // of what factors scale: seconds at the price of a minute
	over          bool    // larger than any amount
}

// add adds so much of something that the price of the unit is for.
func (a *amount) add(u modelgate.Unit, quantity, rate uint64) {
	part := &a.plain
	switch {
	case u == modelgate.UnitMinute:
		part = &a.sixtieths
	case u.Scaled():
		part = &a.scaled
	}
	hi, lo := bits.Mul64(quantity, rate)
	a.over = !part.add(uint128{hi, lo}) || a.over
}

// times is the amount with the factor, nil for 1, on the part that factors
// scale. What is past the range of a Nano is its largest value.
func (a *amount) times(factor *big.Rat) modelgate.Nano {
	if a.over {
		return math.MaxInt64
	}
	if factor == nil && a.sixtieths == (uint128{}) {
		sum := a.scaled
		if !sum.add(a.plain) {
			return math.MaxInt64
		}
		return modelgate.DivideHalfEven(sum.hi, sum.lo, 1_000_000)
	}
	if factor == nil {
		factor = big.NewRat(1, 1)
	}
	scaled, plain, sixty := a.scaled.big(), a.plain.big(), big.NewInt(60)
	scaled.Mul(scaled, sixty).Add(scaled, a.sixtieths.big()).Mul(scaled, factor.Num())
	plain.Mul(plain, sixty).Mul(plain, factor.Denom())
	divisor := new(big.Int).Mul(factor.Denom(), big.NewInt(60*1_000_000))
	return divideHalfEven(scaled.Add(scaled, plain), divisor)
}

type uint128 struct{ hi, lo uint64 }

// add adds n and reports whether the sum still fits.
func (u *uint128) add(n uint128) bool {
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, n.lo, 0)
	u.hi, carry = bits.Add64(u.hi, n.hi, carry)
	return carry == 0
}

func (u *uint128) big() *big.Int {
	n := new(big.Int).SetUint64(u.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(u.lo))
}

// divideHalfEven is modelgate.DivideHalfEven for numbers past 128 bits.
func divideHalfEven(n, d *big.Int) modelgate.Nano {
	q, r := new(big.Int).QuoRem(n, d, new(big.Int))
	twice := r.Lsh(r, 1).Cmp(d)
	if twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return modelgate.Nano(q.Int64())
}
