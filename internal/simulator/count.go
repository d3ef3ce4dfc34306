package simulator

// tokens is what a call is billed, before a provider's format adds it up.
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

// total is everything.
func (t tokens) total() int64 { return t.prompt() + t.output }

// count is the bill of a call that writes words words, and puts it into the
// record. Each format gets only the kinds of token it can state: OpenAI's has
// one kind of cache write, Gemini's has none.
func (c *call) count(words int64) tokens {
	t := tokens{input: c.prompt.words(), cached: c.d.cached, cacheWrite: c.d.cacheWrite, cacheWrite1h: c.d.cacheWrite1h, reasoning: c.d.reasoning}
	switch c.format {
	case formatAnthropic:
	case formatGemini:
		t.cacheWrite, t.cacheWrite1h = 0, 0
	default:
		t.cacheWrite, t.cacheWrite1h = t.cacheWrite+t.cacheWrite1h, 0
	}
	t.output = words + t.reasoning
	return c.bill(t)
}

// plain is the bill of a call whose format knows input and output only.
func (c *call) plain(input, output int64) tokens {
	return c.bill(tokens{input: input, output: output})
}

// bill applies the directives that state totals.
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

// tier is the service tier the reply states: what the directive says, else
// what was asked for, as OpenAI names it in replies.
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
