package provider

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"modelgate"
)

// Asked is what the request said about quantities, for replies that name
// none. The zero value says nothing.
type Asked struct {
	// Characters are the Unicode code points of a speech request's input.
	Characters int64
	// Size and Quality of a picture or video, as in the request.
	Size, Quality string
	// Seconds of a video, in millionths.
	Seconds int64
	// Count is how many pictures or videos; 0 where the request leaves it open.
	Count int64
}

// AskedNames are the top-level members and form parts that Asked reads. A
// scan must look for them.
func AskedNames() []string {
	names := []string{"input"}
	for _, q := range quantities() {
		names = append(names, q.names...)
	}
	return append(names, wrappers()...)
}

// quantity is something that requests ask for, under one of several names.
type quantity struct {
	names []string
	store func(*Asked, string)
}

// quantities are the names that the providers' formats have for the same
// thing. A provider reads its own and ignores the others, so of several in one
// request the largest number counts, and the first text.
func quantities() [4]quantity {
	return [4]quantity{
		{[]string{"size", "resolution"}, func(a *Asked, text string) { a.Size = cmp.Or(a.Size, text) }},
		{[]string{"quality"}, func(a *Asked, text string) { a.Quality = cmp.Or(a.Quality, text) }},
		{[]string{"seconds", "duration", "durationSeconds"}, func(a *Asked, text string) { a.Seconds = max(a.Seconds, askedSeconds(text)) }},
		{[]string{"n", "sampleCount"}, func(a *Asked, text string) { a.Count = max(a.Count, askedCount(text)) }},
	}
}

// wrappers are top-level objects in which some formats keep what others have
// at the top.
func wrappers() []string { return []string{"parameters", "input"} }

// Asked reads the quantities that a request names. An object that names one
// of them twice is a *SyntaxError, because the provider might take the other.
func (r *Request) Asked() (Asked, error) {
	var a Asked
	if input, ok := r.Fields.Get("input"); ok {
		a.Characters = input.CodePoints()
	} else if text, _, ok := r.Form.Get("input"); ok {
		a.Characters = int64(len([]rune(text)))
	}
	for _, q := range quantities() {
		if err := r.each(q.names, func(text string) { q.store(&a, text) }); err != nil {
			return Asked{}, err
		}
	}
	return a, nil
}

// each calls found with every text that stands under one of the names, those at
// the top first.
func (r *Request) each(names []string, found func(text string)) error {
	for _, name := range names {
		if value, ok := r.Fields.Get(name); ok {
			found(value.scalar())
		}
		if text, _, ok := r.Form.Get(name); ok {
			found(text)
		}
	}
	for _, wrapper := range wrappers() {
		object, ok := r.Fields.Get(wrapper)
		if !ok || object.Kind() != JSONObject {
			continue
		}
		for _, name := range names {
			value, err := object.Member(name)
			if err != nil {
				return err
			}
			found(value.scalar())
		}
	}
	return nil
}

// scalar is a short string or number as text, "" for anything else.
func (v Value) scalar() string {
	const most = 64
	switch v.Kind() {
	case JSONString:
		if text, whole := v.Text(); whole && len(text) <= most {
			return text
		}
	case JSONNumber:
		if raw := v.Raw(); len(raw) <= most {
			return string(raw)
		}
	}
	return ""
}

// askedSeconds reads a duration such as 8, "8" or "8s" into millionths.
func askedSeconds(text string) int64 {
	f, err := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	if f = math.Round(f * 1e6); err != nil || !(f > 0 && f <= modelgate.MaxQuantity) {
		return 0
	}
	return int64(f)
}

func askedCount(text string) int64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(f > 0 && f <= 10_000) {
		return 0
	}
	return int64(f)
}
