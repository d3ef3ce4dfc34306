package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// output prints a command's answer: a table for people, or with --json one
// JSON value and nothing else.
type output struct {
	w    io.Writer
	json bool
}

// value prints v as JSON, or what text writes.
func (o output) value(v any, text func(io.Writer)) error {
	if o.json {
		enc := json.NewEncoder(o.w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	text(o.w)
	return nil
}

// table prints v as JSON, or rows under a head.
func (o output) table(v any, head string, rows func(row func(cells ...any))) error {
	return o.value(v, func(w io.Writer) {
		tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		fmt.Fprintln(tw, head)
		rows(func(cells ...any) {
			for i, c := range cells {
				if i > 0 {
					fmt.Fprint(tw, "\t")
				}
				fmt.Fprint(tw, c)
			}
			fmt.Fprintln(tw)
		})
		tw.Flush()
	})
}
