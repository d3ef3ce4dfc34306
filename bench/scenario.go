package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The models of the provider: what they are called decides how it answers.
const (
	modelPlain = "sim-chat"   // at once
	modelSlow  = "sim-slow"   // after 50 ms
	modelBurst = "sim-burst"  // a stream, all at once
	modelPaced = "sim-paced"  // a stream, 10 ms between its events
	modelLate  = "sim-late"   // a stream, all at once after 200 ms
	modelHeld  = "sim-silent" // a stream that stays open after its first event

	modelShort       = "sim-short"        // at once, a short answer
	modelShortStream = "sim-short-stream" // the same as a stream, one write for each event
)

// models are all of them.
var models = [...]string{modelPlain, modelSlow, modelBurst, modelPaced, modelLate, modelHeld, modelShort, modelShortStream}

// link is how a target reaches the provider.
type link int

const (
	overPlain link = iota // HTTP/1.1 without TLS
	overTLS               // HTTP/1.1 over TLS
	overHTTP2             // HTTP/2 over TLS
)

// links are the names of the links in paths, slugs and provider names.
var links = [...]string{overPlain: "", overTLS: "tls", overHTTP2: "h2"}

// prompt is what a request asks.
type prompt int

const (
	promptText     prompt = iota // one message of Body bytes
	promptAgent                  // an agent's: tools, calls and results, Body bytes in all
	promptPicture                // one message with a picture of Body bytes
	promptGreeting               // a short sentence, whatever Body is
)

// scenario is one kind of load.
type scenario struct {
	Name        string
	Connections int
	Model       string // native id, one of the above
	API         api
	Prompt      prompt
	Body        int // bytes of the prompt
	// Long is how many times as long as others its turns are, 0 for once: few
	// calls need more time until batches of them are like each other.
	Long int
	// Rate is how many calls per second begin, whether or not those before
	// them have ended; latency counts from when a call should have begun. 0
	// for a closed loop: each connection makes its next call when the last has
	// ended.
	Rate int
	// Share makes Rate that part of what the target manages in a closed loop.
	Share float64
	// Proxy calls the provider-prefixed route with the native id, not the
	// door.
	Proxy bool
	// Link is how the provider is called.
	Link link
	// Front has clients call over TLS. Only targets with a certificate take
	// part.
	Front bool
	// Rare: measured only if the flag -only asks for it.
	Rare bool
}

func (s *scenario) stream() bool {
	return s.Model != modelPlain && s.Model != modelSlow && s.Model != modelShort
}

// saying is what must be in each answer: what the provider said first and last,
// and what it counted, if the call asks for that.
func (s *scenario) saying() [][]byte {
	said := []string{"answer answer", `"completion_tokens":160`}
	switch {
	case s.API != apiChat:
		said = []string{"This ", "cases.", `"output_tokens":35`}
	case s.Model == modelShort:
		said = []string{"This is a", "cases.", `"completion_tokens":35`}
	case s.Model == modelShortStream:
		said = []string{"This ", "cases.", "[DONE]"}
	case s.stream():
		said = []string{"word0 ", "word39 ", `"completion_tokens":40`, "[DONE]"}
	}
	var out [][]byte
	for _, text := range said {
		out = append(out, []byte(text))
	}
	return out
}

// scenarios are in the order of the report.
func scenarios() []scenario {
	return []scenario{
		{Name: "door, 1 KB, c=1", Connections: 1, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, c=32", Connections: 32, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, c=256", Connections: 256, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, 50 ms upstream, c=256", Connections: 256, Model: modelSlow, Body: 900},
		{Name: "door, 1 KB, TLS upstream, c=32", Connections: 32, Model: modelPlain, Body: 900, Link: overTLS},
		{Name: "door, 1 KB, TLS upstream, 50 ms, c=256", Connections: 256, Model: modelSlow, Body: 900, Link: overTLS},
		{Name: "door, 1 KB, TLS both sides, c=32", Connections: 32, Model: modelPlain, Body: 900, Link: overTLS, Front: true},
		{Name: "door, 1 KB, HTTP/2 upstream, c=32", Connections: 32, Model: modelPlain, Body: 900, Link: overHTTP2},
		{Name: "door, 1 KB, 500 calls/s", Connections: 64, Model: modelPlain, Body: 900, Rate: 500, Long: 2},
		{Name: "door, 1 KB, 3,000 calls/s", Connections: 256, Model: modelPlain, Body: 900, Rate: 3000},
		{Name: "door, 1 KB, 80 % of saturation", Connections: 256, Model: modelPlain, Body: 900, Share: 0.8},
		{Name: "provider proxy, 1 KB, c=32", Connections: 32, Model: modelPlain, Body: 900, Proxy: true},
		{Name: "stream of 40, paced, c=64", Connections: 64, Model: modelPaced, Body: 900, Long: 4},
		{Name: "stream of 40, burst, c=64", Connections: 64, Model: modelBurst, Body: 900},
		{Name: "stream of 40 after 200 ms, c=2000", Connections: 2000, Model: modelLate, Body: 900, Long: 2},
		{Name: "door, 100 KB, c=8", Connections: 8, Model: modelPlain, Body: 100_000},
		{Name: "door, 100 KB, c=64", Connections: 64, Model: modelPlain, Body: 100_000},
		{Name: "agent, 60 KB with tools, TLS upstream, c=16", Connections: 16, Model: modelBurst, Prompt: promptAgent, Body: 60_000, Link: overTLS},
		{Name: "picture, 1 MB, TLS upstream, c=8", Connections: 8, Model: modelPlain, Prompt: promptPicture, Body: 1_000_000, Link: overTLS, Long: 2},
	}
}

// peerScenarios are those in which other people's products are measured: four
// of the usual ones, and those of a public benchmark.
func peerScenarios() []scenario {
	const usual = "door, 1 KB, c=32|door, 1 KB, TLS upstream, c=32|stream of 40, burst, c=64|door, 1 KB, 500 calls/s"
	var out []scenario
	for _, sc := range scenarios() {
		if slices.Contains(strings.Split(usual, "|"), sc.Name) {
			out = append(out, sc)
		}
	}
	return append(out, enterpilot()...)
}

// takesPart says whether a target can serve a scenario.
func (t *target) takesPart(sc *scenario) bool {
	return (t.certified != nil) == sc.Front && (sc.Link != overHTTP2 || !t.onlyHTTP1)
}

// request is the bytes of one call of the scenario, on the i-th connection.
func (t *target) request(sc *scenario, i int) []byte {
	path, model := apiPaths[sc.API], sc.Model
	switch {
	case t.gateway && sc.Proxy:
		path = "/openai" + path
	case t.model != nil:
		path, model = t.model(sc)
	case t.forwards && sc.Link != overPlain:
		path = "/" + links[sc.Link] + path
	}
	body := sc.body(model)
	header := sc.API.header()
	if t.header != nil {
		header += t.header(sc)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%sContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: OpenAI/Go 3.95.0\r\nContent-Length: %d\r\n\r\n%s",
		path, t.address, t.keys[i%len(t.keys)], header, len(body), body)
	return b.Bytes()
}

// slugOf is the catalog's slug of a model that is reached over a link.
func slugOf(l link, model string) string {
	if l == overPlain {
		return "bench/" + model
	}
	return "bench/" + links[l] + "-" + model
}

// messages are the members of a request that hold its prompt.
func (s *scenario) messages() string {
	switch s.Prompt {
	case promptAgent:
		return agentMessages(s.Body)
	case promptPicture:
		return fmt.Sprintf(`"messages":[{"role":"user","content":[{"type":"text","text":"What is in this picture?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]`,
			strings.Repeat("iVBORw0KGgo/", s.Body/12))
	}
	return fmt.Sprintf(`"messages":[{"role":"user","content":%q}]`, strings.Repeat("word ", s.Body/5))
}

// agentMessages are what an agent sends in the middle of its work: a third of
// the bytes are tools, the rest alternates calls and their results.
func agentMessages(size int) string {
	var tools, turns []string
	for i, n := 0, 0; n < size/3; i++ {
		tool := fmt.Sprintf(`{"type":"function","function":{"name":"tool_%d","description":%q,"parameters":{"type":"object","properties":{"path":{"type":"string","description":"An absolute path"},"lines":{"type":"array","items":{"type":"integer"}}},"required":["path"]}}}`,
			i, strings.Repeat("Reads or writes part of a file. ", 20))
		tools, n = append(tools, tool), n+len(tool)
	}
	turns = append(turns, `{"role":"system","content":"You are a careful engineer."},{"role":"user","content":"Find the failing test."}`)
	for i, n := 0, 0; n < size*2/3; i++ {
		turn := fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"tool_1","arguments":"{\"path\":\"/src/main.go\"}"}}]},{"role":"tool","tool_call_id":"call_%d","content":%q}`,
			i, i, strings.Repeat("\tif err != nil {\n\t\treturn err // \"quoted\"\n\t}\n", 30))
		turns, n = append(turns, turn), n+len(turn)
	}
	return fmt.Sprintf(`"tools":[%s],"messages":[%s]`, strings.Join(tools, ","), strings.Join(turns, ","))
}
