package reqscan

import (
	"bytes"
	"iter"
	"mime"
	"strings"
	"unicode/utf8"
)

// Limits of a form-data body. Real uploads have fewer than 30 parts, each
// with two or three short header lines.
const (
	maxParts      = 1000
	maxPartHeader = 8 << 10
	maxPartLines  = 16
)

// Form is what a scan found in a multipart/form-data body: where the values
// of the wanted text parts stand. It refers to the body, which must not
// change while Form is in use. The zero value has no parts.
type Form struct {
	body  []byte
	names *Names
	found []field
	// delimiter is the length of the line before each part, its end included.
	delimiter int
	// stored is the first part whose name says that it refers to a stored
	// object.
	stored string
	// remote: a part says where a recording lies.
	remote bool
	// files are the contents of the parts called file.
	files []Span
}

// ScanForm checks that body is multipart/form-data as RFC 7578 has it and
// locates the text parts called names. Like Scan it accepts only what every
// reader takes apart in the same way: lines end in CRLF, nothing stands
// before the first or after the last delimiter, the boundary occurs nowhere
// else, no part is encoded, and a wanted name occurs at most once, in its
// exact letter case, without a file name, as UTF-8 text.
//
// contentType is the value of the request's Content-Type header. Every
// error is a *SyntaxError.
func ScanForm(contentType string, body []byte, names *Names) (Form, error) {
	delimiter, err := formDelimiter(contentType)
	if err != nil {
		return Form{}, err
	}
	rest := bytes.TrimPrefix(body, []byte("\r\n"))
	if !bytes.HasPrefix(rest, delimiter) {
		return Form{}, formErrorf("it does not begin with its boundary")
	}
	form := Form{body: body, names: names, delimiter: len(delimiter) + len("\r\n")}
	at := len(body) - len(rest) + len(delimiter)
	for range maxParts {
		if bytes.HasPrefix(body[at:], []byte("--")) {
			if end := body[at+2:]; len(end) != 0 && string(end) != "\r\n" {
				return Form{}, formErrorf("something follows the closing boundary")
			}
			return form, nil
		}
		if !bytes.HasPrefix(body[at:], []byte("\r\n")) {
			return Form{}, formErrorf("the boundary at byte %d does not end its line", at)
		}
		at += len("\r\n")
		length := bytes.Index(body[at:], delimiter)
		if length < 0 {
			return Form{}, formErrorf("the closing boundary is missing")
		}
		if !bytes.HasSuffix(body[at:at+length], []byte("\r\n")) {
			return Form{}, formErrorf("the boundary at byte %d does not begin its line", at+length)
		}
		if err := form.keep(Span{at, at + length - len("\r\n")}); err != nil {
			return Form{}, err
		}
		at += length + len(delimiter)
	}
	return Form{}, formErrorf("it has more than %d parts", maxParts)
}

func formErrorf(format string, args ...any) error {
	return Errorf("request body is not valid multipart/form-data: "+format, args...)
}

// formDelimiter is the line that parts the body, without its line ends.
func formDelimiter(contentType string) ([]byte, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" {
		return nil, Errorf("Content-Type must be multipart/form-data with one boundary")
	}
	boundary := params["boundary"]
	if boundary == "" || len(boundary) > 70 || strings.Contains(strings.ToLower(contentType), "boundary*") {
		return nil, Errorf("Content-Type must name a boundary of 1 to 70 characters")
	}
	for i := range len(boundary) {
		if c := boundary[i]; !alphanumeric(c) && !strings.ContainsRune("'()+_,-./:=?", rune(c)) {
			return nil, Errorf("the boundary in Content-Type holds the illegal character %q", c)
		}
	}
	return []byte("--" + boundary), nil
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// keep reads one part, headers and content, and stores where its content
// stands if its name is wanted.
func (f *Form) keep(part Span) error {
	content, most := part.Start, min(part.End, part.Start+maxPartHeader)
	var head partHead
	for lines := 0; ; lines++ {
		length := bytes.Index(f.body[content:most], []byte("\r\n"))
		if length < 0 {
			return formErrorf("the headers of the part at byte %d do not end within %d bytes", part.Start, maxPartHeader)
		}
		if length > 0 && lines == maxPartLines {
			return formErrorf("the part at byte %d has more than %d header lines", part.Start, maxPartLines)
		}
		line := f.body[content : content+length]
		content += length + len("\r\n")
		if length == 0 {
			break
		}
		if err := head.readLine(line); err != nil {
			return err
		}
	}
	if head.name == nil {
		return formErrorf("the part at byte %d has no name", part.Start)
	}
	if f.stored == "" && refersPart(head.name) {
		f.stored = string(head.name)
	}
	switch base, _, _ := bytes.Cut(head.name, []byte("[")); string(base) {
	case "file":
		f.files = append(f.files, Span{content, part.End})
	case "url", "file_url":
		f.remote = true
	}
	index, err := f.wanted(head.name)
	if err != nil || index < 0 {
		return err
	}
	if err := head.checkText(); err != nil {
		return err
	}
	for _, earlier := range f.found {
		if earlier.name == index {
			return formErrorf("duplicate part %s", QuoteName(head.name))
		}
	}
	value := Span{content, part.End}
	if !utf8.Valid(f.body[value.Start:value.End]) {
		return formErrorf("part %s is not UTF-8", QuoteName(head.name))
	}
	f.found = append(f.found, field{index, value, part})
	return nil
}

// wanted is the index of the name among the wanted ones, -1 if it is none.
// A name that some frameworks take for a wanted one, by letter case or by
// the bracket notation of arrays, is an error.
func (f *Form) wanted(name []byte) (int, error) {
	if string(name) == "_charset_" {
		return 0, formErrorf("part %q is not supported: send UTF-8", name)
	}
	index, variant := f.names.find(name)
	if variant != nil {
		return 0, formErrorf("part %s: write it as %q", QuoteName(name), variant)
	}
	if base, _, nested := bytes.Cut(name, []byte("[")); nested && index < 0 {
		if exact, variant := f.names.find(base); exact >= 0 || variant != nil {
			return 0, formErrorf("part %s: write it as %s", QuoteName(name), QuoteName(base))
		}
	}
	return index, nil
}

// Get is the text of the part called name and where it stands in the body.
// It reports false when the body has no such part or name was not among the
// scanned names.
func (f *Form) Get(name string) (text string, at Span, ok bool) {
	kept, ok := f.get(name)
	if !ok {
		return "", Span{}, false
	}
	return string(f.body[kept.value.Start:kept.value.End]), kept.value, true
}

func (f *Form) get(name string) (field, bool) {
	index, _ := f.names.find([]byte(name))
	for _, kept := range f.found {
		if kept.name == index {
			return kept, true
		}
	}
	return field{}, false
}

// Remote reports whether a part says where a recording lies: one called url or
// file_url.
func (f *Form) Remote() bool { return f.remote }

// Files yields the contents of the parts called file, in their order.
func (f *Form) Files() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, file := range f.files {
			if !yield(f.body[file.Start:file.End]) {
				return
			}
		}
	}
}

// Stored is the first part whose name says that it refers to an object kept at the
// provider; the zero Reference for none.
func (f *Form) Stored() Reference { return Reference{Name: f.stored} }

// Remove is the edit that takes the part called name out of the body, with
// the delimiter before it; an edit of nothing when there is no such part.
func (f *Form) Remove(name string) Edit {
	kept, ok := f.get(name)
	if !ok {
		return Edit{}
	}
	return Edit{Span: Span{kept.whole.Start - f.delimiter, kept.whole.End + len("\r\n")}}
}
