package pricing_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"modelgate/internal/pricing"

	"pgregory.net/rapid"

	"modelgate"
)

// noon is an instant in no special window.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func rates(t interface{ Fatalf(string, ...any) }, usd map[modelgate.Unit]modelgate.Nano) modelgate.Rates {
	var r modelgate.Rates
	for u, n := range usd {
		if err := r.Set(u, n); err != nil {
			t.Fatalf("Set(%s, %d): %v", u, n, err)
		}
	}
	return r
}

type rateTable = map[modelgate.Unit]modelgate.Nano

func TestCostByUnit(t *testing.T) {
	t.Parallel()
	const cent = modelgate.USD / 100
	for _, c := range []struct {
		unit  modelgate.Unit
		price modelgate.Nano
		usage modelgate.Usage
		want  modelgate.Nano
	}{
		{modelgate.UnitInput, modelgate.USD, modelgate.Usage{Input: 1_000_000}, modelgate.USD},
		{modelgate.UnitInput, 250_000_000, modelgate.Usage{Input: 3}, 750},
		{modelgate.UnitCachedInput, modelgate.USD, modelgate.Usage{CachedInput: 1}, 1_000},
		{modelgate.UnitCacheWrite, modelgate.USD, modelgate.Usage{CacheWrite: 2}, 2_000},
		{modelgate.UnitCacheWrite1h, modelgate.USD, modelgate.Usage{CacheWrite1h: 2}, 2_000},
		{modelgate.UnitOutput, 15 * modelgate.USD, modelgate.Usage{Output: 10}, 150_000},
		{modelgate.UnitAudioInput, modelgate.USD, modelgate.Usage{AudioInput: 7}, 7_000},
		{modelgate.UnitAudioOutput, modelgate.USD, modelgate.Usage{AudioOutput: 7}, 7_000},
		{modelgate.UnitImage, 4 * cent, modelgate.Usage{Images: 3}, 12 * cent},
		{modelgate.UnitSecond, 10 * cent, modelgate.Usage{Seconds: 2_500_000}, 25 * cent},
		{modelgate.UnitCharacters, 15 * modelgate.USD, modelgate.Usage{Characters: 2_000}, 3 * cent},
		{modelgate.UnitSearch, 2 * modelgate.USD, modelgate.Usage{Searches: 5}, cent},
		{modelgate.UnitReasoning, 15 * modelgate.USD, modelgate.Usage{Reasoning: 10}, 150_000},
		{modelgate.UnitFileSearch, 2 * modelgate.USD, modelgate.Usage{FileSearches: 5}, cent},
		{modelgate.UnitCodeSession, 3 * cent, modelgate.Usage{CodeSessions: 2}, 6 * cent},
		{modelgate.UnitGroundedRequest, 35 * modelgate.USD, modelgate.Usage{GroundedRequests: 1, Searches: 3}, 35_000_000},
		{modelgate.UnitImageInput, modelgate.USD, modelgate.Usage{ImageInput: 7}, 7_000},
		{modelgate.UnitImageOutput, modelgate.USD, modelgate.Usage{ImageOutput: 7}, 7_000},
		{modelgate.UnitCachedAudioInput, modelgate.USD, modelgate.Usage{CachedAudioInput: 7}, 7_000},
		{modelgate.UnitCachedImageInput, modelgate.USD, modelgate.Usage{CachedImageInput: 7}, 7_000},
		{modelgate.UnitVideoInput, modelgate.USD, modelgate.Usage{VideoInput: 7}, 7_000},
		{modelgate.UnitMinute, 7, modelgate.Usage{Seconds: 30_000_000}, 4}, // 3.5, to the even one
		{modelgate.UnitPage, cent, modelgate.Usage{Pages: 3}, 3 * cent},
		{modelgate.UnitMegapixel, 3 * cent, modelgate.Usage{Megapixels: 500_000}, 15_000_000},
		{modelgate.UnitRequest, cent, modelgate.Usage{}, cent},
	} {
		t.Run(c.unit.String(), func(t *testing.T) {
			t.Parallel()
			p := &modelgate.Price{Base: rates(t, rateTable{c.unit: c.price})}
			cost, priced, label := pricing.Cost(p, &c.usage, noon)
			if cost != c.want || priced != pricing.FullyPriced {
				t.Errorf("cost %s, outcome %d; want %s, fully priced", cost, priced, c.want)
			}
			if want := c.unit.String() + "=" + c.price.String(); label != want {
				t.Errorf("label %q, want %q", label, want)
			}
			if u, ok := modelgate.UnitByName(c.unit.String()); !ok || u != c.unit {
				t.Errorf("UnitByName(%s) = %d, %v", c.unit, u, ok)
			}
		})
	}
	if _, ok := modelgate.UnitByName("tokens"); ok {
		t.Error("UnitByName(tokens) found a unit")
	}
}

func TestCostRoundsOnceHalfToEven(t *testing.T) {
	t.Parallel()
	// Half a nano-USD a token, in and out.
	p := &modelgate.Price{Base: rates(t, rateTable{modelgate.UnitInput: 500_000, modelgate.UnitOutput: 500_000})}
	for _, c := range []struct {
		in, out int64
		want    modelgate.Nano
	}{{1, 0, 0}, {3, 0, 2}, {5, 0, 2}, {1, 1, 1}, {1, 2, 2}, {3, 2, 2}} {
		if got, _, _ := pricing.Cost(p, &modelgate.Usage{Input: c.in, Output: c.out}, noon); got != c.want {
			t.Errorf("%d in, %d out cost %d nano-USD, want %d", c.in, c.out, got, c.want)
		}
	}
}

// A unit without a price costs what its dearer neighbour does, never nothing.
func TestUnitFallbacks(t *testing.T) {
	t.Parallel()
	one := []modelgate.Usage{{CachedInput: 1}, {CacheWrite: 1}, {CacheWrite1h: 1}, {AudioInput: 1}, {AudioOutput: 1},
		{ImageInput: 1}, {ImageOutput: 1}, {CachedAudioInput: 1}, {CachedImageInput: 1}, {VideoInput: 1}, {Reasoning: 1}}
	for _, c := range []struct {
		name  string
		table rateTable
		want  [11]modelgate.Nano // by the order of one, in nano-USD a token
	}{
		{"input and output", rateTable{modelgate.UnitInput: 2e6, modelgate.UnitOutput: 5e6}, [11]modelgate.Nano{2, 2, 2, 2, 5, 2, 5, 2, 2, 2, 5}},
		{"cache write", rateTable{modelgate.UnitInput: 2e6, modelgate.UnitCacheWrite: 3e6, modelgate.UnitOutput: 5e6}, [11]modelgate.Nano{2, 3, 3, 2, 5, 2, 5, 2, 2, 2, 5}},
		{"explicit zero", rateTable{modelgate.UnitInput: 2e6, modelgate.UnitCachedInput: 0, modelgate.UnitOutput: 5e6}, [11]modelgate.Nano{0, 2, 2, 2, 5, 2, 5, 0, 0, 2, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &modelgate.Price{Base: rates(t, c.table)}
			for i := range one {
				if got, priced, _ := pricing.Cost(p, &one[i], noon); got != c.want[i] || priced != pricing.FullyPriced {
					t.Errorf("%+v cost %d (outcome %d), want %d, fully priced", one[i], got, priced, c.want[i])
				}
			}
		})
	}
}

// The layers of a price, by example: each row's usage and instant meet one.
func TestLayers(t *testing.T) {
	t.Parallel()
	in := func(nano modelgate.Nano) modelgate.Rates {
		return rates(t, rateTable{modelgate.UnitInput: nano * 1_000_000})
	}
	day := func(month time.Month) time.Time { return time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC) }
	clock := func(hour, minute int) time.Time { return time.Date(2026, 5, 4, hour, minute, 0, 0, time.UTC) }
	tiers := &modelgate.Price{Base: in(1), Tiers: []modelgate.TierPrice{{Above: 400, Rates: in(4)}, {Above: 200, Rates: in(2)}}}
	costs := func(nano modelgate.Nano) *modelgate.Price { return &modelgate.Price{Base: in(nano)} }
	dated := &modelgate.Price{Base: in(1), Dated: []modelgate.DatedPrice{{From: day(7), Price: costs(3)}, {From: day(3), Price: costs(2)}}}
	campaign := &modelgate.Price{Base: in(1), Dated: []modelgate.DatedPrice{{From: day(3), Price: costs(2)}, {From: day(7), Until: day(8), Price: costs(3)}}}
	mondays := &modelgate.Price{Base: in(2), Windows: []modelgate.WindowPrice{{From: 23 * 60, To: 60, Days: 1 << time.Monday, Rates: in(1)}}}
	priority := []modelgate.Condition{{Field: "service_tier", Value: "priority"}}
	variants := &modelgate.Price{Base: in(10), Tiers: []modelgate.TierPrice{{Above: 200, Rates: in(20)}, {Above: 400, Rates: in(30)}},
		Variants: []modelgate.Variant{
			{When: priority, Rates: in(15)}, {When: priority, Above: 200, Rates: in(25)},
			{When: append(priority[:1:1], modelgate.Condition{Field: "speed", Value: "fast"}), Rates: in(7)},
		},
		Multipliers: []modelgate.Multiplier{{Field: "service_tier", Value: "priority", Millionths: 9_000_000}, {Field: "speed", Value: "fast", Millionths: 2_000_000}},
		Factor:      1_100_000,
	}
	night := &modelgate.Price{Base: in(2), Windows: []modelgate.WindowPrice{{From: 23 * 60, To: 60, Rates: in(1)}}}
	lunch := &modelgate.Price{Base: in(2), Windows: []modelgate.WindowPrice{{From: 12 * 60, To: 13 * 60, Rates: in(1)}}}
	tier := &modelgate.Price{Base: in(2), Multipliers: []modelgate.Multiplier{
		{Field: "service_tier", Value: "flex", Millionths: 500_000}, {Field: "service_tier", Value: "priority", Millionths: 2_000_000}, {Field: "speed", Value: "fast", Millionths: 6_000_000}, {Field: "inference_geo", Value: "us", Millionths: 1_100_000},
	}}
	for _, c := range []struct {
		name  string
		price *modelgate.Price
		usage modelgate.Usage
		at    time.Time
		want  modelgate.Nano
	}{
		{"below the tiers", tiers, modelgate.Usage{Input: 200}, noon, 200},
		{"one token past a tier", tiers, modelgate.Usage{Input: 201}, noon, 402},
		{"cached tokens count for a tier", tiers, modelgate.Usage{Input: 100, CachedInput: 150, CacheWrite: 150, CacheWrite1h: 100, AudioInput: 1}, noon, 501 * 4},
		{"output does not count for a tier", tiers, modelgate.Usage{Input: 100, Output: 1_000}, noon, 100},
		{"before every date", dated, modelgate.Usage{Input: 1}, day(3).Add(-time.Nanosecond), 1},
		{"from the first date on", dated, modelgate.Usage{Input: 1}, day(3), 2},
		{"from the second date on", dated, modelgate.Usage{Input: 1}, day(8), 3},
		{"before a price that ends", campaign, modelgate.Usage{Input: 1}, day(7).Add(-1), 2},
		{"while it holds", campaign, modelgate.Usage{Input: 1}, day(7), 3},
		{"after its end the former holds", campaign, modelgate.Usage{Input: 1}, day(8), 2},
		{"the day on which a window begins", mondays, modelgate.Usage{Input: 1}, clock(23, 0), 1}, // 4 May is a Monday
		{"past midnight the day before counts", mondays, modelgate.Usage{Input: 1}, clock(24, 30), 1},
		{"another day", mondays, modelgate.Usage{Input: 1}, clock(0, 30), 2},
		{"no variant", variants, modelgate.Usage{Input: 10}, noon, 110},
		{"a factor beside the account's", variants, modelgate.Usage{Input: 10, Speed: "fast"}, noon, 220},
		{"a variant switches its multiplier off", variants, modelgate.Usage{Input: 10, ServiceTier: "priority"}, noon, 165},
		{"the variant of a tier", variants, modelgate.Usage{Input: 300, ServiceTier: "priority"}, noon, 300 * 25 * 11 / 10},
		{"the dearer of tier and variant", variants, modelgate.Usage{Input: 500, ServiceTier: "priority"}, noon, 500 * 30 * 11 / 10},
		{"most fields first", variants, modelgate.Usage{Input: 10, ServiceTier: "priority", Speed: "fast"}, noon, 77},
		{"before midnight", night, modelgate.Usage{Input: 1}, clock(23, 0), 1},
		{"after midnight", night, modelgate.Usage{Input: 1}, clock(0, 59), 1},
		{"the window's end is outside", night, modelgate.Usage{Input: 1}, clock(1, 0), 2},
		{"the window's begin is inside", lunch, modelgate.Usage{Input: 1}, clock(12, 0), 1},
		{"outside a window", lunch, modelgate.Usage{Input: 1}, clock(11, 59), 2},
		{"windows are UTC", lunch, modelgate.Usage{Input: 1}, clock(12, 30).In(time.FixedZone("", 5*3600)), 1},
		{"no multiplier", tier, modelgate.Usage{Input: 10}, noon, 20},
		{"unknown value", tier, modelgate.Usage{Input: 10, ServiceTier: "Flex"}, noon, 20},
		{"half", tier, modelgate.Usage{Input: 10, ServiceTier: "flex"}, noon, 10},
		{"double", tier, modelgate.Usage{Input: 10, ServiceTier: "priority"}, noon, 40},
		{"all three", tier, modelgate.Usage{Input: 10, ServiceTier: "priority", Speed: "fast", InferenceGeo: "us"}, noon, 264},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, _, label := pricing.Cost(c.price, &c.usage, c.at); got != c.want {
				t.Errorf("cost %d nano-USD by %q, want %d", got, label, c.want)
			}
		})
	}
}

func TestImageTable(t *testing.T) {
	t.Parallel()
	p := &modelgate.Price{
		Base:   rates(t, rateTable{modelgate.UnitImage: 1}),
		Images: []modelgate.MediaPrice{{Size: "1024x1024", Quality: "high", USD: 40}, {Size: "1024x1024", Quality: "", USD: 20}, {Size: "", Quality: "low", USD: 5}},
	}
	for _, c := range []struct {
		size, quality string
		want          modelgate.Nano
		label         string
	}{
		{"1024x1024", "high", 80, "image=0.00000004"},
		{"1024x1024", "low", 40, "image=0.00000002"},
		{"1024x1024", "", 40, "image=0.00000002"},
		{"512x512", "low", 10, "image=0.000000005"},
		{"512x512", "high", 2, "image=0.000000001"},
	} {
		u := modelgate.Usage{Images: 2, Size: c.size, Quality: c.quality}
		if got, _, label := pricing.Cost(p, &u, noon); got != c.want || label != c.label {
			t.Errorf("two of %q %q cost %d by %q, want %d by %q", c.size, c.quality, got, label, c.want, c.label)
		}
	}
}

// Of the dates that have begun only the newest counts, whatever the order
// they are listed in.
func TestDatesDoNotPileUp(t *testing.T) {
	t.Parallel()
	base := rates(t, rateTable{modelgate.UnitInput: 1e6, modelgate.UnitOutput: 1e6})
	over := func(months int, table rateTable) modelgate.DatedPrice {
		own := rates(t, table)
		return modelgate.DatedPrice{From: noon.AddDate(0, months, 0), Price: &modelgate.Price{Base: own.Over(base)}}
	}
	march, april := over(-2, rateTable{modelgate.UnitInput: 10e6}), over(-1, rateTable{modelgate.UnitOutput: 20e6})
	for _, dated := range [][]modelgate.DatedPrice{{march, april}, {april, march}} {
		p := &modelgate.Price{Base: base, Dated: dated}
		if got, _, label := pricing.Cost(p, &modelgate.Usage{Input: 1, Output: 1}, noon); got != 21 {
			t.Errorf("cost %d by %q, want 21: input by the base, output by the newest date", got, label)
		}
	}
}

func TestSetRefusesPricesOutOfRange(t *testing.T) {
	t.Parallel()
	var r modelgate.Rates
	for unit, usd := range (rateTable{modelgate.UnitInput: -1, modelgate.UnitSearch: 1 << 62}) {
		if err := r.Set(unit, usd); err == nil {
			t.Errorf("Set(%s, %d) passed", unit, usd)
		}
	}
	if !r.Empty() {
		t.Errorf("a refused price stayed: %s", r)
	}
}

func TestPricedOutcomes(t *testing.T) {
	t.Parallel()
	const in, out, image, chars, search, request = modelgate.UnitInput, modelgate.UnitOutput, modelgate.UnitImage,
		modelgate.UnitCharacters, modelgate.UnitSearch, modelgate.UnitRequest
	tokens := modelgate.Usage{Input: 1, Output: 1}
	pictures := modelgate.Usage{Images: 1}
	both := modelgate.Usage{Input: 1, Output: 1, Images: 1}
	searches := modelgate.Usage{Searches: 1}
	searching := modelgate.Usage{Input: 1, Output: 1, Searches: 1}
	for _, c := range []struct {
		name  string
		units []modelgate.Unit
		usage modelgate.Usage
		want  pricing.Coverage
	}{
		{"empty price", nil, tokens, pricing.Unpriced},
		{"all tokens", []modelgate.Unit{in, out}, tokens, pricing.FullyPriced},
		{"half of the tokens", []modelgate.Unit{in}, tokens, pricing.PartPriced},
		{"nothing used", []modelgate.Unit{in}, modelgate.Usage{}, pricing.FullyPriced},
		{"tokens by the request", []modelgate.Unit{request}, tokens, pricing.FullyPriced},
		{"some tokens, and the request", []modelgate.Unit{in, request}, tokens, pricing.PartPriced},
		{"tokens of a picture price", []modelgate.Unit{image}, tokens, pricing.Unpriced},
		{"pictures", []modelgate.Unit{image}, pictures, pricing.FullyPriced},
		{"pictures of a token price", []modelgate.Unit{in, out}, pictures, pricing.Unpriced},
		{"pictures by the request", []modelgate.Unit{request}, pictures, pricing.FullyPriced},
		{"pictures measured in tokens too", []modelgate.Unit{image}, both, pricing.FullyPriced},
		{"tokens measured in pictures too", []modelgate.Unit{in, out}, both, pricing.FullyPriced},
		{"part of the tokens, no pictures", []modelgate.Unit{in}, both, pricing.PartPriced},
		{"characters", []modelgate.Unit{chars}, modelgate.Usage{Characters: 4, AudioOutput: 9}, pricing.FullyPriced},
		{"characters of a token price", []modelgate.Unit{in}, modelgate.Usage{Characters: 4}, pricing.Unpriced},
		{"searches come on top", []modelgate.Unit{in, out, search}, searching, pricing.FullyPriced},
		{"searches left out", []modelgate.Unit{in, out}, searching, pricing.PartPriced},
		{"searches alone, left out", []modelgate.Unit{in, out}, searches, pricing.Unpriced},
		{"searches priced, tokens not", []modelgate.Unit{search}, searching, pricing.PartPriced},
		{"searches priced, pictures not", []modelgate.Unit{search}, modelgate.Usage{Images: 1, Searches: 1}, pricing.PartPriced},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var p modelgate.Price
			for _, u := range c.units {
				if err := p.Base.Set(u, modelgate.USD); err != nil {
					t.Fatal(err)
				}
			}
			cost, got, _ := pricing.Cost(&p, &c.usage, noon)
			if got != c.want {
				t.Errorf("outcome %d, want %d (cost %s)", got, c.want, cost)
			}
			if got == pricing.Unpriced && cost != 0 {
				t.Errorf("an unpriced call cost %s", cost)
			}
		})
	}
	var none *modelgate.Price
	if cost, got, label := pricing.Cost(none, &tokens, noon); cost != 0 || got != pricing.Unpriced || label != "" {
		t.Errorf("without a price: %d, %d, %q", cost, got, label)
	}
}

// plan is a price in the words of the configuration, which the oracle reads
// by itself.
type plan struct {
	base            rateTable
	images, seconds []modelgate.MediaPrice
	dated           []dayTable
	tiers           []tierTable
	windows         []windowTable
	variants        []variantTable
	multipliers     []modelgate.Multiplier
	factor          int64
}

type (
	// dayTable is a plan of its own, which holds from a day until another; 0 is
	// for ever.
	dayTable struct {
		day, until int
		plan       *plan
	}
	tierTable struct {
		above int64
		table rateTable
	}
	windowTable struct {
		from, to int
		days     []time.Weekday
		table    rateTable
	}
	variantTable struct {
		when  map[string]string
		above int64
		table rateTable
	}
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (pl *plan) price(t *rapid.T) *modelgate.Price {
	p := &modelgate.Price{Base: rates(t, pl.base), Images: pl.images, Seconds: pl.seconds, Multipliers: pl.multipliers, Factor: pl.factor}
	for _, d := range pl.dated {
		made := modelgate.DatedPrice{From: epoch.AddDate(0, 0, d.day), Price: d.plan.price(t)}
		if d.until > 0 {
			made.Until = epoch.AddDate(0, 0, d.until)
		}
		p.Dated = append(p.Dated, made)
	}
	for _, tt := range pl.tiers {
		p.Tiers = append(p.Tiers, modelgate.TierPrice{Above: tt.above, Rates: rates(t, tt.table)})
	}
	for _, w := range pl.windows {
		made := modelgate.WindowPrice{From: w.from, To: w.to, Rates: rates(t, w.table)}
		for _, day := range w.days {
			made.Days |= 1 << day
		}
		p.Windows = append(p.Windows, made)
	}
	for _, v := range pl.variants {
		made := modelgate.Variant{Above: v.above, Rates: rates(t, v.table)}
		for field, value := range v.when {
			made.When = append(made.When, modelgate.Condition{Field: field, Value: value})
		}
		p.Variants = append(p.Variants, made)
	}
	if rapid.Bool().Draw(t, "prepared") {
		p.Prepare()
	}
	return p
}

// at is the plan that holds at an instant.
func (pl *plan) at(at time.Time) *plan {
	best := -1
	for i, d := range pl.dated {
		began, ended := !epoch.AddDate(0, 0, d.day).After(at), d.until > 0 && !epoch.AddDate(0, 0, d.until).After(at)
		if began && !ended && (best < 0 || d.day >= pl.dated[best].day) {
			best = i
		}
	}
	if best < 0 {
		return pl
	}
	return pl.dated[best].plan
}

// tokensOf are the tokens of the prompt.
func tokensOf(u *modelgate.Usage) int64 {
	return u.Input + u.CachedInput + u.CacheWrite + u.CacheWrite1h + u.AudioInput + u.ImageInput + u.CachedAudioInput + u.CachedImageInput + u.VideoInput
}

// said is what a reply says of the fields that prices depend on.
func said(u *modelgate.Usage) map[string]string {
	return map[string]string{"service_tier": u.ServiceTier, "speed": u.Speed, "inference_geo": u.InferenceGeo}
}

// table is the rates that are in force, and the variant that gave some of them.
func (pl *plan) table(u *modelgate.Usage, at time.Time) (rateTable, *variantTable) {
	table := rateTable{}
	lay := func(over rateTable) {
		for unit, n := range over {
			table[unit] = n
		}
	}
	lay(pl.base)
	var tier *tierTable
	for i := range pl.tiers {
		if tt := &pl.tiers[i]; tt.above < tokensOf(u) && (tier == nil || tt.above > tier.above) {
			tier = tt
		}
	}
	if tier != nil {
		lay(tier.table)
	}
	for _, w := range pl.windows {
		since := minutesSince(w.from, at)
		began := at.Add(-time.Duration(since) * time.Minute).Weekday()
		if since < (w.to-w.from+1440)%1440 && (len(w.days) == 0 || slices.Contains(w.days, began)) {
			lay(w.table)
		}
	}
	held := pl.variant(u)
	if held != nil {
		for unit, n := range held.table {
			if tier != nil && tier.above > held.above {
				if _, named := tier.table[unit]; named {
					n = max(n, table[unit])
				}
			}
			table[unit] = n
		}
	}
	tabulate(table, modelgate.UnitImage, pl.images, u)
	tabulate(table, modelgate.UnitSecond, pl.seconds, u)
	return table, held
}

func (pl *plan) variant(u *modelgate.Usage) (held *variantTable) {
	for i := range pl.variants {
		v := &pl.variants[i]
		matches := v.above == 0 || tokensOf(u) > v.above
		for field, value := range v.when {
			matches = matches && said(u)[field] == value
		}
		if matches && (held == nil || len(v.when) > len(held.when) || len(v.when) == len(held.when) && v.above > held.above) {
			held = v
		}
	}
	return held
}

// tabulate sets the rate of what has a table by what it is like: the first line
// that matches, else the dearest, unless any has a price.
func tabulate(table rateTable, unit modelgate.Unit, lines []modelgate.MediaPrice, u *modelgate.Usage) {
	_, each := table[unit]
	for i := len(lines) - 1; i >= 0 && !each; i-- {
		table[unit] = max(table[unit], lines[i].USD)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if p := lines[i]; (p.Size == "" || p.Size == u.Size) && (p.Quality == "" || p.Quality == u.Quality) && (p.Audio == "" || p.Audio == u.Audio) {
			table[unit] = p.USD
		}
	}
}

// cost is the oracle: a sum of fractions over the table that is in force.
func (pl *plan) cost(u *modelgate.Usage, at time.Time) modelgate.Nano {
	pl = pl.at(at)
	table, held := pl.table(u, at)
	_, searching := table[modelgate.UnitSearch]
	sum, tools := new(big.Rat), new(big.Rat)
	for unit, quantity := range quantities(u) {
		if unit == modelgate.UnitGroundedRequest && searching || unit == modelgate.UnitSearch && u.GroundedRequests > 0 && !searching {
			continue
		}
		if rate, ok := rateOf(table, unit); ok {
			to := sum
			switch unit {
			case modelgate.UnitSearch, modelgate.UnitFileSearch, modelgate.UnitCodeSession, modelgate.UnitGroundedRequest, modelgate.UnitRequest:
				to = tools // factors do not touch them
			}
			to.Add(to, quantity.Mul(quantity, rate))
		}
	}
	for _, m := range pl.multipliers {
		if held != nil {
			if _, off := held.when[m.Field]; off {
				continue
			}
		}
		if says := said(u)[m.Field]; says != "" && says == m.Value {
			sum.Mul(sum, big.NewRat(m.Millionths, 1_000_000))
		}
	}
	if pl.factor != 0 {
		sum.Mul(sum, big.NewRat(pl.factor, 1_000_000))
	}
	return halfEven(sum.Add(sum, tools))
}

func minutesSince(from int, at time.Time) int {
	return (at.Hour()*60 + at.Minute() - from + 1440) % 1440
}

func rateOf(table rateTable, u modelgate.Unit) (*big.Rat, bool) {
	chain := map[modelgate.Unit][]modelgate.Unit{
		modelgate.UnitCachedInput:      {modelgate.UnitInput},
		modelgate.UnitCacheWrite:       {modelgate.UnitInput},
		modelgate.UnitCacheWrite1h:     {modelgate.UnitCacheWrite, modelgate.UnitInput},
		modelgate.UnitReasoning:        {modelgate.UnitOutput},
		modelgate.UnitAudioInput:       {modelgate.UnitInput},
		modelgate.UnitAudioOutput:      {modelgate.UnitOutput},
		modelgate.UnitImageInput:       {modelgate.UnitInput},
		modelgate.UnitImageOutput:      {modelgate.UnitOutput},
		modelgate.UnitVideoInput:       {modelgate.UnitInput},
		modelgate.UnitCachedAudioInput: {modelgate.UnitCachedInput, modelgate.UnitInput},
		modelgate.UnitCachedImageInput: {modelgate.UnitCachedInput, modelgate.UnitInput},
	}
	for _, next := range append([]modelgate.Unit{u}, chain[u]...) {
		if n, ok := table[next]; ok {
			return new(big.Rat).SetInt64(int64(n)), true
		}
	}
	if n, ok := table[modelgate.UnitMinute]; ok && u == modelgate.UnitSecond {
		return big.NewRat(int64(n), 60), true
	}
	return nil, false
}

// quantities are how often the configured price of each unit applies.
func quantities(u *modelgate.Usage) map[modelgate.Unit]*big.Rat {
	return map[modelgate.Unit]*big.Rat{
		modelgate.UnitInput:        big.NewRat(u.Input, 1e6),
		modelgate.UnitCachedInput:  big.NewRat(u.CachedInput, 1e6),
		modelgate.UnitCacheWrite:   big.NewRat(u.CacheWrite, 1e6),
		modelgate.UnitCacheWrite1h: big.NewRat(u.CacheWrite1h, 1e6),
		modelgate.UnitOutput:       big.NewRat(u.Output, 1e6),
		modelgate.UnitAudioInput:   big.NewRat(u.AudioInput, 1e6),
		modelgate.UnitAudioOutput:  big.NewRat(u.AudioOutput, 1e6),
		modelgate.UnitImage:        big.NewRat(u.Images, 1),
		modelgate.UnitSecond:       big.NewRat(u.Seconds, 1e6),
		modelgate.UnitCharacters:   big.NewRat(u.Characters, 1e6),
		modelgate.UnitSearch:       big.NewRat(u.Searches, 1000),
		modelgate.UnitMegapixel:    big.NewRat(u.Megapixels, 1e6),
		modelgate.UnitRequest:      big.NewRat(1, 1),

		modelgate.UnitReasoning:       big.NewRat(u.Reasoning, 1e6),
		modelgate.UnitFileSearch:      big.NewRat(u.FileSearches, 1000),
		modelgate.UnitCodeSession:     big.NewRat(u.CodeSessions, 1),
		modelgate.UnitGroundedRequest: big.NewRat(u.GroundedRequests, 1000),

		modelgate.UnitImageInput:       big.NewRat(u.ImageInput, 1e6),
		modelgate.UnitImageOutput:      big.NewRat(u.ImageOutput, 1e6),
		modelgate.UnitVideoInput:       big.NewRat(u.VideoInput, 1e6),
		modelgate.UnitCachedAudioInput: big.NewRat(u.CachedAudioInput, 1e6),
		modelgate.UnitCachedImageInput: big.NewRat(u.CachedImageInput, 1e6),
		modelgate.UnitPage:             big.NewRat(u.Pages, 1),
	}
}

func drawTable(t *rapid.T, label string) rateTable {
	amount := rapid.OneOf(
		rapid.Int64Range(0, 5_000_000), rapid.Int64Range(0, int64(100*modelgate.USD)), rapid.Int64Range(0, 9_000_000_000_000_000))
	units := rapid.IntRange(0, int(modelgate.UnitRequest))
	table := rateTable{}
	for unit, n := range rapid.MapOfN(units, amount, 0, 6).Draw(t, label) {
		table[modelgate.Unit(unit)] = modelgate.Nano(n)
	}
	return table
}

func drawPlan(t *rapid.T) *plan {
	pl := drawUndated(t)
	for range rapid.IntRange(0, 2).Draw(t, "dates") {
		entry := dayTable{day: rapid.IntRange(0, 4).Draw(t, "day"), plan: drawUndated(t)}
		if rapid.Bool().Draw(t, "ends") {
			entry.until = entry.day + rapid.IntRange(1, 3).Draw(t, "until")
		}
		pl.dated = append(pl.dated, entry)
	}
	return pl
}

func drawUndated(t *rapid.T) *plan {
	pl := &plan{base: drawTable(t, "base")}
	for i := range rapid.IntRange(0, 3).Draw(t, "tiers") {
		pl.tiers = append(pl.tiers, tierTable{rapid.Int64Range(0, 4).Draw(t, "above"), drawTable(t, fmt.Sprint("tier", i))})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "windows") {
		minute := rapid.IntRange(0, 1439)
		days := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 6), func(d int) time.Weekday { return time.Weekday(d) }), 0, 3)
		pl.windows = append(pl.windows, windowTable{minute.Draw(t, "from"), minute.Draw(t, "to"), days.Draw(t, "days"), drawTable(t, fmt.Sprint("window", i))})
	}
	word := rapid.SampledFrom([]string{"", "a", "b"})
	lines := func(label string) (made []modelgate.MediaPrice) {
		for range rapid.IntRange(0, 2).Draw(t, label) {
			usd := modelgate.Nano(rapid.Int64Range(0, int64(modelgate.USD)).Draw(t, label))
			made = append(made, modelgate.MediaPrice{Size: word.Draw(t, "size"), Quality: word.Draw(t, "quality"), Audio: word.Draw(t, "audio"), USD: usd})
		}
		return made
	}
	pl.images, pl.seconds = lines("images"), lines("seconds")
	field := rapid.SampledFrom([]string{"service_tier", "speed", "inference_geo"})
	for i := range rapid.IntRange(0, 3).Draw(t, "variants") {
		when := rapid.MapOfN(field, rapid.SampledFrom([]string{"a", "b"}), 1, 2).Draw(t, "when")
		pl.variants = append(pl.variants, variantTable{when, rapid.Int64Range(0, 4).Draw(t, "above"), drawTable(t, fmt.Sprint("variant", i))})
	}
	for range rapid.IntRange(0, 4).Draw(t, "multipliers") {
		pl.multipliers = append(pl.multipliers, modelgate.Multiplier{Field: field.Draw(t, "field"), Value: word.Draw(t, "value"),
			Millionths: rapid.Int64Range(0, 10_000_000).Draw(t, "millionths")})
	}
	pl.factor = rapid.SampledFrom([]int64{0, 0, 1_100_000, 930_000}).Draw(t, "factor")
	return pl
}

func drawUsage(t *rapid.T) *modelgate.Usage {
	count := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 9), rapid.Int64Range(0, modelgate.MaxQuantity))
	word := rapid.SampledFrom([]string{"", "a", "b"})
	return &modelgate.Usage{
		Input: count.Draw(t, "input"), CachedInput: count.Draw(t, "cached"), CacheWrite: count.Draw(t, "write"),
		CacheWrite1h: count.Draw(t, "write1h"), Output: count.Draw(t, "output"), AudioInput: count.Draw(t, "audioIn"),
		AudioOutput: count.Draw(t, "audioOut"), Images: count.Draw(t, "pictures"), Seconds: count.Draw(t, "seconds"),
		Characters: count.Draw(t, "characters"), Searches: count.Draw(t, "searches"), Megapixels: count.Draw(t, "megapixels"),
		Reasoning: count.Draw(t, "reasoning"), FileSearches: count.Draw(t, "files"), CodeSessions: count.Draw(t, "sessions"),
		ImageInput: count.Draw(t, "imageIn"), ImageOutput: count.Draw(t, "imageOut"), VideoInput: count.Draw(t, "videoIn"),
		CachedAudioInput: count.Draw(t, "cachedAudio"), CachedImageInput: count.Draw(t, "cachedImage"), Pages: count.Draw(t, "pages"),
		GroundedRequests: rapid.Int64Range(0, 1).Draw(t, "grounded"),
		Audio:            word.Draw(t, "usedAudio"),
		Size:             word.Draw(t, "usedSize"), Quality: word.Draw(t, "usedQuality"),
		ServiceTier: word.Draw(t, "tier"), Speed: word.Draw(t, "speed"), InferenceGeo: word.Draw(t, "geo"),
	}
}

func drawInstant(t *rapid.T) time.Time {
	return epoch.AddDate(0, 0, -1).Add(time.Duration(rapid.Int64Range(0, 7*24*3600).Draw(t, "instant")) * time.Second)
}

func TestCostIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pl, u, at := drawPlan(t), drawUsage(t), drawInstant(t)
		got, _, label := pricing.Cost(pl.price(t), u, at)
		if want := pl.cost(u, at); got != want {
			t.Fatalf("cost %d by %q, want %d", got, label, want)
		}
	})
}

// without takes the prices of units out of every layer.
func (pl *plan) without(units ...modelgate.Unit) {
	tables := []rateTable{pl.base}
	for _, tier := range pl.tiers {
		tables = append(tables, tier.table)
	}
	for _, window := range pl.windows {
		tables = append(tables, window.table)
	}
	for _, variant := range pl.variants {
		tables = append(tables, variant.table)
	}
	for _, table := range tables {
		for _, unit := range units {
			delete(table, unit)
		}
	}
	for _, later := range pl.dated {
		later.plan.without(units...)
	}
}

// demandOf is the demand of a call that will use so much.
func demandOf(u *modelgate.Usage) pricing.Demand {
	return pricing.Demand{
		Input: u.PromptTokens(), Output: u.OutputTokens(), Images: u.Images, Characters: u.Characters, Seconds: u.Seconds,
		Searches: u.Searches+u.FileSearches+u.CodeSessions+u.GroundedRequests > 0,
	}
}

func TestBoundIsNeverBelowCost(t *testing.T) {
	t.Parallel()
	bounds := 0
	rapid.Check(t, func(t *rapid.T) {
		pl, u, at := drawPlan(t), drawUsage(t), drawInstant(t)
		demand := demandOf(u)
		if rapid.Bool().Draw(t, "bounded") {
			// Nothing that the request leaves open has a price, and what it
			// does not know is at most one.
			pl.without(modelgate.UnitMegapixel, modelgate.UnitPage)
			u.Searches, u.FileSearches, u.CodeSessions, u.GroundedRequests = 0, 0, 0, 0
			demand = demandOf(u)
			for _, n := range []*int64{&demand.Input, &demand.Output, &demand.Images, &demand.Characters, &demand.Seconds} {
				*n = max(*n, 1)
			}
		}
		p := pl.price(t)
		cost, _, label := pricing.Cost(p, u, at)
		bound, ok := pricing.Bound(p, demand)
		if ok && bound < cost {
			t.Fatalf("bound %d is below the cost %d by %q", bound, cost, label)
		}
		if ok {
			bounds++
		}
	})
	if bounds == 0 {
		t.Error("no price had a bound")
	}
}

// A price with one rate by the call or the token leaves nothing open, so its
// bound is its cost.
func TestBoundOfAPlainPriceIsItsCost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]modelgate.Unit{
			modelgate.UnitInput, modelgate.UnitOutput, modelgate.UnitImage, modelgate.UnitSecond, modelgate.UnitCharacters, modelgate.UnitRequest,
		}).Draw(t, "unit")
		rate := modelgate.Nano(rapid.Int64Range(0, int64(100*modelgate.USD)).Draw(t, "rate"))
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "count")
		p := (&plan{base: rateTable{unit: rate}}).price(t)
		u := &modelgate.Usage{Input: n, Output: n, Images: n, Seconds: n, Characters: n}
		cost, _, _ := pricing.Cost(p, u, noon)
		if bound, ok := pricing.Bound(p, demandOf(u)); !ok || bound != cost {
			t.Fatalf("bound %d %t, want the cost %d", bound, ok, cost)
		}
	})
}

// A price may have any number of windows; what they can lead to must not be
// tried out one combination after another.
func TestBoundOfManyLayers(t *testing.T) {
	t.Parallel()
	p := &modelgate.Price{Base: rates(t, rateTable{modelgate.UnitInput: 1e6})}
	for i := range 48 {
		dear := rates(t, rateTable{modelgate.UnitInput: modelgate.Nano(i) * 1e6})
		p.Windows = append(p.Windows, modelgate.WindowPrice{From: i * 30, To: i*30 + 30, Rates: dear})
		p.Tiers = append(p.Tiers, modelgate.TierPrice{Above: int64(i), Rates: dear})
	}
	if got, ok := pricing.Bound(p, pricing.Demand{Input: 1}); !ok || got != 47 {
		t.Errorf("bound %d %t, want 47", got, ok)
	}
}

// halfEven rounds what is not below zero to an integer, held at the largest
// Nano.
func halfEven(r *big.Rat) modelgate.Nano {
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if twice := rest.Lsh(rest, 1).Cmp(r.Denom()); twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return math.MaxInt64
	}
	return modelgate.Nano(q.Int64())
}
