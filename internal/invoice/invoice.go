// Package invoice compares what a provider bills with the usage rows, by UTC
// day, model and unit, and names the causes of differences with their amounts.
package invoice

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"modelgate"
)

// Class says what a line of a bill is for.
type Class uint8

// The classes.
const (
	Unmapped Class = iota // no rule reads the line
	Usage
	Storage // by the day, without a call
	Credit
)

// Line is a line of a provider's bill.
type Line struct {
	Day     string   `json:"-"`                 // UTC, YYYY-MM-DD
	Name    string   `json:"name"`              // as the provider spells it
	Project string   `json:"project,omitempty"` // id of the provider's, "" where the line has none
	Key     string   `json:"key,omitempty"`     // so is this
	Class   Class    `json:"class"`
	Model   string   `json:"model,omitempty"`   // the provider's own id; "" for tools
	Unit    string   `json:"unit,omitempty"`    // of price, by its name; "" where the line is for all of a model
	Variant string   `json:"variant,omitempty"` // what the price depends on: words joined by commas, such as priority,long
	Amount  *big.Rat `json:"amount"`            // USD
	// Quantity is in tokens, searches or sessions; nil where the line does not say.
	Quantity *big.Rat `json:"quantity,omitempty"`
	Decimals int      `json:"decimals"`         // of Amount, as the provider states it
	Merged   int64    `json:"merged,omitempty"` // how many lines are in this one, besides itself
}

// Long is the word of a variant for prompts above a threshold of the price.
const Long = "long"

// variantOf joins the words of a variant, without those that mean nothing special.
func variantOf(words ...string) string {
	words = slices.DeleteFunc(words, func(w string) bool {
		switch w {
		case "", "default", "standard", "auto":
			return true
		}
		return false
	})
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ",")
}

// Cause is a named part of the difference between a bill and the rows.
type Cause struct {
	Name      string         `json:"cause"`
	USD       modelgate.Nano `json:"usd"`
	Cells     int            `json:"cells"`
	Explained bool           `json:"explained"` // whether somebody knows why, and how much it must be
}

// The names of causes.
const (
	ContractFactor = "contract_factor"
	Rounding       = "rounding"
	Price          = "price"
	ToolPrice      = "tool_price"
	Unpriced       = "unpriced"
	OtherTraffic   = "other_traffic"
	StorageCost    = "storage"
	Credits        = "credit"
	Boundary       = "boundary"
	Open           = "open"
	Cut            = "cut"
	MissingRows    = "missing_rows"
	ExtraRows      = "extra_rows"
	UnmappedLines  = "unmapped"
	Unexplained    = "unexplained"
)

// causeOrder is the order of causes in a report; from Cut on they explain nothing.
var causeOrder = [...]string{
	ContractFactor, Rounding, Price, ToolPrice, Unpriced, OtherTraffic, StorageCost, Credits, Boundary, Open,
	Cut, MissingRows, ExtraRows, UnmappedLines, Unexplained,
}

func explains(cause string) bool {
	return slices.Index(causeOrder[:], cause) < slices.Index(causeOrder[:], Cut)
}

// Cell is what is compared: the lines and rows of one unit of a model on a day.
type Cell struct {
	Day     string `json:"day"`
	Model   string `json:"model"`
	Unit    string `json:"unit"`
	Variant string `json:"variant"`
}

// CellDifference is a cell that does not match.
type CellDifference struct {
	Cell
	Invoiced         modelgate.Nano            `json:"invoiced_usd"`
	Own              modelgate.Nano            `json:"own_usd"`
	InvoicedQuantity string                    `json:"invoiced_quantity"` // "" where the bill does not say
	OwnQuantity      string                    `json:"own_quantity"`
	InvoicedRate     string                    `json:"invoiced_rate"` // USD per what a price is for
	OwnRate          string                    `json:"own_rate"`
	Causes           map[string]modelgate.Nano `json:"causes"`
}

// UnmappedLine is a line that no rule reads.
type UnmappedLine struct {
	Line string         `json:"line"`
	USD  modelgate.Nano `json:"usd"`
}

// Report is the outcome of a comparison. InvoicedUSD is OwnUSD and all causes,
// but for the rounding of each to a nano-dollar.
type Report struct {
	Provider           string           `json:"provider"`
	From               string           `json:"from"`
	To                 string           `json:"to"` // not included
	Invoiced           modelgate.Nano   `json:"invoiced_usd"`
	Own                modelgate.Nano   `json:"own_usd"`
	Expected           modelgate.Nano   `json:"expected_usd"` // Own at the contract's factor
	ExplainedPercent   float64          `json:"explained_percent"`
	UnexplainedPercent float64          `json:"unexplained_percent"`
	Unexplained        modelgate.Nano   `json:"unexplained_usd"` // absolute per cell
	Causes             []Cause          `json:"causes"`
	Cells              []CellDifference `json:"cells"` // at most MaxCells, the largest differences first
	Unmapped           []UnmappedLine   `json:"unmapped"`
}

// MaxCells bounds the cells of a report.
const MaxCells = 1000

// WrongPrice reports whether the bill has another price than the rows.
func (r *Report) WrongPrice() bool {
	return slices.ContainsFunc(r.Causes, func(c Cause) bool { return c.Name == Price || c.Name == ToolPrice })
}

// Cause is the amount of a cause, 0 where there is none.
func (r *Report) Cause(name string) modelgate.Nano {
	for _, c := range r.Causes {
		if c.Name == name {
			return c.USD
		}
	}
	return 0
}

// dayOf is the UTC day of an instant.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Nano rounds an amount in USD half to even.
func Nano(usd *big.Rat) modelgate.Nano {
	scaled := new(big.Rat).Mul(usd, big.NewRat(int64(modelgate.USD), 1))
	q, r := new(big.Int).QuoRem(scaled.Num(), scaled.Denom(), new(big.Int))
	half := r.Abs(r).Lsh(r, 1).Cmp(scaled.Denom())
	if half > 0 || half == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(int64(scaled.Sign())))
	}
	return modelgate.Nano(q.Int64())
}
