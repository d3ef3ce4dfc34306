package invoice_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/invoice"
	"modelgate/internal/pricing"
	"modelgate/test/testkit"
)

var first = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const days, key = 4, "sk-admin"

// model is a price on both sides. The provider's own table is in USD per million,
// by unit, and for priority.
type model struct {
	name   string // of the rows
	billed string // of the bill
	price  *modelgate.Price
	usd    map[string]string
}

func models(t *testing.T) []model {
	t.Helper()
	price := func(usd map[string]string) (r modelgate.Rates) {
		for name, text := range usd {
			unit, _ := modelgate.UnitByName(name)
			amount, err := modelgate.ParseUSD(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Set(unit, amount); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	list := []model{
		{name: "gpt-5.5", billed: "gpt-5.5-2026-04-23", usd: map[string]string{"input": "1.25", "cached_input": "0.125", "output": "10", "search": "10"}},
		{name: "gpt-5-mini", billed: "gpt-5-mini", usd: map[string]string{"input": "0.25", "cached_input": "0.025", "output": "2", "search": "10"}},
	}
	for i := range list {
		list[i].price = &modelgate.Price{Base: price(list[i].usd)}
	}
	return list
}

// world is calls with their rows, and the bill for them.
type world struct {
	books *invoice.Books
	bill  *testkit.Bill
	rows  []modelgate.UsageRow
	exact *big.Rat
}

// usd is what so much of a unit costs by a provider's table.
func (m *model) cost(t *testing.T, unit string, n int64) *big.Rat {
	t.Helper()
	rate, ok := new(big.Rat).SetString(m.usd[unit])
	if !ok {
		t.Fatalf("%s has no %s", m.name, unit)
	}
	per := int64(1_000_000)
	if unit == "search" {
		per = 1000
	}
	return rate.Mul(rate, big.NewRat(n, per))
}

// note is the line of the bill for a part of a call.
func (w *world) note(m *model, day time.Time, unit string, n int64, amount *big.Rat) {
	k := testkit.BillKey{Day: day.Format(time.DateOnly), Model: m.billed, Unit: unit, Project: "proj", APIKey: "key"}
	if unit == "search" {
		k.Model = ""
	}
	w.bill.Add(k, n, amount)
}

// build makes calls: each has a row and stands in the bill. change may spoil
// either side; it returns whether the row, and whether the bill has the call.
func build(t *testing.T, calls int, change func(i int, m *model, r *modelgate.UsageRow, billed *modelgate.Usage) (row, bill bool)) *world {
	t.Helper()
	w := &world{books: invoice.NewBooks(), bill: &testkit.Bill{PageSize: 7}, exact: new(big.Rat)}
	random := rand.New(rand.NewPCG(1, 2))
	list := models(t)
	for i := range calls {
		m := &list[i%len(list)]
		at := first.Add(time.Duration(random.Int64N(int64(days*24*time.Hour - time.Hour)))).Truncate(time.Millisecond)
		r := modelgate.UsageRow{CallBegin: modelgate.CallBegin{At: at, Model: m.name, Provider: "p"}, CallEnd: modelgate.CallEnd{ParseStatus: modelgate.ParseOK, LatencyMS: random.Int64N(9000)}}
		r.Usage = modelgate.Usage{Input: random.Int64N(5000), CachedInput: random.Int64N(3000), Output: random.Int64N(900), Reasoning: random.Int64N(500), Searches: int64(i % 50 / 49)}
		billed := r.Usage
		row, bill := true, true
		if change != nil {
			row, bill = change(i, m, &r, &billed)
		}
		r.Cost, _, r.PriceLabel = pricing.Cost(m.price, &r.Usage, at)
		if row {
			w.books.Add(&r)
			w.rows = append(w.rows, r)
		}
		if !bill {
			continue
		}
		day := at.Add(time.Duration(r.LatencyMS) * time.Millisecond) // providers book the end
		for unit, n := range map[string]int64{"input": billed.Input, "cached_input": billed.CachedInput, "output": billed.Output + billed.Reasoning, "search": billed.Searches} {
			if n > 0 {
				w.note(m, day, unit, n, m.cost(t, unit, n))
			}
		}
	}
	return w
}

// check fetches the bill from a fake API and compares it.
func (w *world) check(t *testing.T, api string, scope func(*invoice.Scope)) *invoice.Report {
	t.Helper()
	handler, read := w.bill.OpenAI(key), (*invoice.Source).OpenAI
	if api == "anthropic" {
		handler, read = w.bill.Anthropic(key), (*invoice.Source).Anthropic
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	lines, err := read(&invoice.Source{Base: s.URL, Credential: key, Client: s.Client()}, t.Context(), first, first.AddDate(0, 0, days))
	if err != nil {
		t.Fatal(err)
	}
	sc := invoice.Scope{Provider: "p", From: first, To: first.AddDate(0, 0, days), Factor: func(string) *big.Rat { return big.NewRat(1, 1) }}
	if scope != nil {
		scope(&sc)
	}
	r := invoice.Compare(lines, w.books, sc)
	sum := r.Own
	for _, c := range r.Causes {
		sum += c.USD
	}
	if off := sum - r.Invoiced; off < -20 || off > 20 {
		t.Errorf("rows %s and causes make %s, the bill is %s", r.Own, sum, r.Invoiced)
	}
	return r
}

// Without anything wrong the bill is explained to the last nano-dollar, calls
// over midnight included.
func TestBillAgrees(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"openai", "anthropic"} {
		r := build(t, 20_000, nil).check(t, api, nil)
		if r.ExplainedPercent < 99.99 || r.UnexplainedPercent != 0 || r.WrongPrice() {
			t.Errorf("%s: %+v, cells %+v", api, r.Causes, r.Cells)
		}
		if r.Cause(invoice.Boundary) != 0 {
			t.Errorf("%s: what moves over midnight is %s in all, want 0", api, r.Cause(invoice.Boundary))
		}
	}
}

// Each injected cause is found with its exact amount, and no other.
func TestInjectedCauses(t *testing.T) {
	t.Parallel()
	const calls = 20_000
	day := first.Format(time.DateOnly)
	midday := func(r *modelgate.UsageRow) bool { h := r.At.Hour(); return h > 0 && h < 23 }
	for name, tt := range map[string]struct {
		change func(want *big.Rat) func(int, *model, *modelgate.UsageRow, *modelgate.Usage) (bool, bool)
		spoil  func(t *testing.T, w *world, want *big.Rat)
		scope  func(*invoice.Scope)
		cause  string
	}{
		"other traffic": {spoil: func(_ *testing.T, w *world, want *big.Rat) {
			want.SetFrac64(123_456_789, 1_000_000_000)
			w.bill.Add(testkit.BillKey{Day: day, Model: "gpt-5-mini", Unit: "input", Project: "proj", APIKey: "another"}, 1000, want)
		}, scope: func(s *invoice.Scope) { s.Keys = []string{"key"} }, cause: invoice.OtherTraffic},
		"storage": {spoil: func(_ *testing.T, w *world, want *big.Rat) {
			want.SetFrac64(7, 100)
			w.bill.Add(testkit.BillKey{Day: day, Item: "Vector storage"}, 0, want)
		}, cause: invoice.StorageCost},
		"credit": {spoil: func(_ *testing.T, w *world, want *big.Rat) {
			want.SetFrac64(-5, 2)
			w.bill.Add(testkit.BillKey{Day: day, Item: "Promotional credit"}, 0, want)
		}, cause: invoice.Credits},
		"an unknown line": {spoil: func(_ *testing.T, w *world, want *big.Rat) {
			want.SetFrac64(9, 10)
			w.bill.Add(testkit.BillKey{Day: day, Item: "Quantum surcharge"}, 0, want)
		}, cause: invoice.UnmappedLines},
		"a price one percent higher": {spoil: func(t *testing.T, w *world, want *big.Rat) {
			list := models(t)
			for _, r := range w.rows {
				if r.CallBegin.Model == list[0].name {
					part := list[0].cost(t, "output", r.Usage.Output+r.Usage.Reasoning)
					part.Mul(part, big.NewRat(1, 100))
					want.Add(want, part)
					w.note(&list[0], r.At.Add(time.Duration(r.LatencyMS)*time.Millisecond), "output", 0, part)
				}
			}
		}, cause: invoice.Price},
		"a tool twice as dear": {spoil: func(t *testing.T, w *world, want *big.Rat) {
			list := models(t)
			for _, r := range w.rows {
				if r.Usage.Searches > 0 {
					part := list[0].cost(t, "search", r.Usage.Searches)
					want.Add(want, part)
					w.note(&list[0], r.At.Add(time.Duration(r.LatencyMS)*time.Millisecond), "search", 0, part)
				}
			}
		}, cause: invoice.ToolPrice},
		"missing rows": {change: func(want *big.Rat) func(int, *model, *modelgate.UsageRow, *modelgate.Usage) (bool, bool) {
			return func(i int, m *model, r *modelgate.UsageRow, _ *modelgate.Usage) (bool, bool) {
				if i%1000 != 3 || !midday(r) {
					return true, true
				}
				cost, _, _ := pricing.Cost(m.price, &r.Usage, r.At)
				want.Add(want, big.NewRat(int64(cost), int64(modelgate.USD)))
				return false, true
			}
		}, cause: invoice.MissingRows},
		"rows that the bill lacks": {change: func(want *big.Rat) func(int, *model, *modelgate.UsageRow, *modelgate.Usage) (bool, bool) {
			return func(i int, m *model, r *modelgate.UsageRow, _ *modelgate.Usage) (bool, bool) {
				if i%1000 != 3 || !midday(r) {
					return true, true
				}
				cost, _, _ := pricing.Cost(m.price, &r.Usage, r.At)
				want.Sub(want, big.NewRat(int64(cost), int64(modelgate.USD)))
				return true, false
			}
		}, cause: invoice.ExtraRows},
		"cut replies": {change: func(want *big.Rat) func(int, *model, *modelgate.UsageRow, *modelgate.Usage) (bool, bool) {
			return func(i int, m *model, r *modelgate.UsageRow, billed *modelgate.Usage) (bool, bool) {
				if i%100 == 7 && midday(r) {
					r.ParseStatus = modelgate.ParsePartial
					billed.Output = r.Usage.Output + r.Usage.Output/10
					more := modelgate.Usage{Output: billed.Output - r.Usage.Output}
					cost, _, _ := pricing.Cost(m.price, &more, r.At)
					want.Add(want, big.NewRat(int64(cost), int64(modelgate.USD)))
				}
				return true, true
			}
		}, cause: invoice.Cut},
		"a contract": {spoil: func(_ *testing.T, w *world, want *big.Rat) {
			for _, r := range w.rows {
				want.Sub(want, big.NewRat(int64(r.Cost)*12, 100*int64(modelgate.USD)))
			}
			w.bill = w.bill.Times(big.NewRat(88, 100))
		}, scope: func(s *invoice.Scope) { s.Factor = func(string) *big.Rat { return big.NewRat(88, 100) } }, cause: invoice.ContractFactor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := new(big.Rat)
			var change func(int, *model, *modelgate.UsageRow, *modelgate.Usage) (bool, bool)
			if tt.change != nil {
				change = tt.change(want)
			}
			w := build(t, calls, change)
			if tt.spoil != nil {
				tt.spoil(t, w, want)
			}
			r := w.check(t, "openai", tt.scope)
			wanted, _ := new(big.Rat).Mul(want, big.NewRat(int64(modelgate.USD), 1)).Float64()
			got := float64(r.Cause(tt.cause))
			slack := 20.0 // each row is rounded by half a nano-dollar
			if tt.change != nil || tt.cause == invoice.ContractFactor {
				slack = calls / 2
			}
			if got == 0 || got-wanted > slack || wanted-got > slack {
				t.Errorf("%s is %.9f USD, want %.9f: %+v", tt.cause, got/1e9, wanted/1e9, r.Causes)
			}
			for _, c := range r.Causes {
				if c.Name != tt.cause && c.Name != invoice.Rounding && c.Name != invoice.Boundary && c.USD != 0 {
					t.Errorf("also %s: %s in %+v", c.Name, c.USD, r.Cells)
				}
			}
			if tt.cause == invoice.Price {
				for _, c := range r.Cells {
					if _, priced := c.Causes[invoice.Price]; priced && (c.Unit != "output" || c.OwnRate != "10" || c.InvoicedRate != "10.1") {
						t.Errorf("%+v", c)
					}
				}
				if !r.WrongPrice() || r.ExplainedPercent < 99.99 {
					t.Errorf("explained %f", r.ExplainedPercent)
				}
			}
		})
	}
}

// A provider that answers without end, in another currency or not at all
// gives no bill.
func TestHostileAPIs(t *testing.T) {
	t.Parallel()
	bucket := `{"start_time":1,"results":[{"amount":{"value":%s,"currency":"%s"},"line_item":"gpt-5, input"}]}`
	for name, tt := range map[string]struct{ body, want string }{
		"the same page again": {`{"data":[],"has_more":true,"next_page":"a"}`, "came twice"},
		"euros":               {`{"data":[` + fmt.Sprintf(bucket, "1", "eur") + `]}`, "only USD"},
		"an absurd amount":    {`{"data":[` + fmt.Sprintf(bucket, "1e999", "usd") + `]}`, "is no amount"},
		"no JSON":             {`<html>`, "invalid character"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.body)) }))
		t.Cleanup(s.Close)
		_, err := (&invoice.Source{Base: s.URL, Credential: key, Client: s.Client()}).OpenAI(t.Context(), first, first.AddDate(0, 0, 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	waits := 0
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	_, err := (&invoice.Source{Base: busy.URL, Client: busy.Client(), Sleep: func(_ context.Context, d time.Duration) error {
		if waits++; d != 7*time.Second {
			t.Errorf("waits %s", d)
		}
		return nil
	}}).OpenAI(t.Context(), first, first.AddDate(0, 0, 1))
	if err == nil || waits != 3 {
		t.Errorf("%d waits, %v", waits, err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	if _, err := (&invoice.Source{Base: gone.URL, Client: gone.Client()}).Anthropic(t.Context(), first, first.AddDate(0, 0, 1)); err == nil || !strings.Contains(err.Error(), "source file") {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	f := invoice.File{Amount: "EffectiveCost", SKUs: []invoice.SKU{{Match: "mini*", Model: "gpt-5-mini", Unit: "input", ServiceTier: "flex"}}}
	lines, err := f.Read(strings.NewReader("ChargePeriodStart,BillingCurrency,EffectiveCost,ConsumedQuantity,SkuId,SkuMeter,ResourceId,ChargeDescription,ChargeCategory\n" +
		"2026-11-01T00:00:00Z,USD,0.25,1000000,x,Input Tokens,gpt-5,\"in\",Usage\n" +
		"2026-11-01T00:00:00Z,USD,1,7,minis,,,,Usage\n" +
		"2026-11-01T00:00:00Z,USD,-3,,,,,promotion,Credit\n" +
		"2026-11-01T00:00:00Z,USD,0.5,,,,gpt-5,all of it,Usage\n" +
		"2026-11-02T00:00:00Z,USD,9,,,,gpt-5,the day after,Usage\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Class, " ", l.Model, "/", l.Unit, "/", l.Variant, " ", l.Amount.FloatString(2)))
	}
	want := []string{"1 gpt-5// 0.50", "1 gpt-5/input/ 0.25", "1 gpt-5-mini/input/flex 1.00", "3 // -3.00", "1 gpt-5// 9.00"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	for text, want := range map[string]string{
		"EffectiveCost\n":                          "no column ChargePeriodStart",
		"date,amount,currency\n2026-11-01,1,EUR\n": "line 2: EUR; only USD",
		"date,amount\nyesterday,1\n":               "line 2: \"yesterday\" is no date",
		"date,amount\n2026-11-01,1/3\n":            "is no amount",
		"date,amount\n\"2026-11-01,1\n":            "extraneous or missing",
		strings.Repeat("a,", 300) + "\n":           "at most 200 columns",
	} {
		if _, err := f.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("date,model,unit,quantity,amount\n2026-11-01,gpt-5,input,5,0.1\n")
	f.Fuzz(func(t *testing.T, text string) {
		file := invoice.File{Amount: "BilledCost"}
		lines, err := file.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		r := invoice.Compare(lines, invoice.NewBooks(), invoice.Scope{From: first, To: first.AddDate(0, 1, 0), Factor: func(string) *big.Rat { return big.NewRat(1, 1) }})
		if r.ExplainedPercent < 0 || r.ExplainedPercent > 100 || errors.Is(err, context.Canceled) {
			t.Errorf("%+v", r)
		}
	})
}
