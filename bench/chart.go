package main

import (
	"bytes"
	"fmt"
	"html"
)

const (
	chartLeft, chartUnit, chartBar = 330, 180, 16 // pixels
	chartMost                      = 3.0          // ratios beyond are cut
)

// chart draws each target's CPU time per call over that of the bare proxy as
// an SVG image.
func (r *results) chart() []byte {
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
		}
		class := "other"
		if l.Target != nameProxy && l.Target != nameNginx {
			class = "own"
		}
		width := min(l.Ratios[0].Median, chartMost) * chartUnit
		fmt.Fprintf(&b, `<text x="%d" y="%d" class="n">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" class="%s"/><text x="%.1f" y="%d">%.2f</text>`+"\n",
			chartLeft-8, y+12, html.EscapeString(l.Target), chartLeft, y, width, chartBar-3, class, float64(chartLeft)+width+6, y+12, l.Ratios[0].Median)
		y += chartBar
	}
	var out bytes.Buffer
	width := chartLeft + chartUnit*chartMost + 60
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="CPU time per call over that of a bare proxy">`+"\n", int(width), y+20, int(width), y+20)
	out.WriteString(`<style>text{font:12px system-ui,sans-serif;fill:#333}.h{font-weight:600}.n{text-anchor:end}.own{fill:#2563eb}.other{fill:#9ca3af}line{stroke:#dc2626;stroke-dasharray:3 3}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>` + "\n")
	fmt.Fprintf(&out, `<text x="%d" y="20" class="h">CPU time per call ÷ a bare reverse proxy’s, same run</text><line x1="%d" x2="%d" y1="28" y2="%d"/>`+"\n", chartLeft, chartLeft+chartUnit, chartLeft+chartUnit, y+6)
	out.Write(b.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}
