// Package costbound reads from a request how much it can cost at most. Its tables
// say what it knows of the formats of providers: the members that have to do with
// cost, the paths that differ, and the tools that clients run.
package costbound

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"modelgate/internal/provider/reqscan"
)

// Bound is what a request says about how much it can cost.
type Bound struct {
	Output  int64 // tokens of one answer at most; 0 where the request leaves it open
	Choices int64 // answers to one input, at least 1
	Inputs  int64 // inputs that are each answered or read by themselves, at least 1
	// Open says to the caller why the request bounds nothing: the provider may run
	// tools of its own, or a number cannot be read. "" means that it is bounded.
	Open string
	Text int64 // bytes of text in the body; 0 for a form
}

// Answers is how many answers there can be, at least 1.
func (b *Bound) Answers() int64 { return max(b.Choices*b.Inputs, 1) }

// ambiguous is Open for a request that two readers could read differently.
const ambiguous = "the request cannot be read in one way only"

const (
	// maxChoices is more than any provider makes of one input. A request for more
	// is not bounded, so that products of counts stay in range.
	maxChoices = 10_000
	// maxInForm is how many pictures a form can ask for.
	maxInForm = 10
)

// role is what a member of a body has to do with the cost of a call.
type role uint8

const (
	count    role = iota + 1 // says how many answers there will be
	settings                 // an object that holds counts and activities as well
	batch                    // a list of inputs, or an object that holds one
	activity                 // lets the provider do more than answer once
	toolList                 // the tools
	limit                    // bounds the output on some paths
	holder                   // an object that some paths look into
)

// roles are the members that have a role, at the top of a body or in settings.
var roles = map[string]role{
	"n": count, "best_of": count, "sampleCount": count, "sample_count": count, "candidateCount": count, "candidate_count": count,
	"generationConfig": settings, "generation_config": settings, "parameters": settings,
	"input": batch, "inputs": batch, "prompt": batch, "texts": batch, "contents": batch, "documents": batch, "requests": batch, "instances": batch,
	"web_search_options": activity, "mcp_servers": activity, "plugins": activity, "search_parameters": activity, "connectors": activity,
	"enable_search": activity, "prediction": activity,
	"tools":           toolList,
	"inferenceConfig": holder, "additionalModelRequestFields": holder, "toolConfig": holder,
	"maxTokens": limit, "max_tokens": limit, "max_completion_tokens": limit, "max_output_tokens": limit, "maxOutputTokens": limit,
}

// Members are the names of the top-level members that Reader reads.
func Members() []string { return slices.Sorted(maps.Keys(roles)) }

// paths say, by the end of a path, what differs there. The first that fits counts.
// A provider ignores the names that other paths have for a limit, and so must a
// bound.
var paths = []struct {
	end    string
	single bool     // all that a request holds belongs to one input
	limits []string // the members that bound the output
	within []string // the objects that hold them; none: the body itself
	unless string   // a member that can lift them; "" for none
}{
	{end: "/chat/completions", single: true, limits: []string{"max_tokens", "max_completion_tokens"}},
	{end: "/completions", limits: []string{"max_tokens"}},
	{end: "/messages", single: true, limits: []string{"max_tokens"}},
	{end: "/responses", single: true, limits: []string{"max_output_tokens"}},
	{end: "enerateContent", single: true, limits: []string{"maxOutputTokens", "max_output_tokens"}, within: []string{"generationConfig", "generation_config"}},
	{end: "/converse", single: true, limits: []string{"maxTokens"}, within: []string{"inferenceConfig"}, unless: "additionalModelRequestFields"},
	{end: "/converse-stream", single: true, limits: []string{"maxTokens"}, within: []string{"inferenceConfig"}, unless: "additionalModelRequestFields"},
	{end: "/invoke", limits: []string{"max_tokens"}},
	{end: "/invoke-with-response-stream", limits: []string{"max_tokens"}},
	{end: "/chat", single: true},
	{end: "/generate", single: true},
	{end: "generation/generation", single: true},
}

// Reader reads bounds. It is safe for concurrent use.
type Reader struct{ members, tools *reqscan.Names }

// NewReader makes a reader.
func NewReader() *Reader {
	return &Reader{members: reqscan.NewNames(Members()...), tools: reqscan.NewNames(toolMembers()...)}
}

// Form is the bound of a request with a form.
func (r *Reader) Form(form *reqscan.Form) Bound {
	b := Bound{Choices: 1, Inputs: 1}
	if text, _, ok := form.Get("n"); ok && text != "" && text != "1" {
		b.Choices = maxInForm
	}
	return b
}

// JSON is the bound of a request to a path, of which at least Members were
// scanned in a body of some bytes. What it cannot read bounds nothing.
func (r *Reader) JSON(path string, fields *reqscan.Fields, bytes int) Bound {
	b := Bound{Choices: 1, Inputs: 1, Text: int64(bytes)}
	single := false
	for i := range paths {
		if p := &paths[i]; strings.HasSuffix(path, p.end) {
			single = p.single
			if lifts, _ := fields.Get(p.unless); !asksFor(lifts) {
				b.Output = r.output(fields, p.limits, p.within)
			}
			break
		}
	}
	for name, value := range fields.All() {
		switch roles[name] {
		case count:
			b.count(value)
		case settings:
			b.settings(value, r.members)
		case batch:
			if !single {
				b.batch(value, r.members)
			}
		case activity:
			b.opens(asksFor(value), name)
		case toolList:
			b.opens(r.runsTools(value), name)
		case holder:
			b.opens(name == "toolConfig" && r.runsSystemTool(value), name)
		}
	}
	return b
}

// output is the largest of the limits, 0 without any.
func (r *Reader) output(fields *reqscan.Fields, limits, within []string) (most int64) {
	if within == nil {
		return largest(fields, limits)
	}
	for _, name := range within {
		object, _ := fields.Get(name)
		members, _ := object.Pick(r.members) // without members where it has one twice
		most = max(most, largest(&members, limits))
	}
	return most
}

// largest is the largest of the members that is a JSON number. A provider might
// not read anything else as the gateway does.
func largest(fields *reqscan.Fields, names []string) (most int64) {
	for _, name := range names {
		if v, _ := fields.Get(name); v.Kind() == reqscan.JSONNumber {
			n, _ := v.Int() // 0 for none
			most = max(most, n)
		}
	}
	return most
}

// count takes in a number of answers.
func (b *Bound) count(v reqscan.Value) {
	if !asksFor(v) {
		return
	}
	n, ok := v.Int()
	if !ok || n > maxChoices {
		b.Choices = maxChoices
		b.Open = "the number of answers that the request asks for has no bound"
		return
	}
	b.Choices = max(b.Choices, n)
}

// settings takes in an object of settings.
func (b *Bound) settings(object reqscan.Value, names *reqscan.Names) {
	members, err := object.Pick(names)
	if err != nil {
		b.Open = ambiguous
		return
	}
	for name, value := range members.All() {
		switch roles[name] {
		case count:
			b.count(value)
		case activity:
			b.opens(asksFor(value), name)
		}
	}
}

// opens notes that a member, if so, lets the provider do more than answer.
func (b *Bound) opens(so bool, member string) {
	if so && b.Open == "" {
		b.Open = fmt.Sprintf("the member %q lets the provider run tools of its own, whose cost has no bound; leave it out, or use budgets that are not strict", member)
	}
}

// batch counts the inputs in a list, or in a list within an object.
func (b *Bound) batch(v reqscan.Value, names *reqscan.Names) {
	b.Inputs = max(b.Inputs, elements(v))
	lists, err := v.Pick(names)
	if err != nil {
		b.Open = ambiguous
	}
	for name, list := range lists.All() {
		if roles[name] == batch {
			b.Inputs = max(b.Inputs, elements(list))
		}
	}
}

// elements counts the inputs in an array. Numbers are the tokens of one input.
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
