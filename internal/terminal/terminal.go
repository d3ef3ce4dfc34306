// Package terminal writes for people: tables that line up, colours for states,
// and progress of long work. Where the output is no terminal it is plain text.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is where text for people goes. The zero value writes nowhere.
type Terminal struct {
	w io.Writer
	// columns is the width, 0 where w is no terminal.
	columns int
	colour  bool
}

// New describes a writer. Colour is off where the writer is no terminal, with
// noColour, with NO_COLOR in the environment and with TERM=dumb.
func New(w io.Writer, lookup func(string) (string, bool), noColour bool) Terminal {
	t := Terminal{w: w}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return t
	}
	const usualColumns = 80
	t.columns = usualColumns
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		t.columns = columns
	}
	none, _ := lookup("NO_COLOR")
	kind, _ := lookup("TERM")
	t.colour = !noColour && none == "" && kind != "dumb"
	return t
}

// Interactive reports whether a person sees the output.
func (t Terminal) Interactive() bool { return t.columns > 0 }

// State is a word that says how something is, such as active or revoked. It is
// the only text that is coloured.
type State string

// The colours, as ANSI numbers them.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// colourOf is the colour of a state, "" for none.
func colourOf(s State) string {
	switch s {
	case "active", "succeeded", "ok", "signs":
		return green
	case "pending", "suspended", "expired", "warning":
		return yellow
	case "revoked", "failed", "cancelled", "error":
		return red
	}
	return ""
}

// Paint is a text in the colour of a state, where there is colour.
func (t Terminal) Paint(s State, text string) string {
	colour := colourOf(s)
	if !t.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
