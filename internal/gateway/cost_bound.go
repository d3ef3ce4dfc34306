package gateway

import (
	"fmt"
	"slices"
	"strings"

	"modelgate/internal/provider/reqscan"
)

// costBound is what a request says about how much it can cost.
type costBound struct {
	output  int64 // tokens of one answer at most; 0 where the request leaves it open
	choices int64 // answers to one input; at least 1
	inputs  int64 // what is read or answered each by itself; at least 1
	// open is why the request bounds nothing, for the caller: the provider may run
	// tools of its own, or something is asked for in a way that says no number.
	// "" is that it may.
	open string
	text int64 // bytes of text in the body; 0 for a form
}

// answers is how many there can be, at least 1.
func (b *costBound) answers() int64 { return max(b.choices*b.inputs, 1) }

// ambiguous is why a request bounds nothing that two readers could take apart.
const ambiguous = "the request cannot be read in one way only"

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
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens":
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
		"tools", "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens",
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

// costBound reads a request to the path. What it cannot read bounds nothing.
func (q *request) costBound(path string) costBound {
	b := costBound{choices: 1, inputs: 1}
	if !q.json {
		if text, _, ok := q.Form.Get("n"); ok && text != "" && text != "1" {
			b.choices = mostInForm
		}
		return b
	}
	b.text = int64(len(q.body))
	b.output = q.outputLimit(path)
	single := conversation(path)
	for name, value := range q.Fields.All() {
		switch roleOf(name) {
		case isCount:
			b.count(value)
		case isConfig:
			b.config(value, q.budget)
		case isBatch:
			if !single {
				b.batch(value, q.budget)
			}
		case isDoing:
			b.opens(asksFor(value), name)
		case isTools:
			b.opens(runsTools(value, q.tools), name)
		}
	}
	return b
}

// count takes in a number of answers.
func (b *costBound) count(v reqscan.Value) {
	if !asksFor(v) {
		return
	}
	n, ok := v.Int()
	if !ok || n > mostChoices {
		b.choices = mostChoices
		b.open = "the number of answers that the request asks for has no bound"
		return
	}
	b.choices = max(b.choices, n)
}

// config takes in an object of settings.
func (b *costBound) config(object reqscan.Value, names *reqscan.Names) {
	settings, err := object.Pick(names)
	if err != nil {
		b.open = ambiguous
		return
	}
	for name, value := range settings.All() {
		switch roleOf(name) {
		case isCount:
			b.count(value)
		case isDoing:
			b.opens(asksFor(value), name)
		}
	}
}

// opens notes that a member, if so, lets the provider do more than answer.
func (b *costBound) opens(so bool, member string) {
	if so && b.open == "" {
		b.open = fmt.Sprintf("the member %q lets the provider run tools of its own, whose cost has no bound; leave it out, or use budgets that are not strict", member)
	}
}

// batch counts what a list, or a list in an object, has that is read by
// itself.
func (b *costBound) batch(v reqscan.Value, names *reqscan.Names) {
	b.inputs = max(b.inputs, elements(v))
	lists, err := v.Pick(names)
	if err != nil {
		b.open = ambiguous
	}
	for name, list := range lists.All() {
		if roleOf(name) == isBatch {
			b.inputs = max(b.inputs, elements(list))
		}
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
		limits, _ := object.Pick(q.budget) // without members where it has one twice
		for _, name := range [...]string{"maxOutputTokens", "max_output_tokens"} {
			value, _ := limits.Get(name)
			most = max(most, bounding(value))
		}
	}
	return most
}

// bounding is a number that limits what a call costs; 0 for anything but a JSON
// number, which a provider might not read as the gateway does.
func bounding(v reqscan.Value) int64 {
	if v.Kind() != reqscan.JSONNumber {
		return 0
	}
	n, ok := v.Int()
	if !ok {
		return 0
	}
	return n
}

// elements are the inputs in an array. Numbers are the tokens of one.
func elements(list reqscan.Value) (n int64) {
	tokens := int64(0)
	for v := range list.Elements() {
		if v.Kind() == reqscan.JSONNumber {
			tokens = 1
			continue
		}
		n++
	}
	return n + tokens
}

// runsTools reports whether any of the tools is one that the provider runs.
func runsTools(tools reqscan.Value, names *reqscan.Names) bool {
	switch tools.Kind() {
	case reqscan.JSONNull:
		return false
	case reqscan.JSONArray:
		for tool := range tools.Elements() {
			if !clientTool(tool, names) {
				return true
			}
		}
		return false
	}
	return !clientTool(tools, names) // some take a single one for a list
}

// asksFor reports whether a member says something.
func asksFor(v reqscan.Value) bool {
	switch v.Kind() {
	case reqscan.JSONAbsent, reqscan.JSONNull:
		return false
	case reqscan.JSONArray:
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
func clientTool(tool reqscan.Value, names *reqscan.Names) bool {
	says, err := tool.Pick(names)
	if err != nil || tool.Kind() != reqscan.JSONObject {
		return false
	}
	kind, _ := says.Get("type")
	if text, ok := kind.Text(); ok {
		return text == "function" || text == "custom" || text == "local_shell" || text == "apply_patch" ||
			strings.HasPrefix(text, "bash_") || strings.HasPrefix(text, "text_editor_") || strings.HasPrefix(text, "computer_") || strings.HasPrefix(text, "memory_")
	}
	if says.Has("name") {
		return true
	}
	declares := says.Has("functionDeclarations") || says.Has("function_declarations")
	return declares && !slices.ContainsFunc(providerTools(), says.Has)
}

// toolNames are the members of a tool that clientTool reads.
func toolNames() []string {
	return append(providerTools(), "type", "name", "functionDeclarations", "function_declarations")
}

// providerTools are members by which a tool that declares functions asks for
// something else as well.
func providerTools() []string {
	return []string{
		"googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval", "codeExecution", "code_execution", "urlContext", "url_context",
		"googleMaps", "google_maps", "fileSearch", "file_search", "enterpriseWebSearch", "enterprise_web_search", "retrieval", "mcpServers", "mcp_servers",
	}
}
