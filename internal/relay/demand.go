package relay

import (
	"strings"

	"modelgate"
	"modelgate/internal/provider"
)

// demand is what a request says about how much it can cost.
type demand struct {
	output  int64 // tokens of one answer at most; 0 where the request leaves it open
	choices int64 // answers; at least 1
	tools   bool  // the provider may run tools of its own
	text    int64 // bytes of text in the body; 0 for a form
}

// budgetNames are the body members that demand reads.
func budgetNames() []string {
	names := []string{"best_of", "n", "tools", "web_search_options", "generationConfig", "generation_config"}
	for _, l := range outputLimits() {
		names = append(names, l.members...)
	}
	return names
}

// outputLimit names the members that bound the output on some paths. A
// provider ignores the names of others, and so must a bound.
type outputLimit struct {
	path    string // the end of the path
	members []string
}

func outputLimits() []outputLimit {
	return []outputLimit{
		{"/chat/completions", []string{"max_tokens", "max_completion_tokens"}},
		{"/completions", []string{"max_tokens"}},
		{"/messages", []string{"max_tokens"}},
		{"/responses", []string{"max_output_tokens"}},
	}
}

// demand reads a request to the path. What it cannot read bounds nothing.
func (q *request) demand(path string) demand {
	d := demand{choices: 1}
	if !q.json {
		if text, _, ok := q.Form.Get("n"); ok && text != "" && text != "1" {
			d.choices = 10 // the most pictures that a form can ask for
		}
		return d
	}
	d.text = int64(len(q.body))
	for _, name := range []string{"n", "best_of"} {
		d.choices = max(d.choices, q.number(name))
	}
	for _, l := range outputLimits() {
		if !strings.HasSuffix(path, l.path) {
			continue
		}
		for _, name := range l.members {
			value, _ := q.Fields.Get(name)
			d.output = max(d.output, bounding(value))
		}
		break
	}
	for _, name := range []string{"generationConfig", "generation_config"} {
		config, ok := q.Fields.Get(name)
		if !ok {
			continue
		}
		for _, name := range []string{"maxOutputTokens", "max_output_tokens"} {
			value, _ := config.Member(name) // the zero value where it is not one
			d.output = max(d.output, bounding(value))
		}
		d.choices = max(d.choices, memberInt(config, "candidateCount"), memberInt(config, "candidate_count"))
	}
	if _, ok := q.Fields.Get("web_search_options"); ok {
		d.tools = true
	}
	tools, _ := q.Fields.Get("tools")
	for tool := range tools.Elements() {
		d.tools = d.tools || !clientTool(tool)
	}
	return d
}

// bounding is a number that limits what a call costs; 0 for anything but a JSON
// number, which a provider might not read as the gateway does.
func bounding(v provider.Value) int64 {
	if v.Kind() != provider.JSONNumber {
		return 0
	}
	n, _ := v.Int()
	return n
}

func (q *request) number(name string) int64 {
	value, _ := q.Fields.Get(name)
	n, _ := value.Int()
	return n
}

func memberInt(object provider.Value, name string) int64 {
	value, err := object.Member(name)
	if err != nil {
		return 0
	}
	n, _ := value.Int()
	return n
}

// clientTool reports whether a tool is one that the client runs: it has a
// name and no type of its own, or is a function.
func clientTool(tool provider.Value) bool {
	kind, err := tool.Member("type")
	if err != nil || tool.Kind() != provider.JSONObject {
		return false
	}
	if text, ok := kind.Text(); ok {
		return text == "function" || text == "custom"
	}
	for _, name := range []string{"name", "functionDeclarations", "function_declarations"} {
		if v, err := tool.Member(name); err == nil && v.Kind() != provider.JSONAbsent {
			return only(tool, name)
		}
	}
	return false
}

// only reports whether a tool that declares functions asks for nothing else.
func only(tool provider.Value, name string) bool {
	if name == "name" {
		return true
	}
	for _, other := range []string{"googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "codeExecution", "code_execution", "urlContext", "url_context"} {
		if v, err := tool.Member(other); err != nil || v.Kind() != provider.JSONAbsent {
			return false
		}
	}
	return true
}

// defaultOutput is how many tokens an answer is taken to have while nothing
// is known of its model.
const defaultOutput = 1024

// defaultLength is how long a job's result is taken to be that was not asked
// to have a length, in millionths of a second, while nothing is known of its
// model.
const defaultLength = 5_000_000

// estimate is what a call will probably cost on its dearest route.
func (y *Relay) estimate(c *call) modelgate.Nano {
	var most modelgate.Nano
	for i := range c.attempts {
		a := &c.attempts[i]
		u := modelgate.Usage{
			Images: c.asked.Count, Seconds: c.asked.Seconds * max(c.asked.Count, 1), Characters: c.asked.Characters,
			Size: c.asked.Size, Quality: c.asked.Quality,
		}
		known, some := y.recent.typical(a)
		if tokens(c.kind()) {
			u = modelgate.Usage{Input: (c.demand.text + 2) / 3}
			if c.model != nil && c.model.ContextLength > 0 {
				u.Input = min(u.Input, c.model.ContextLength)
			}
			if c.kind() != modelgate.Embedding {
				u.Output = c.output(known, some) * c.demand.choices
			}
			most = max(most, a.price.Estimate(&u, c.id.Time()))
			continue
		}
		if c.kind() == modelgate.Image {
			u.Images = max(u.Images, 1)
		}
		if a.way != nil {
			u.Output = a.way.Tokens(c.asked, c.makes)
			if u.Seconds == 0 && !some {
				u.Seconds = defaultLength * max(c.asked.Count, 1)
			}
		}
		most = max(most, a.price.Estimate(&u, c.id.Time()), modelgate.Nano(known))
	}
	return most
}

// output is how many tokens one answer will probably have.
func (c *call) output(known int64, some bool) int64 {
	n := int64(defaultOutput)
	if some {
		n = known
	}
	if c.demand.output > 0 {
		n = min(n, c.demand.output)
	}
	if c.model != nil && c.model.MaxOutput > 0 {
		n = min(n, c.model.MaxOutput)
	}
	return n
}

// bound is the most that a call can cost on any of its routes; false where
// there is no telling.
func (c *call) bound() (modelgate.Nano, bool) {
	d := modelgate.Demand{
		Choices: c.demand.choices, Images: max(c.asked.Count, 1), Characters: c.asked.Characters,
		Seconds: c.asked.Seconds * max(c.asked.Count, 1), Searches: c.demand.tools || !tokens(c.kind()) || c.model == nil,
	}
	if c.demand.tools {
		return 0, false
	}
	if c.model != nil {
		d.Input, d.Output = c.model.ContextLength, c.model.MaxOutput
		if d.Output == 0 {
			d.Output = c.model.ContextLength
		}
		if c.demand.output > 0 {
			d.Output = min(d.Output, c.demand.output)
		}
	}
	var most modelgate.Nano
	for i := range c.attempts {
		b, ok := c.attempts[i].price.Bound(d)
		if !ok {
			return 0, false
		}
		most = max(most, b)
	}
	return most, true
}
