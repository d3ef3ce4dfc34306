package pricing_test

import (
	"strings"
	"testing"
	"time"

	"modelgate/internal/pricing"

	"pgregory.net/rapid"

	"modelgate"
)

// seconds is a price by the second.
func seconds(t *testing.T, usd string) *modelgate.Price {
	t.Helper()
	p := new(modelgate.Price)
	n, err := modelgate.ParseUSD(usd)
	if err == nil {
		err = p.Base.Set(modelgate.UnitSecond, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func snapshot(p *modelgate.Price, at time.Time) string {
	text, _ := pricing.Snapshot(p, at)
	return text
}

func TestFinishJob(t *testing.T) {
	t.Parallel()
	const cent = modelgate.Nano(10_000_000)
	asked := modelgate.Usage{Seconds: 8_000_000}
	price := snapshot(seconds(t, "0.1"), time.Now())
	tests := map[string]struct {
		price string
		usage modelgate.Usage
		news  modelgate.JobNews
		cost  modelgate.Nano
		parse modelgate.ParseStatus
	}{
		"as asked":                 {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds}, 80 * cent, modelgate.ParseOK},
		"as stated":                {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Stated: true, Usage: modelgate.Usage{Seconds: 6_000_000}}, 60 * cent, modelgate.ParseOK},
		"as long as it says":       {price, modelgate.Usage{}, modelgate.JobNews{Event: modelgate.JobSucceeds, Length: 4_000_000}, 40 * cent, modelgate.ParseOK},
		"stated in tokens":         {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Stated: true, Usage: modelgate.Usage{Output: 1000}}, 80 * cent, modelgate.ParseOK},
		"billed by the unit":       {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Units: 2_500_000}, 25 * cent, modelgate.ParseOK},
		"billed, without a price":  {"", asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Units: 2_500_000}, 0, modelgate.ParsePartial},
		"billed, absurdly":         {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Units: -1}, 80 * cent, modelgate.ParseOK},
		"nothing known":            {price, modelgate.Usage{}, modelgate.JobNews{Event: modelgate.JobSucceeds}, 0, modelgate.ParsePartial},
		"charged, nothing known":   {price, modelgate.Usage{}, modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: cent}, cent, modelgate.ParseOK},
		"charged, without a price": {"", asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: cent}, cent, modelgate.ParseOK},
		"charged, with a price":    {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Charged: true, Charge: cent}, 80 * cent, modelgate.ParseOK},
		"without a price":          {"", asked, modelgate.JobNews{Event: modelgate.JobSucceeds}, 0, modelgate.ParsePartial},
		"absurd":                   {price, asked, modelgate.JobNews{Event: modelgate.JobSucceeds, Stated: true, Usage: modelgate.Usage{Seconds: -1}}, 0, modelgate.ParsePartial},
		"failed":                   {price, asked, modelgate.JobNews{Event: modelgate.JobFails}, 0, modelgate.ParseFailed},
		"failed and charged":       {price, asked, modelgate.JobNews{Event: modelgate.JobFails, Charged: true, Charge: cent}, cent, modelgate.ParseFailed},
		"failed and used":          {price, asked, modelgate.JobNews{Event: modelgate.JobFails, Stated: true, Usage: modelgate.Usage{Seconds: 1_000_000}}, 10 * cent, modelgate.ParseFailed},
		"failed, of a length":      {price, asked, modelgate.JobNews{Event: modelgate.JobFails, Length: 8_000_000}, 0, modelgate.ParseFailed},
		"cancelled":                {price, asked, modelgate.JobNews{Event: modelgate.JobIsCancelled}, 0, modelgate.ParseCancelled},
		"given up by the provider": {price, asked, modelgate.JobNews{Event: modelgate.JobLapses}, 0, modelgate.ParseExpired},
		"overdue":                  {price, asked, modelgate.JobNews{Event: modelgate.JobOverdue}, 80 * cent, modelgate.ParseExpired},
		"credential gone":          {price, asked, modelgate.JobNews{Event: modelgate.JobLost}, 0, modelgate.ParseExpired},
	}
	for name, tt := range tests {
		j := &modelgate.Job{NewJob: modelgate.NewJob{Price: tt.price}, Status: modelgate.JobPending, Usage: tt.usage, Provisional: 80 * cent}
		f, ok := pricing.FinishJob(j, tt.news)
		if !ok || f.Cost != tt.cost || f.ParseStatus != tt.parse {
			t.Errorf("%s: %s, %s, %v; want %s, %s", name, f.Cost, f.ParseStatus, ok, tt.cost, tt.parse)
		}
		j.Status = f.Status
		if _, ok := pricing.FinishJob(j, modelgate.JobNews{Event: modelgate.JobSucceeds}); ok {
			t.Errorf("%s: a job has ended twice", name)
		}
	}
}

// Units without a name are counted as the price has them, where it has one
// only.
func TestFinishJobByTheUnit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		units      []modelgate.Unit // at a dollar each, characters by the million
		millionths int64
		usage      modelgate.Usage
		cost       modelgate.Nano
	}{
		"seconds":           {[]modelgate.Unit{modelgate.UnitSecond}, 2_500_000, modelgate.Usage{Seconds: 2_500_000}, 5 * modelgate.USD / 2},
		"megapixels":        {[]modelgate.Unit{modelgate.UnitMegapixel}, 1_048_576, modelgate.Usage{Megapixels: 1_048_576}, 1_048_576_000},
		"pictures":          {[]modelgate.Unit{modelgate.UnitImage}, 3_000_000, modelgate.Usage{Images: 3}, 3 * modelgate.USD},
		"half a picture":    {[]modelgate.Unit{modelgate.UnitImage}, 500_000, modelgate.Usage{Images: 1}, modelgate.USD},
		"characters":        {[]modelgate.Unit{modelgate.UnitCharacters}, 7_000_000, modelgate.Usage{Characters: 7}, 7000},
		"one of two":        {[]modelgate.Unit{modelgate.UnitImage, modelgate.UnitSecond}, 9_000_000, modelgate.Usage{Images: 1}, modelgate.USD},
		"calls are not it":  {[]modelgate.Unit{modelgate.UnitRequest}, 9_000_000, modelgate.Usage{Images: 1}, modelgate.USD},
		"nothing is stated": {[]modelgate.Unit{modelgate.UnitImage}, 0, modelgate.Usage{Images: 1}, modelgate.USD},
	} {
		p := new(modelgate.Price)
		for _, u := range tt.units {
			if err := p.Base.Set(u, modelgate.USD); err != nil {
				t.Fatal(err)
			}
		}
		j := &modelgate.Job{NewJob: modelgate.NewJob{Price: snapshot(p, time.Now())}, Status: modelgate.JobPending}
		if u := tt.usage; u.Images == 1 {
			j.Usage = u // as asked for
		}
		f, _ := pricing.FinishJob(j, modelgate.JobNews{Event: modelgate.JobSucceeds, Units: tt.millionths})
		if f.Cost != tt.cost || f.Usage != tt.usage {
			t.Errorf("%s: %+v at %s, want %+v at %s", name, f.Usage, f.Cost, tt.usage, tt.cost)
		}
	}
}

// The snapshot of a price costs what the price costs at the instant, whatever is used.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		rates := func(label string) (r modelgate.Rates) {
			for _, u := range []modelgate.Unit{modelgate.UnitInput, modelgate.UnitOutput, modelgate.UnitSecond, modelgate.UnitImage, modelgate.UnitRequest} {
				if rapid.Bool().Draw(t, label) {
					if err := r.Set(u, modelgate.Nano(rapid.Int64Range(0, 5_000_000_000).Draw(t, label))); err != nil {
						t.Fatal(err)
					}
				}
			}
			return r
		}
		p := &modelgate.Price{Base: rates("base")}
		p.Dated = []modelgate.DatedPrice{{From: day.Add(time.Hour), Price: &modelgate.Price{Base: rates("dated"), Tiers: []modelgate.TierPrice{{Above: 50, Rates: rates("datedTier")}}}}}
		p.Windows = []modelgate.WindowPrice{{From: 600, To: 700, Rates: rates("window")}}
		p.Tiers = []modelgate.TierPrice{{Above: 100, Rates: rates("tier")}}
		p.Images = []modelgate.MediaPrice{{Size: "1x1", USD: 7}}
		p.Seconds = []modelgate.MediaPrice{{Audio: "true", USD: 9}}
		p.Variants = []modelgate.Variant{{When: []modelgate.Condition{{Field: "service_tier", Value: "flex"}}, Above: 50, Rates: rates("variant")}}
		p.Factor = 1_100_000
		p.Multipliers = []modelgate.Multiplier{{Field: "service_tier", Value: "flex", Millionths: 500_000}}
		at := day.Add(time.Duration(rapid.Int64Range(0, 24*60).Draw(t, "minute")) * time.Minute)
		thawed, err := pricing.FromSnapshot(snapshot(p, at))
		if err != nil {
			t.Fatal(err)
		}
		u := modelgate.Usage{
			Input: rapid.Int64Range(0, 200).Draw(t, "input"), Output: rapid.Int64Range(0, 200).Draw(t, "output"),
			Seconds: rapid.Int64Range(0, 1e9).Draw(t, "seconds"), Images: rapid.Int64Range(0, 3).Draw(t, "images"),
			Size: rapid.SampledFrom([]string{"", "1x1"}).Draw(t, "size"), ServiceTier: rapid.SampledFrom([]string{"", "flex"}).Draw(t, "tier"),
		}
		want, priced, _ := pricing.Cost(p, &u, at)
		if got, how, _ := pricing.Cost(thawed, &u, at); got != want || how != priced {
			t.Fatalf("frozen: %s %d, price: %s %d", got, how, want, priced)
		}
	})
	long := &modelgate.Price{Images: make([]modelgate.MediaPrice, 800)}
	if text, whole := pricing.Snapshot(long, day); len(text) > pricing.MaxSnapshot || strings.Contains(text, "images") || whole {
		t.Errorf("a frozen price of %d bytes", len(text))
	}
	tall := &modelgate.Price{Images: long.Images[:1], Tiers: make([]modelgate.TierPrice, 400), Multipliers: make([]modelgate.Multiplier, 1)}
	if text, whole := pricing.Snapshot(tall, day); len(text) > pricing.MaxSnapshot || !strings.Contains(text, "images") || !strings.Contains(text, "multipliers") || !whole {
		t.Errorf("a price with many tiers is frozen as %s", text)
	}
	if p, err := pricing.FromSnapshot(""); p != nil || err != nil {
		t.Errorf("no price thaws to %v, %v", p, err)
	}
	for _, bad := range []string{"x", `{"base":"second"}`, `{"base":"hour=1"}`, `{"tiers":[{"rates":"input=-1"}]}`} {
		if _, err := pricing.FromSnapshot(bad); err == nil {
			t.Errorf("FromSnapshot(%s) succeeds", bad)
		}
	}
}
