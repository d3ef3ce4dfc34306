package focus_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/focus"
	"modelgate/internal/pricing"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// rowsOf visits rows of memory.
func rowsOf(rows []modelgate.UsageRow) func(context.Context, time.Time, time.Time, func(*modelgate.UsageRow) error) error {
	return func(_ context.Context, from, to time.Time, visit func(*modelgate.UsageRow) error) error {
		for i := range rows {
			if r := &rows[i]; !r.At.Before(from) && r.At.Before(to) {
				if err := visit(r); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// read is the file as rows by column names.
func read(t rapid.TB, e *focus.Export) []map[string]string {
	t.Helper()
	var file bytes.Buffer
	if err := e.Write(context.Background(), &file, true); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(&file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, values := range all[1:] {
		line := make(map[string]string)
		for i, name := range all[0] {
			line[name] = values[i]
		}
		out = append(out, line)
	}
	return out
}

func number(t rapid.TB, text string) *big.Rat {
	t.Helper()
	n, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "eE/") {
		t.Fatalf("%q is no plain decimal", text)
	}
	return n
}

func price(t rapid.TB, base map[modelgate.Unit]string) *modelgate.Price {
	t.Helper()
	p := new(modelgate.Price)
	for u, text := range base {
		usd, err := modelgate.ParseUSD(text)
		if err == nil {
			err = p.Base.Set(u, usd)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.Prepare()
	return p
}

// priceList are prices of every shape that changes a label.
func priceList(t rapid.TB) []*modelgate.Price {
	tokens := map[modelgate.Unit]string{modelgate.UnitInput: "0.25", modelgate.UnitCachedInput: "0.025", modelgate.UnitOutput: "1.999999999"}
	tiered := price(t, tokens)
	tiered.Tiers = []modelgate.TierPrice{{Above: 100, Rates: price(t, map[modelgate.Unit]string{modelgate.UnitInput: "0.5"}).Base}}
	tiered.Multipliers = []modelgate.Multiplier{{Field: "service_tier", Value: "flex", Millionths: 333_333}}
	tiered.Factor = 1_070_001
	varied := price(t, tokens)
	varied.Variants = []modelgate.Variant{{When: []modelgate.Condition{{Field: "speed", Value: "fast"}},
		Rates: price(t, map[modelgate.Unit]string{modelgate.UnitInput: "3.1"}).Base}}
	tools := price(t, map[modelgate.Unit]string{modelgate.UnitInput: "1", modelgate.UnitOutput: "2", modelgate.UnitSearch: "10",
		modelgate.UnitCodeSession: "0.03", modelgate.UnitRequest: "0.000000001"})
	media := price(t, map[modelgate.Unit]string{modelgate.UnitImage: "0.04", modelgate.UnitMinute: "0.006", modelgate.UnitCharacters: "15"})
	return []*modelgate.Price{nil, price(t, tokens), tiered, varied, tools, media}
}

func drawRows(t *rapid.T) []modelgate.UsageRow {
	prices := priceList(t)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) modelgate.UsageRow {
		count := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 300), rapid.Int64Range(0, 1_000_000_000))
		word := rapid.SampledFrom([]string{"", "flex", "fast"})
		var r modelgate.UsageRow
		r.At = begin.Add(time.Duration(rapid.IntRange(0, 47).Draw(t, "hour")) * time.Hour)
		r.SubAccountID = rapid.SampledFrom([]modelgate.SubAccountID{"", "s1", "s2"}).Draw(t, "sub")
		r.CallBegin.Provider = rapid.SampledFrom([]string{"openai", "azure"}).Draw(t, "provider")
		r.CallBegin.Model, r.Author = "native", "openai"
		r.Slug = rapid.SampledFrom([]string{"", "openai/m", "=cmd"}).Draw(t, "slug")
		r.Attribution = map[string]string{"team": rapid.SampledFrom([]string{"a", "@b", "c,\"\n"}).Draw(t, "team")}
		r.ParseStatus = rapid.SampledFrom([]modelgate.ParseStatus{modelgate.ParseOK, modelgate.ParsePartial, modelgate.ParseProvisional}).Draw(t, "status")
		r.Usage = modelgate.Usage{Input: count.Draw(t, "input"), CachedInput: count.Draw(t, "cached"), Output: count.Draw(t, "output"),
			Reasoning: count.Draw(t, "reasoning"), Searches: count.Draw(t, "searches"), CodeSessions: rapid.Int64Range(0, 2).Draw(t, "sessions"),
			Images: rapid.Int64Range(0, 3).Draw(t, "images"), Seconds: count.Draw(t, "seconds"), Characters: count.Draw(t, "characters"),
			ServiceTier: word.Draw(t, "tier"), Speed: word.Draw(t, "speed")}
		p := rapid.SampledFrom(prices).Draw(t, "price")
		r.Cost, _, r.PriceLabel = pricing.Cost(p, &r.Usage, r.At)
		if rapid.IntRange(0, 9).Draw(t, "stated") == 0 { // a cost from elsewhere
			r.Cost, r.PriceLabel = modelgate.Nano(rapid.Int64Range(0, 1e15).Draw(t, "cost")), "stated"
		}
		return r
	}), 0, 60).Draw(t, "rows")
}

// The sum of a file is that of its rows, in either view and whatever it is
// divided by, and each line is right by itself.
func TestSumOfAFileIsThatOfItsRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		e := &focus.Export{
			From: begin, To: begin.AddDate(0, 0, 2), Hourly: rapid.Bool().Draw(t, "hourly"), Billed: rapid.Bool().Draw(t, "billed"),
			OrganizationID: "o", Organization: "Acme", Issuer: "Modelgate", Rows: rowsOf(rows),
			Accounts: map[modelgate.SubAccountID]focus.Account{"s1": {"One", 12_500_000}, "s2": {"+Two", 33_333_333}},
		}
		if rapid.Bool().Draw(t, "tagged") {
			e.Tags = []string{"team", "absent"}
		}
		want := make(map[string]modelgate.Nano) // by sub-account
		for i := range rows {
			if r := &rows[i]; r.ParseStatus != modelgate.ParseProvisional && (!e.Billed || r.SubAccountID != "") {
				want[string(r.SubAccountID)] += r.Cost
			}
		}
		got := make(map[string]*big.Rat)
		for _, line := range read(t, e) {
			checkLine(t, line, e.Billed)
			account := line["SubAccountId"]
			if e.Billed {
				account = line["BillingAccountId"]
			}
			if got[account] == nil {
				got[account] = new(big.Rat)
			}
			got[account].Add(got[account], number(t, line["BilledCost"]))
		}
		for account, cost := range want {
			if e.Billed {
				cost = cost.Billed(e.Accounts[modelgate.SubAccountID(account)].Markup)
			}
			sum := got[account]
			if sum == nil {
				sum = new(big.Rat)
			}
			if nano := halfEven(sum); nano != cost {
				t.Fatalf("account %q: the file has %s, the rows %s", account, sum.FloatString(21), cost)
			}
		}
	})
}

// halfEven is an amount in USD in nano-USD.
func halfEven(usd *big.Rat) modelgate.Nano {
	n := new(big.Rat).Mul(usd, big.NewRat(int64(modelgate.USD), 1))
	q, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	if twice := rest.Lsh(rest, 1).Cmp(n.Denom()); twice > 0 || twice == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return modelgate.Nano(q.Int64())
}

var (
	plain     = regexp.MustCompile(`^-?[0-9]+(\.[0-9]*[1-9])?$`)
	timestamp = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00Z$`)
)

// rules are those of FOCUS 1.3 for the columns of a file: what each has to look
// like, and whether it may be null: never, always, or only in adjustments.
var rules = map[string]struct {
	null string
	like *regexp.Regexp
}{
	"BillingAccountId": {"never", nil}, "BillingAccountName": {"never", nil}, "BillingCurrency": {"never", regexp.MustCompile("^USD$")},
	"BillingPeriodStart": {"never", timestamp}, "BillingPeriodEnd": {"never", timestamp}, "ChargePeriodStart": {"never", timestamp},
	"ChargePeriodEnd": {"never", timestamp}, "ChargeCategory": {"never", regexp.MustCompile("^(Usage|Adjustment)$")}, "ChargeClass": {"always", nil},
	"ChargeDescription": {"never", nil}, "ChargeFrequency": {"never", regexp.MustCompile("^Usage-Based$")}, "BilledCost": {"never", plain},
	"EffectiveCost": {"never", plain}, "ListCost": {"never", plain}, "ContractedCost": {"never", plain}, "ListUnitPrice": {"adjustment", plain},
	"ContractedUnitPrice": {"adjustment", plain}, "ConsumedQuantity": {"adjustment", plain}, "ConsumedUnit": {"adjustment", nil},
	"PricingQuantity": {"adjustment", plain}, "PricingUnit": {"adjustment", nil}, "PricingCategory": {"adjustment", regexp.MustCompile("^Standard$")},
	"InvoiceIssuerName": {"never", nil}, "ServiceProviderName": {"never", nil}, "HostProviderName": {"never", nil}, "ProviderName": {"never", nil},
	"PublisherName": {"never", nil}, "ServiceName": {"never", nil}, "ServiceCategory": {"never", nil}, "ServiceSubcategory": {"never", nil},
	"RegionId": {"maybe", nil}, "RegionName": {"maybe", nil}, "ResourceId": {"never", nil}, "ResourceName": {"never", nil}, "ResourceType": {"never", nil},
	"SkuId": {"adjustment", nil}, "SkuMeter": {"adjustment", nil}, "SkuPriceId": {"adjustment", nil}, "SkuPriceDetails": {"maybe", nil},
	"SubAccountId": {"maybe", nil}, "SubAccountName": {"maybe", nil}, "Tags": {"maybe", nil}, "x_Requests": {"adjustment", plain},
	"x_PartialRequests": {"adjustment", plain},
}

func checkLine(t rapid.TB, line map[string]string, billed bool) {
	t.Helper()
	if len(line) != len(rules) {
		t.Fatalf("%d columns, want %d", len(line), len(rules))
	}
	adjustment := line["ChargeCategory"] == "Adjustment"
	for name, value := range line {
		rule, known := rules[name]
		null := rule.null == "always" || rule.null == "adjustment" && adjustment
		switch {
		case !known, null && value != "", rule.null == "never" && value == "", rule.null == "adjustment" && !adjustment && value == "",
			value != "" && rule.like != nil && !rule.like.MatchString(value):
			t.Fatalf("%s is %q: %v", name, value, line)
		case rule.like == nil && value != "" && strings.ContainsRune("=+-@", rune(value[0])):
			t.Fatalf("%s is a formula: %q", name, value)
		}
	}
	for _, name := range []string{"SkuPriceDetails", "Tags"} {
		if value := line[name]; value != "" && !json.Valid([]byte(value)) {
			t.Fatalf("%s is no JSON: %q", name, value)
		}
	}
	if !adjustment {
		product := new(big.Rat).Mul(number(t, line["ListUnitPrice"]), number(t, line["PricingQuantity"]))
		if product.Cmp(number(t, line["ListCost"])) != 0 {
			t.Fatalf("price × quantity is not the cost: %v", line)
		}
	}
	if billed {
		for _, value := range line {
			if strings.Contains(value, "azure") || strings.Contains(value, "x_service_tier") {
				t.Fatalf("a sub-account is shown where its calls go: %v", line)
			}
		}
	}
}

// TestLines shows a file in words.
func TestLines(t *testing.T) {
	t.Parallel()
	p := price(t, map[modelgate.Unit]string{modelgate.UnitInput: "0.25", modelgate.UnitOutput: "2", modelgate.UnitSearch: "10"})
	p.Multipliers = []modelgate.Multiplier{{Field: "service_tier", Value: "flex", Millionths: 500_000}}
	row := func(hour int, sub modelgate.SubAccountID, u modelgate.Usage) modelgate.UsageRow {
		r := modelgate.UsageRow{CallBegin: modelgate.CallBegin{At: begin.Add(time.Duration(hour) * time.Hour), SubAccountID: sub, Provider: "openai",
			Model: "gpt", Slug: "openai/gpt", Author: "openai", Region: "us"}, CallEnd: modelgate.CallEnd{ParseStatus: modelgate.ParseOK, Usage: u}}
		r.Cost, _, r.PriceLabel = pricing.Cost(p, &r.Usage, r.At)
		return r
	}
	partial := row(3, "s", modelgate.Usage{Input: 1})
	partial.ParseStatus = modelgate.ParsePartial
	stated := row(30, "", modelgate.Usage{Input: 5})
	stated.Cost, stated.PriceLabel = 1000, "stated"
	e := &focus.Export{
		From: begin, To: begin.AddDate(0, 0, 2), OrganizationID: "o", Organization: "Acme", Issuer: "Modelgate",
		Accounts: map[modelgate.SubAccountID]focus.Account{"s": {"One", 50_000_000}},
		Provider: func(string) string { return "OpenAI" }, Model: func(string) string { return "GPT" },
		Rows: rowsOf([]modelgate.UsageRow{row(1, "s", modelgate.Usage{Input: 1000, Output: 3, Searches: 2}), partial,
			row(4, "s", modelgate.Usage{Input: 1, ServiceTier: "flex"}), stated, row(31, "", modelgate.Usage{})}),
	}
	shown := func() string {
		var b strings.Builder
		for _, l := range read(t, e) {
			fmt.Fprintln(&b, l["ChargePeriodStart"][8:13], l["BillingAccountId"], l["SubAccountName"], l["ProviderName"], l["ChargeDescription"], l["ConsumedQuantity"],
				l["ConsumedUnit"], l["ListUnitPrice"], "/", l["PricingUnit"], l["BilledCost"], l["SkuPriceDetails"], l["x_Requests"], l["x_PartialRequests"])
		}
		return b.String()
	}
	if got, want := shown(), `01T00 o One OpenAI GPT, input tokens 1001 Tokens 0.25 / 1000000 Tokens 0.00025025  2 1
01T00 o One OpenAI GPT, input tokens 1 Tokens 0.125 / 1000000 Tokens 0.000000125 {"x_service_tier":"flex"} 1 0
01T00 o One OpenAI GPT, output tokens 3 Tokens 2 / 1000000 Tokens 0.000006  1 0
01T00 o One OpenAI GPT, searches 2 Searches 10 / 1000 Searches 0.02  1 0
02T00 o  OpenAI GPT, requests 1 Requests 0.000001 / Requests 0.000001  1 0
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	e.Billed, e.Brand = true, "Brand"
	if got, want := shown(), `01T00 s  Brand GPT, input tokens 1 Tokens 0.1875 / 1000000 Tokens 0.0000001875  1 0
01T00 s  Brand GPT, input tokens 1001 Tokens 0.375 / 1000000 Tokens 0.000375375  2 1
01T00 s  Brand GPT, output tokens 3 Tokens 3 / 1000000 Tokens 0.000009  1 0
01T00 s  Brand GPT, searches 2 Searches 15 / 1000 Searches 0.03  1 0
`; got != want {
		t.Errorf("billed: got\n%swant\n%s", got, want)
	}
}

// TestTooManyLines: a period does not fill the memory.
func TestTooManyLines(t *testing.T) {
	t.Parallel()
	rows := make([]modelgate.UsageRow, focus.MaxLines)
	for i := range rows {
		rows[i].At, rows[i].Cost, rows[i].Attribution = begin, 1, map[string]string{"n": fmt.Sprint(i)}
	}
	e := &focus.Export{From: begin, To: begin.Add(time.Hour), Tags: []string{"n"}, Rows: rowsOf(rows)}
	if err := e.Write(t.Context(), io.Discard, true); err != nil {
		t.Error(err)
	}
	e.Rows = rowsOf(append(rows, modelgate.UsageRow{CallBegin: modelgate.CallBegin{At: begin}, CallEnd: modelgate.CallEnd{Cost: 1}}))
	if err := e.Write(t.Context(), io.Discard, true); err == nil || !strings.Contains(err.Error(), "more than 20000 lines") {
		t.Errorf("a line too many: %v", err)
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		hourly   bool
		want     string
	}{
		{"2026-11-01", "2026-11-02", false, ""},
		{"2026-11-01", "2027-02-01", false, ""},
		{"2026-11-01T13:00:00+02:00", "2026-11-01T12:00:00Z", true, ""},
		{"2026-11-01", "2027-02-02", false, "at most 92 days by day, 31 by hour"},
		{"2026-11-01", "2026-12-03", true, "at most 92 days by day, 31 by hour"},
		{"2026-11-02", "2026-11-02", false, "to must be after from"},
		{"1.11.2026", "2026-11-02", false, "from must be a date"},
		{"2026-11-01", "2026-11-02T00:30:00Z", false, "to must be a date"},
	} {
		_, _, err := focus.Window(c.from, c.to, c.hourly)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s to %s: %v, want %q", c.from, c.to, err, c.want)
		}
	}
}
