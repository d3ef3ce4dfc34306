package terminal_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"

	"modelgate/internal/terminal"
)

// screen is a terminal of a given width. Its text is what was written to it, once
// close has been called.
type screen struct {
	*os.File
	text chan string
}

func openScreen(t *testing.T, columns uint16) *screen {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	s := &screen{tty, make(chan string, 1)}
	go func() {
		text, _ := io.ReadAll(master) // an error is how the other side's end is told
		_ = master.Close()
		s.text <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	return s
}

func (s *screen) shown() string {
	_ = s.Close() // ends the reading
	return <-s.text
}

// environment looks variables up in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

func table() *terminal.Table {
	t := &terminal.Table{Head: []string{"NAME", "STATUS", "NOTE"}}
	t.Row("東京", terminal.State("active"), "short")
	t.Row("Bäckerei", terminal.State("revoked"), "a note that is longer than the terminal is wide")
	t.Row("x", terminal.State("odd"))
	return t
}

const plain = `NAME      STATUS   NOTE
東京      active   short
Bäckerei  revoked  a note that is longer than the terminal is wide
x         odd
`

func TestPipedTablesArePlainAndWhole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := terminal.New(&b, environment(nil), false).Print(table()); err != nil || b.String() != plain {
		t.Errorf("%v\n%s\nwant\n%s", err, &b, plain)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	err = terminal.New(w, environment(map[string]string{"TERM": "xterm-256color"}), false).Print(table())
	_ = w.Close() // ends the reading
	if text, _ := io.ReadAll(r); err != nil || string(text) != plain {
		t.Errorf("%v\n%s\nwant\n%s", err, text, plain)
	}
}

func TestTablesAreCutToTheTerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t, 30)
	if err := terminal.New(s.File, environment(nil), true).Print(table()); err != nil {
		t.Fatal(err)
	}
	want := "NAME      STATUS   NOTE\n東京      active   short\nBäckerei  revoked  a note tha…\nx         odd\n"
	if got := s.shown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStatesHaveColoursOnATerminal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vars     map[string]string
		noColour bool
		coloured bool
	}{
		"a terminal":     {nil, false, true},
		"NO_COLOR":       {map[string]string{"NO_COLOR": "1"}, false, false},
		"empty NO_COLOR": {map[string]string{"NO_COLOR": ""}, false, true},
		"TERM=dumb":      {map[string]string{"TERM": "dumb"}, false, false},
		"--no-color":     {nil, true, false},
	} {
		s := openScreen(t, 80)
		if err := terminal.New(s.File, environment(tt.vars), tt.noColour).Print(table()); err != nil {
			t.Fatal(err)
		}
		got := s.shown()
		if !tt.coloured && got != plain || tt.coloured != strings.Contains(got, "\x1b[32mactive\x1b[0m   short") {
			t.Errorf("%s: %q", name, got)
		}
		if strings.Count(got, "\x1b[") != map[bool]int{true: 4}[tt.coloured] {
			t.Errorf("%s colours more than two states: %q", name, got)
		}
	}
}

// TestProgressOnATerminal works for three seconds of a fake clock, at 500 rows a
// second.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	s := openScreen(t, 60)
	synctest.Test(t, func(t *testing.T) {
		work(terminal.New(s.File, environment(nil), false), 3*time.Second)
	})
	got := s.shown()
	for _, want := range []string{"usage: 500 of 2,000 rows, 500/s, 3s left", "usage: 1,400 of 2,000 rows, 500/s, 1s left"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if !strings.HasSuffix(got, "\r\x1b[K") || strings.Contains(got, "usage: 0") {
		t.Errorf("the line is there within the first second, or stays: %q", got)
	}
}

func TestNoProgressOfQuickWorkNorInAPipe(t *testing.T) {
	t.Parallel()
	s := openScreen(t, 60)
	var b bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		work(terminal.New(s.File, environment(nil), false), 900*time.Millisecond)
		work(terminal.New(&b, environment(nil), false), 3*time.Second)
	})
	if got := s.shown(); got != "" || b.Len() > 0 {
		t.Errorf("quick work shows %q, a pipe gets %q", got, &b)
	}
}

// work does 50 rows every tenth of a second, of 2,000; a sample counts the tenth
// that is under way as done.
func work(t terminal.Terminal, long time.Duration) {
	const tenth = 100 * time.Millisecond
	var meter terminal.Meter
	meter.Set("usage", 0, 2000)
	stop := t.Watch("rows", meter.Sample)
	ticker := time.NewTicker(tenth)
	defer ticker.Stop()
	for n := range int64(long / tenth) {
		<-ticker.C
		synctest.Wait() // a sample that is due now comes first
		meter.Set("usage", 50*(n+2), 2000)
	}
	stop()
}
