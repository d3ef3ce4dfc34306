package main

import (
	"bytes"
	"fmt"
	"html"
)

const (
	chartLeft, chartWidth, chartBar = 230, 540, 16 // pixels
)

// chart draws each target's CPU time per call over that of the bare proxy as
// an SVG image. Bars of ratios beyond the most are cut.
func (r *results) chart(most float64) []byte {
	unit := chartWidth / most
	var b bytes.Buffer
	y, scenario := 30, ""
	for _, l := range r.Lines {
		if l.Target == nameDirect {
			continue
		}
		if l.Scenario != scenario {
			scenario = l.Scenario
			y += 14
			fmt.Fprintf(&b, `<text x="8" y="%d" class="h">%s</text>`+"\n", y+12, html.EscapeString(scenario))
			y += chartBar
		}
		class, label := "other", fmt.Sprintf("%.2f", l.Ratios[0].Median)
		if l.Own {
			class = "own"
		}
		if l.failed() != "" {
			label = "failed"
		}
		if l.Ratios[0].Median > most {
			label += ", bar cut"
		}
		width := min(l.Ratios[0].Median, most) * unit
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="n">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" class="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
			chartLeft-8, y+12, html.EscapeString(l.Target), chartLeft, y, width, chartBar-3, class, float64(chartLeft)+width+6, y+12, label)
		y += chartBar
	}
	var out bytes.Buffer
	const width = chartLeft + chartWidth + 100
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="CPU time per call over that of a bare proxy">`+"\n", width, y+20, width, y+20)
	out.WriteString(`<style>text{font:12px system-ui,sans-serif;fill:#333}.h{font-weight:600}.n{text-anchor:end}.own{fill:#2563eb}.other{fill:#9ca3af}line{stroke:#dc2626;stroke-dasharray:3 3}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>` + "\n")
	fmt.Fprintf(&out, `<text x="%d" y="20" class="h">CPU time per call ÷ a bare reverse proxy’s, same run</text><line x1="%.1f" x2="%.1f" y1="28" y2="%d"/>`+"\n", chartLeft, chartLeft+unit, chartLeft+unit, y+6)
	out.Write(b.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}
