package terminal

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"
)

// gap separates columns.
const gap = "  "

// Table is a head and rows of cells. A cell of the type State is coloured.
type Table struct {
	Head []string
	rows [][]any
}

// Row adds a row. It may have fewer cells than the head.
func (t *Table) Row(cells ...any) { t.rows = append(t.rows, cells) }

// Text are the rows with their cells as text, without the head.
func (t *Table) Text() [][]string {
	rows := make([][]string, len(t.rows))
	for i, cells := range t.rows {
		for _, c := range cells {
			rows[i] = append(rows[i], fmt.Sprint(c))
		}
	}
	return rows
}

// Print writes a table whose columns line up by display width. On a terminal
// lines are cut to its width; elsewhere nothing is cut.
func (t Terminal) Print(table *Table) error {
	rows := table.Text()
	widths := make([]int, len(table.Head))
	for _, row := range append([][]string{table.Head}, rows...) {
		for i, cell := range row[:min(len(row), len(widths))] {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	var b bytes.Buffer
	t.line(&b, widths, table.Head, nil)
	for i, row := range rows {
		t.line(&b, widths, row, table.rows[i])
	}
	_, err := t.w.Write(b.Bytes())
	return err
}

// line writes one row. The cells say which of the texts are states.
func (t Terminal) line(b *bytes.Buffer, widths []int, texts []string, cells []any) {
	var line strings.Builder
	used := 0
	for i, text := range texts {
		text, width := t.cut(text, used)
		if width == 0 && t.Interactive() && used >= t.columns {
			break
		}
		shown := text
		if i < len(cells) {
			if state, ok := cells[i].(State); ok {
				shown = t.Paint(state, text)
			}
		}
		line.WriteString(shown)
		used += width
		if i == len(texts)-1 {
			break
		}
		padding := max(widths[min(i, len(widths)-1)]-width, 0) + len(gap)
		line.WriteString(strings.Repeat(" ", padding))
		used += padding
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// cut is a text as far as the line has room for it, and its display width.
func (t Terminal) cut(text string, used int) (string, int) {
	width := runewidth.StringWidth(text)
	if room := t.columns - used; t.Interactive() && width > room {
		text = runewidth.Truncate(text, max(room, 0), "…")
		width = runewidth.StringWidth(text)
	}
	return text, width
}
