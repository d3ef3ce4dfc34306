package relay

import (
	"slices"
	"strings"

	"modelgate"
	"modelgate/internal/provider"
)

// demand is what a request says about how much it can cost.
type demand struct {
	output  int64 // tokens of one answer at most; 0 where the request leaves it open
	choices int64 // answers to one input; at least 1
	inputs  int64 // what is read or answered each by itself; at least 1
	// open: the provider may run tools of its own, or something is asked for in
	// a way that bounds nothing.
	open bool
	text int64 // bytes of text in the body; 0 for a form
}

// answers is how many there can be.
func (d *demand) answers() int64 { return d.choices * d.inputs }

const (
	// mostChoices is more than any provider makes of one input. Beyond it a
	// request bounds nothing, and products of counts stay in range.
	mostChoices = 10_000
	// mostInForm is as many pictures as a form can ask for.
	mostInForm = 10
)

// counts are the members that say how many answers there will be.
func counts() []string {
	return []string{"n", "best_of", "sampleCount", "sample_count", "candidateCount", "candidate_count"}
}

// configs are the members that hold counts as well.
func configs() []string { return []string{"generationConfig", "generation_config", "parameters"} }

// batches are the members whose elements each are an input of their own, at
// the top or within input.
func batches() []string {
	return []string{"input", "inputs", "prompt", "texts", "contents", "documents", "requests", "instances"}
}

// conversations are the ends of the paths on which all there is belongs to one
// input.
func conversations() []string {
	return []string{"/chat/completions", "/messages", "/responses", "enerateContent", "/chat", "/generate", "generation/generation"}
}

// doings are the members, beside tools, that let a provider do more than answer
// once.
func doings() []string {
	return []string{"web_search_options", "mcp_servers", "plugins", "search_parameters", "connectors", "enable_search", "prediction"}
}

// budgetNames are the body members that demand reads.
func budgetNames() []string {
	names := slices.Concat(counts(), configs(), batches(), doings(), []string{"tools"})
	for _, l := range outputLimits() {
		for _, name := range l.members {
			if !strings.Contains(name, ".") {
				names = append(names, name)
			}
		}
	}
	return names
}

// outputLimit names the members that bound the output on some paths. A
// provider ignores the names of others, and so must a bound.
type outputLimit struct {
	path    string   // the end of the path
	members []string // of the body, or after a dot of an object in it
}

func outputLimits() []outputLimit {
	return []outputLimit{
		{"/chat/completions", []string{"max_tokens", "max_completion_tokens"}},
		{"/completions", []string{"max_tokens"}},
		{"/messages", []string{"max_tokens"}},
		{"/responses", []string{"max_output_tokens"}},
		{"enerateContent", []string{
			"generationConfig.maxOutputTokens", "generationConfig.max_output_tokens", "generation_config.maxOutputTokens", "generation_config.max_output_tokens",
		}},
	}
}

// demand reads a request to the path. What it cannot read bounds nothing.
func (q *request) demand(path string) demand {
	d := demand{choices: 1, inputs: 1}
	if !q.json {
		if text, _, ok := q.Form.Get("n"); ok && text != "" && text != "1" {
			d.choices = mostInForm
		}
		return d
	}
	d.text = int64(len(q.body))
	d.output = q.outputLimit(path)
	for _, name := range counts() {
		value, _ := q.Fields.Get(name)
		d.count(value)
		for _, config := range configs() {
			object, _ := q.Fields.Get(config)
			value, err := object.Member(name)
			d.count(value)
			d.open = d.open || err != nil
		}
	}
	if !slices.ContainsFunc(conversations(), func(end string) bool { return strings.HasSuffix(path, end) }) {
		q.inputs(&d)
	}
	d.open = d.open || q.doesMore()
	return d
}

// count takes in a number of answers.
func (d *demand) count(v provider.Value) {
	n, ok := v.Int()
	switch {
	case v.Kind() == provider.JSONAbsent, v.Kind() == provider.JSONNull:
	case !ok, n > mostChoices:
		d.choices, d.open = mostChoices, true
	default:
		d.choices = max(d.choices, n)
	}
}

// outputLimit is the most tokens that an answer on the path may have.
func (q *request) outputLimit(path string) (most int64) {
	for _, l := range outputLimits() {
		if !strings.HasSuffix(path, l.path) {
			continue
		}
		for _, name := range l.members {
			object, member, nested := strings.Cut(name, ".")
			value, _ := q.Fields.Get(object)
			if nested {
				value, _ = value.Member(member) // the zero value where it is not one
			}
			most = max(most, bounding(value))
		}
		break
	}
	return most
}

// bounding is a number that limits what a call costs; 0 for anything but a JSON
// number, which a provider might not read as the gateway does.
func bounding(v provider.Value) int64 {
	if v.Kind() != provider.JSONNumber {
		return 0
	}
	n, ok := v.Int()
	if !ok {
		return 0
	}
	return n
}

// inputs counts what the body has that is read by itself.
func (q *request) inputs(d *demand) {
	for _, name := range batches() {
		list, _ := q.Fields.Get(name)
		d.inputs = max(d.inputs, elements(list))
	}
	object, _ := q.Fields.Get("input")
	for _, name := range batches() {
		list, err := object.Member(name)
		d.inputs = max(d.inputs, elements(list))
		d.open = d.open || err != nil
	}
}

// elements are the inputs in an array. Numbers are the tokens of one.
func elements(list provider.Value) (n int64) {
	tokens := int64(0)
	for v := range list.Elements() {
		if v.Kind() == provider.JSONNumber {
			tokens = 1
			continue
		}
		n++
	}
	return n + tokens
}

// doesMore reports whether the provider may do more than answer once.
func (q *request) doesMore() bool {
	parameters, _ := q.Fields.Get("parameters")
	for _, name := range doings() {
		value, _ := q.Fields.Get(name)
		inner, err := parameters.Member(name)
		if asksFor(value) || asksFor(inner) || err != nil {
			return true
		}
	}
	tools, _ := q.Fields.Get("tools")
	switch tools.Kind() {
	case provider.JSONAbsent, provider.JSONNull:
		return false
	case provider.JSONArray:
		for tool := range tools.Elements() {
			if !clientTool(tool) {
				return true
			}
		}
		return false
	}
	return !clientTool(tools) // some take a single one for a list
}

// asksFor reports whether a member says something.
func asksFor(v provider.Value) bool {
	switch v.Kind() {
	case provider.JSONAbsent, provider.JSONNull:
		return false
	case provider.JSONArray:
		for range v.Elements() {
			return true
		}
		return false
	}
	return !v.IsFalse()
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
				u.Input = min(u.Input, c.model.ContextLength*c.demand.inputs)
			}
			if c.kind() != modelgate.Embedding {
				u.Output = min(c.output(known, some), modelgate.MaxQuantity/c.demand.answers()) * c.demand.answers()
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
	if c.demand.open {
		return 0, false
	}
	pieces := max(c.asked.Count, c.demand.choices)
	d := modelgate.Demand{
		Choices: c.demand.answers(), Images: pieces, Characters: c.asked.Characters,
		Seconds: c.asked.Seconds * pieces, Searches: !tokens(c.kind()) || c.model == nil,
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
