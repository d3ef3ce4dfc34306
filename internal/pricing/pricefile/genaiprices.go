package pricefile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
)

// genaiUnits are the prices of genai-prices: USD per million tokens, or per
// thousand.
var genaiUnits = map[string]string{
	"input_mtok": "input", "cache_read_mtok": "cached_input", "cache_write_mtok": "cache_write", "cache_write_5m_mtok": "cache_write",
	"cache_write_1h_mtok": "cache_write_1h", "output_mtok": "output", "output_reasoning_mtok": "reasoning", "input_audio_mtok": "audio_input",
	"output_audio_mtok": "audio_output", "input_image_mtok": "image_input", "output_image_mtok": "image_output", "input_video_mtok": "video_input",
	"cache_audio_read_mtok": "cached_audio_input", "cache_image_read_mtok": "cached_image_input", "web_searches_kcount": "search",
}

// genaiPrices reads genai-prices: a list of providers with their models.
func genaiPrices(root gjson.Result, today time.Time, add adder) {
	for _, p := range root.Array() {
		source := p.Get("id").String()
		if source == "" || !p.Get("models").IsArray() {
			continue
		}
		for _, m := range p.Get("models").Array() {
			e, err := genaiModel(source, m, today)
			add("genai-prices", source, m.Get("id").String(), e, err)
		}
	}
}

func genaiModel(source string, m gjson.Result, today time.Time) (Entry, error) {
	e := Entry{Source: source, Model: m.Get("id").String(), Name: m.Get("name").String(), Kind: modelgate.LLM, ContextLength: count(m.Get("context_window"))}
	if strings.Contains(strings.ToLower(e.Model), "embed") {
		e.Kind = modelgate.Embedding
	}
	held := m.Get("prices")
	if held.IsArray() {
		var err error
		if held, err = genaiActive(held, today); err != nil {
			return e, err
		}
	}
	var err error
	tiers := make(map[int64][]Price)
	held.ForEach(func(key, value gjson.Result) bool {
		err = e.genaiPrice(key.String(), value, tiers)
		return err == nil
	})
	for above, prices := range tiers {
		slices.SortFunc(prices, byUnit)
		e.Tiers = append(e.Tiers, Tier{above, prices})
	}
	slices.SortFunc(e.Tiers, func(a, b Tier) int { return cmp.Compare(a.Above, b.Above) })
	slices.SortFunc(e.Prices, byUnit)
	return e, err
}

// byUnit orders prices as the catalog does.
func byUnit(a, b Price) int {
	x, _ := modelgate.UnitByName(a.Unit)
	y, _ := modelgate.UnitByName(b.Unit)
	return cmp.Compare(x, y)
}

// genaiActive is the last of several prices whose time has come.
func genaiActive(list gjson.Result, today time.Time) (held gjson.Result, err error) {
	for _, one := range list.Array() {
		constraint := one.Get("constraint")
		if constraint.Get("start_time").Exists() {
			return held, fmt.Errorf("prices by the time of the day are not supported")
		}
		start := constraint.Get("start_date")
		if !start.Exists() {
			held = one.Get("prices")
			continue
		}
		from, err := time.Parse(time.DateOnly, start.String())
		if err != nil {
			return held, fmt.Errorf("start_date is no day: %.40s", start.Raw)
		}
		if !from.After(today) {
			held = one.Get("prices")
		}
	}
	return held, nil
}

// genaiPrice reads one price: a number, or one with tiers.
func (e *Entry) genaiPrice(name string, value gjson.Result, tiers map[int64][]Price) error {
	unit, factor := genaiUnits[name], int64(1)
	if name == "requests_kcount" {
		unit = "request"
	}
	if value.Type == gjson.Null {
		return nil
	}
	if unit == "" {
		return fmt.Errorf("not supported: %s", name)
	}
	base := value
	if value.IsObject() {
		base = value.Get("base")
		for _, t := range value.Get("tiers").Array() {
			above, usd := count(t.Get("start")), exact(t.Get("price"), factor)
			if above == 0 || usd == "" {
				return fmt.Errorf("%s.tiers is not understood: %.60s", name, t.Raw)
			}
			tiers[above] = append(tiers[above], Price{unit, usd})
		}
	}
	usd := exact(base, factor)
	if unit == "request" && usd != "" {
		usd = perThousand(base)
	}
	if usd == "" {
		return fmt.Errorf("%s is no price: %.40s", name, value.Raw)
	}
	e.Prices = append(e.Prices, Price{unit, usd})
	return nil
}
