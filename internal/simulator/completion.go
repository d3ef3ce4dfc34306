package simulator

import (
	"slices"
	"strings"
)

// completion is a simulated text answer before one of the wire formats writes
// it.
type completion struct {
	call    *toolCall // in place of text; nil for text
	words   []string
	pieces  []string // the texts of a stream's chunks; together they are the text, or the call's arguments
	cut     bool     // the limit of the request ended the answer
	choices int      // how many times the answer is given
	tokens  tokens
}

// text is the whole answer, or the arguments of the call.
func (m *completion) text() string { return strings.Join(m.pieces, "") }

// finish is the format's name for why the answer ended: by itself, at the
// limit of the request, or with a call of a tool.
func (m *completion) finish(whole, cut, call string) string {
	switch {
	case m.call != nil:
		return call
	case m.cut:
		return cut
	}
	return whole
}

const (
	maxChoices  = 128 // the largest n that OpenAI accepts
	quotedWords = 40  // how many words of the prompt an answer repeats by default
)

// complete writes the answer to the call: at most limit words, where limit is
// above 0, and as many choices as asked for, fewer where they would have more
// than maxWords words together.
func (c *call) complete(limit float64, choices int) *completion {
	if call := c.callTool(); call != nil {
		return c.completeCall(call, choices)
	}
	asked := strings.Fields(withoutDirectives(c.prompt.asked))
	all := append([]string{"This", "is", "a", "simulated", "answer", "to:"}, asked[:min(len(asked), quotedWords)]...)
	length := len(all)
	if c.d.words >= 0 {
		length = c.d.words
	} else if c.d.chunks > length {
		length = min(c.d.chunks, maxWords)
	}
	m := &completion{}
	if limit >= 1 && limit < float64(length) {
		length, m.cut = int(limit), true
	}
	m.words = slices.Repeat(all, length/len(all)+1)[:length]
	m.choices = min(choices, max(maxWords/max(length, 1), 1))
	m.pieces = c.pieces(m.words)
	m.tokens = c.count(int64(m.choices * length))
	return m
}

// completeCall has the call as the answer. No limit cuts it, as half a call is of
// no use. Its tokens are the words of its arguments, and one for the name.
func (c *call) completeCall(call *toolCall, choices int) *completion {
	text := call.text()
	bill := c.count(int64(choices * (1 + len(strings.Fields(text)))))
	return &completion{call: call, choices: choices, pieces: strings.SplitAfter(text, ","), tokens: bill}
}

// pieces cuts the answer into as many texts as the directives say, by default
// one for each word.
func (c *call) pieces(words []string) []string {
	n := len(words)
	if c.d.chunks > 0 {
		n = min(n, c.d.chunks)
	}
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = strings.Join(words[i*len(words)/n:(i+1)*len(words)/n], " ")
		if i > 0 {
			pieces[i] = " " + pieces[i]
		}
	}
	return pieces
}

// tokens is what a call is billed. Each format adds the kinds up in its own
// way.
type tokens struct {
	input        int64 // uncached
	cached       int64
	cacheWrite   int64
	cacheWrite1h int64
	output       int64 // reasoning included
	reasoning    int64
}

// prompt is the total of the input side.
func (t tokens) prompt() int64 { return t.input + t.cached + t.cacheWrite + t.cacheWrite1h }

// total is the sum of both sides.
func (t tokens) total() int64 { return t.prompt() + t.output }

// count is the bill of a call whose answer has so many words. Each format gets
// only the kinds of token that it can state: OpenAI's has one kind of cache
// write, Gemini's has none, and Cohere's bills cached tokens like others.
func (c *call) count(words int64) tokens {
	t := tokens{
		input: c.prompt.words(), output: words + c.d.reasoning, reasoning: c.d.reasoning,
		cached: c.d.cached, cacheWrite: c.d.cacheWrite, cacheWrite1h: c.d.cacheWrite1h,
	}
	switch c.format {
	case formatAnthropic, formatBedrock:
	case formatGemini:
		t.cacheWrite, t.cacheWrite1h = 0, 0
	case formatCohere:
		t.cached, t.cacheWrite, t.cacheWrite1h = 0, 0, 0
	default:
		t.cacheWrite, t.cacheWrite1h = t.cacheWrite+t.cacheWrite1h, 0
	}
	return c.bill(t)
}

// bill applies the directives that state totals, and copies the bill into the
// record of the call.
func (c *call) bill(t tokens) tokens {
	if c.d.input >= 0 {
		t.input = c.d.input
	}
	if c.d.output >= 0 {
		t.output = max(c.d.output, t.reasoning)
	}
	s := &c.served
	s.InputTokens, s.CachedTokens, s.CacheWriteTokens = t.input, t.cached, t.cacheWrite
	s.CacheWrite1hTokens, s.OutputTokens, s.ReasoningTokens = t.cacheWrite1h, t.output, t.reasoning
	return t
}

// tier is the service tier of OpenAI's replies: what the directive says, else
// what was asked for, as replies name it.
func (c *call) tier() string {
	if c.d.tier != "" {
		return c.d.tier
	}
	switch asked := c.fields.text("service_tier"); asked {
	case "", "auto":
		return "default"
	case "fast":
		return "priority"
	default:
		return asked
	}
}
