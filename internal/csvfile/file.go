// Package csvfile writes tables that people open in spreadsheets: RFC 4180 in
// UTF-8, with a byte order mark before the first row.
package csvfile

import (
	"encoding/csv"
	"io"
	"strings"
)

// Writer is where a file goes. Begin comes before the first byte.
type Writer interface {
	io.Writer
	Begin()
}

// File is a file that is being written. Not for concurrent use.
type File struct {
	w     Writer
	begun bool
	out   *csv.Writer
}

// New makes a file of which nothing is written yet.
func New(w Writer) *File {
	f := &File{w: w, out: csv.NewWriter(w)}
	f.out.UseCRLF = true
	return f
}

// Begun reports whether there is a row.
func (f *File) Begun() bool { return f.begun }

// Row appends a row. Flush has its error.
func (f *File) Row(cells ...string) {
	if !f.begun {
		f.begun = true
		f.w.Begin()
		_, _ = io.WriteString(f.w, "\ufeff") // who takes no mark takes no row either
	}
	safe := make([]string, len(cells))
	for i, text := range cells {
		safe[i] = noFormula(text)
	}
	_ = f.out.Write(safe)
}

// Flush passes everything on and returns the first error.
func (f *File) Flush() error {
	f.out.Flush()
	return f.out.Error()
}

// noFormula keeps a spreadsheet from reading a text as a formula: what begins
// like one gets a ' before it, unless it is a number.
func noFormula(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) || negative(text) {
		return text
	}
	return "'" + text
}

// negative reports whether a text is a negative decimal number.
func negative(text string) bool {
	digits, minus := strings.CutPrefix(text, "-")
	whole, rest, point := strings.Cut(digits, ".")
	plain := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return minus && plain(whole) && (!point || plain(rest))
}
