package relay

import (
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

// answers is how many there can be, at least 1.
func (d *demand) answers() int64 { return max(d.choices*d.inputs, 1) }

const (
	// mostChoices is more than any provider makes of one input. Beyond it a
	// request bounds nothing, and products of counts stay in range.
	mostChoices = 10_000
	// mostInForm is as many pictures as a form can ask for.
	mostInForm = 10
)

// role is what a body member has to do with the cost of a call.
type role uint8

const (
	noRole   role = iota
	isCount       // says how many answers there will be
	isConfig      // an object that holds counts and doings as well
	isBatch       // a list whose elements each are an input of their own, or an object that holds one
	isDoing       // lets the provider do more than answer once
	isTools       // the list of tools
	isLimit       // bounds the output on some paths
)

// roleOf is the role of a member at the top of a body, or in a config.
func roleOf(name string) role {
	switch name {
	case "n", "best_of", "sampleCount", "sample_count", "candidateCount", "candidate_count":
		return isCount
	case "generationConfig", "generation_config", "parameters":
		return isConfig
	case "input", "inputs", "prompt", "texts", "contents", "documents", "requests", "instances":
		return isBatch
	case "web_search_options", "mcp_servers", "plugins", "search_parameters", "connectors", "enable_search", "prediction":
		return isDoing
	case "tools":
		return isTools
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		return isLimit
	}
	return noRole
}

// budgetNames are the body members that have a role.
func budgetNames() []string {
	return []string{
		"n", "best_of", "sampleCount", "sample_count", "candidateCount", "candidate_count",
		"generationConfig", "generation_config", "parameters",
		"input", "inputs", "prompt", "texts", "contents", "documents", "requests", "instances",
		"web_search_options", "mcp_servers", "plugins", "search_parameters", "connectors", "enable_search", "prediction",
		"tools", "max_tokens", "max_completion_tokens", "max_output_tokens",
	}
}

// conversation reports whether all that a request to the path holds belongs to
// one input.
func conversation(path string) bool {
	for _, end := range [...]string{"/chat/completions", "/messages", "/responses", "enerateContent", "/chat", "/generate", "generation/generation"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
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
	single := conversation(path)
	for name, value := range q.Fields.All() {
		switch roleOf(name) {
		case isCount:
			d.count(value)
		case isConfig:
			d.config(value)
		case isBatch:
			if !single {
				d.batch(value)
			}
		case isDoing:
			d.open = d.open || asksFor(value)
		case isTools:
			d.open = d.open || runsTools(value)
		}
	}
	return d
}

// count takes in a number of answers.
func (d *demand) count(v provider.Value) {
	if !asksFor(v) {
		return
	}
	n, ok := v.Int()
	if !ok || n > mostChoices {
		d.choices, d.open = mostChoices, true
		return
	}
	d.choices = max(d.choices, n)
}

// config takes in an object of settings.
func (d *demand) config(object provider.Value) {
	if object.Kind() != provider.JSONObject {
		return
	}
	for _, name := range budgetNames() {
		r := roleOf(name)
		if r != isCount && r != isDoing {
			continue
		}
		value, err := object.Member(name)
		switch {
		case err != nil:
			d.open = true
		case r == isCount:
			d.count(value)
		default:
			d.open = d.open || asksFor(value)
		}
	}
}

// batch counts what a list, or a list in an object, has that is read by
// itself.
func (d *demand) batch(v provider.Value) {
	d.inputs = max(d.inputs, elements(v))
	if v.Kind() != provider.JSONObject {
		return
	}
	for _, name := range budgetNames() {
		if roleOf(name) != isBatch {
			continue
		}
		list, err := v.Member(name)
		d.inputs = max(d.inputs, elements(list))
		d.open = d.open || err != nil
	}
}

// outputLimit is the most tokens that an answer on the path may have. A
// provider ignores the names that other paths have for it, and so must a
// bound.
func (q *request) outputLimit(path string) int64 {
	top := func(name string) int64 {
		value, _ := q.Fields.Get(name)
		return bounding(value)
	}
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return max(top("max_tokens"), top("max_completion_tokens"))
	case strings.HasSuffix(path, "/completions"), strings.HasSuffix(path, "/messages"):
		return top("max_tokens")
	case strings.HasSuffix(path, "/responses"):
		return top("max_output_tokens")
	case !strings.HasSuffix(path, "enerateContent"):
		return 0
	}
	most := int64(0)
	for _, name := range [...]string{"generationConfig", "generation_config"} {
		object, _ := q.Fields.Get(name)
		for _, name := range [...]string{"maxOutputTokens", "max_output_tokens"} {
			value, _ := object.Member(name) // the zero value where it is not one
			most = max(most, bounding(value))
		}
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

// runsTools reports whether any of the tools is one that the provider runs.
func runsTools(tools provider.Value) bool {
	switch tools.Kind() {
	case provider.JSONNull:
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
// name and no type of its own, or is a function, or of a type that the models
// know and clients run.
func clientTool(tool provider.Value) bool {
	kind, err := tool.Member("type")
	if err != nil || tool.Kind() != provider.JSONObject {
		return false
	}
	if text, ok := kind.Text(); ok {
		return text == "function" || text == "custom" || text == "local_shell" || text == "apply_patch" ||
			strings.HasPrefix(text, "bash_") || strings.HasPrefix(text, "text_editor_") || strings.HasPrefix(text, "computer_") || strings.HasPrefix(text, "memory_")
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
	for _, other := range []string{
		"googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "codeExecution", "code_execution", "urlContext", "url_context",
		"googleMaps", "google_maps", "fileSearch", "file_search", "enterpriseWebSearch", "enterprise_web_search", "retrieval", "mcpServers", "mcp_servers",
	} {
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
