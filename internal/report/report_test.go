package report

import (
	"testing"
	"time"

	"modelgate"
)

func TestIntervals(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 23, 59, 59, 0, time.FixedZone("", -3600)) // a Monday in UTC
	for interval, want := range map[Interval]string{
		Hour: "2026-03-02T00:00:00Z", Day: "2026-03-02T00:00:00Z", Week: "2026-03-02T00:00:00Z", Month: "2026-03-01T00:00:00Z",
	} {
		if got := interval.start(at).Format(time.RFC3339); got != want {
			t.Errorf("%s of %s begins at %s, want %s", interval, at, got, want)
		}
	}
	if got := Week.start(at.AddDate(0, 0, -1)).Format(time.DateOnly); got != "2026-02-23" {
		t.Errorf("the week of a Sunday begins on %s", got)
	}
	if !Whole.start(at).IsZero() {
		t.Error("the whole time has a beginning")
	}
}

// TestPercentile is the nearest rank.
func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := Durations{}
	for n := range int64(100) {
		hundred = append(hundred, 100-n)
	}
	for _, c := range []struct {
		of      Durations
		percent int
		want    int64
	}{
		{nil, 50, 0}, {Durations{7}, 50, 7}, {Durations{7}, 99, 7}, {Durations{3, 1, 2}, 50, 2}, {Durations{4, 1, 2, 3}, 50, 2},
		{Durations{4, 1, 2, 3}, 95, 4}, {hundred, 50, 50}, {hundred, 90, 90}, {hundred, 95, 95}, {hundred, 99, 99},
	} {
		if got := c.of.Percentile(c.percent); got != c.want {
			t.Errorf("percentile %d of %v = %d, want %d", c.percent, c.of, got, c.want)
		}
	}
	if got := (Durations{1, 2, 4}).Mean(); got != 2 {
		t.Errorf("mean %d", got)
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r := New(Query{GroupBy: []Dimension{Key}, Interval: Hour, Top: 2, Order: ByRequests})
	for i, key := range []modelgate.KeyID{"a", "b", "b", "c", "c", "c", "d"} {
		r.Add(&Call{At: noon.Add(time.Duration(i%2) * time.Hour), Key: key, Cost: 1, LatencyMS: int64(i)})
	}
	type row struct {
		hour  int
		group string
		calls int64
	}
	var got []row
	for _, found := range r.Rows() {
		group := "other"
		if !found.Other {
			group = found.Group[0]
		}
		got = append(got, row{found.At.Hour(), group, found.Requests})
	}
	want := []row{{12, "c", 1}, {12, "b", 1}, {12, "other", 2}, {13, "c", 2}, {13, "b", 1}}
	if len(got) != len(want) {
		t.Fatalf("rows %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is %v, want %v", i, got[i], want[i])
		}
	}
	if r.Totals.Requests != 7 || r.Totals.Cost != 7 {
		t.Errorf("totals %+v", r.Totals)
	}
}

func TestBilled(t *testing.T) {
	t.Parallel()
	f := Figures{}
	f.add(&Call{Cost: 5})
	if _, _, ok := f.Billed(nil); ok {
		t.Error("own calls are billed")
	}
	f.add(&Call{Cost: 1, SubAccount: "s"})
	f.add(&Call{Cost: 1, SubAccount: "s"})
	f.add(&Call{Cost: 3, SubAccount: "t"})
	half, err := modelgate.ParseMarkup("50")
	if err != nil {
		t.Fatal(err)
	}
	markup := func(id modelgate.SubAccountID) modelgate.Markup {
		return map[modelgate.SubAccountID]modelgate.Markup{"s": half}[id]
	}
	if billed, resold, ok := f.Billed(markup); billed != 6 || resold != 5 || !ok {
		t.Errorf("billed %d of %d, %t; want 6 of 5", billed, resold, ok)
	}
}

// TestMarginPercent is exact to four decimals.
func TestMarginPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		margin, billed modelgate.Nano
		want           string
	}{{1, 3, "33.3333"}, {2, 3, "66.6667"}, {20, 120, "16.6667"}, {-1, 4, "-25"}, {0, 7, "0"}, {500_000_000_000_000, 1_000_000_000_000_000, "50"}} {
		if got := MarginPercent(c.margin, c.billed); got == nil || got.String() != c.want {
			t.Errorf("%d of %d = %v, want %s", c.margin, c.billed, got, c.want)
		}
	}
	if MarginPercent(0, 0) != nil {
		t.Error("a margin of nothing")
	}
}
