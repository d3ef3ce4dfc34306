package pricing

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"modelgate"
)

// Label is what the label of a row's price says.
type Label struct {
	Rates modelgate.Rates
	// Factor scales the price of every unit but those of tools and requests; nil
	// is 1.
	Factor *big.Rat
	Above  int64                 // the threshold that the prompt has passed, 0 for none
	Says   []modelgate.Condition // of the reply, what the price depends on
	// Advisor is the price of the other model that worked within the call; nil
	// where there was none.
	Advisor *Label
}

// ParseLabel reads what Cost made. The label "" has no rates.
func ParseLabel(label string) (*Label, error) {
	own, advisor, advised := strings.Cut(label, " advisor: ")
	made := new(Label)
	for word := range strings.FieldsSeq(own) {
		if err := made.read(word); err != nil {
			return nil, err
		}
	}
	if !advised {
		return made, nil
	}
	var err error
	made.Advisor, err = ParseLabel(advisor)
	return made, err
}

// read reads one word of a label.
func (l *Label) read(word string) error {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		return fmt.Errorf("price label: %q says nothing", word)
	}
	if unit, is := modelgate.UnitByName(name); is {
		usd, err := modelgate.ParseUSD(value)
		if err != nil {
			return fmt.Errorf("price label: %q: %w", word, err)
		}
		return l.Rates.Set(unit, usd)
	}
	says, times, multiplied := strings.Cut(value, "×")
	switch {
	case name == "above":
		above, err := strconv.ParseInt(value, 10, 64)
		l.Above = above
		return err
	case name == "price_factor":
		return l.scale(value)
	}
	l.Says = append(l.Says, modelgate.Condition{Field: name, Value: says})
	if multiplied {
		return l.scale(times)
	}
	return nil
}

// scale multiplies the factor by a decimal.
func (l *Label) scale(by string) error {
	factor, err := modelgate.ParseUSD(by) // a decimal with at most nine places
	if err != nil {
		return fmt.Errorf("price label: factor %q: %w", by, err)
	}
	if l.Factor == nil {
		l.Factor = big.NewRat(1, 1)
	}
	l.Factor.Mul(l.Factor, big.NewRat(int64(factor), int64(modelgate.USD)))
	return nil
}

// Rate is what a million quanta of a unit cost by the label in nano-USD, factors
// included; false where the unit has no price.
func (l *Label) Rate(u modelgate.Unit) (*big.Rat, bool) {
	nano, of, ok := rateOf(&l.Rates, u)
	if !ok {
		return nil, false
	}
	rate := big.NewRat(nano, 1)
	if of == modelgate.UnitMinute {
		rate.Quo(rate, big.NewRat(60, 1))
	}
	if l.Factor != nil && of.Scaled() {
		rate.Mul(rate, l.Factor)
	}
	return rate, true
}

// Charges reports whether a usage is charged for its quantity of a unit: of
// searches and the grounded requests that made them, one counts.
func (l *Label) Charges(unit modelgate.Unit, u *modelgate.Usage) bool {
	return !eclipsed(unit, &l.Rates, u)
}
