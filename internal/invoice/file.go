package invoice

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"modelgate"
)

const (
	maxColumns   = 200
	maxFileLines = 10_000_000
	maxField     = 64 << 10 // bytes
)

// SKU is a rule that reads lines of a file.
type SKU struct {
	Match       string // a glob for SkuId, SkuMeter or ChargeDescription
	Model, Unit string
	ServiceTier string
}

// File is how a file with a bill is read: FOCUS 1.0 to 1.3, or any CSV with the
// columns date, model, unit, quantity and amount.
type File struct {
	Amount string // of FOCUS: EffectiveCost, BilledCost or ListCost
	SKUs   []SKU  // before the built-in rules
}

// plain are the names of FOCUS columns in a plain file.
var plain = map[string]string{
	"date": "ChargePeriodStart", "model": "ResourceId", "unit": "SkuMeter", "quantity": "ConsumedQuantity", "currency": "BillingCurrency", "project": "SubAccountId",
}

// Read reads a bill from CSV. Lines that differ in their amounts alone are one.
// Errors name the line.
func (f *File) Read(r io.Reader) ([]Line, error) {
	in := csv.NewReader(r)
	in.ReuseRecord, in.FieldsPerRecord = true, 0
	head, err := in.Read()
	if err != nil {
		return nil, err
	}
	if len(head) > maxColumns {
		return nil, fmt.Errorf("a file has at most %d columns", maxColumns)
	}
	columns := make(map[string]int, len(head))
	for i, name := range head {
		name = strings.TrimPrefix(strings.TrimSpace(name), "\ufeff")
		switch known := plain[strings.ToLower(name)]; {
		case known != "":
			name = known
		case strings.EqualFold(name, "amount"):
			name = f.Amount
		}
		columns[name] = i
	}
	for _, name := range []string{"ChargePeriodStart", f.Amount} {
		if _, there := columns[name]; !there {
			return nil, fmt.Errorf("the file has no column %s", name)
		}
	}
	lines := make(lineSums)
	for n := 2; ; n++ {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return lines.list(), nil
		}
		if err == nil && n > maxFileLines {
			err = fmt.Errorf("a file has at most %d lines", maxFileLines)
		}
		if err != nil {
			return nil, err
		}
		l, err := f.line(func(name string) string {
			if i, there := columns[name]; there && len(record[i]) <= maxField {
				return strings.Clone(record[i])
			}
			return ""
		})
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		lines.add(l)
	}
}

// line reads one line.
func (f *File) line(get func(string) string) (l *Line, err error) {
	day := get("ChargePeriodStart")
	if len(day) < len(time.DateOnly) {
		return nil, fmt.Errorf("%q is no date", day)
	}
	at, err := time.Parse(time.DateOnly, day[:len(time.DateOnly)])
	if err != nil {
		return nil, fmt.Errorf("%q is no date", day)
	}
	if currency := get("BillingCurrency"); currency != "" && currency != "USD" {
		return nil, fmt.Errorf("%s; %w", currency, errCurrency)
	}
	l = &Line{Day: dayOf(at), Name: get("ChargeDescription"), Project: get("SubAccountId")}
	if l.Amount, l.Decimals, err = amount(get(f.Amount), 0); err != nil {
		return nil, err
	}
	if q := get("ConsumedQuantity"); q != "" {
		if l.Quantity, _, err = amount(q, 0); err != nil {
			return nil, err
		}
	}
	f.classify(l, get)
	return l, nil
}

// classify says what a line is for.
func (f *File) classify(l *Line, get func(string) string) {
	sku, meter := get("SkuId"), get("SkuMeter")
	if l.Name == "" {
		l.Name = strings.TrimSpace(sku + " " + get("ResourceId") + " " + meter)
	}
	for _, rule := range f.SKUs {
		if modelgate.Glob(rule.Match, sku) || modelgate.Glob(rule.Match, meter) || modelgate.Glob(rule.Match, l.Name) {
			l.Class, l.Model, l.Unit, l.Variant = Usage, rule.Model, rule.Unit, variantOf(rule.ServiceTier)
			l.tool()
			return
		}
	}
	switch get("ChargeCategory") {
	case "Credit":
		l.Class = Credit
		return
	case "Tax", "Purchase":
		return
	}
	unit := meterUnit(meter)
	switch text := strings.ToLower(meter + " " + l.Name); {
	case unit != "" && (get("ResourceId") != "" || isTool(unit)):
		l.Class, l.Model, l.Unit = Usage, get("ResourceId"), unit
	case strings.Contains(text, "storage"):
		l.Class = Storage
	case meter == "" && get("ResourceId") != "":
		l.Class, l.Model, l.Quantity = Usage, get("ResourceId"), nil // one amount for all of a model
	}
	l.tool()
}

func isTool(unit string) bool {
	u, known := modelgate.UnitByName(unit)
	return known && u.Kind() == modelgate.ProviderTool
}

// tool takes the model away from a line for a tool: rows are compared so.
func (l *Line) tool() {
	if isTool(l.Unit) {
		l.Model, l.Variant = "", ""
	}
	if l.Unit == "" && l.Class == Usage {
		l.Quantity = nil
	}
}

// meterUnit is the unit that a meter names: by its name in prices, or in the
// words of FOCUS files; "" where that is unknown.
func meterUnit(meter string) string {
	meter = strings.ToLower(strings.TrimSpace(meter))
	if u, known := modelgate.UnitByName(meter); known {
		return u.String()
	}
	meter = strings.TrimPrefix(meter, "consumed ")
	switch meter {
	case "cache write input tokens":
		return "cache_write"
	case "cache write 1h input tokens":
		return "cache_write_1h"
	case "cache read input tokens":
		return "cached_input"
	case "reasoning output tokens":
		return "output"
	case "searches", "web searches":
		return "search"
	case "file searches":
		return "file_search"
	case "code sessions":
		return "code_session"
	case "grounded requests":
		return "grounded_request"
	case "images":
		return "image"
	case "seconds":
		return "second"
	case "characters":
		return "characters"
	case "pages":
		return "page"
	}
	return unitNamed("", meter)
}
