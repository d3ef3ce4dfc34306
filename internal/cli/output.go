package cli

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"modelgate/internal/terminal"
)

// output prints a command's answer: a table for people, or with --json one
// JSON value and nothing else.
type output struct {
	app *app
	csv bool // lists only
}

// value prints v as JSON, or what text writes.
func (o *output) value(v any, text func(io.Writer)) error {
	if o.app.json {
		enc := json.NewEncoder(o.app.Stdout)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	text(o.app.Stdout)
	return nil
}

// table prints v as JSON, or rows under a head, whose columns a tab separates.
func (o *output) table(v any, head string, rows func(row func(cells ...any))) error {
	var err error
	printed := o.value(v, func(w io.Writer) {
		t := &terminal.Table{Head: strings.Split(head, "\t")}
		rows(t.Row)
		if o.csv {
			err = writeCSV(w, t)
		} else {
			err = o.app.terminal(w).Print(t)
		}
	})
	if err != nil {
		return err
	}
	return printed
}

// writeCSV writes a table for spreadsheets. The names of its columns are those of
// the head in lower case.
func writeCSV(w io.Writer, t *terminal.Table) error {
	c := csv.NewWriter(w)
	names := make([]string, len(t.Head))
	for i, name := range t.Head {
		names[i] = strings.ReplaceAll(strings.ToLower(name), " ", "_")
	}
	rows := append([][]string{names}, t.Text()...)
	for _, row := range rows {
		for i := range row {
			row[i] = inert(row[i])
		}
	}
	return c.WriteAll(rows)
}

// inert is a cell that no spreadsheet takes for a formula.
func inert(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}
