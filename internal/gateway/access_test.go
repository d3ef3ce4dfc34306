package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// The work of judging a name is bounded, wherever a call puts it.
func TestLongModelNames(t *testing.T) {
	t.Parallel()
	up := testkit.Upstream(t, simulator.Options{Name: "up"})
	g := open(t, up.URL, plan{})
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	for size, refused := range map[int]bool{256: false, 257: true, 100_000: true} {
		name := strings.Repeat("m", size)
		for path, body := range map[string]string{
			"/openai/v1/chat/completions":                                        `{"model":"` + name + `",` + messages + `}`,
			"/gemini/v1beta/models/" + url.PathEscape(name) + ":generateContent": `{"contents":[{"parts":[{"text":"hi"}]}]}`,
		} {
			if len(path) > 32<<10 {
				continue // a header that long has a bound of its own
			}
			before := up.Ledger.Len()
			resp, answer, err := g.do(t, path, body)
			called := up.Ledger.Len() > before
			if err != nil || (resp.StatusCode == http.StatusBadRequest) != refused || called == refused {
				t.Errorf("%d bytes on %.40s = %d %.100s, %v; upstream called %v", size, path, resp.StatusCode, answer, err, called)
			}
		}
	}
}
