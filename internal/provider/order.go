package provider

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"modelgate"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/usage"
)

// Order is where the requests to a path say what is to be made, and what the
// provider makes of a request that does not say it. A place is the name of a
// top-level member or form part, or a member of a top-level object, such as
// parameters.duration; "" is none. No other member of a request has a say. The
// zero value says nothing. An Order is immutable.
type Order struct {
	// Text is read aloud: its characters are counted.
	Text string
	// Seconds is the length of a film, and Length how many seconds it has
	// where the request leaves that open; 0 is unknown.
	Seconds string
	Length  int64
	// Open is a value of Seconds with which the provider chooses the length,
	// Longest seconds at most; "" is none.
	Open    string
	Longest int64
	// Frames is the length in pictures, 24 a second, and goes before Seconds.
	Frames string
	// Count is how many films or pictures, and Pieces how many there are where
	// the request leaves that open; 0 is one.
	Count  string
	Pieces int64
	// Size holds the size or resolution, the first place that is in use, and
	// Plain is what it is where the request leaves it open. Quality and
	// Ordinary are the same of a picture's quality.
	Size          []string
	Plain         string
	Quality       string
	Ordinary      string
	Width, Height string // in pixels, where they stand for the size
	Search        string // a member whose presence has the provider search once
	// Own: every model has a schema of its own, so a length that cannot be read
	// is no fault of the request, and Length stands for it.
	Own bool
}

const (
	// mostSeconds and mostPieces are more than any provider makes at once.
	mostSeconds = 3600
	mostPieces  = 1000
	// leastSide and mostSide bound the sides of a picture.
	leastSide, mostSide = 64, 16384
)

// OrderNames are the top-level members and form parts at which orders are
// read. A scan must look for them.
func OrderNames() []string {
	names := []string{"response_format"} // see Request.recording
	add := func(o *Order) {
		for _, place := range o.places() {
			if name, _, _ := strings.Cut(place, "."); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, f := range Formats() {
		for _, d := range f.Doors {
			add(d.order())
		}
		for _, r := range f.Allow {
			add(r.order())
		}
	}
	for _, d := range standardDoors() {
		add(usualOrder(d.Reader))
	}
	return names
}

func (o *Order) places() []string {
	if o == nil {
		return nil
	}
	return append([]string{o.Text, o.Seconds, o.Frames, o.Count, o.Quality, o.Width, o.Height, o.Search}, o.Size...)
}

// order is what requests are read by; nil is nothing.
func (e *Endpoint) order() *Order {
	if e.Order != nil {
		return e.Order
	}
	return usualOrder(e.Reader)
}

// Ask reads what a request orders: of one for a transcript the length of the
// recording, of any other what Order.read says. Kind is what the call makes.
func (e *Endpoint) Ask(r *Request, kind modelgate.ModelKind) (a usage.RequestedUnits, err error) {
	if e.Reader.Transcribes() {
		a.Seconds, err = r.recording(e.Reader)
		return a, err
	}
	return e.order().read(r, kind)
}

// read reads what a request orders. Kind is what the call makes; only a film
// has a length where the request names none. A quantity that no provider can
// make, or that is given twice, is a *SyntaxError that names the member.
func (o *Order) read(r *Request, kind modelgate.ModelKind) (usage.RequestedUnits, error) {
	if o == nil {
		return usage.RequestedUnits{}, nil
	}
	a := usage.RequestedUnits{Count: max(o.Pieces, 1), Size: o.Plain, Quality: o.Ordinary}
	if o.Search != "" {
		value, ok := r.Fields.Get(o.Search)
		return usage.RequestedUnits{Search: ok && value.Kind() != reqscan.JSONNull && !value.IsFalse()}, nil
	}
	if text, _, ok := r.Form.Get(o.Text); ok {
		a.Characters = int64(utf8.RuneCountInString(text))
	} else if value, ok := r.Fields.Get(o.Text); ok {
		a.Characters = value.CodePoints()
	}
	if kind == modelgate.Video {
		a.Seconds = o.Length * 1e6
	}
	q := placeReader{request: r}
	o.length(&q, &a)
	o.count(&q, &a)
	o.looks(&q, &a)
	o.sides(&q, kind, &a)
	if q.err != nil {
		return usage.RequestedUnits{}, q.err
	}
	return a, nil
}

// placeReader reads the places of an order until the first error.
type placeReader struct {
	request *Request
	err     error
}

// text is what stands at a place: a short text or number as text. Present is
// false where there is nothing or null, and text is "" for what is neither.
func (q *placeReader) text(place string) (text string, present bool) {
	name, inner, nested := strings.Cut(place, ".")
	if place == "" || q.err != nil {
		return "", false
	}
	if text, _, ok := q.request.Form.Get(place); ok && !nested {
		return text, true
	}
	value, ok := q.request.Fields.Get(name)
	if nested && ok {
		value, q.err = value.Member(inner)
	}
	if kind := value.Kind(); q.err != nil || kind == reqscan.JSONAbsent || kind == reqscan.JSONNull {
		return "", false
	}
	return scalar(value), true
}

// whole reads a whole number between bounds of something at a place.
func (q *placeReader) whole(place, of string, least, most int64) (n int64, present bool) {
	text, present := q.text(place)
	if !present {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || !(f >= float64(least) && f <= float64(most)) {
		q.err = reqscan.Errorf("%q must be a whole number %sfrom %d to %d", place, of, least, most)
		return 0, false
	}
	return int64(f), true
}

// scalar is a short string or number as text, "" for anything else.
func scalar(v reqscan.Value) string {
	const most = 64
	switch v.Kind() {
	case reqscan.JSONString:
		if text, whole := v.Text(); whole && len(text) <= most {
			return text
		}
	case reqscan.JSONNumber:
		if raw := v.Raw(); len(raw) <= most {
			return string(raw)
		}
	}
	return ""
}

// length reads the seconds of a film, in whole seconds: part of one counts as
// one.
func (o *Order) length(q *placeReader, a *usage.RequestedUnits) {
	if n, present := q.whole(o.Frames, "of pictures ", 1, mostSeconds*frameRate); present {
		a.Seconds = (n + frameRate - 1) / frameRate * 1e6
		return
	}
	text, present := q.text(o.Seconds)
	if !present {
		return
	}
	if o.Open != "" && text == o.Open {
		a.Seconds = o.Longest * 1e6
		return
	}
	if o.Own {
		text = strings.TrimSuffix(text, "s")
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && f >= 1 && f <= mostSeconds:
		a.Seconds = int64(math.Ceil(f)) * 1e6
	case !o.Own:
		q.err = reqscan.Errorf("%q must be a number of seconds from 1 to %d", o.Seconds, mostSeconds)
	}
}

func (o *Order) count(q *placeReader, a *usage.RequestedUnits) {
	if n, present := q.whole(o.Count, "", 1, mostPieces); present {
		a.Count = n
	}
}

// looks reads size and quality. What they say is for the price to know.
func (o *Order) looks(q *placeReader, a *usage.RequestedUnits) {
	for _, place := range o.Size {
		if text, present := q.text(place); present {
			a.Size = text
			break
		}
	}
	if text, present := q.text(o.Quality); present {
		a.Quality = text
	}
}

// sides reads a size that is given as width and height.
func (o *Order) sides(q *placeReader, kind modelgate.ModelKind, a *usage.RequestedUnits) {
	width, height, ok := usage.Dimensions(a.Size)
	if !ok {
		width, height, ok = usage.Dimensions(o.Plain)
	}
	if o.Own && kind == modelgate.Image && !ok {
		width, height = 1024, 1024 // the largest of the sizes that have names
		a.Size = "1024x1024"
	}
	w, wide := q.whole(o.Width, "of pixels ", leastSide, mostSide)
	h, high := q.whole(o.Height, "of pixels ", leastSide, mostSide)
	if wide {
		width = w
	}
	if high {
		height = h
	}
	if (wide || high) && width > 0 && height > 0 {
		a.Size = strconv.FormatInt(width, 10) + "x" + strconv.FormatInt(height, 10)
	}
}

// recording is the length of the recordings in a form, in millionths of a
// second; 0 where it cannot be told. It is an error, a *SyntaxError, where the
// request asks for a reply that states no usage: nothing could be charged then.
// A form without a recording has no length, and providers refuse it.
func (r *Request) recording(reader *usage.Reader) (int64, error) {
	length, known := int64(0), !r.Form.Remote() && !r.Fields.InJSON()
	for file := range r.Form.Files() {
		one, ok := reqscan.RecordingLength(file)
		length, known = length+one, known && ok
	}
	if known {
		return min(length, modelgate.MaxQuantity), nil
	}
	format, _, inForm := r.Form.Get("response_format")
	if value, ok := r.Fields.Get("response_format"); ok {
		format, inForm = scalar(value), value.Kind() != reqscan.JSONNull
	}
	if !inForm {
		format = "json"
	}
	if inJSON := r.Fields.InJSON(); inJSON && format == "json" || slices.Contains(reader.StatesIn(), format) {
		return 0, nil // where no usage is stated, nobody takes a recording in JSON
	}
	return 0, reqscan.Errorf("replies in the response_format %s state no usage here, and the length of the recording cannot be told: "+
		"use %s, or send WAV (PCM) or MP3", reqscan.QuoteName([]byte(format)), strings.Join(reader.StatesIn(), " or "))
}
