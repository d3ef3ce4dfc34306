package gateway

import (
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate"
)

// TestTextRatioLearns: kinds of text have their own tokens a byte, and replies
// differ. After 64 replies estimates are right within 15 percent on average, before
// within 45, and sums of many are right within 5.
func TestTextRatioLearns(t *testing.T) {
	t.Parallel()
	route := routeName{"p", "m"}
	for kind, ratio := range map[string]float64{"English": 0.22, "German": 0.26, "Polish": 0.35, "Russian": 0.18, "Chinese": 0.30, "code": 0.29, "JSON": 0.33} {
		random := rand.New(rand.NewPCG(1, uint64(len(kind))))
		reply := func() (bytes, tokens int64) {
			bytes = 200 + random.Int64N(4000)
			return bytes, int64(float64(bytes) * ratio * (0.8 + 0.4*random.Float64()))
		}
		var texts textRatios
		off := func(n int) (mean, sum float64) {
			var all, guessed int64
			for range n {
				bytes, tokens := reply()
				guess, _ := texts.estimate("o", route, bytes)
				mean += math.Abs(float64(guess-tokens)) / float64(tokens) / float64(n)
				all, guessed = all+tokens, guessed+guess
			}
			return mean, math.Abs(float64(guessed-all)) / float64(all)
		}
		if mean, _ := off(1000); mean > 0.45 {
			t.Errorf("%s, cold: %.0f %%", kind, mean*100)
		}
		for range 64 {
			bytes, tokens := reply()
			texts.learn("o", route, bytes, &modelgate.Usage{Output: tokens})
		}
		if mean, sum := off(1000); mean > 0.15 || sum > 0.05 {
			t.Errorf("%s: %.1f %%, in sum %.1f %%", kind, mean*100, sum*100)
		}
	}
}

// TestTextRatioOfOthers: an organization that has few replies is judged by those of
// others, of whom none decides alone, and odd replies stay within bounds.
func TestTextRatioOfOthers(t *testing.T) {
	t.Parallel()
	route := routeName{"p", "m"}
	var texts textRatios
	teach := func(org modelgate.ClientID, n int, bytes, tokens int64) {
		for range n {
			texts.learn(org, route, bytes, &modelgate.Usage{Output: tokens})
		}
	}
	want := func(org modelgate.ClientID, tokens int64) {
		t.Helper()
		if got, _ := texts.estimate(org, route, 1000); got != tokens {
			t.Errorf("%s: %d tokens, want %d", org, got, tokens)
		}
	}
	want("new", 250)
	teach("odd", 7, 100, 10_000)
	want("odd", 250)
	teach("odd", 1, 100, 10_000)
	want("odd", 2000) // at most two tokens a byte
	want("new", 688)  // a fourth of that, the rest is the usual
	for _, org := range []modelgate.ClientID{"a", "b", "c", "d", "e"} {
		teach(org, 8, 1000, 300)
	}
	want("new", 584) // a sixth and five sixths
	want("a", 300)
	teach("a", 500, 1000, 400)
	want("a", 400)
	if got, _ := texts.estimate("a", routeName{"p", "other"}, 1000); got != 250 {
		t.Errorf("another model: %d", got)
	}
	if got, _ := (*textRatios)(nil).estimate("a", route, 9); got != 3 {
		t.Errorf("nothing known: %d", got)
	}
	for i := range mostTexts + 10 {
		texts.learn("o", routeName{"p", strings.Repeat("m", i%100) + string(rune('0'+i/100))}, 10, &modelgate.Usage{Output: 5})
	}
	if texts.count > mostTexts {
		t.Errorf("%d entries", texts.count)
	}
}

// TestHiddenReasoning: a model that reasons without showing it has done so in a
// reply that was cut too; one that shows it has not.
func TestHiddenReasoning(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ bytes, output, reasoning, shown, hidden int64 }{
		"hidden": {400, 100, 300, 100, 300},
		"shown":  {1600, 100, 300, 100, 0},
		"none":   {400, 100, 0, 100, 0},
	} {
		var texts textRatios
		for range 16 {
			texts.learn("o", routeName{}, tt.bytes, &modelgate.Usage{Output: tt.output, Reasoning: tt.reasoning})
		}
		if shown, hidden := texts.estimate("o", routeName{}, 400); shown != tt.shown || hidden != tt.hidden {
			t.Errorf("%s: %d and %d, want %d and %d", name, shown, hidden, tt.shown, tt.hidden)
		}
	}
}

// TestCutStreamCostsWhatIsExpected: complete replies say how many tokens a text
// has, and one that is cut is booked by that.
func TestCutStreamCostsWhatIsExpected(t *testing.T) {
	t.Parallel()
	piece := events(`{"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("word", 100) + `"}}]}`)
	whole := piece + events(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":50}}`, "[DONE]")
	var calls atomic.Int64
	u := rawUpstream(t, func(conn net.Conn, _ *http.Request) bool {
		if calls.Add(1) <= enoughReplies {
			_, err := io.WriteString(conn, reply(eventHead, chunks(whole)+lastChunk))
			return err == nil
		}
		_, _ = io.WriteString(conn, reply(eventHead, chunks(piece)))
		return false
	})
	g := open(t, u.URL, plan{})
	for range enoughReplies {
		if resp, _, err := g.do(t, "/v1/chat/completions", streamBody); err != nil || resp.StatusCode != 200 {
			t.Fatal(err)
		}
		wait(t, g.books.ended, "END")
	}
	_, _, _ = g.do(t, "/v1/chat/completions", streamBody)
	wait(t, g.books.ended, "END")
	g.books.mu.Lock()
	defer g.books.mu.Unlock()
	if end := g.books.ends[enoughReplies]; end.ParseStatus != modelgate.ParsePartial || end.Usage.Output != 50 {
		t.Errorf("END %+v, want 50 tokens of output", end)
	}
}
