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

// UnitFields names the members of a request that say how much is to be made, and
// the provider's defaults for a request that leaves them out. A member is one at
// the top of the body, a form part, or a member of a top-level object, such as
// parameters.duration; "" is none. The zero value reads nothing. Immutable.
type UnitFields struct {
	// Text is the text to be spoken: its characters are counted.
	Text string
	// Seconds is the length of a video. DefaultSeconds is its length where the
	// request names none; 0 is unknown.
	Seconds        string
	DefaultSeconds int64
	// AutoSeconds is the value of Seconds with which the provider chooses the
	// length, MaxSeconds at most; "" is none.
	AutoSeconds string
	MaxSeconds  int64
	// Frames is the length in frames, 24 a second. It takes precedence over
	// Seconds.
	Frames string
	// Count is the number of videos or images. DefaultCount is their number where
	// the request names none; 0 means 1.
	Count        string
	DefaultCount int64
	// Size lists members for the size or resolution; the first that is present
	// counts. DefaultSize, such as 1024x1024 or 720p, and DefaultQuality hold
	// where the request names none.
	Size           []string
	DefaultSize    string
	Quality        string
	DefaultQuality string
	// Audio says whether a video has sound, a boolean.
	Audio string
	// Width and Height, in pixels, replace the size.
	Width, Height string
	// Search is a member whose presence makes the provider search once.
	Search string
	// PerModel: every model has a schema of its own, so a length that cannot be
	// read is not refused, and DefaultSeconds stands for it.
	PerModel bool
}

const (
	// maxSeconds and maxCount are more than any provider makes at once.
	maxSeconds = 3600
	maxCount   = 1000
	// minSide and maxSide bound the sides of an image, in pixels.
	minSide, maxSide = 64, 16384
)

// UnitFieldNames are the top-level members and form parts that UnitFields name. A
// scan must look for them.
func UnitFieldNames() []string {
	names := []string{"response_format"} // see Request.recording
	add := func(u *UnitFields) {
		for _, place := range u.places() {
			if name, _, _ := strings.Cut(place, "."); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, f := range Formats() {
		for _, d := range f.Doors {
			add(d.units())
		}
		for _, r := range f.Allow {
			add(r.units())
		}
	}
	for _, d := range standardDoors() {
		add(usualUnits(d.Reader))
	}
	return names
}

func (u *UnitFields) places() []string {
	if u == nil {
		return nil
	}
	return append([]string{u.Text, u.Seconds, u.Frames, u.Count, u.Quality, u.Audio, u.Width, u.Height, u.Search}, u.Size...)
}

// units are the fields that are read of requests; nil for none.
func (e *Endpoint) units() *UnitFields {
	if e.Units != nil {
		return e.Units
	}
	return usualUnits(e.Reader)
}

// RequestedUnits reads how much a request asks for: the length of the recording of
// a request for a transcript, else what UnitFields.read finds. Kind is what the
// call makes.
func (e *Endpoint) RequestedUnits(r *Request, kind modelgate.ModelKind) (a usage.RequestedUnits, err error) {
	if e.Reader.Transcribes() {
		a.Seconds, err = r.recording(e.Reader)
		return a, err
	}
	return e.units().read(r, kind)
}

// read reads how much a request asks for. Kind is what the call makes; only a video
// has a length where the request names none. A quantity that no provider can
// make, or that is given twice, is a *SyntaxError that names the member.
func (u *UnitFields) read(r *Request, kind modelgate.ModelKind) (usage.RequestedUnits, error) {
	if u == nil {
		return usage.RequestedUnits{}, nil
	}
	a := usage.RequestedUnits{Count: max(u.DefaultCount, 1), Size: u.DefaultSize, Quality: u.DefaultQuality}
	if u.Search != "" {
		value, ok := r.Fields.Get(u.Search)
		return usage.RequestedUnits{Search: ok && value.Kind() != reqscan.JSONNull && !value.IsFalse()}, nil
	}
	if text, _, ok := r.Form.Get(u.Text); ok {
		a.Characters = int64(utf8.RuneCountInString(text))
	} else if value, ok := r.Fields.Get(u.Text); ok {
		a.Characters = value.CodePoints()
	}
	if kind == modelgate.Video {
		a.Seconds = u.DefaultSeconds * 1e6
	}
	q := placeReader{request: r}
	u.length(&q, &a)
	u.count(&q, &a)
	u.looks(&q, &a)
	u.sides(&q, kind, &a)
	if q.err != nil {
		return usage.RequestedUnits{}, q.err
	}
	return a, nil
}

// placeReader reads the members that UnitFields name until the first error.
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

// scalar is a short string, number or boolean as text, "" for anything else.
func scalar(v reqscan.Value) string {
	const most = 64
	switch v.Kind() {
	case reqscan.JSONString:
		if text, whole := v.Text(); whole && len(text) <= most {
			return text
		}
	case reqscan.JSONNumber, reqscan.JSONBool:
		if raw := v.Raw(); len(raw) <= most {
			return string(raw)
		}
	}
	return ""
}

// length reads the seconds of a video, in whole seconds: part of one counts as
// one.
func (u *UnitFields) length(q *placeReader, a *usage.RequestedUnits) {
	if n, present := q.whole(u.Frames, "of pictures ", 1, maxSeconds*frameRate); present {
		a.Seconds = (n + frameRate - 1) / frameRate * 1e6
		return
	}
	text, present := q.text(u.Seconds)
	if !present {
		return
	}
	if u.AutoSeconds != "" && text == u.AutoSeconds {
		a.Seconds = u.MaxSeconds * 1e6
		return
	}
	if u.PerModel {
		text = strings.TrimSuffix(text, "s")
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && f >= 1 && f <= maxSeconds:
		a.Seconds = int64(math.Ceil(f)) * 1e6
	case !u.PerModel:
		q.err = reqscan.Errorf("%q must be a number of seconds from 1 to %d", u.Seconds, maxSeconds)
	}
}

func (u *UnitFields) count(q *placeReader, a *usage.RequestedUnits) {
	if n, present := q.whole(u.Count, "", 1, maxCount); present {
		a.Count = n
	}
}

// looks reads size, quality and sound. What they say is for the price to know.
func (u *UnitFields) looks(q *placeReader, a *usage.RequestedUnits) {
	for _, place := range u.Size {
		if text, present := q.text(place); present {
			a.Size = text
			break
		}
	}
	if text, present := q.text(u.Quality); present {
		a.Quality = text
	}
	if text, present := q.text(u.Audio); present {
		a.Audio = text
	}
}

// sides reads a size that is given as width and height.
func (u *UnitFields) sides(q *placeReader, kind modelgate.ModelKind, a *usage.RequestedUnits) {
	width, height, ok := usage.Dimensions(a.Size)
	if !ok {
		width, height, ok = usage.Dimensions(u.DefaultSize)
	}
	if u.PerModel && kind == modelgate.Image && !ok {
		width, height = 1024, 1024 // the largest of the sizes that have names
		a.Size = "1024x1024"
	}
	w, wide := q.whole(u.Width, "of pixels ", minSide, maxSide)
	h, high := q.whole(u.Height, "of pixels ", minSide, maxSide)
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
