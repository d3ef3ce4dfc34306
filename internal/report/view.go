package report

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"time"

	"modelgate"
)

// FiguresView is figures as an end customer is shown them.
type FiguresView struct {
	Requests    int64                `json:"requests"`
	Errors      int64                `json:"errors"`
	Cost        modelgate.Nano       `json:"cost_usd"`
	Billed      *modelgate.Nano      `json:"billed_usd"` // null for no calls of sub-accounts
	TotalTokens int64                `json:"total_tokens"`
	Tokens      modelgate.TokenKinds `json:"tokens"`
	Latency     DurationsView        `json:"latency_ms"`
	FirstByte   DurationsView        `json:"first_byte_ms"`
	Percentiles string               `json:"percentiles"` // how they were found
}

// OwnFiguresView is figures as the organization is shown them.
type OwnFiguresView struct {
	FiguresView
	Margin        *modelgate.Nano `json:"margin_usd"`     // null for no calls of sub-accounts
	MarginPercent *modelgate.Nano `json:"margin_percent"` // of what is billed; null where that is 0
	Collected     *modelgate.Nano `json:"collected_usd"`  // null for no calls of sub-accounts
}

// MarginPercent is how much of what is billed the margin is, in percent with at most
// four decimals; nil where nothing is billed.
func MarginPercent(margin, billed modelgate.Nano) *modelgate.Nano {
	if billed == 0 {
		return nil
	}
	const unit = int64(modelgate.USD) / 10_000
	scaled := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(int64(margin)), big.NewInt(1_000_000)), big.NewInt(int64(billed)))
	n, _ := new(big.Int).SetString(scaled.FloatString(0), 10) // a whole number
	percent := modelgate.Nano(n.Int64() * unit)
	return &percent
}

// DurationsView is null throughout for no calls.
type DurationsView struct {
	Mean *int64 `json:"mean"`
	P50  *int64 `json:"p50"`
	P90  *int64 `json:"p90"`
	P95  *int64 `json:"p95"`
	P99  *int64 `json:"p99"`
}

func viewDurations(d Durations) DurationsView {
	if len(d) == 0 {
		return DurationsView{}
	}
	mean, p50, p90, p95, p99 := d.Mean(), d.Percentile(50), d.Percentile(90), d.Percentile(95), d.Percentile(99)
	return DurationsView{&mean, &p50, &p90, &p95, &p99}
}

// exact says that percentiles are those of the calls themselves.
const exact = "exact"

// Names are what a report is shown with.
type Names struct {
	Customer bool // an end customer is shown billed prices in place of costs
	Markup   func(modelgate.SubAccountID) modelgate.Markup
	Label    func(Dimension, string) string // "" where people call it nothing else
}

// own shows figures to the organization.
func (n *Names) own(f *Figures) OwnFiguresView {
	v := FiguresView{
		f.Requests, f.Errors, f.Cost, nil, f.TotalTokens, f.Tokens, viewDurations(f.Latency), viewDurations(f.FirstByte), exact,
	}
	billed, resold, any := f.Billed(n.Markup)
	if !any {
		return OwnFiguresView{FiguresView: v}
	}
	if n.Customer {
		v.Cost = billed
	}
	v.Billed = &billed
	margin := billed - resold
	return OwnFiguresView{v, &margin, MarginPercent(margin, billed), &f.Collected}
}

// Made is a report that is finished.
type Made struct {
	From, To time.Time
	GroupBy  []Dimension
	Totals   Figures
	Previous *Figures // of the time before; nil unless asked for
	Rows     []Row
}

// View is the answer: figures and rows as the organization or an end customer is
// shown them.
type View[Figures, Row any] struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Totals   Figures   `json:"totals"`
	Previous *Figures  `json:"previous"`
	Rows     []Row     `json:"rows"`
}

// RowHead says whose figures a row has.
type RowHead struct {
	At    *time.Time `json:"at"` // null where one span is all of the time
	Group []string   `json:"group"`
	Label []string   `json:"label"` // what people call the group
	Other bool       `json:"other"`
}

// RowView is a row for an end customer.
type RowView struct {
	RowHead
	FiguresView
}

// OwnRowView is a row for the organization.
type OwnRowView struct {
	RowHead
	OwnFiguresView
}

// Show is the answer as JSON has it.
func Show(m *Made, n *Names) any {
	if n.Customer {
		customers := func(f *Figures) FiguresView { return n.own(f).FiguresView }
		return show(m, n, customers, func(h RowHead, f *Figures) RowView { return RowView{h, customers(f)} })
	}
	return show(m, n, n.own, func(h RowHead, f *Figures) OwnRowView { return OwnRowView{h, n.own(f)} })
}

func show[F, R any](m *Made, n *Names, figures func(*Figures) F, row func(RowHead, *Figures) R) View[F, R] {
	out := View[F, R]{From: m.From, To: m.To, Totals: figures(&m.Totals), Rows: make([]R, 0, len(m.Rows))}
	if m.Previous != nil {
		previous := figures(m.Previous)
		out.Previous = &previous
	}
	for i := range m.Rows {
		r := &m.Rows[i]
		head := RowHead{Group: r.Group, Label: m.labels(n, r.Group), Other: r.Other}
		if !r.At.IsZero() {
			head.At = &r.At
		}
		out.Rows = append(out.Rows, row(head, &r.Figures))
	}
	return out
}

func (m *Made) labels(n *Names, group []string) []string {
	labels := make([]string, len(group))
	for i, text := range group {
		if labels[i] = n.Label(m.GroupBy[i], text); labels[i] == "" {
			labels[i] = text
		}
	}
	return labels
}

// Groups are the different values of a dimension in the rows.
func (m *Made) Groups(d Dimension) []string {
	seen := make(map[string]bool)
	for i, by := range m.GroupBy {
		for j := range m.Rows {
			if group := m.Rows[j].Group; by == d && i < len(group) {
				seen[group[i]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Table is a report as a table: the names of its columns, which are fixed, and a
// row for each row.
func Table(m *Made, n *Names) [][]string {
	head := []string{"at", "group_1", "label_1", "group_2", "label_2", "other", "requests", "errors", "cost_usd", "billed_usd", "total_tokens",
		"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "audio_input_tokens", "audio_output_tokens"}
	for _, kind := range []string{"latency_", "first_byte_"} {
		head = append(head, kind+"mean_ms", kind+"p50_ms", kind+"p90_ms", kind+"p95_ms", kind+"p99_ms")
	}
	head = append(head, "percentiles")
	if !n.Customer {
		head = append(head, "margin_usd", "margin_percent", "collected_usd")
	}
	rows := [][]string{head}
	for i := range m.Rows {
		row := &m.Rows[i]
		cells := make([]string, 6, len(head))
		if !row.At.IsZero() {
			cells[0] = row.At.Format(time.RFC3339)
		}
		for i, label := range m.labels(n, row.Group) {
			cells[1+2*i], cells[2+2*i] = row.Group[i], label
		}
		cells[5] = strconv.FormatBool(row.Other)
		v := n.own(&row.Figures)
		cells = v.appendCells(cells)
		if !n.Customer {
			for _, n := range []*modelgate.Nano{v.Margin, v.MarginPercent, v.Collected} {
				cells = append(cells, text(n, modelgate.Nano.String))
			}
		}
		rows = append(rows, cells)
	}
	return rows
}

func (f *FiguresView) appendCells(cells []string) []string {
	t := &f.Tokens
	cells = append(cells, integer(f.Requests), integer(f.Errors), f.Cost.String(), text(f.Billed, modelgate.Nano.String), integer(f.TotalTokens),
		integer(t.Input), integer(t.CachedInput), integer(t.CacheWrite), integer(t.Output), integer(t.AudioInput), integer(t.AudioOutput))
	for _, d := range []DurationsView{f.Latency, f.FirstByte} {
		for _, ms := range []*int64{d.Mean, d.P50, d.P90, d.P95, d.P99} {
			cells = append(cells, text(ms, integer))
		}
	}
	return append(cells, f.Percentiles)
}

func integer(n int64) string { return strconv.FormatInt(n, 10) }

// text is "" for null.
func text[T any](p *T, spell func(T) string) string {
	if p == nil {
		return ""
	}
	return spell(*p)
}
