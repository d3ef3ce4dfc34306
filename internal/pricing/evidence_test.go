package pricing_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/evidence"
	"modelgate/internal/pricing"
)

// The cost in an evidence record follows from its quantities and its price
// version, with the fallbacks of the units, and from nothing else.
func TestEvidenceCostFollowsFromTheRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pl, u, at := drawPlan(t), drawUsage(t), drawInstant(t)
		row := modelgate.UsageRow{CallBegin: modelgate.CallBegin{At: at}, CallEnd: modelgate.CallEnd{Usage: *u}}
		row.Cost, _, row.PriceLabel = pricing.Cost(pl.price(t), u, at)
		text := evidence.AppendUsage(nil, &row, evidence.Origin{})
		var record struct {
			Cost       string         `json:"cost_usd"`
			Label      string         `json:"price_version"`
			Quantities map[string]any `json:"quantities"`
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // a float does not hold every quantity
		if err := decoder.Decode(&record); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		want, err := modelgate.ParseUSD(record.Cost)
		if err != nil {
			t.Fatal(err)
		}
		if got := recomputed(t, record.Label, record.Quantities); got != want {
			t.Fatalf("the record says %d, its parts say %d: %s", want, got, text)
		}
	})
}

// recomputed is the cost by the words of a price version.
func recomputed(t *rapid.T, label string, quantities map[string]any) modelgate.Nano {
	table, factor := rateTable{}, big.NewRat(1, 1)
	for word := range strings.FieldsSeq(label) {
		name, value, _ := strings.Cut(word, "=")
		_, times, multiplied := strings.Cut(value, "×")
		if name == "price_factor" {
			times, multiplied = value, true
		}
		if unit, ok := modelgate.UnitByName(name); ok {
			usd, err := modelgate.ParseUSD(value)
			if err != nil {
				t.Fatalf("%q: %v", word, err)
			}
			table[unit] = usd
		} else if multiplied {
			one, ok := new(big.Rat).SetString(times)
			if !ok {
				t.Fatalf("%q is no factor", word)
			}
			factor.Mul(factor, one)
		}
	}
	count := func(name string) *big.Rat {
		text, _ := quantities[name].(json.Number)
		n, ok := new(big.Rat).SetString("0" + string(text))
		if !ok {
			t.Fatalf("%s is %v", name, quantities[name])
		}
		return n
	}
	_, searching := table[modelgate.UnitSearch]
	sum, tools := new(big.Rat), new(big.Rat)
	for _, part := range recordUnits(searching, count("grounded_requests").Sign() > 0) {
		n := big.NewRat(1, 1)
		if part.name != "" {
			n = count(part.name)
		}
		if rate, ok := rateOf(table, part.unit); ok {
			to := sum
			if part.tool {
				to = tools
			}
			to.Add(to, n.Mul(n, rate).Quo(n, new(big.Rat).SetInt64(part.per)))
		}
	}
	return halfEven(sum.Mul(sum, factor).Add(sum, tools))
}

// recordUnit is a quantity of a record, and of how much of it a price is.
type recordUnit struct {
	unit modelgate.Unit
	name string // "" for the call itself
	per  int64
	tool bool // factors do not touch it
}

// recordUnits are the quantities that count. Searches and grounded requests are
// two measures of the same thing.
func recordUnits(searching, grounded bool) []recordUnit {
	const million, thousand = 1_000_000, 1_000
	made := []recordUnit{
		{modelgate.UnitInput, "input", million, false}, {modelgate.UnitCachedInput, "cached_input", million, false},
		{modelgate.UnitCacheWrite, "cache_write", million, false}, {modelgate.UnitCacheWrite1h, "cache_write_1h", million, false},
		{modelgate.UnitOutput, "output", million, false}, {modelgate.UnitReasoning, "reasoning", million, false},
		{modelgate.UnitAudioInput, "audio_input", million, false}, {modelgate.UnitAudioOutput, "audio_output", million, false},
		{modelgate.UnitImageInput, "image_input", million, false}, {modelgate.UnitImageOutput, "image_output", million, false},
		{modelgate.UnitCachedAudioInput, "cached_audio_input", million, false}, {modelgate.UnitCachedImageInput, "cached_image_input", million, false},
		{modelgate.UnitVideoInput, "video_input", million, false}, {modelgate.UnitCharacters, "characters", million, false},
		{modelgate.UnitImage, "images", 1, false}, {modelgate.UnitPage, "pages", 1, false},
		{modelgate.UnitSecond, "seconds", million, false}, {modelgate.UnitMegapixel, "megapixels", million, false},
		{modelgate.UnitFileSearch, "file_searches", thousand, true}, {modelgate.UnitCodeSession, "code_sessions", 1, true},
		{modelgate.UnitRequest, "", 1, true},
	}
	switch {
	case searching || !grounded:
		return append(made, recordUnit{modelgate.UnitSearch, "searches", thousand, true})
	default:
		return append(made, recordUnit{modelgate.UnitGroundedRequest, "grounded_requests", thousand, true})
	}
}
